//! Files: a DAX mapping if the file system has DAX, else a mapping of the page cache.
//!
//! 1. The file is locked as long as it is mapped. A second open returns [`MediumError::Locked`].
//! 2. Space is allocated on the device before it is mapped. So a full disk is an error here, not a
//!    fault at a later store.
#![expect(unsafe_code, reason = "memory mapping has no safe form")]

use super::fault::Watched;
use super::mapped::{Backing, Mapped, Range};
use super::page::{HUGE_PAGE_BYTES, PAGE_BYTES, advise_huge, unmap};
use super::{Domain, MediumError};
use crate::numa::Placement;
use core::sync::atomic::AtomicU64;
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap, mremap_fixed};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

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
}

impl Default for FileOptions {
    fn default() -> Self {
        Self { reserve_bytes: 256 << 30, require: None, prefault: false, placement: None }
    }
}

impl Mapped {
    /// Creates the file at `path` with `bytes` zeroed bytes, and maps it.
    ///
    /// # Errors
    /// The file exists, the system refuses it, or it does not have the required domain. No file is
    /// left behind then.
    pub fn create(path: &Path, bytes: u64, options: &FileOptions) -> Result<Self, MediumError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(|e| MediumError::system("create the file", e))?;
        Self::map(file, path, 0, bytes, options).inspect_err(|error| {
            // This call created the file, which is empty, so a failed removal is not reported. If
            // another process has locked it first, it belongs to that process.
            if !matches!(error, MediumError::Locked) {
                let _ = std::fs::remove_file(path);
            }
        })
    }

    /// Maps the existing file at `path` as a new one if `is_blank` says that it contains nothing,
    /// because a crash interrupted its creation. Gives it `bytes` zeroed bytes; owner and mode
    /// stay.
    ///
    /// # Errors
    /// As [`open`](Self::open). If the file is not blank, the error is that the file exists.
    pub fn recreate(
        path: &Path,
        bytes: u64,
        options: &FileOptions,
        is_blank: impl FnOnce(&File) -> std::io::Result<bool>,
    ) -> Result<Self, MediumError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|e| MediumError::system("open the file for reading and writing", e))?;
        // With the lock, no other process can write a pool to the file after the check.
        lock(&file)?;
        let blank = is_blank(&file).map_err(|e| MediumError::system("read the file", e))?;
        if !blank {
            let exists = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
            return Err(MediumError::system("create the file", exists));
        }
        file.set_len(0).map_err(|e| MediumError::system("empty the file", e))?;
        Self::map(file, path, 0, bytes, options)
    }

    /// Maps the whole existing file at `path`.
    ///
    /// # Errors
    /// The file does not exist, is open elsewhere, is not writable, or does not have the required
    /// domain. The file is unchanged.
    pub fn open(path: &Path, options: &FileOptions) -> Result<Self, MediumError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|e| MediumError::system("open the file for reading and writing", e))?;
        let metadata =
            file.metadata().map_err(|e| MediumError::system("read the size of the file", e))?;
        Self::map(file, path, metadata.len(), metadata.len(), options)
    }

    fn map(
        file: File,
        path: &Path,
        old: u64,
        bytes: u64,
        options: &FileOptions,
    ) -> Result<Self, MediumError> {
        lock(&file)?;
        let range = Range::reserve(options.reserve_bytes.max(bytes))?;
        let watched = Watched::new(path, range.base.as_ptr() as usize, range.bytes);
        let mut backing = Backing { file, dax: false, _watched: watched };
        // An empty file has no mapping that could be tried.
        backing.dax = bytes > 0 && takes_map_sync(&backing.file);
        backing.place(0, bytes, options.placement.as_ref())?;
        if bytes > old {
            backing.allocate(old, bytes)?;
        }
        backing.map(&range, 0, bytes)?;
        let guaranteed = if backing.dax { dax_domain() } else { Domain::ProcessCrash };
        if let Some(required) = options.require
            && !guaranteed.covers(required)
        {
            return Err(MediumError::Domain { required, given: guaranteed });
        }
        let (write_back, fences) = Self::instructions(guaranteed)?;
        let mapped = Self {
            range,
            len: AtomicU64::new(bytes),
            file: Some(backing),
            write_back,
            fences,
            guaranteed,
            placement: options.placement,
        };
        if options.prefault {
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
    let links =
        file.metadata().map_err(|e| MediumError::system("read the size of the file", e))?.nlink();
    if links == 0 { Err(MediumError::Locked) } else { Ok(()) }
}

/// Returns `true` if the file can be mapped with `MAP_SYNC`, which only persistent memory can. The
/// attempt uses an address of the kernel's choice. A refused fixed mapping may leave a hole in the
/// reserved range, and another thread's mapping could fall into it.
fn takes_map_sync(file: &File) -> bool {
    // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
    let mapped = unsafe {
        mmap(
            core::ptr::null_mut(),
            PAGE_BYTES,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED_VALIDATE | MapFlags::SYNC,
            file,
            0,
        )
    };
    match mapped {
        Ok(at) => {
            unmap(at.cast(), PAGE_BYTES);
            true
        }
        Err(_) => false,
    }
}

/// Returns the domain of a DAX mapping. It is [`Domain::Eadr`] only if every region of the machine
/// reports that its caches are inside the power-fail domain.
fn dax_domain() -> Domain {
    let Ok(devices) = std::fs::read_dir("/sys/bus/nd/devices") else { return Domain::Adr };
    let mut domains = devices
        .flatten()
        .filter(|device| device.file_name().to_string_lossy().starts_with("region"))
        .filter_map(|region| std::fs::read_to_string(region.path().join("persistence_domain")).ok())
        .peekable();
    if domains.peek().is_some() && domains.all(|domain| domain.trim() == "cpu_cache") {
        Domain::Eadr
    } else {
        Domain::Adr
    }
}

impl Drop for Backing {
    /// Unlocks the file explicitly. A forked child has a copy of the descriptor until it runs its
    /// own program, so closing the descriptor alone would keep the file locked that long.
    fn drop(&mut self) {
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

impl Backing {
    /// Extends the file from `old` to `new` bytes and maps the new part.
    pub(super) fn extend(&self, range: &Range, old: u64, new: u64) -> Result<(), MediumError> {
        self.allocate(old, new)?;
        self.map(range, old, new)
    }

    /// Writes the pages of the file and its length to the device.
    pub(super) fn sync(&self) -> Result<(), MediumError> {
        self.file.sync_all().map_err(|e| MediumError::system("write the file to the device", e))
    }

    fn allocate(&self, old: u64, new: u64) -> Result<(), MediumError> {
        let done = match fallocate(&self.file, FallocateFlags::empty(), old, new - old) {
            Err(rustix::io::Errno::OPNOTSUPP) => self.file.set_len(new),
            other => other.map_err(Into::into),
        };
        done.map_err(|e| MediumError::system("allocate space for the file", e))
    }

    fn map(&self, range: &Range, old: u64, new: u64) -> Result<(), MediumError> {
        let old = old as usize / PAGE_BYTES * PAGE_BYTES;
        let new = (new as usize).next_multiple_of(PAGE_BYTES);
        if new == old {
            return Ok(());
        }
        let sharing =
            if self.dax { MapFlags::SHARED_VALIDATE | MapFlags::SYNC } else { MapFlags::SHARED };
        // The first mapping is at an address of the kernel's choice, because a refused fixed
        // mapping might leave a hole in the range. It is then moved to its place. SAFETY: a new
        // mapping of this medium's file touches no existing memory.
        let mapped = unsafe {
            mmap(
                core::ptr::null_mut(),
                new - old,
                ProtFlags::READ | ProtFlags::WRITE,
                sharing,
                &self.file,
                old as u64,
            )
        };
        let mapped = mapped.map_err(|e| MediumError::system("map the file", e))?;
        let target = range.base.as_ptr().wrapping_add(old).cast();
        // SAFETY: the target pages lie in this medium's reserved range, and the moved mapping is
        // the one above. If `old` is inside a page, that page is mapped again from the same file
        // and keeps its contents.
        let moved =
            unsafe { mremap_fixed(mapped, new - old, new - old, MremapFlags::MAYMOVE, target) };
        let at = moved.map_err(|e| {
            unmap(mapped.cast(), new - old);
            MediumError::system("move the mapping of the file", e)
        })?;
        advise_huge(at as usize, new - old);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
