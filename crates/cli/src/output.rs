//! Answers on standard output, progress on standard error.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::io::{self, BufWriter, Stdout, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Standard output, and the form in which the answer is wanted.
#[derive(Debug)]
pub(crate) struct Output {
    stdout: BufWriter<Stdout>,
    /// Whether the answer is to be JSON.
    pub(crate) json: bool,
}

impl Output {
    /// Standard output for an answer in JSON, or in words.
    pub(crate) fn new(json: bool) -> Self {
        Self { stdout: BufWriter::with_capacity(64 << 10, io::stdout()), json }
    }

    /// Prints `object` on a line of its own, at once: a reader may be waiting for it.
    pub(crate) fn object(&mut self, object: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.stdout, object)?;
        self.stdout.write_all(b"\n")?;
        self.stdout.flush()
    }

    /// Prints a table.
    pub(crate) fn table(&mut self, table: &Table) -> io::Result<()> {
        for line in table.lines() {
            writeln!(self.stdout, "{}", line.trim_end())?;
        }
        self.stdout.flush()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stdout.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}

/// A table with these column titles, if any; the columns of `numbers` are aligned to the right.
pub(crate) fn table(titles: &[&str], numbers: std::ops::Range<usize>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if titles.is_empty() {
        table.set_constraints(numbers.clone().map(|_| comfy_table::ColumnConstraint::ContentWidth));
    } else {
        table.set_header(titles.iter().copied());
    }
    for index in numbers {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// A count with a space between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// `number` without its fraction, 0 if it is negative.
#[expect(clippy::cast_sign_loss, reason = "it is not negative")]
pub(crate) fn whole(number: f64) -> u64 {
    number.max(0.0) as u64
}

/// A bar on standard error that appears once the work has lasted a second, if anybody looks at
/// it.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
    shown: bool,
}

impl Progress {
    const PATIENCE: Duration = Duration::from_secs(1);

    /// A bar for `steps` steps; 0 where nobody knows how many there are.
    pub(crate) fn new(steps: u64) -> Self {
        let bar = ProgressBar::with_draw_target(
            (steps > 0).then_some(steps),
            ProgressDrawTarget::hidden(),
        );
        let template = if steps > 0 {
            "{elapsed_precise} {wide_bar} {human_pos}/{human_len} {msg}"
        } else {
            "{elapsed_precise} {human_pos} {msg}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, started: Instant::now(), shown: false }
    }

    /// Notes that `steps` more are done.
    pub(crate) fn advance(&mut self, steps: u64) {
        self.appear();
        self.bar.inc(steps);
    }

    /// Says what is being done.
    pub(crate) fn say(&mut self, what: String) {
        self.appear();
        self.bar.set_message(what);
    }

    fn appear(&mut self) {
        if !self.shown && self.started.elapsed() >= Self::PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
            self.shown = true;
        }
    }
}

/// What is being done, on standard error, for work whose length nobody knows. Any thread may say it.
#[derive(Debug)]
pub(crate) struct Spinner {
    bar: ProgressBar,
}

impl Spinner {
    /// Nothing is shown until something is said.
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
        if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} {spinner} {msg}") {
            bar.set_style(style);
        }
        Self { bar }
    }

    /// Says what is being done.
    pub(crate) fn say(&self, what: &str) {
        self.bar.set_message(what.to_owned());
        self.bar.tick();
    }

    /// Says what has been done, in a line that stays; also where nobody sees the spinner turn.
    pub(crate) fn note(&self, what: &str) {
        if self.bar.is_hidden() {
            let _ = writeln!(io::stderr(), "{what}");
        } else {
            self.bar.println(what);
        }
    }

    /// Takes it away, before the answer is printed.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// Does `work`; if it lasts more than a second, says on standard error what is going on.
pub(crate) fn waiting<R>(what: &'static str, work: impl FnOnce() -> R) -> R {
    let (done, wait) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if wait.recv_timeout(Progress::PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let bar =
                    ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
                bar.set_message(what);
                bar.enable_steady_tick(Duration::from_millis(200));
                let _ = wait.recv(); // Ends when `done` is dropped.
                bar.finish_and_clear();
            }
        });
        let result = work();
        drop(done);
        result
    })
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1 000");
        assert_eq!(grouped(12_345_678), "12 345 678");
    }
}
