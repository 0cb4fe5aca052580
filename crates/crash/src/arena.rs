//! The memory under the recorder and under the refiner: words in DRAM, reached by index.
//!
//! 1. The first word is aligned to a page, so that lines of the arena are lines of the pool.
//! 2. The words never move, and there are as many as the arena may ever grow to.

use bristlecone_pmem::PmWord;
use bristlecone_pmem::medium::MediumError;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

const ALIGN_BYTES: usize = 4096;
const WORD_BYTES: usize = 8;

/// Words that stand for persistent memory.
#[derive(Debug)]
pub(crate) struct Arena {
    cells: Box<[AtomicU64]>,
    first: usize,
    count: usize,
    len: AtomicU64,
}

impl Arena {
    /// `bytes` of zeros that can grow to `reserve_bytes`.
    pub(crate) fn new(bytes: u64, reserve_bytes: u64) -> Self {
        assert!(bytes <= reserve_bytes);
        let count = reserve_bytes as usize / WORD_BYTES;
        let cells: Box<[_]> = core::iter::repeat_with(AtomicU64::default)
            .take(count + ALIGN_BYTES / WORD_BYTES)
            .collect();
        let start = cells.as_ptr().addr();
        let first = (start.next_multiple_of(ALIGN_BYTES) - start) / WORD_BYTES;
        Self { cells, first, count, len: AtomicU64::new(bytes) }
    }

    /// All words, those of the reserve included.
    #[inline(always)]
    pub(crate) fn cells(&self) -> &[AtomicU64] {
        &self.cells[self.first..self.first + self.count]
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        NonNull::from(self.cells()).cast()
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    pub(crate) fn set_len(&self, bytes: u64) {
        self.len.store(bytes, Ordering::Relaxed);
    }

    /// Grows to `bytes`. The words past the old end are zero already.
    pub(crate) fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        let limit = (self.count * WORD_BYTES) as u64;
        if bytes > limit {
            return Err(MediumError::Limit { wanted: bytes, limit });
        }
        self.len.fetch_max(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// The index of `word`, which must be one of the arena's.
    #[inline(always)]
    pub(crate) fn index(&self, word: &PmWord) -> usize {
        let first = &raw const self.cells[self.first];
        (core::ptr::from_ref(word).addr() - first.addr()) / WORD_BYTES
    }

    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> u64 {
        self.cells()[index].load(Ordering::Acquire)
    }

    #[inline(always)]
    pub(crate) fn set(&self, index: usize, value: u64) {
        self.cells()[index].store(value, Ordering::Release);
    }
}

/// The words that `bytes` make, the last padded with zeros.
pub(crate) fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(WORD_BYTES).map(|chunk| {
        let mut word = [0; WORD_BYTES];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    })
}
