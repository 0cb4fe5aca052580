//! Files: a DAX mapping if the file system has DAX, else a mapping of the page cache.
//!
//! 1. The file is locked as long as it is mapped. A second open returns [`MediumError::Locked`].
//! 2. Space is allocated on the device before it is mapped. So a full disk is an error here, not a
//!    fault at a later store.
//! 3. A child of `fork` has no mapping of the file, so it cannot change the file of its parent.
#![expect(unsafe_code, reason = "memory mapping has no safe form")]

use super::ahead::GrowingFile;
use super::backing::{Backing, FileKind};
use super::lock::{LockedFile, metadata};
use super::mapped::{Mapped, Range};
use super::page::HUGE_PAGE_BYTES;
use super::storage::Storage;
use super::{Domain, MediumError};
use crate::numa::Placement;
use core::sync::atomic::AtomicU64;
use rustix::mm::{Advice, madvise};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// The options with which a file is mapped.
#[derive(Clone, Copy, Debug)]
pub struct FileOptions {
    /// The address space to reserve, in bytes: the limit of growth. Default: 256 GiB. A larger file
    /// reserves its own size.
    pub reserve_bytes: u64,
    /// The weakest domain to accept. A mapping with a weaker one is an error. Default: any domain.
    pub require: Option<Domain>,
    /// `true` to touch every page at the open, so that no later store waits for a page. Default:
    /// `false`.
    pub prefault: bool,
    /// The map from stripes to NUMA nodes. Existing pages of the file stay where they are. Default:
    /// none.
    pub placement: Option<Placement>,
    /// The time for which an open waits until another process has closed the file. Default: none.
    pub wait: Duration,
    /// The space that a creation allocates on the device, in bytes, if that is more than the length
    /// of the new file: the file grows into it later. Default: 0.
    pub allocate_bytes: u64,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self {
            reserve_bytes: 256 << 30,
            require: None,
            prefault: false,
            placement: None,
            wait: Duration::ZERO,
            allocate_bytes: 0,
        }
    }
}

impl Mapped {
    /// Creates the file at `path` with `bytes` zeroed bytes, and maps it.
    ///
    /// # Errors
    /// The file exists, the system refuses it, or it does not have the required domain. No file is
    /// left behind then.
    pub fn create(path: &Path, bytes: u64, options: &FileOptions) -> Result<Self, MediumError> {
        Self::begin(path, bytes, options).inspect(Self::keep_file)
    }

    /// Creates and maps the file like [`create`](Self::create). A drop removes it, if its path
    /// still leads to it, until [`keep_file`](Self::keep_file) or
    /// [`finish`](super::Medium::finish). This is for a caller that has more to do before the file
    /// is of use.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn begin(path: &Path, bytes: u64, options: &FileOptions) -> Result<Self, MediumError> {
        Self::begin_on(LockedFile::create(path)?, bytes, options)
    }

    /// Maps a file that this process has created and locked, like [`begin`](Self::begin).
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn begin_on(
        locked: LockedFile,
        bytes: u64,
        options: &FileOptions,
    ) -> Result<Self, MediumError> {
        Self::map(locked, 0, bytes, options)
    }

    /// Keeps the file that [`begin`](Self::begin) created.
    pub fn keep_file(&self) {
        if let Some(file) = &self.file {
            file.backing().locked.finish();
        }
    }

    /// Maps an existing file, which this process has locked, as a new one if `is_blank` says that
    /// it contains nothing, because a crash interrupted its creation. Gives it `bytes` zeroed
    /// bytes; owner and mode stay.
    ///
    /// # Errors
    /// As [`open`](Self::open). If the file is not blank, the error is that the file exists.
    pub fn recreate(
        locked: LockedFile,
        bytes: u64,
        options: &FileOptions,
        is_blank: impl FnOnce(&File) -> std::io::Result<bool>,
    ) -> Result<Self, MediumError> {
        // With the lock, no other process can write a pool to the file after the check.
        let blank = is_blank(locked.file()).map_err(|e| MediumError::system("read the file", e))?;
        if !blank {
            let exists = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
            return Err(MediumError::system("create the file", exists));
        }
        locked.file().set_len(0).map_err(|e| MediumError::system("empty the file", e))?;
        Self::map(locked, 0, bytes, options)
    }

    /// Maps the whole existing file at `path`. Waits for another process that has it open for up to
    /// [`FileOptions::wait`].
    ///
    /// # Errors
    /// The file does not exist, is open elsewhere, is not writable, or does not have the required
    /// domain. The file is unchanged.
    pub fn open(path: &Path, options: &FileOptions) -> Result<Self, MediumError> {
        Self::on(LockedFile::open_within(path, options.wait)?, options)
    }

    /// Maps the whole of a file that this process has locked.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn on(locked: LockedFile, options: &FileOptions) -> Result<Self, MediumError> {
        // With the lock, no other process changes the length any more.
        let bytes = metadata(locked.file())?.len();
        Self::map(locked, bytes, bytes, options)
    }

    /// Leaves the lock of the file to another owner: the file stays locked when this mapping is
    /// dropped, and a file that [`begin`](Self::begin) created stays too.
    ///
    /// # Errors
    /// There is no file, or the system has no descriptor for one more.
    pub fn hand_over(&self) -> Result<LockedFile, MediumError> {
        let file = self.file.as_ref().ok_or(MediumError::Moved)?;
        file.backing().locked.hand_over()
    }

    fn map(
        locked: LockedFile,
        old: u64,
        bytes: u64,
        options: &FileOptions,
    ) -> Result<Self, MediumError> {
        let range = Range::reserve(options.reserve_bytes.max(bytes))?;
        let mut backing = Backing::new(locked, range.base.as_ptr() as usize, range.bytes, bytes)?;
        backing.placement = options.placement;
        backing.map_first(old, bytes, options.allocate_bytes)?;
        let is_dax = backing.kind == FileKind::Dax;
        let guaranteed = if is_dax { Storage::Dax.domain() } else { Domain::ProcessCrash };
        if let Some(required) = options.require
            && !guaranteed.covers(required)
        {
            return Err(MediumError::Domain { required, given: guaranteed });
        }
        let (write_back, fences) = Self::instructions(guaranteed)?;
        let mapped = Self {
            range,
            len: AtomicU64::new(bytes),
            file: Some(GrowingFile::new(backing)),
            write_back,
            fences,
            guaranteed,
            placement: options.placement,
            prefault: options.prefault,
            reproducible: false,
        };
        if options.prefault && bytes > old {
            mapped.prefault(bytes);
        }
        Ok(mapped)
    }

    /// Makes every page of the first `bytes` present and writable now, and asks the system to merge
    /// them into huge pages. This is best effort: if it fails, later stores wait for small pages.
    pub fn prefault(&self, bytes: u64) {
        let bytes = bytes.min(self.len.load(core::sync::atomic::Ordering::Acquire)) as usize;
        let base = self.range.base.as_ptr().cast();
        // SAFETY: the pages belong to this mapping; populating them changes no contents.
        let _ = unsafe { madvise(base, bytes, Advice::LinuxPopulateWrite) };
        if self.file.as_ref().is_some_and(|file| !file.backing().kind.takes_huge_pages()) {
            return;
        }
        // SAFETY: the pages belong to this mapping; merging them changes no contents.
        let _ = unsafe { libc::madvise(base, bytes / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES, COLLAPSE) };
    }

    /// Returns how much of the mapping is on huge pages, in bytes, or `None` if the system does not
    /// tell.
    pub fn huge_page_bytes(&self) -> Option<u64> {
        let start = self.range.base.as_ptr() as usize;
        let ours = start..start + self.range.bytes;
        let map = std::fs::read_to_string("/proc/self/smaps").ok()?;
        let (mut within, mut kilobytes) = (false, 0);
        for line in map.lines() {
            let (head, rest) = line.split_once([' ', '-']).unwrap_or((line, ""));
            if let Ok(address) = usize::from_str_radix(head, 16) {
                within = ours.contains(&address);
            } else if within
                && matches!(head, "AnonHugePages:" | "ShmemPmdMapped:" | "FilePmdMapped:")
            {
                let count = rest.trim().trim_end_matches(" kB").parse::<u64>().ok()?;
                kilobytes += count;
            }
        }
        Some(kilobytes * 1024)
    }
}

/// The advice `MADV_COLLAPSE` of Linux 6.1, which `libc` does not have yet.
const COLLAPSE: libc::c_int = 25;

#[cfg(test)]
mod tests;
