//! The lock of a file: of all processes, one at a time maps it.
//!
//! 1. A child of `fork` shares the lock with its parent. So the child neither unlocks the file nor
//!    removes it.
//! 2. A file that a failed creation leaves is removed before it is unlocked. Otherwise another
//!    process could lock it, make a store of it, and lose that.

use super::MediumError;
use super::fork::Opener;
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
#[derive(Debug)]
pub(crate) struct LockedFile {
    file: File,
    opener: Opener,
    /// The path from the root folder on, so that it stays right if the process changes its folder.
    path: PathBuf,
    /// `true` if this process created the file and has not finished it: the drop removes it (I2).
    is_unfinished: AtomicBool,
}

impl LockedFile {
    /// Creates the file at `path`. Until [`finish`](Self::finish), a drop removes it.
    pub(crate) fn create(path: &Path) -> Result<Self, MediumError> {
        let opener = Opener::this()?;
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let file = file.map_err(|e| MediumError::system("create the file", e))?;
        match lock(&file) {
            Ok(()) => {
                let is_unfinished = AtomicBool::new(true);
                Ok(Self { file, opener, path: absolute(path), is_unfinished })
            }
            // Another process locked the new file first, so it belongs to that process.
            Err(MediumError::Locked) => Err(MediumError::Locked),
            Err(error) => {
                remove(path, &file);
                Err(error)
            }
        }
    }

    /// Opens and locks the file at `path`.
    pub(crate) fn open(path: &Path) -> Result<Self, MediumError> {
        let opener = Opener::this()?;
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file =
            file.map_err(|e| MediumError::system("open the file for reading and writing", e))?;
        lock(&file)?;
        Ok(Self { file, opener, path: absolute(path), is_unfinished: AtomicBool::new(false) })
    }

    /// Keeps the file that this process created.
    pub(crate) fn finish(&self) {
        self.is_unfinished.store(false, Ordering::Relaxed);
    }

    /// Returns the file.
    pub(crate) fn file(&self) -> &File {
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
        if self.opener.is_parent_by_id() {
            return; // I1
        }
        if *self.is_unfinished.get_mut() {
            remove(&self.path, &self.file); // I2
        }
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Calls `attempt` until it returns something other than [`MediumError::Locked`], for `wait` at
/// most.
pub(crate) fn wait_for<T>(
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

fn is_same(a: &Metadata, b: &Metadata) -> bool {
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
