//! Memory of this machine: a DAX file, a plain file or anonymous pages, behind one medium.
//!
//! 1. `write_back` and `fences` say which instructions run; `guaranteed` is the domain of the
//!    mapping. They differ only if the caller emulates another domain, and then `domain` returns
//!    the guarantee.
//! 2. The address range is reserved at the open, so growth never moves the base.
//! 3. The system is told on which nodes pages belong before the pages exist.

use super::ahead::{Extensible, GrowingFile};
use super::backing::Backing;
use super::page::populate;
use super::space::fill_holes;
use super::{Domain, Fenced, Medium, MediumError, for_each_line, machine, prefetch};
use crate::numa::Placement;
use crate::sys::{self, WriteBack};
use crate::word::{PmWord, words_of};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use rustix::mm::{MsyncFlags, msync};

/// A mapping of this machine's memory.
///
/// Made by [`Mapped::open`](Self::open), [`Mapped::create`](Self::create) or
/// [`Mapped::anonymous`](Self::anonymous).
#[derive(Debug)]
pub struct Mapped {
    pub(super) range: Range,
    pub(super) len: AtomicU64,
    pub(super) file: Option<GrowingFile<Backing>>,
    pub(super) write_back: WriteBack,
    pub(super) fences: Fences,
    pub(super) guaranteed: Domain,
    pub(super) placement: Option<Placement>,
    /// `true` if the open of a pool touches every page.
    pub(super) prefault: bool,
    /// `true` if [`Medium::draw`] and [`Medium::boot_id`] return their defaults.
    pub(super) reproducible: bool,
}

/// The instruction that a fence runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fences {
    None,
    /// The fence of [`sys::fence`].
    Stores,
    /// The fence of [`sys::full_fence`].
    All,
}

/// A reserved range of addresses, unmapped on drop.
#[derive(Debug)]
pub(crate) struct Range {
    pub(super) base: NonNull<u8>,
    pub(super) bytes: usize,
}

impl Mapped {
    /// Returns the instruction that writes a line back; [`WriteBack::None`] if the domain needs
    /// none.
    pub fn write_back(&self) -> WriteBack {
        self.write_back
    }

    /// Makes flushes and fences run the instructions of `domain` whatever the mapping is, for
    /// measurements. [`Medium::domain`] still returns the domain of the mapping.
    ///
    /// # Errors
    /// The processor has no write-back instruction.
    pub fn emulate(mut self, domain: Domain) -> Result<Self, MediumError> {
        (self.write_back, self.fences) = Self::instructions(domain)?;
        Ok(self)
    }

    /// Makes flushes write back one line after the other, and fences order loads too: `clflush` and
    /// `mfence`, as programs did before there was `clwb`. For measurements. Changes nothing where
    /// the domain needs no flush.
    ///
    /// # Errors
    /// The processor has no such instruction.
    pub fn flush_serially(mut self) -> Result<Self, MediumError> {
        if self.write_back == WriteBack::None {
            return Ok(self);
        }
        let missing = MediumError::Domain { required: Domain::Adr, given: Domain::ProcessCrash };
        (self.write_back, self.fences) = (WriteBack::serial().ok_or(missing)?, Fences::All);
        Ok(self)
    }

    /// Grows the file to between `least` and `ample` bytes and returns the new length.
    fn extend_file(
        &self,
        file: &GrowingFile<Backing>,
        least: u64,
        ample: u64,
    ) -> Result<u64, MediumError> {
        let backing = file.backing();
        if backing.is_inherited() {
            return Err(MediumError::Inherited);
        }
        if least > backing.limit {
            return Err(MediumError::Limit { wanted: least, limit: backing.limit });
        }
        let len = file.take(least, ample)?;
        self.len.fetch_max(len, Ordering::AcqRel);
        Ok(len)
    }

    /// Makes the pages of `old..new` present and writable now. Only speed depends on it.
    pub(crate) fn populate(&self, old: u64, new: u64) {
        populate(self.range.base.as_ptr() as usize, &(old..new.min(self.len())));
    }

    /// Makes the medium draw no random numbers and know no boot, as a simulation does, so that two
    /// runs on equal files store equal words. For a comparison of a process with a recorded trace:
    /// the pool then cannot tell whether it is torn.
    #[must_use]
    pub fn reproducible(mut self) -> Self {
        self.reproducible = true;
        self
    }

    /// Returns the size of the reserved address space, in bytes.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.range.bytes as u64
    }

    pub(super) fn instructions(domain: Domain) -> Result<(WriteBack, Fences), MediumError> {
        Ok(match domain {
            Domain::Adr => {
                let missing = MediumError::Domain { required: domain, given: Domain::ProcessCrash };
                (WriteBack::detect().ok_or(missing)?, Fences::Stores)
            }
            Domain::Eadr => (WriteBack::None, Fences::Stores),
            Domain::Disk | Domain::ProcessCrash | Domain::Volatile => {
                (WriteBack::None, Fences::None)
            }
        })
    }
}

impl Drop for Mapped {
    /// Ends the thread that extends the file ahead, and cuts off what it has prepared. In a child
    /// of the process that opened the file, leaves everything as it is: the thread does not exist
    /// there, and other memory may lie at the addresses of the mapping.
    fn drop(&mut self) {
        let Some(file) = &self.file else { return };
        if file.backing().locked.opener().is_parent_by_id() {
            file.abandon();
            self.range.abandon();
            return;
        }
        if file.end() {
            file.backing().cut(*self.len.get_mut());
        }
    }
}

#[expect(unsafe_code, reason = "Medium is an unsafe trait")]
// SAFETY: 1. `base` is page-aligned and owned by `range`; `len` bytes of it are mapped and `len`
// shrinks only in `fit_to`, which has the medium to itself. 2. Mapped pages are zero or hold the
// file's contents, and the file is locked. 3. Words are atomics.
unsafe impl Medium for Mapped {
    #[inline(always)]
    fn base(&self) -> NonNull<u8> {
        self.range.base
    }

    #[inline(always)]
    fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    #[cold]
    fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        let limit = self.range.bytes as u64;
        if bytes > limit {
            return Err(MediumError::Limit { wanted: bytes, limit });
        }
        let old = self.len();
        if bytes <= old {
            return Ok(());
        }
        if let Some(file) = &self.file {
            self.extend_file(file, bytes, bytes)?;
        } else {
            self.range.extend_anonymous(old, bytes)?;
            self.range.place(old, bytes, self.placement.as_ref())?;
            self.len.store(bytes, Ordering::Release);
        }
        Ok(())
    }

    #[cold]
    fn grow_between(&self, least: u64, ample: u64) -> Result<u64, MediumError> {
        match &self.file {
            Some(file) => self.extend_file(file, least, ample.min(file.backing().limit)),
            None => self.grow(ample).map(|()| ample).or_else(|_| self.grow(least).map(|()| least)),
        }
    }

    const PREPARES_GROWTH: bool = true;

    #[cold]
    fn prepare_growth(&self, bytes: u64) {
        if let Some(file) = &self.file
            && !file.backing().is_inherited()
        {
            file.prepare(bytes.min(file.backing().limit));
        }
    }

    #[cold]
    fn sync_length(&self) -> Result<(), MediumError> {
        self.file.as_ref().map_or(Ok(()), |file| file.backing().sync_length(self.len()))
    }

    #[cold]
    fn fit_to(&mut self, bytes: u64) -> Result<(), MediumError> {
        if let Some(file) = &self.file {
            let backing = file.backing();
            fill_holes(backing.file(), bytes)?;
            // What is past the pool may have holes too. Growth allocates and maps it again.
            let mut length = backing.length.lock();
            length.ready = length.ready.min(bytes);
        }
        let len = self.len.get_mut();
        *len = bytes.min(*len);
        if self.prefault {
            self.prefault(bytes);
        }
        Ok(())
    }

    #[inline(always)]
    fn is_inherited(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.backing().is_inherited())
    }

    #[cold]
    fn check_path(&self) -> Result<(), MediumError> {
        self.file.as_ref().map_or(Ok(()), |file| file.backing().locked.check_path())
    }

    /// Keeps a file that this process created.
    #[cold]
    fn finish(&self) -> Result<(), MediumError> {
        self.keep_file();
        Ok(())
    }

    fn domain(&self) -> Domain {
        self.guaranteed
    }

    #[cold]
    fn sync(&self) -> Result<(), MediumError> {
        self.file.as_ref().map_or(Ok(()), |file| file.backing().sync())
    }

    /// The system knows the pages that were written since its last sync, and flushes their lines.
    #[cold]
    fn write_back_all(&self) -> Result<(), MediumError> {
        if self.guaranteed == Domain::Adr { self.sync() } else { Ok(()) }
    }

    #[cold]
    fn sync_front(&self, bytes: u64) -> Result<(), MediumError> {
        if self.file.is_none() || self.guaranteed.covers(Domain::Adr) {
            return Ok(());
        }
        let bytes = bytes.min(self.len()) as usize;
        self.range.write_back(bytes)
    }

    fn boot_id(&self) -> [u64; 2] {
        if self.file.is_none() || self.reproducible { [0; 2] } else { machine::boot_id() }
    }

    fn file_id(&self) -> [u64; 2] {
        let file = self.file.as_ref().filter(|_| !self.reproducible);
        file.map_or([0; 2], |file| file.backing().locked.file_id())
    }

    fn draw(&self) -> u64 {
        if self.reproducible { 0 } else { machine::draw() }
    }

    fn placement(&self) -> Option<Placement> {
        self.placement
    }

    #[inline(always)]
    fn load(&self, word: &PmWord) -> u64 {
        word.cell().load(Ordering::Acquire)
    }

    #[inline(always)]
    fn store(&self, word: &PmWord, value: u64) {
        word.cell().store(value, Ordering::Release);
    }

    #[inline(always)]
    fn cas_transient(&self, word: &PmWord, old: u64, new: u64) -> Result<(), u64> {
        word.cell().compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
    }

    #[inline]
    fn fill(&self, target: &[PmWord], source: &[u8]) {
        assert!(
            source.len() <= target.len() * 8,
            "the source of a fill is at most as long as its target"
        );
        if source.len() >= STREAM_BYTES && self.write_back != WriteBack::None {
            sys::stream(words_as_cells(target), source);
            return;
        }
        for (word, value) in target.iter().zip(words_of(source)) {
            word.cell().store(value, Ordering::Release);
        }
        self.flush(&target[..source.len().div_ceil(8)]);
    }

    #[inline(always)]
    fn flush(&self, words: &[PmWord]) {
        if self.write_back != WriteBack::None {
            for_each_line(words, |line| self.write_back.line(line));
        }
    }

    #[inline(always)]
    fn fence(&self) -> Fenced {
        match self.fences {
            Fences::None => {}
            Fences::Stores => sys::fence(),
            Fences::All => sys::full_fence(),
        }
        Fenced::after_fence()
    }

    #[inline(always)]
    fn prefetch(&self, words: &[PmWord]) {
        prefetch(words);
    }
}

impl Range {
    /// Waits until the device has the first `bytes` of the mapping of a file.
    #[expect(unsafe_code, reason = "memory mapping has no safe form")]
    fn write_back(&self, bytes: usize) -> Result<(), MediumError> {
        // SAFETY: the pages belong to this range; writing them to the device changes no contents.
        let written = unsafe { msync(self.base.as_ptr().cast(), bytes, MsyncFlags::SYNC) };
        written.map_err(|e| MediumError::system("write the file to the device", e))
    }
}

/// The size from which on a fill uses non-temporal stores, in bytes. It covers several whole lines.
const STREAM_BYTES: usize = 1024;

#[expect(unsafe_code, reason = "a slice of words is a slice of the cells they wrap")]
fn words_as_cells(words: &[PmWord]) -> &[AtomicU64] {
    // SAFETY: PmWord is a transparent wrapper of AtomicU64, so layout and lifetime are the same.
    unsafe { core::slice::from_raw_parts(words.as_ptr().cast(), words.len()) }
}
