//! Growth ahead: a thread extends the file before the pool needs the space.
//!
//! 1. The thread starts when the pool first runs low, and ends with the medium.
//! 2. It extends the file by a slice at a time, under the lock of the length. So a writer that
//!    overruns it waits for one slice at most.
//! 3. A slice that the thread has extended is past the length of the medium, so no operation uses
//!    it, until the pool grows into it.
//! 4. After a failure the thread rests until a writer has extended the file itself.

use super::backing::{Backing, FileKind};
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

/// A file, and the thread that extends it.
#[derive(Debug)]
pub(super) struct GrowingFile {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    backing: Backing,
    /// The length up to which the thread extends the file, in bytes.
    asked: AtomicU64,
    has_failed: AtomicBool,
    is_ending: AtomicBool,
}

impl GrowingFile {
    /// Returns the file, without a thread yet.
    pub(super) fn new(backing: Backing) -> Self {
        let [has_failed, is_ending] = [false; 2].map(AtomicBool::new);
        let shared = Shared { backing, asked: AtomicU64::new(0), has_failed, is_ending };
        Self { shared: Arc::new(shared), thread: Mutex::new(None) }
    }

    #[inline(always)]
    pub(super) fn backing(&self) -> &Backing {
        &self.shared.backing
    }

    /// Asks the thread to extend the file to `bytes`, and starts it if it does not run yet.
    pub(super) fn prepare(&self, bytes: u64) {
        let shared = &self.shared;
        if shared.asked.load(Ordering::Relaxed) >= bytes {
            return;
        }
        shared.asked.fetch_max(bytes, Ordering::AcqRel);
        let mut thread = self.thread.lock();
        if let Some(thread) = &*thread {
            thread.thread().unpark();
        } else {
            let shared = Arc::clone(shared);
            let name = "bristlecone-growth".to_owned();
            // Without a thread, the writer that needs the space extends the file.
            *thread = Builder::new().name(name).spawn(move || shared.run()).ok();
        }
    }

    /// Lets the thread try again after a failure.
    pub(super) fn retry(&self) {
        if self.shared.has_failed.swap(false, Ordering::AcqRel) {
            self.shared.asked.store(0, Ordering::Release);
        }
    }

    /// Ends the thread and waits for it. Returns `true` if there was one.
    pub(super) fn end(&self) -> bool {
        self.shared.is_ending.store(true, Ordering::Release);
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

    /// Waits until the file is as long as was asked.
    #[cfg(test)]
    pub(super) fn wait_until_ready(&self) {
        while self.backing().length.lock().ready < self.shared.asked.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    }
}

impl Shared {
    fn run(&self) {
        while !self.is_ending.load(Ordering::Acquire) {
            if self.has_failed.load(Ordering::Acquire) || !self.extend() {
                std::thread::park();
            }
        }
    }

    /// Extends the file by a slice, or returns `false` if it is as long as was asked.
    fn extend(&self) -> bool {
        let backing = &self.backing;
        let mut length = backing.length.lock();
        let asked = self.asked.load(Ordering::Acquire);
        let old = length.ready;
        if old >= asked {
            return false;
        }
        let new = slice_end(old).min(asked);
        let done = backing.extend(&mut length, new);
        // A writer that waits comes first.
        MutexGuard::unlock_fair(length);
        if done.is_err() {
            self.has_failed.store(true, Ordering::Release);
            return true;
        }
        backing.populate(old, new);
        if backing.kind == FileKind::Dax {
            // If this fails, so does the growth that needs the length.
            let _ = backing.sync_length(new);
        }
        true
    }
}

#[cfg(test)]
mod tests;
