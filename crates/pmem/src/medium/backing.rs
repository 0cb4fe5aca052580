//! The file behind a mapping: its kind, its lengths, its space on the device.
#![expect(unsafe_code, reason = "memory mapping has no safe form")]

use super::MediumError;
use super::fault::Watched;
use super::lock::{LockedFile, metadata};
use super::page::{advise_huge, page_bytes, pages_around, unmap};
use super::storage::Storage;
use crate::numa::Placement;
use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, fstatfs, seek};
use rustix::io::retry_on_intr;
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap, mremap_fixed};
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::os::unix::fs::MetadataExt;

/// Checks that this process may make a file of `bytes` bytes. If it tried all the same, the system
/// would end it with a signal (`SIGXFSZ`).
pub(crate) fn check_length(bytes: u64) -> rustix::io::Result<()> {
    let limit = getrlimit(Resource::Fsize).current;
    if limit.is_some_and(|limit| bytes > limit) { Err(rustix::io::Errno::FBIG) } else { Ok(()) }
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
            self.allocate_ahead(allocate_bytes)?;
            self.allocate(old, bytes)?;
        } else {
            self.place(0, bytes)?;
        }
        self.map(0, bytes)
    }

    /// Allocates the first `bytes` of the file in one piece, and leaves its length as it is.
    fn allocate_ahead(&self, bytes: u64) -> Result<(), MediumError> {
        if bytes == 0 {
            return Ok(());
        }
        let keep = FallocateFlags::KEEP_SIZE;
        let allocated = check_length(bytes)
            .and_then(|()| retry_on_intr(|| fallocate(self.file(), keep, 0, bytes)));
        match allocated {
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            Err(error) => Err(MediumError::system("allocate space for the file", error)),
        }
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
            let pages = pages_around(&(old..new), page_bytes());
            let at = core::ptr::without_provenance_mut(self.start + pages.start as usize);
            let bytes = (pages.end - pages.start) as usize;
            // SAFETY: the pages belong to this mapping; populating them changes no contents.
            let _ = unsafe { madvise(at, bytes, Advice::LinuxPopulateWrite) };
        }
    }

    /// Allocates space for the holes in the first `bytes`, which a copy of the file may have. A
    /// store to a hole would end the process if the device were full.
    pub(super) fn fill_holes(&self, bytes: u64) -> Result<(), MediumError> {
        /// The unit in which the system counts the space of a file, in bytes.
        const BLOCK_BYTES: u64 = 512;
        // The least that is missing: the system counts its own blocks too, and those past `bytes`.
        let missing = bytes.saturating_sub(metadata(self.file())?.blocks() * BLOCK_BYTES);
        let system = fstatfs(self.file())
            .map_err(|e| MediumError::system("read the space of the file system", e))?;
        let block = u64::try_from(system.f_bsize).unwrap_or(1);
        // A file system without a limit reports no blocks at all. On others, an attempt that must
        // fail would use up all space before it does.
        if system.f_blocks > 0 && missing > system.f_bavail.saturating_mul(block) {
            return Err(MediumError::Holes { missing, source: rustix::io::Errno::NOSPC.into() });
        }
        let done = match missing {
            0 => self.allocate_holes(bytes),
            _ => self.allocate_part(0..bytes),
        };
        match done {
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            Err(error) => {
                let missing = missing.max(block);
                Err(MediumError::Holes { missing, source: error.into() })
            }
        }
    }

    /// Allocates space for each hole in the first `bytes` of the file, if the file system says
    /// where holes are. It may also name space without contents, which is allocated already.
    fn allocate_holes(&self, bytes: u64) -> rustix::io::Result<()> {
        let mut at = 0;
        while at < bytes {
            let begin = match seek(self.file(), SeekFrom::Hole(at)) {
                Ok(begin) => begin.min(bytes),
                Err(rustix::io::Errno::INVAL) => break,
                Err(error) => return Err(error),
            };
            at = match seek(self.file(), SeekFrom::Data(begin)) {
                Ok(end) => end.min(bytes),
                Err(rustix::io::Errno::NXIO) => bytes, // There is no more data.
                Err(error) => return Err(error),
            };
            if begin < at {
                self.allocate_part(begin..at)?;
            }
        }
        // A caller copies a file that was removed from its beginning.
        seek(self.file(), SeekFrom::Start(0)).map(|_| ())
    }

    fn allocate_part(&self, part: core::ops::Range<u64>) -> rustix::io::Result<()> {
        let (begin, bytes) = (part.start, part.end - part.start);
        retry_on_intr(|| fallocate(self.file(), FallocateFlags::empty(), begin, bytes))
    }

    /// Writes the pages of the file and its length to the device.
    pub(super) fn sync(&self) -> Result<(), MediumError> {
        self.file().sync_all().map_err(|e| MediumError::system("write the file to the device", e))
    }

    fn allocate(&self, old: u64, new: u64) -> Result<(), MediumError> {
        let done = match check_length(new).and_then(|()| self.allocate_part(old..new)) {
            Err(rustix::io::Errno::OPNOTSUPP) => self.file().set_len(new),
            other => other.map_err(Into::into),
        };
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
