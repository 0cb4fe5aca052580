//! Progress on standard error, for a person at a terminal.
//!
//! Nothing is drawn where standard error is no terminal, and nothing before the work has lasted a
//! second.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// The time that work must last before its progress is shown.
const PATIENCE: Duration = Duration::from_secs(1);
/// The least time between two redraws of a bar.
const REDRAW: Duration = Duration::from_millis(200);
/// The columns that a status line may have: a longer one wraps, and cannot be erased.
const COLUMNS: usize = 79;

/// A line of the terminal that is drawn again and again, and erased at the end.
#[derive(Debug)]
struct StatusLine {
    is_terminal: bool,
    is_shown: bool,
    started: Instant,
}

impl StatusLine {
    fn new() -> Self {
        let is_terminal = io::stderr().is_terminal();
        Self { is_terminal, is_shown: false, started: Instant::now() }
    }

    /// Draws `text` behind the time that has passed, in place of what was there. Errors are
    /// dropped: the work goes on without its progress.
    fn draw(&mut self, text: &str) {
        if !self.is_terminal {
            return;
        }
        let line: String = format!("{} {text}", clock(self.started.elapsed()))
            .chars()
            .filter(|c| !c.is_control())
            .take(COLUMNS)
            .collect();
        let _ = write!(io::stderr(), "\r{line}\x1b[K");
        self.is_shown = true;
    }

    fn erase(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.erase();
    }
}

/// Returns a time as hours, minutes and seconds.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// A progress bar. Dropping it erases it.
#[derive(Debug)]
pub struct Progress {
    line: StatusLine,
    drawn: Option<Instant>,
    total: u64,
    done: u64,
    message: String,
}

impl Progress {
    /// Returns a bar for `steps` steps; 0 means that their number is unknown.
    pub fn new(steps: u64) -> Self {
        let line = StatusLine::new();
        Self { line, drawn: None, total: steps, done: 0, message: String::new() }
    }

    /// Adds `steps` to the number of finished steps.
    pub fn advance(&mut self, steps: u64) {
        self.done += steps;
        self.draw();
    }

    /// Sets the number of finished steps and that of all steps of the work.
    pub fn set(&mut self, done: u64, total: u64) {
        (self.done, self.total) = (done, total);
        self.draw();
    }

    /// Shows `what` beside the bar: the work that is going on.
    pub fn say(&mut self, what: String) {
        self.message = what;
        self.draw();
    }

    fn draw(&mut self) {
        let is_early = self.line.started.elapsed() < PATIENCE;
        if is_early || self.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW) {
            return;
        }
        self.drawn = Some(Instant::now());
        let text = bar(self.done, self.total);
        self.line.draw(&format!("{text} {}", self.message));
    }
}

/// Returns a bar with the number of steps, or the number alone where the total is unknown.
fn bar(done: u64, total: u64) -> String {
    const WIDTH: u64 = 20;
    if total == 0 {
        return done.to_string();
    }
    let filled = (done.min(total) * WIDTH / total) as usize;
    format!("[{:.<20}] {done}/{total}", "#".repeat(filled))
}

/// A message about the work that is going on, for work whose number of steps is unknown. Any thread
/// may use it.
#[derive(Debug)]
pub struct Spinner {
    state: Mutex<(StatusLine, String)>,
}

impl Default for Spinner {
    fn default() -> Self {
        Self::new()
    }
}

impl Spinner {
    /// Returns a spinner that shows nothing until the first [`say`](Self::say).
    pub fn new() -> Self {
        Self { state: Mutex::new((StatusLine::new(), String::new())) }
    }

    fn with(&self, change: impl FnOnce(&mut StatusLine, &mut String)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (line, message) = &mut *state;
        change(line, message);
    }

    /// Shows `what`: the work that is going on.
    pub fn say(&self, what: &str) {
        self.with(|line, message| {
            what.clone_into(message);
            line.draw(message);
        });
    }

    /// Prints `what` on a line that stays: the work that is done. Prints also where standard error
    /// is no terminal.
    pub fn note(&self, what: &str) {
        self.with(|line, message| {
            line.erase();
            let _ = writeln!(io::stderr(), "{what}");
            line.draw(message);
        });
    }

    /// Erases the message. Call it before the answer is printed.
    pub fn end(&self) {
        self.with(|line, _| line.erase());
    }
}

/// Runs `work` and returns its result. Shows `what` on standard error if `work` lasts more than a
/// second, and the system has a thread for that.
pub fn waiting<R>(what: &'static str, work: impl FnOnce() -> R) -> R {
    let (done, wait) = channel::<()>();
    std::thread::scope(|scope| {
        let _ = Builder::new().spawn_scoped(scope, move || {
            let mut line = StatusLine::new();
            // The channel is closed when `work` has returned.
            while wait.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                line.draw(what);
            }
        });
        let result = work();
        drop(done);
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_full_as_the_work() {
        assert_eq!(bar(7, 0), "7");
        assert_eq!(bar(0, 4), "[....................] 0/4");
        assert_eq!(bar(3, 4), "[###############.....] 3/4");
        assert_eq!(bar(5, 4), "[####################] 5/4");
    }

    #[test]
    fn times_are_hours_minutes_and_seconds() {
        assert_eq!(clock(Duration::from_millis(59_900)), "00:00:59");
        assert_eq!(clock(Duration::from_secs(3 * 3600 + 61)), "03:01:01");
    }
}
