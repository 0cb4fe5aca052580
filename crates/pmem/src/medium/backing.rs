//! The file behind a mapping: its kind, its lengths, its space on the device.
#![expect(unsafe_code, reason = "memory mapping has no safe form")]

use super::MediumError;
use super::ahead::{Extensible, FileLength};
use super::fault::Watched;
use super::lock::LockedFile;
use super::page::{advise_huge, page_bytes, pages_around, populate, unmap};
use super::space::{allocate, allocate_ahead};
use super::storage::Storage;
use crate::numa::Placement;
use parking_lot::Mutex;
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap, mremap_fixed};
use std::fs::File;

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

impl FileKind {
    fn of(file: &File, bytes: u64) -> Result<Self, MediumError> {
        // An empty file has no mapping that could be tried.
        let storage = if bytes > 0 { Storage::of(file) } else { Storage::of_system(file) };
        Ok(match storage? {
            Storage::Dax => Self::Dax,
            Storage::Memory(_) => Self::SharedMemory,
            Storage::Disk | Storage::Unsure(_) => Self::PageCache,
        })
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
    pub(super) placement: Option<Placement>,
    pub(super) length: Mutex<FileLength>,
    _watched: Watched,
}

impl Backing {
    /// Returns the locked file of `bytes` bytes, which is to be mapped into the range of
    /// `range_bytes` at `start`.
    pub(super) fn new(
        locked: LockedFile,
        start: usize,
        range_bytes: usize,
        bytes: u64,
    ) -> Result<Self, MediumError> {
        Ok(Self {
            kind: FileKind::of(locked.file(), bytes)?,
            _watched: Watched::new(locked.path(), start, range_bytes),
            locked,
            start,
            limit: range_bytes as u64,
            placement: None,
            length: Mutex::new(FileLength { ready: bytes, durable: 0 }),
        })
    }

    /// Maps the first `bytes`, of which the file has `old` already. If it has fewer, space for the
    /// first `allocate_bytes` is allocated before.
    pub(super) fn map_first(
        &self,
        old: u64,
        bytes: u64,
        allocate_bytes: u64,
    ) -> Result<(), MediumError> {
        if bytes > old {
            self.place(0, bytes.max(allocate_bytes))?;
            allocate_ahead(self.file(), allocate_bytes)?;
            self.allocate(old, bytes)?;
        } else {
            self.place(0, bytes)?;
        }
        self.map(0, bytes)
    }

    /// Returns the file.
    pub(super) fn file(&self) -> &File {
        self.locked.file()
    }

    /// Returns `true` in a child of the process that opened the file.
    #[inline(always)]
    pub(super) fn is_inherited(&self) -> bool {
        self.locked.opener().is_parent()
    }

    /// Cuts off what is past `bytes`, which no pool uses.
    pub(super) fn cut(&self, bytes: u64) {
        let length = self.length.lock();
        if length.ready > bytes {
            // The next open finds a file that is longer than its pool, which is no damage.
            let _ = self.file().set_len(bytes);
        }
    }

    /// Writes the pages of the file and its length to the device.
    pub(super) fn sync(&self) -> Result<(), MediumError> {
        self.file().sync_all().map_err(|e| MediumError::system("write the file to the device", e))
    }

    fn allocate(&self, old: u64, new: u64) -> Result<(), MediumError> {
        let done = allocate(self.file(), old, new);
        done.map_err(|e| MediumError::system("allocate space for the file", e))
    }

    fn map(&self, old: u64, new: u64) -> Result<(), MediumError> {
        let pages = pages_around(&(old..new), page_bytes());
        let (old, bytes) = (pages.start, (pages.end - pages.start) as usize);
        if bytes == 0 {
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
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                sharing,
                self.file(),
                old,
            )
        };
        let mapped = mapped.map_err(|e| MediumError::system("map the file", e))?;
        // SAFETY: the pages are those of the new mapping; the advice changes no contents. (I3)
        let kept = unsafe { madvise(mapped, bytes, Advice::LinuxDontFork) };
        let target = core::ptr::without_provenance_mut(self.start + old as usize);
        // SAFETY: the target pages lie in this medium's reserved range, and the moved mapping is
        // the one above. If `old` is inside a page, that page is mapped again from the same file
        // and keeps its contents.
        let moved = kept.and_then(|()| unsafe {
            mremap_fixed(mapped, bytes, bytes, MremapFlags::MAYMOVE, target)
        });
        let at = moved.map_err(|e| {
            unmap(mapped.cast(), bytes);
            MediumError::system("move the mapping of the file", e)
        })?;
        if self.kind.takes_huge_pages() {
            advise_huge(at as usize, bytes);
        }
        Ok(())
    }

    /// Tells the system to place the future pages of `old..new` of the file on the nodes of the
    /// placement.
    fn place(&self, old: u64, new: u64) -> Result<(), MediumError> {
        self.place_on(old, new, self.placement.as_ref())
    }
}

impl Extensible for Backing {
    fn length(&self) -> &Mutex<FileLength> {
        &self.length
    }

    fn extend(&self, length: &mut FileLength, new: u64) -> Result<(), MediumError> {
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

    /// Makes the pages present and writable. A first store to a page of the page cache waits for
    /// the file system, at times for some milliseconds.
    fn populate(&self, old: u64, new: u64) {
        populate(self.start, &(old..new));
    }

    fn has_durable_length(&self) -> bool {
        self.kind == FileKind::Dax
    }

    fn sync_file(&self, _bytes: u64) -> Result<(), MediumError> {
        let synced = self.file().sync_all();
        synced.map_err(|e| MediumError::system("make the length of the file durable", e))
    }
}
