//! The lock of a file: of all processes, one at a time maps it.
//!
//! 1. A child of `fork` shares the lock with its parent. So the child neither unlocks the file nor
//!    removes it.
//! 2. A file that a failed creation leaves is removed before it is unlocked. Otherwise another
//!    process could lock it, make a store of it, and lose that.

use super::fork::Opener;
use super::storage::Storage;
use super::{MediumError, identity};
use core::sync::atomic::{AtomicBool, Ordering};
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The first pause of a wait for the lock. Each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(1);
/// The longest pause of a wait for the lock.
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// A file that this process has locked. Unlocked on drop.
///
/// A medium takes it over: [`Mapped::on`](super::Mapped::on),
/// [`Journaled::on`](crate::journal::Journaled::on).
#[derive(Debug)]
pub struct LockedFile {
    file: File,
    opener: Opener,
    /// The path from the root folder on, so that it stays right if the process changes its folder.
    path: PathBuf,
    /// `true` if this process created the file and has not finished it: the drop removes it (I2).
    is_unfinished: AtomicBool,
    /// `true` if another owner has the lock now: the drop leaves the file to it.
    is_handed_over: AtomicBool,
}

impl LockedFile {
    /// Creates the file at `path`. A drop removes it, until a medium on it is kept.
    ///
    /// # Errors
    /// The file exists, or the system refuses it. No file is left behind then.
    pub fn create(path: &Path) -> Result<Self, MediumError> {
        let opener = Opener::this()?;
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let file = file.map_err(|e| MediumError::system("create the file", e))?;
        match lock(&file) {
            Ok(()) => Ok(Self::new(file, opener, absolute(path), true)),
            // Another process locked the new file first, so it belongs to that process.
            Err(MediumError::Locked) => Err(MediumError::Locked),
            Err(error) => {
                remove(path, &file);
                Err(error)
            }
        }
    }

    /// Opens the file at `path`. Waits for another process that has it open for up to `wait`.
    ///
    /// # Errors
    /// The file does not exist, is open elsewhere, or is not writable.
    pub fn open_within(path: &Path, wait: Duration) -> Result<Self, MediumError> {
        wait_for(wait, || Self::open(path))
    }

    /// Opens and locks the file at `path`.
    fn open(path: &Path) -> Result<Self, MediumError> {
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file =
            file.map_err(|e| MediumError::system("open the file for reading and writing", e));
        Self::claim(file?, path)
    }

    /// Locks `file`, to which `path` has led. It counts as locked by another process if the path
    /// does not lead to it any more: its journal, and its next user, would be elsewhere.
    fn claim(file: File, path: &Path) -> Result<Self, MediumError> {
        let opener = Opener::this()?;
        lock(&file)?;
        let locked = Self::new(file, opener, absolute(path), false);
        match locked.check_path() {
            Err(MediumError::Moved | MediumError::Removed { .. }) => Err(MediumError::Locked),
            found => found.map(|()| locked),
        }
    }

    fn new(file: File, opener: Opener, path: PathBuf, is_unfinished: bool) -> Self {
        let [is_unfinished, is_handed_over] = [is_unfinished, false].map(AtomicBool::new);
        Self { file, opener, path, is_unfinished, is_handed_over }
    }

    /// Returns another owner of the lock, which this one leaves to it. The file stays locked all
    /// the time.
    pub(crate) fn hand_over(&self) -> Result<Self, MediumError> {
        let opener = Opener::this()?;
        // The copy has the lock too: it belongs to what both descriptors name.
        let file = self.file.try_clone();
        let file = file.map_err(|e| MediumError::system("keep the file open", e))?;
        let is_unfinished = self.is_unfinished();
        self.is_handed_over.store(true, Ordering::Relaxed);
        Ok(Self::new(file, opener, self.path.clone(), is_unfinished))
    }

    /// Returns `true` if this process created the file and has not finished it.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.is_unfinished.load(Ordering::Relaxed)
    }

    /// Removes the file if this process created it and has not finished it (I2). Returns `true`
    /// then. What lies beside the file can be removed after that: no other process finds the file
    /// without.
    pub(crate) fn remove_unfinished(&self) -> bool {
        let is_unfinished = self.is_unfinished();
        if is_unfinished {
            remove(&self.path, &self.file);
        }
        is_unfinished
    }

    /// Returns the storage of the file.
    ///
    /// # Errors
    /// The system does not tell the type of the file system.
    pub fn storage(&self) -> Result<Storage, MediumError> {
        Storage::of(&self.file)
    }

    /// Returns the path from the root folder on.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the file that this process created.
    pub(crate) fn finish(&self) {
        self.is_unfinished.store(false, Ordering::Relaxed);
    }

    /// Returns what tells the file from a copy of it.
    pub(crate) fn file_id(&self) -> [u64; 2] {
        identity::of(&self.file)
    }

    /// Returns the file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the process that locked the file.
    #[inline(always)]
    pub(crate) fn opener(&self) -> &Opener {
        &self.opener
    }

    /// Checks that the path still leads to the file.
    pub(crate) fn check_path(&self) -> Result<(), MediumError> {
        let here = metadata(&self.file)?;
        if here.nlink() == 0 {
            let file = self.file.try_clone();
            let file = file.map_err(|e| MediumError::system("keep the file open", e))?;
            return Err(MediumError::Removed { file });
        }
        match std::fs::metadata(&self.path) {
            Ok(there) if !is_same(&here, &there) => Err(MediumError::Moved),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(MediumError::Moved),
            // A folder that this user may no longer read says nothing about the file.
            _ => Ok(()),
        }
    }
}

impl Drop for LockedFile {
    /// Unlocks the file explicitly. A forked child has a copy of the descriptor until it runs its
    /// own program, so closing the descriptor alone would keep the file locked that long.
    fn drop(&mut self) {
        if self.opener.is_parent_by_id() || *self.is_handed_over.get_mut() {
            return; // I1
        }
        self.remove_unfinished();
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Calls `attempt` until it returns something other than [`MediumError::Locked`], for `wait` at
/// most.
fn wait_for<T>(
    wait: Duration,
    mut attempt: impl FnMut() -> Result<T, MediumError>,
) -> Result<T, MediumError> {
    let start = Instant::now();
    let mut pause = PAUSE_MIN;
    loop {
        let left = wait.saturating_sub(start.elapsed());
        match attempt() {
            Err(MediumError::Locked) if !left.is_zero() => {
                std::thread::sleep(pause.min(left));
                pause = (2 * pause).min(PAUSE_MAX);
            }
            done => return done,
        }
    }
}

/// Locks the file as long as it is open. Locking it again changes nothing.
fn lock(file: &File) -> Result<(), MediumError> {
    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|e| {
        if e == rustix::io::Errno::WOULDBLOCK {
            MediumError::Locked
        } else {
            MediumError::system("lock the file", e)
        }
    })?;
    // Its creator may have failed and removed the file before this lock. Then no path leads to the
    // file.
    if metadata(file)?.nlink() == 0 { Err(MediumError::Locked) } else { Ok(()) }
}

/// Removes `path` if it leads to `file`. A failure is not reported: a caller that removes a file
/// reports why.
fn remove(path: &Path, file: &File) {
    if let (Ok(here), Ok(there)) = (file.metadata(), std::fs::symlink_metadata(path))
        && is_same(&here, &there)
    {
        let _ = std::fs::remove_file(path);
    }
}

/// Returns `true` if both are of one file.
pub(crate) fn is_same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Returns the size and the links of the file.
pub(crate) fn metadata(file: &File) -> Result<Metadata, MediumError> {
    file.metadata().map_err(|e| MediumError::system("read the size of the file", e))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.into())
}

#[cfg(test)]
mod tests;
