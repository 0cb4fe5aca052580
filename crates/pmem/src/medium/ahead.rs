//! Growth ahead: a thread extends the file before the pool needs the space.
//!
//! 1. The thread starts when the pool first runs low, and ends with the medium.
//! 2. It extends the file by a slice at a time, under the lock of the length. So a writer that
//!    overruns it waits for one slice at most.
//! 3. A slice that the thread has extended is past the length of the medium, so no operation uses
//!    it, until the pool grows into it.
//! 4. After a failure the thread rests until a writer has extended the file itself.

use super::file::{Backing, FileKind};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use parking_lot::{Mutex, MutexGuard};
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// The size of a slice, in bytes: a multiple of a huge page, which takes some milliseconds to
/// allocate.
const SLICE_BYTES: u64 = 4 << 20;

/// Returns the end of the slice that begins at `bytes` or before.
pub(super) fn slice_end(bytes: u64) -> u64 {
    (bytes / SLICE_BYTES + 1) * SLICE_BYTES
}

/// The thread of a file, and what it is to do.
#[derive(Debug)]
pub(super) struct Ahead {
    /// The length up to which the thread extends the file, in bytes.
    asked: AtomicU64,
    has_failed: AtomicBool,
    is_ending: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Ahead {
    pub(super) fn new() -> Self {
        Self {
            asked: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            thread: Mutex::new(None),
        }
    }

    /// Lets the thread try again after a failure.
    pub(super) fn retry(&self) {
        if self.has_failed.swap(false, Ordering::AcqRel) {
            self.asked.store(0, Ordering::Release);
        }
    }

    /// Ends the thread and waits for it. Returns `true` if there was one.
    pub(super) fn end(&self) -> bool {
        self.is_ending.store(true, Ordering::Release);
        let Some(thread) = self.thread.lock().take() else { return false };
        thread.thread().unpark();
        let ended = thread.join();
        debug_assert!(ended.is_ok(), "the thread does not panic");
        true
    }

    /// Forgets the thread, in a child of its process.
    pub(super) fn abandon(&self) {
        // The lock may have been held when the process forked; no thread of the child has it.
        if let Some(mut thread) = self.thread.try_lock() {
            let _ = ManuallyDrop::new(thread.take());
        }
    }
}

impl Backing {
    /// Asks the thread to extend the file to `bytes`, and starts it if it does not run yet.
    pub(super) fn prepare(self: &Arc<Self>, bytes: u64) {
        let ahead = &self.ahead;
        if ahead.asked.load(Ordering::Relaxed) >= bytes {
            return;
        }
        ahead.asked.fetch_max(bytes, Ordering::AcqRel);
        let mut thread = ahead.thread.lock();
        match &*thread {
            Some(thread) => thread.thread().unpark(),
            None => {
                let backing = Arc::clone(self);
                let name = "bristlecone-growth".to_owned();
                // Without a thread, the writer that needs the space extends the file.
                *thread = Builder::new().name(name).spawn(move || backing.run_ahead()).ok();
            }
        }
    }

    /// Waits until the file is as long as was asked.
    #[cfg(test)]
    pub(super) fn wait_until_ready(&self) {
        while self.length.lock().ready < self.ahead.asked.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    }

    fn run_ahead(&self) {
        while !self.ahead.is_ending.load(Ordering::Acquire) {
            if self.ahead.has_failed.load(Ordering::Acquire) || !self.extend_ahead() {
                std::thread::park();
            }
        }
    }

    /// Extends the file by a slice, or returns `false` if it is as long as was asked.
    fn extend_ahead(&self) -> bool {
        let mut length = self.length.lock();
        let asked = self.ahead.asked.load(Ordering::Acquire);
        let old = length.ready;
        if old >= asked {
            return false;
        }
        let new = slice_end(old).min(asked);
        let done = self.extend(&mut length, new);
        // A writer that waits comes first.
        MutexGuard::unlock_fair(length);
        if done.is_err() {
            self.ahead.has_failed.store(true, Ordering::Release);
            return true;
        }
        self.populate(old, new);
        if self.kind == FileKind::Dax {
            // If this fails, so does the growth that needs the length.
            let _ = self.sync_length(new);
        }
        true
    }
}

#[cfg(test)]
mod tests;
