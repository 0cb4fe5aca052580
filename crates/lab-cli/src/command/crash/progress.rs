//! The progress bar of an exploration, which the explorer and the printing of results share.

use bristlecone_console::progress::Progress;
use bristlecone_crash::{ProgressFn, Request};
use std::sync::{Arc, Mutex, PoisonError};

/// A progress bar with the numbers of finished tasks and of all tasks. Dropping it erases it.
pub(super) struct SharedProgress(Arc<Mutex<Progress>>);

impl Default for SharedProgress {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Progress::new(0))))
    }
}

impl SharedProgress {
    /// Returns a function that draws the numbers of finished tasks and of all tasks.
    pub(super) fn function(&self) -> ProgressFn {
        // Not a clone: the bar ends with `self`, and not with the request.
        let bar = Arc::downgrade(&self.0);
        ProgressFn::new(move |done, total| {
            if let Some(bar) = bar.upgrade() {
                bar.lock().unwrap_or_else(PoisonError::into_inner).set(done, total);
            }
        })
    }

    /// Returns `request` with this bar as its progress function.
    pub(super) fn watching(&self, request: &Request) -> Request {
        Request { progress: self.function(), ..request.clone() }
    }

    /// Shows `what` beside the bar: the newest result.
    pub(super) fn say(&self, what: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).say(what);
    }
}
