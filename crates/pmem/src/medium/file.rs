//! Files: a DAX mapping if the file system has DAX, else a mapping of the page cache.
//!
//! 1. The file is locked as long as it is mapped. A second open returns [`MediumError::Locked`].
//! 2. Space is allocated on the device before it is mapped. So a full disk is an error here, not a
//!    fault at a later store.
//! 3. A child of `fork` has no mapping of the file, so it cannot change the file of its parent.
#![expect(unsafe_code, reason = "memory mapping has no safe form")]

use super::ahead::Ahead;
use super::fault::Watched;
use super::lock::{LockedFile, metadata, wait_for};
use super::mapped::{Mapped, Range};
use super::page::{HUGE_PAGE_BYTES, PAGE_BYTES, advise_huge, unmap};
use super::{Domain, MediumError};
use crate::numa::Placement;
use core::sync::atomic::AtomicU64;
use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, fallocate, fstatfs};
use rustix::io::retry_on_intr;
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap, mremap_fixed};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
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
        Self::map(LockedFile::create(path)?, path, 0, bytes, options)
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
        let locked = wait_for(options.wait, || LockedFile::open(path))?;
        // With the lock, no other process can write a pool to the file after the check.
        let blank = is_blank(locked.file()).map_err(|e| MediumError::system("read the file", e))?;
        if !blank {
            let exists = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
            return Err(MediumError::system("create the file", exists));
        }
        locked.file().set_len(0).map_err(|e| MediumError::system("empty the file", e))?;
        Self::map(locked, path, 0, bytes, options)
    }

    /// Maps the whole existing file at `path`. Waits for another process that has it open for up to
    /// [`FileOptions::wait`].
    ///
    /// # Errors
    /// The file does not exist, is open elsewhere, is not writable, or does not have the required
    /// domain. The file is unchanged.
    pub fn open(path: &Path, options: &FileOptions) -> Result<Self, MediumError> {
        let locked = wait_for(options.wait, || LockedFile::open(path))?;
        // With the lock, no other process changes the length any more.
        let bytes = metadata(locked.file())?.len();
        Self::map(locked, path, bytes, bytes, options)
    }

    fn map(
        locked: LockedFile,
        path: &Path,
        old: u64,
        bytes: u64,
        options: &FileOptions,
    ) -> Result<Self, MediumError> {
        let range = Range::reserve(options.reserve_bytes.max(bytes))?;
        let start = range.base.as_ptr() as usize;
        let mut backing = Backing {
            kind: FileKind::of(locked.file(), bytes)?,
            _watched: Watched::new(path, start, range.bytes),
            locked,
            start,
            limit: range.bytes as u64,
            placement: options.placement,
            length: Mutex::new(FileLength { ready: bytes, durable: 0 }),
            ahead: Ahead::new(),
        };
        if bytes > old {
            backing.place(0, bytes.max(options.allocate_bytes))?;
            backing.allocate_ahead(options.allocate_bytes)?;
            backing.allocate(old, bytes)?;
        } else {
            backing.place(0, bytes)?;
        }
        backing.map(0, bytes)?;
        let is_dax = backing.kind == FileKind::Dax;
        let guaranteed = if is_dax { dax_domain() } else { Domain::ProcessCrash };
        if let Some(required) = options.require
            && !guaranteed.covers(required)
        {
            return Err(MediumError::Domain { required, given: guaranteed });
        }
        let (write_back, fences) = Self::instructions(guaranteed)?;
        backing.locked.finish();
        let mapped = Self {
            range,
            len: AtomicU64::new(bytes),
            file: Some(Arc::new(backing)),
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

    /// Removes the file, if its path still leads to it. For a caller that created it and could not
    /// finish it.
    pub fn remove_file(&self) {
        if let Some(backing) = &self.file {
            backing.locked.remove();
        }
    }

    /// Makes every page of the first `bytes` present and writable now, and asks the system to merge
    /// them into huge pages. This is best effort: if it fails, later stores wait for small pages.
    pub fn prefault(&self, bytes: u64) {
        let bytes = bytes.min(self.len.load(core::sync::atomic::Ordering::Acquire)) as usize;
        let base = self.range.base.as_ptr().cast();
        // SAFETY: the pages belong to this mapping; populating them changes no contents.
        let _ = unsafe { madvise(base, bytes, Advice::LinuxPopulateWrite) };
        if self.file.as_ref().is_some_and(|backing| !backing.kind.takes_huge_pages()) {
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

/// The kind of a file, which decides how its pages are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    /// The pages are those of the device.
    Dax,
    /// The pages are those of a file system in memory.
    SharedMemory,
    /// The pages are a cache of the device.
    PageCache,
}

/// The file-system type of shared memory (`tmpfs`).
pub(super) const SHARED_MEMORY: i64 = 0x0102_1994;

impl FileKind {
    fn of(file: &File, bytes: u64) -> Result<Self, MediumError> {
        // An empty file has no mapping that could be tried.
        if bytes > 0 && takes_map_sync(file) {
            return Ok(Self::Dax);
        }
        let system = fstatfs(file)
            .map_err(|e| MediumError::system("read the type of the file system", e))?;
        let is_shared = system.f_type == SHARED_MEMORY;
        Ok(if is_shared { Self::SharedMemory } else { Self::PageCache })
    }

    /// Returns `true` if huge pages save time. In a page cache they cost it: a store then dirties
    /// 2 MiB, and the system writes all of them to the device.
    pub(super) fn takes_huge_pages(self) -> bool {
        self != Self::PageCache
    }
}

/// The file of a mapping. It is locked as long as it is mapped.
#[derive(Debug)]
pub(super) struct Backing {
    pub(super) kind: FileKind,
    pub(super) locked: LockedFile,
    /// The first address of the reserved range.
    start: usize,
    /// The size of the reserved range, in bytes.
    pub(super) limit: u64,
    placement: Option<Placement>,
    pub(super) length: Mutex<FileLength>,
    /// The thread that extends the file before the pool grows.
    pub(super) ahead: Ahead,
    _watched: Watched,
}

/// The lengths of the file.
#[derive(Debug)]
pub(super) struct FileLength {
    /// The length that has space on the device and is mapped, in bytes. At least that of the
    /// medium.
    pub(super) ready: u64,
    /// The length that survives a power cut on a DAX mapping, in bytes.
    pub(super) durable: u64,
}

impl Backing {
    /// Returns the file.
    pub(super) fn file(&self) -> &File {
        self.locked.file()
    }

    /// Returns `true` in a child of the process that opened the file.
    #[inline(always)]
    pub(super) fn is_inherited(&self) -> bool {
        self.locked.opener().is_parent()
    }

    /// Extends the file to `new` bytes and maps the new part. If that fails, the file has its old
    /// length again, and the device its space.
    pub(super) fn extend(&self, length: &mut FileLength, new: u64) -> Result<(), MediumError> {
        let old = length.ready;
        self.place(old, new)?;
        let done = self.allocate(old, new).and_then(|()| self.map(old, new));
        if done.is_err() {
            // Some file systems keep what they could allocate. No thread uses a page past `ready`.
            let _ = self.file().set_len(old);
        } else {
            length.ready = new;
        }
        done
    }

    /// Makes the length of the file survive a power cut, on a DAX mapping. Elsewhere the contents
    /// do not survive one either.
    pub(super) fn sync_length(&self, bytes: u64) -> Result<(), MediumError> {
        if self.kind != FileKind::Dax {
            return Ok(());
        }
        let mut length = self.length.lock();
        if length.durable < bytes {
            let ready = length.ready;
            let synced = self.file().sync_all();
            synced.map_err(|e| MediumError::system("make the length of the file durable", e))?;
            length.durable = ready;
        }
        Ok(())
    }

    /// Cuts off what is past `bytes`, which no pool uses.
    pub(super) fn cut(&self, bytes: u64) {
        let length = self.length.lock();
        if length.ready > bytes {
            // The next open finds a file that is longer than its pool, which is no damage.
            let _ = self.file().set_len(bytes);
        }
    }

    /// Makes the pages of `old..new` present and writable now, where that costs no write to a
    /// device. Only speed depends on it.
    pub(super) fn populate(&self, old: u64, new: u64) {
        if self.kind != FileKind::PageCache {
            let at = core::ptr::without_provenance_mut(self.start + old as usize);
            // SAFETY: the pages belong to this mapping; populating them changes no contents.
            let _ = unsafe { madvise(at, (new - old) as usize, Advice::LinuxPopulateWrite) };
        }
    }

    /// Allocates space for the holes in the first `bytes`, which a copy of the file may have. A
    /// store to a hole would end the process if the device were full.
    pub(super) fn fill_holes(&self, bytes: u64) -> Result<(), MediumError> {
        /// The unit in which the system counts the space of a file, in bytes.
        const BLOCK_BYTES: u64 = 512;
        let missing = bytes.saturating_sub(metadata(self.file())?.blocks() * BLOCK_BYTES);
        if missing == 0 {
            return Ok(());
        }
        let system = fstatfs(self.file())
            .map_err(|e| MediumError::system("read the space of the file system", e))?;
        let block = u64::try_from(system.f_bsize).unwrap_or(1);
        // A file system without a limit reports no blocks at all. On others, an attempt that must
        // fail would use up all space before it does.
        if system.f_blocks > 0 && missing > system.f_bavail.saturating_mul(block) {
            return Err(MediumError::Holes { missing, source: rustix::io::Errno::NOSPC.into() });
        }
        match retry_on_intr(|| fallocate(self.file(), FallocateFlags::empty(), 0, bytes)) {
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            Err(error) => Err(MediumError::Holes { missing, source: error.into() }),
        }
    }

    /// Writes the pages of the file and its length to the device.
    pub(super) fn sync(&self) -> Result<(), MediumError> {
        self.file().sync_all().map_err(|e| MediumError::system("write the file to the device", e))
    }

    /// Allocates the first `bytes` of the file in one piece, and leaves its length as it is.
    fn allocate_ahead(&self, bytes: u64) -> Result<(), MediumError> {
        if bytes == 0 {
            return Ok(());
        }
        match retry_on_intr(|| fallocate(self.file(), FallocateFlags::KEEP_SIZE, 0, bytes)) {
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            Err(error) => Err(MediumError::system("allocate space for the file", error)),
        }
    }

    fn allocate(&self, old: u64, new: u64) -> Result<(), MediumError> {
        let empty = FallocateFlags::empty();
        let done = match retry_on_intr(|| fallocate(self.file(), empty, old, new - old)) {
            Err(rustix::io::Errno::OPNOTSUPP) => self.file().set_len(new),
            other => other.map_err(Into::into),
        };
        done.map_err(|e| MediumError::system("allocate space for the file", e))
    }

    fn map(&self, old: u64, new: u64) -> Result<(), MediumError> {
        let old = old as usize / PAGE_BYTES * PAGE_BYTES;
        let new = (new as usize).next_multiple_of(PAGE_BYTES);
        if new == old {
            return Ok(());
        }
        let sharing = match self.kind {
            FileKind::Dax => MapFlags::SHARED_VALIDATE | MapFlags::SYNC,
            FileKind::SharedMemory | FileKind::PageCache => MapFlags::SHARED,
        };
        // The first mapping is at an address of the kernel's choice, because a refused fixed
        // mapping might leave a hole in the range. It is then moved to its place. SAFETY: a new
        // mapping of this medium's file touches no existing memory.
        let mapped = unsafe {
            mmap(
                core::ptr::null_mut(),
                new - old,
                ProtFlags::READ | ProtFlags::WRITE,
                sharing,
                self.file(),
                old as u64,
            )
        };
        let mapped = mapped.map_err(|e| MediumError::system("map the file", e))?;
        // SAFETY: the pages are those of the new mapping; the advice changes no contents. (I3)
        let kept = unsafe { madvise(mapped, new - old, Advice::LinuxDontFork) };
        let target = core::ptr::without_provenance_mut(self.start + old);
        // SAFETY: the target pages lie in this medium's reserved range, and the moved mapping is
        // the one above. If `old` is inside a page, that page is mapped again from the same file
        // and keeps its contents.
        let moved = kept.and_then(|()| unsafe {
            mremap_fixed(mapped, new - old, new - old, MremapFlags::MAYMOVE, target)
        });
        let at = moved.map_err(|e| {
            unmap(mapped.cast(), new - old);
            MediumError::system("move the mapping of the file", e)
        })?;
        if self.kind.takes_huge_pages() {
            advise_huge(at as usize, new - old);
        }
        Ok(())
    }

    /// Tells the system to place the future pages of `old..new` of the file on the nodes of the
    /// placement.
    fn place(&self, old: u64, new: u64) -> Result<(), MediumError> {
        self.place_on(old, new, self.placement.as_ref())
    }
}

#[cfg(test)]
mod tests;
