//! Growth ahead: a thread extends the file before the pool needs the space.
//!
//! 1. The thread starts when the pool first runs low, and ends with the medium.
//! 2. It extends the file by a slice at a time, under the lock of the length. So a writer that
//!    overruns it waits for one slice at most, or for the sync of the length that it needs itself.
//!    Pages are made present, and the length durable, without the lock.
//! 3. A slice that the thread has extended is past the length of the medium, so no operation uses
//!    it, until the pool grows into it.
//! 4. After a failure the thread rests until a writer has extended the file itself.

use super::MediumError;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use parking_lot::{Mutex, MutexGuard};
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// The size of a slice, in bytes: a multiple of a huge page, which takes some milliseconds to
/// allocate.
const SLICE_BYTES: u64 = 4 << 20;

/// Returns the end of the slice that begins at `bytes` or before.
fn slice_end(bytes: u64) -> u64 {
    (bytes / SLICE_BYTES + 1) * SLICE_BYTES
}

/// The lengths of a file that grows.
#[derive(Debug)]
pub(crate) struct FileLength {
    /// The length that has space on the device and is mapped, in bytes. At least that of the
    /// medium.
    pub(crate) ready: u64,
    /// The length that survives a power cut, in bytes, where contents do so too. Elsewhere 0.
    pub(crate) durable: u64,
}

/// A file that can be extended.
pub(crate) trait Extensible: fmt::Debug + Send + Sync + 'static {
    /// Returns the lengths of the file.
    fn length(&self) -> &Mutex<FileLength>;
    /// Extends the file to `new` bytes, with space on the device, and maps the new part.
    ///
    /// # Errors
    /// The device is full, or the system refuses. The file is as long as before then.
    fn extend(&self, length: &mut FileLength, new: u64) -> Result<(), MediumError>;
    /// Makes the pages of `old..new` present, for which the first writer would wait. Only speed
    /// depends on it.
    fn populate(&self, old: u64, new: u64);
    /// Returns `true` if the length is to survive a power cut, because the contents do.
    fn has_durable_length(&self) -> bool;
    /// Makes the length of the file, which is now at least `bytes`, survive a power cut.
    ///
    /// # Errors
    /// The system could not write it.
    fn sync_file(&self, bytes: u64) -> Result<(), MediumError>;

    /// Makes a length of `bytes` survive a power cut, unless it does.
    ///
    /// # Errors
    /// As [`sync_file`](Self::sync_file).
    fn sync_length(&self, bytes: u64) -> Result<(), MediumError> {
        let ready = {
            let length = self.length().lock();
            if length.durable >= bytes || !self.has_durable_length() {
                return Ok(());
            }
            length.ready
        };
        self.sync_file(ready)?;
        let mut length = self.length().lock();
        length.durable = length.durable.max(ready);
        Ok(())
    }
}

impl<F: Extensible> Extensible for Arc<F> {
    fn length(&self) -> &Mutex<FileLength> {
        (**self).length()
    }
    fn extend(&self, length: &mut FileLength, new: u64) -> Result<(), MediumError> {
        (**self).extend(length, new)
    }
    fn populate(&self, old: u64, new: u64) {
        (**self).populate(old, new);
    }
    fn has_durable_length(&self) -> bool {
        (**self).has_durable_length()
    }
    fn sync_file(&self, bytes: u64) -> Result<(), MediumError> {
        (**self).sync_file(bytes)
    }
}

/// A file, and the thread that extends it.
#[derive(Debug)]
pub(crate) struct GrowingFile<F> {
    shared: Arc<Shared<F>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared<F> {
    backing: F,
    /// The length up to which the thread extends the file, in bytes.
    asked: AtomicU64,
    has_failed: AtomicBool,
    is_ending: AtomicBool,
}

impl<F: Extensible> GrowingFile<F> {
    /// Returns the file, without a thread yet.
    pub(crate) fn new(backing: F) -> Self {
        let [has_failed, is_ending] = [false; 2].map(AtomicBool::new);
        let shared = Shared { backing, asked: AtomicU64::new(0), has_failed, is_ending };
        Self { shared: Arc::new(shared), thread: Mutex::new(None) }
    }

    #[inline(always)]
    pub(crate) fn backing(&self) -> &F {
        &self.shared.backing
    }

    /// Returns a length from `least` to `ample` to which the medium may grow. Uses what is ready;
    /// else extends the file by one slice, so that the caller waits no longer than for that.
    ///
    /// # Errors
    /// The file cannot be extended to `least`.
    pub(crate) fn take(&self, least: u64, ample: u64) -> Result<u64, MediumError> {
        let file = self.backing();
        let mut length = file.length().lock();
        if length.ready < least {
            let slice = ample.min(slice_end(length.ready)).max(least);
            match file.extend(&mut length, slice) {
                Err(_) if slice > least => file.extend(&mut length, least)?,
                other => other?,
            }
            self.retry();
        }
        // The caller would wait for a sync of what is not durable.
        let usable = if length.durable >= least { length.durable } else { length.ready };
        Ok(usable.min(ample))
    }

    /// Asks the thread to extend the file to `bytes`, and starts it if it does not run yet.
    pub(crate) fn prepare(&self, bytes: u64) {
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
    fn retry(&self) {
        if self.shared.has_failed.swap(false, Ordering::AcqRel) {
            self.shared.asked.store(0, Ordering::Release);
        }
    }

    /// Ends the thread and waits for it. Returns `true` if there was one.
    pub(crate) fn end(&self) -> bool {
        self.shared.is_ending.store(true, Ordering::Release);
        let Some(thread) = self.thread.lock().take() else { return false };
        thread.thread().unpark();
        let ended = thread.join();
        debug_assert!(ended.is_ok(), "the thread does not panic");
        true
    }

    /// Forgets the thread, in a child of its process.
    pub(crate) fn abandon(&self) {
        // The lock may have been held when the process forked; no thread of the child has it.
        if let Some(mut thread) = self.thread.try_lock() {
            let _ = ManuallyDrop::new(thread.take());
        }
    }

    /// Waits until the file is as long as was asked.
    #[cfg(test)]
    pub(crate) fn wait_until_ready(&self) {
        while self.backing().length().lock().ready < self.shared.asked.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    }
}

impl<F: Extensible> Shared<F> {
    fn run(&self) {
        while !self.is_ending.load(Ordering::Acquire) {
            if self.has_failed.load(Ordering::Acquire) || !self.extend() {
                std::thread::park();
            }
        }
    }

    /// Extends the file by a slice. If it is as long as was asked, makes its length durable, once
    /// for all slices, and returns `false`.
    fn extend(&self) -> bool {
        let backing = &self.backing;
        let mut length = backing.length().lock();
        let asked = self.asked.load(Ordering::Acquire);
        let old = length.ready;
        if old >= asked {
            drop(length);
            // If this fails, so does the growth that needs the length.
            let _ = backing.sync_length(old);
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
        true
    }
}

#[cfg(test)]
mod tests;
