//! Progress on standard error, for a person at a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The time that work must last before its progress is shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often a second the terminal is redrawn, at most.
const REDRAWS_PER_SECOND: u8 = 5;

/// A progress bar. It appears once the work has lasted a second, if standard error is a terminal,
/// and disappears when it is dropped.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
    shown: bool,
}

impl Progress {
    /// Returns a bar for `steps` steps; 0 means that their number is unknown.
    pub fn new(steps: u64) -> Self {
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

    /// Adds `steps` to the number of finished steps.
    pub fn advance(&mut self, steps: u64) {
        self.appear();
        self.bar.inc(steps);
    }

    /// Shows `what` beside the bar: the work that is going on.
    pub fn say(&mut self, what: String) {
        self.appear();
        self.bar.set_message(what);
    }

    fn appear(&mut self) {
        if !self.shown && self.started.elapsed() >= PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_SECOND));
            self.shown = true;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A spinner with a message, for work whose number of steps is unknown. Any thread may use it.
#[derive(Debug)]
pub struct Spinner {
    bar: ProgressBar,
}

impl Default for Spinner {
    fn default() -> Self {
        Self::new()
    }
}

impl Spinner {
    /// Returns a spinner that shows nothing until the first [`say`](Self::say).
    pub fn new() -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_SECOND);
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} {spinner} {msg}") {
            bar.set_style(style);
        }
        Self { bar }
    }

    /// Shows `what` beside the spinner: the work that is going on.
    pub fn say(&self, what: &str) {
        self.bar.set_message(what.to_owned());
        self.bar.tick();
    }

    /// Prints `what` on a line that stays: the work that is done. Prints also where standard error
    /// is no terminal.
    pub fn note(&self, what: &str) {
        if self.bar.is_hidden() {
            let _ = writeln!(io::stderr(), "{what}");
        } else {
            self.bar.println(what);
        }
    }

    /// Removes the spinner. Call it before the answer is printed.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// Runs `work` and returns its result. Shows `what` on standard error if `work` lasts more than a
/// second.
pub fn waiting<R>(what: &'static str, work: impl FnOnce() -> R) -> R {
    let (done, wait) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if wait.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let target = ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_SECOND);
                let bar = ProgressBar::with_draw_target(None, target);
                bar.set_message(what);
                bar.enable_steady_tick(Duration::from_millis(200));
                let _ = wait.recv(); // Returns when `done` is dropped.
                bar.finish_and_clear();
            }
        });
        let result = work();
        drop(done);
        result
    })
}
