//! The pages of working memory that changed since their last checkpoint: a bit for each.

use crate::dram::Blocks;
use crate::medium::MediumError;
use core::sync::atomic::Ordering;

/// The size of a page, in bytes: what a checkpoint copies at a time.
pub(super) const PAGE_BYTES: u64 = 4096;
/// The number of words in a block of bits.
const BLOCK_WORDS: usize = 8;
/// The number of pages in a block of bits.
const BLOCK_PAGES: u64 = 64 * BLOCK_WORDS as u64;

/// The dirty marks.
#[derive(Debug)]
pub(super) struct Pages {
    bits: Blocks<BLOCK_WORDS>,
}

impl Pages {
    /// Returns clean marks for `bytes` bytes.
    pub(super) fn new(bytes: u64) -> Result<Self, MediumError> {
        let pages = Self { bits: Blocks::new()? };
        pages.extend(bytes);
        Ok(pages)
    }

    /// Makes room for the marks of `bytes` bytes.
    pub(super) fn extend(&self, bytes: u64) {
        self.bits.extend((bytes.div_ceil(PAGE_BYTES) / BLOCK_PAGES) as usize);
    }

    fn place(page: u64) -> (usize, usize, u64) {
        let (block, bit) = (page / BLOCK_PAGES, page % BLOCK_PAGES);
        (block as usize, (bit / 64) as usize, 1 << (bit % 64))
    }

    /// Marks a page as changed.
    #[inline]
    pub(super) fn mark(&self, page: u64) {
        let (block, word, bit) = Self::place(page);
        let word = &self.bits.get(block)[word];
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Clears the mark of a page.
    pub(super) fn clear(&self, page: u64) {
        let (block, word, bit) = Self::place(page);
        self.bits.get(block)[word].fetch_and(!bit, Ordering::AcqRel);
    }

    /// Returns the first marked page of `from..end`.
    pub(super) fn next(&self, from: u64, end: u64) -> Option<u64> {
        let mut page = from;
        while page < end {
            let (block, word, _) = Self::place(page);
            let bits = self.bits.get(block)[word].load(Ordering::Acquire) >> (page % 64);
            if bits != 0 {
                let found = page + u64::from(bits.trailing_zeros());
                return (found < end).then_some(found);
            }
            page = (page / 64 + 1) * 64;
        }
        None
    }
}
