//! Files: a DAX mapping where the file system can give one, the page cache elsewhere.
//!
//! 1. The file is locked for as long as it is mapped; a second opener is told so.
//! 2. Space is allocated on the device before it is mapped, so a full disk is an error here and
//!    not a fault at some later store.
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

/// How a file is mapped.
#[derive(Clone, Copy, Debug)]
pub struct FileOptions {
    /// Address space to reserve, which bounds growth, in bytes. 256 GiB unless said, more for a
    /// file that is larger.
    pub reserve_bytes: u64,
    /// The weakest domain to accept; what the mapping gives is an error if it is less.
    pub require: Option<Domain>,
    /// Touch every page at open, so that no later store waits for one.
    pub prefault: bool,
    /// Which node each stripe belongs to. Pages that the file has already stay where they are.
    pub placement: Option<Placement>,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self { reserve_bytes: 256 << 30, require: None, prefault: false, placement: None }
    }
}

impl Mapped {
    /// Creates the file at `path`, `bytes` long and zeroed, and maps it.
    ///
    /// # Errors
    /// The file exists, or the system refuses it, or it cannot give the required domain; no file
    /// is left behind.
    pub fn create(path: &Path, bytes: u64, options: &FileOptions) -> Result<Self, MediumError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(|e| MediumError::system("create the file", e))?;
        Self::map(file, path, 0, bytes, options).inspect_err(|error| {
            // The file is ours and holds nothing; that it cannot be removed is no new trouble. If
            // someone else locked it first, it is theirs.
            if !matches!(error, MediumError::Locked) {
                let _ = std::fs::remove_file(path);
            }
        })
    }

    /// Takes over the existing file at `path` if `is_blank` says that it holds nothing: a creation
    /// that a crash cut off. Makes it `bytes` long and zeroed, and maps it; its owner and mode
    /// stay.
    ///
    /// # Errors
    /// As [`open`](Self::open); or it is not blank, which is told as a file that exists already.
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
        // Nobody can begin to fill it between the look and the change.
        lock(&file)?;
        let blank = is_blank(&file).map_err(|e| MediumError::system("read the file", e))?;
        if !blank {
            let exists = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
            return Err(MediumError::system("create the file", exists));
        }
        file.set_len(0).map_err(|e| MediumError::system("empty the file", e))?;
        Self::map(file, path, 0, bytes, options)
    }

    /// Maps the existing file at `path`, all of it.
    ///
    /// # Errors
    /// There is no such file, it is open elsewhere, it may not be written, or its mapping cannot
    /// give the required domain. The file is unchanged.
    pub fn open(path: &Path, options: &FileOptions) -> Result<Self, MediumError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|e| MediumError::system("open the file for reading and writing", e))?;
        let metadata = file.metadata().map_err(|e| MediumError::system("read its size", e))?;
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
        // Of an empty file nothing is mapped, so nothing is known.
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

    /// Makes every page of the first `bytes` present and writable now, and asks the system to put
    /// them together into pages of 2 MiB. Best effort: without it the pages come one by one, small.
    pub fn prefault(&self, bytes: u64) {
        let bytes = bytes.min(self.len.load(core::sync::atomic::Ordering::Acquire)) as usize;
        let base = self.range.base.as_ptr().cast();
        // SAFETY: the pages are ours; populating them changes no content.
        let _ = unsafe { madvise(base, bytes, Advice::LinuxPopulateWrite) };
        // SAFETY: the pages are ours; putting them together changes no content.
        let _ = unsafe { libc::madvise(base, bytes / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES, COLLAPSE) };
    }

    /// Bytes of the mapping that are on pages of 2 MiB; `None` where the system does not tell.
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

/// `MADV_COLLAPSE` of Linux 6.1, which the bindings do not name yet.
const COLLAPSE: libc::c_int = 25;

/// Locks the file for as long as it is open; to lock it again changes nothing.
fn lock(file: &File) -> Result<(), MediumError> {
    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|e| {
        if e == rustix::io::Errno::WOULDBLOCK {
            MediumError::Locked
        } else {
            MediumError::system("lock the file", e)
        }
    })?;
    // Its creator may have failed and removed it while we waited to look: then it is nobody's.
    let links = file.metadata().map_err(|e| MediumError::system("read its size", e))?.nlink();
    if links == 0 { Err(MediumError::Locked) } else { Ok(()) }
}

/// Whether a mapping of the file accepts `MAP_SYNC`: then it is persistent memory, and any other file
/// system refuses. Tried at an address of the kernel's choice: a fixed mapping that is refused may
/// leave a hole in the reserved range, into which another thread's mapping can fall.
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

/// What a DAX mapping survives: flush-free only where every region of the machine says that its
/// caches are inside the power-fail domain.
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
    /// Unlocks by word, not by closing alone: a child that was forked meanwhile has a copy of the
    /// descriptor until it runs its own program, and would keep the file locked as long.
    fn drop(&mut self) {
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

impl Backing {
    /// Lengthens the file from `old` to `new` bytes and maps what was added.
    pub(super) fn extend(&self, range: &Range, old: u64, new: u64) -> Result<(), MediumError> {
        self.allocate(old, new)?;
        self.map(range, old, new)
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
        // What the file system refuses, it refuses at an address of the kernel's choice: a fixed mapping
        // that failed might leave a hole in the range. What is there is then put into its place.
        // SAFETY: a new mapping of our own file.
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
        // SAFETY: the pages lie in the range that we reserved, and what moves there is ours. Where
        // `old` splits a page, that page is mapped again from the same file, so its content stays.
        let moved =
            unsafe { mremap_fixed(mapped, new - old, new - old, MremapFlags::MAYMOVE, target) };
        let at = moved.map_err(|e| {
            unmap(mapped.cast(), new - old);
            MediumError::system("map the file at its place", e)
        })?;
        advise_huge(at as usize, new - old);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
