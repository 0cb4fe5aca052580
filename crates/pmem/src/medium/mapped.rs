//! Memory of this machine: a DAX file, a plain file or anonymous pages, behind one medium.
//!
//! 1. `write_back` and `fences` say which instructions run; `guaranteed` is the domain of the
//!    mapping. They differ only if the caller emulates another domain, and then `domain` returns
//!    the guarantee.
//! 2. The address range is reserved at the open, so growth never moves the base.
//! 3. The system is told on which nodes pages belong before the pages exist.

use super::fault::Watched;
use super::{Domain, Fenced, Medium, MediumError, machine};
use crate::numa::Placement;
use crate::sys::{self, WriteBack};
use crate::word::PmWord;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use rustix::mm::{MsyncFlags, msync};
use std::fs::File;

/// A mapping of this machine's memory.
///
/// Made by [`Mapped::open`](Self::open), [`Mapped::create`](Self::create) or
/// [`Mapped::anonymous`](Self::anonymous).
#[derive(Debug)]
pub struct Mapped {
    pub(super) range: Range,
    pub(super) len: AtomicU64,
    pub(super) file: Option<Backing>,
    pub(super) write_back: WriteBack,
    pub(super) fences: bool,
    pub(super) guaranteed: Domain,
    pub(super) placement: Option<Placement>,
}

/// The file of a mapping. It is locked as long as it is open.
#[derive(Debug)]
pub(super) struct Backing {
    pub(super) file: File,
    pub(super) dax: bool,
    pub(super) _watched: Watched,
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

    pub(super) fn instructions(domain: Domain) -> Result<(WriteBack, bool), MediumError> {
        Ok(match domain {
            Domain::Adr => {
                let missing = MediumError::Domain { required: domain, given: Domain::ProcessCrash };
                (WriteBack::detect().ok_or(missing)?, true)
            }
            Domain::Eadr => (WriteBack::None, true),
            Domain::ProcessCrash | Domain::Volatile => (WriteBack::None, false),
        })
    }
}

#[expect(unsafe_code, reason = "Medium is an unsafe trait")]
// SAFETY: 1. `base` is page-aligned and owned by `range`; `len` bytes of it are mapped and `len`
// only grows. 2. Mapped pages are zero or hold the file's contents, and the file is locked. 3.
// Words are atomics.
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
        if let Some(backing) = &self.file {
            backing.place(old, bytes, self.placement.as_ref())?;
            backing.extend(&self.range, old, bytes)?;
        } else {
            self.range.extend_anonymous(old, bytes)?;
            self.range.place(old, bytes, self.placement.as_ref())?;
        }
        self.len.store(bytes, Ordering::Release);
        Ok(())
    }

    fn domain(&self) -> Domain {
        self.guaranteed
    }

    #[cold]
    fn sync(&self) -> Result<(), MediumError> {
        self.file.as_ref().map_or(Ok(()), Backing::sync)
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
        self.file.as_ref().map_or([0; 2], |_| machine::boot_id())
    }

    fn draw(&self) -> u64 {
        machine::draw()
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
        for (word, bytes) in target.iter().zip(source.chunks(8)) {
            let mut value = [0; 8];
            value[..bytes.len()].copy_from_slice(bytes);
            word.cell().store(u64::from_le_bytes(value), Ordering::Release);
        }
        self.flush(&target[..source.len().div_ceil(8)]);
    }

    #[inline(always)]
    fn flush(&self, words: &[PmWord]) {
        if self.write_back != WriteBack::None {
            let bytes = core::mem::size_of_val(words);
            for line in crate::line::lines(words.as_ptr() as usize, bytes) {
                self.write_back.line(line);
            }
        }
    }

    #[inline(always)]
    fn fence(&self) -> Fenced {
        if self.fences {
            sys::fence();
        }
        Fenced::after_fence()
    }

    #[inline(always)]
    fn prefetch(&self, words: &[PmWord]) {
        for line in crate::line::lines(words.as_ptr() as usize, core::mem::size_of_val(words)) {
            sys::prefetch(line);
        }
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
