//! The leaf words: two words in DRAM for each leaf, by the number of its block in the pool.
//!
//! | word | bits | field |
//! | --- | --- | --- |
//! | 0 | 0..64 | latch of the leaf |
//! | 1 | 0..45 | hidden: the slots whose entries the last split has moved, three for each cell |
//! | 1 | 45..51 | the number of entries that are not hidden |
//! | 1 | 51..64 | filter: for a key in a far cell, the two bits that its hash chooses are set |
//!
//! 1. The words of a block stay where they are, and the version of its latch only grows, also when
//!    the block becomes another leaf. So a thread that follows a stale offset restarts.
//! 2. The second word changes only under the latch.
//! 3. The offset of a leaf is a multiple of its size, so no two leaves share words.

use super::word::SLOTS;
use crate::inner::{Arena, load, store};
use bristlecone_pmem::sync::{Latch, OnDram};
use bristlecone_pmem::{Medium, PmPtr, PoolError, sys};
use core::sync::atomic::AtomicU64;

const WORDS: usize = 2;
const LATCH: usize = 0;
const NOTES: usize = 1;

/// The greatest number of cells of a leaf.
pub(super) const CELLS_MAX: usize = 15;

const COUNT_SHIFT: usize = SLOTS * CELLS_MAX;
const FILTER_SHIFT: usize = COUNT_SHIFT + 6;
const FILTER_BITS: u64 = 64 - FILTER_SHIFT as u64;
const HIDDEN: u64 = (1 << COUNT_SHIFT) - 1;
const COUNT: u64 = ((1 << FILTER_SHIFT) - 1) & !HIDDEN;
const _: () = assert!(SLOTS * CELLS_MAX <= (COUNT >> COUNT_SHIFT) as usize);

/// The words of all leaves.
#[derive(Debug)]
pub(super) struct LeafWordTable {
    words: Arena<WORDS>,
}

impl LeafWordTable {
    pub(super) fn new() -> Result<Self, PoolError> {
        Ok(Self { words: Arena::new()? })
    }

    /// Returns the words of the leaf at `at`, of `bytes` bytes.
    #[inline(always)]
    pub(super) fn row(&self, at: PmPtr, bytes: usize) -> LeafWords<'_> {
        LeafWords { at, words: self.words.get(at.offset() as usize / bytes) }
    }

    /// Prefetches the words of the leaf at `at`, of `bytes` bytes, if there is one.
    pub(super) fn prefetch(&self, at: PmPtr, bytes: usize) {
        self.words.prefetch(at.offset() as usize / bytes);
    }

    /// Makes the words of the new leaf at `at` exist, with the notes `notes`. No other thread
    /// reaches the leaf yet.
    pub(super) fn add<M: Medium>(&self, at: PmPtr, bytes: usize, notes: Notes) {
        self.words.extend(at.offset() as usize / bytes);
        self.row(at, bytes).set_notes::<M>(notes);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.words.bytes()
    }
}

/// A view of the words of a leaf.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafWords<'a> {
    /// The offset of the leaf in the pool.
    pub(super) at: PmPtr,
    words: &'a [AtomicU64; WORDS],
}

impl<'a> LeafWords<'a> {
    #[inline(always)]
    pub(super) fn latch<M: Medium>(self) -> Latch<OnDram<'a, M>> {
        OnDram::latch(&self.words[LATCH])
    }

    #[inline(always)]
    pub(super) fn prefetch(self) {
        sys::prefetch(self.words.as_ptr() as usize);
    }

    /// Returns the notes. A reader validates the version of the latch.
    #[inline(always)]
    pub(super) fn notes<M: Medium>(self) -> Notes {
        Notes(load::<M>(&self.words[NOTES]))
    }

    /// Sets the notes, under the latch.
    #[inline(always)]
    pub(super) fn set_notes<M: Medium>(self, notes: Notes) {
        store::<M>(&self.words[NOTES], notes.0);
    }
}

/// The second word of a leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Notes(u64);

impl Notes {
    /// Returns the number of entries that are not hidden.
    #[inline(always)]
    pub(super) fn count(self) -> usize {
        ((self.0 & COUNT) >> COUNT_SHIFT) as usize
    }

    /// Returns the hidden slots of `cell`, as a bit mask.
    #[inline(always)]
    pub(super) fn hidden_in(self, cell: usize) -> u64 {
        self.0 >> (SLOTS * cell) & ((1 << SLOTS) - 1)
    }

    /// Returns `true` if no slot is hidden.
    pub(super) fn has_none_hidden(self) -> bool {
        self.0 & HIDDEN == 0
    }

    /// Returns the notes with this number of entries.
    #[inline(always)]
    pub(super) fn with_count(self, count: usize) -> Self {
        Self(self.0 & !COUNT | (count as u64) << COUNT_SHIFT)
    }

    /// Returns `true` if a key with this hash may lie in a far cell.
    #[inline(always)]
    pub(super) fn has_far(self, hash: u64) -> bool {
        self.0 & filter_bits(hash) == filter_bits(hash)
    }

    /// Returns the notes with a key with this hash in a far cell.
    pub(super) fn with_far(self, hash: u64) -> Self {
        Self(self.0 | filter_bits(hash))
    }

    /// Returns the notes with an empty filter.
    pub(super) fn without_filter(self) -> Self {
        Self(self.0 & (HIDDEN | COUNT))
    }

    /// Returns the notes with `slot` of `cell` hidden.
    pub(super) fn with_hidden(self, cell: usize, slot: usize) -> Self {
        Self(self.0 | 1 << (SLOTS * cell + slot))
    }

    /// Returns the notes with the slots that are hidden in `other` hidden, too, whose entries count
    /// no more.
    pub(super) fn hiding(self, other: Self) -> Self {
        let hidden = other.0 & HIDDEN;
        let count = self.count().saturating_sub(hidden.count_ones() as usize);
        Self(self.0 | hidden).with_count(count)
    }

    /// Returns the notes with no slot of `cell` hidden.
    #[inline(always)]
    pub(super) fn without_hidden_in(self, cell: usize) -> Self {
        Self(self.0 & !(((1 << SLOTS) - 1) << (SLOTS * cell)))
    }
}

/// Returns the bits of the filter that a key with this hash sets: two, or one.
#[inline(always)]
fn filter_bits(hash: u64) -> u64 {
    let bit = |part: u64| 1 << (FILTER_SHIFT as u64 + (((part & 0xffff) * FILTER_BITS) >> 16));
    bit(hash >> 16) | bit(hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_slots_the_count_and_the_filter_share_a_word() {
        let last = CELLS_MAX - 1;
        let notes = Notes::default().with_count(45).with_hidden(last, 2).with_hidden(0, 1);
        assert_eq!((notes.count(), notes.hidden_in(last), notes.hidden_in(0)), (45, 0b100, 0b010));
        assert_eq!(notes.with_count(7).with_count(45), notes);
        let shown = notes.without_hidden_in(last).without_hidden_in(0);
        assert!(shown.has_none_hidden() && !notes.has_none_hidden() && shown.count() == 45);
        assert_eq!(shown.hiding(notes), notes.with_count(43));
        for hash in (0..1 << 16).map(|part| part << 16 | part << 31) {
            let far = notes.with_far(hash);
            assert!(far.has_far(hash) && !notes.has_far(hash) && far.without_filter() == notes);
            assert_eq!(far.with_count(7).with_count(45), far);
        }
    }
}
