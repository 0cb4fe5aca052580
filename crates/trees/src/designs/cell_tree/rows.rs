//! The leaf words: two words in DRAM for each leaf, by the number of its block in the pool.
//!
//! | word | bits | field |
//! | --- | --- | --- |
//! | 0 | 0..64 | latch of the leaf |
//! | 1 | 0..45 | hidden: the slots whose entries the last split has moved, three for each cell |
//! | 1 | 48..56 | the number of entries that are not hidden |
//!
//! 1. The words of a block stay where they are, and the version of its latch only grows, also when
//!    the block becomes another leaf. So a thread that follows a stale offset restarts.
//! 2. The second word changes only under the latch.
//! 3. The offset of a leaf is a multiple of its size, so no two leaves share words.

use super::word::SLOTS;
use crate::inner::{Arena, load, store};
use bristlecone_pmem::sync::{Latch, OnDram};
use bristlecone_pmem::{Medium, PmPtr, PoolError};
use core::sync::atomic::AtomicU64;

const WORDS: usize = 2;
const LATCH: usize = 0;
const NOTES: usize = 1;

const COUNT_SHIFT: u32 = 48;
const HIDDEN: u64 = (1 << COUNT_SHIFT) - 1;

/// The greatest number of cells of a leaf.
pub(super) const CELLS_MAX: usize = 15;
const _: () = assert!(SLOTS * CELLS_MAX <= COUNT_SHIFT as usize);

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
        (self.0 >> COUNT_SHIFT) as usize
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

    /// Returns `true` if the entry in `slot` of `cell` is hidden.
    pub(super) fn hides(self, cell: usize, slot: usize) -> bool {
        self.hidden_in(cell) >> slot & 1 != 0
    }

    /// Returns the notes with this number of entries.
    #[inline(always)]
    pub(super) fn with_count(self, count: usize) -> Self {
        Self(self.0 & HIDDEN | (count as u64) << COUNT_SHIFT)
    }

    /// Returns the notes with `slot` of `cell` hidden.
    pub(super) fn with_hidden(self, cell: usize, slot: usize) -> Self {
        Self(self.0 | 1 << (SLOTS * cell + slot))
    }

    /// Returns the notes with no slot of `cell` hidden.
    #[inline(always)]
    pub(super) fn without_hidden_in(self, cell: usize) -> Self {
        Self(self.0 & !(((1 << SLOTS) - 1) << (SLOTS * cell)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_slots_and_the_count_share_a_word() {
        let last = CELLS_MAX - 1;
        let notes = Notes::default().with_count(45).with_hidden(last, 2).with_hidden(0, 1);
        assert_eq!((notes.count(), notes.hidden_in(last), notes.hidden_in(0)), (45, 0b100, 0b010));
        assert_eq!(notes.with_count(7).with_count(45), notes);
        let shown = notes.without_hidden_in(last).without_hidden_in(0);
        assert!(shown.has_none_hidden() && !notes.has_none_hidden() && shown.count() == 45);
    }
}
