//! The leaf words: two words in DRAM for each leaf, by the number of its block in the pool.
//!
//! | word | bits | field |
//! | --- | --- | --- |
//! | 0 | 0..64 | latch of the leaf |
//! | 1 | 0..45 | wide: the slots whose entries the last split has moved, three for each cell |
//! | 1 | 45..58 | wide: filter; for a key in a far cell, two bits that its hash chooses are set |
//! | 1 | 0..48 | dense: the part of the key that ends the leaf's range, as cells keep it, if |
//! | 1 | 48 | dense: there may be hidden entries |
//! | 1 | 49..51 | dense: the low bits of the number of entries that are not hidden |
//! | 1 | 51..58 | dense: filter; one bit |
//! | 1 | 58..64 | wide: the number of entries that are not hidden, at most 45 |
//! | | | dense: 46 and the other bits of that number |
//!
//! 1. The words of a block stay where they are, and the version of its latch only grows, also when
//!    the block becomes another leaf. So a thread that follows a stale offset restarts.
//! 2. The second word changes only under the latch.
//! 3. The offset of a leaf is a multiple of its size, so no two leaves share words.

use super::word::{CellKind, CellLayout, KEPT_RANGE, SLOTS_MAX, WideCells, has_dense};
use crate::inner::{Arena, load, store};
use crate::key::Key;
use bristlecone_pmem::sync::{Latch, OnDram};
use bristlecone_pmem::{Medium, PmPtr, PoolError, sys};
use core::sync::atomic::AtomicU64;

const WORDS: usize = 2;
const LATCH: usize = 0;
const NOTES: usize = 1;

/// The greatest number of cells of a leaf.
pub(super) const CELLS_MAX: usize = 15;

const WIDE_SLOTS: usize = WideCells::KIND.slots();
const BOUND: u64 = KEPT_RANGE - 1;
const BOUNDED: u64 = KEPT_RANGE;
const LOW_COUNT_SHIFT: usize = 49;
const LOW_COUNT_BITS: usize = 2;
const LOW_COUNT: u64 = (1 << LOW_COUNT_BITS) - 1;
const COUNT_SHIFT: usize = 58;
/// The least number in the place of the count that says that cells are dense.
const DENSE: u64 = (WIDE_SLOTS * CELLS_MAX + 1) as u64;
const _: () = assert!(BOUNDED == 1 << (LOW_COUNT_SHIFT - 1));
const _: () =
    assert!(DENSE as usize + ((SLOTS_MAX * CELLS_MAX) >> LOW_COUNT_BITS) < 1 << (64 - COUNT_SHIFT));

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
    /// Returns the notes of a leaf of this kind without entries.
    pub(super) fn of(kind: CellKind) -> Self {
        match kind {
            CellKind::Wide => Self(0),
            CellKind::Dense => Self(DENSE << COUNT_SHIFT),
        }
    }

    /// Returns the kind of the cells of a leaf with keys of layer `K`.
    #[inline(always)]
    pub(super) fn kind<K: Key>(self) -> CellKind {
        let is_dense = has_dense::<K>() && self.0 >> COUNT_SHIFT >= DENSE;
        if is_dense { CellKind::Dense } else { CellKind::Wide }
    }

    /// Returns the number of entries that are not hidden.
    #[inline(always)]
    pub(super) fn count<C: CellLayout>(self) -> usize {
        let high = self.0 >> COUNT_SHIFT;
        let count = match C::KIND {
            CellKind::Wide => high,
            CellKind::Dense => {
                (high - DENSE) << LOW_COUNT_BITS | self.0 >> LOW_COUNT_SHIFT & LOW_COUNT
            }
        };
        count as usize
    }

    /// Returns the notes with this number of entries.
    #[inline(always)]
    pub(super) fn with_count<C: CellLayout>(self, count: usize) -> Self {
        let (count, rest) = (count as u64, self.0 & ((1 << COUNT_SHIFT) - 1));
        match C::KIND {
            CellKind::Wide => Self(rest | count << COUNT_SHIFT),
            CellKind::Dense => {
                let rest = rest & !(LOW_COUNT << LOW_COUNT_SHIFT);
                let high = DENSE + (count >> LOW_COUNT_BITS);
                Self(rest | (count & LOW_COUNT) << LOW_COUNT_SHIFT | high << COUNT_SHIFT)
            }
        }
    }

    /// Returns the hidden slots of `cell` of a wide leaf, as a bit mask.
    #[inline(always)]
    pub(super) fn hidden_in(self, cell: usize) -> u64 {
        self.0 >> (WIDE_SLOTS * cell) & ((1 << WIDE_SLOTS) - 1)
    }

    /// Returns the part of the key from which on the entries of a dense leaf are hidden; `None` if
    /// none is.
    #[inline(always)]
    pub(super) fn bound(self) -> Option<u64> {
        (self.0 & BOUNDED != 0).then_some(self.0 & BOUND)
    }

    /// Returns the notes with the entries in `slots` of `cell`, a bit mask, hidden, as all entries
    /// are from the key with the prefix `bound` on.
    pub(super) fn with_hidden<C: CellLayout>(
        self,
        (cell, slots): (usize, u64),
        bound: u64,
    ) -> Self {
        match C::KIND {
            CellKind::Wide => Self(self.0 | slots << (WIDE_SLOTS * cell)),
            CellKind::Dense => Self(self.0 & !BOUND | BOUNDED | C::KIND.kept(bound)),
        }
    }

    /// Returns the notes with no slot of `cell` marked as hidden.
    #[inline(always)]
    pub(super) fn without_hidden_in<C: CellLayout>(self, cell: usize) -> Self {
        match C::KIND {
            CellKind::Wide => Self(self.0 & !(((1 << WIDE_SLOTS) - 1) << (WIDE_SLOTS * cell))),
            CellKind::Dense => self,
        }
    }

    /// Returns the notes without hidden entries.
    pub(super) fn without_hidden<C: CellLayout>(self) -> Self {
        match C::KIND {
            CellKind::Wide => Self(self.0 & u64::MAX << filter_start::<C>()),
            CellKind::Dense => Self(self.0 & !(BOUND | BOUNDED)),
        }
    }

    /// Returns `true` if a key with this hash may lie in a far cell.
    #[inline(always)]
    pub(super) fn has_far<C: CellLayout>(self, hash: u64) -> bool {
        self.0 & filter_bits::<C>(hash) == filter_bits::<C>(hash)
    }

    /// Returns the notes with a key with this hash in a far cell.
    pub(super) fn with_far<C: CellLayout>(self, hash: u64) -> Self {
        Self(self.0 | filter_bits::<C>(hash))
    }

    /// Returns the notes with an empty filter.
    pub(super) fn without_filter<C: CellLayout>(self) -> Self {
        Self(self.0 & !((1 << COUNT_SHIFT) - (1 << filter_start::<C>())))
    }
}

/// Returns the position of the filter in the notes of a leaf with cells of this kind.
#[inline(always)]
fn filter_start<C: CellLayout>() -> usize {
    match C::KIND {
        CellKind::Wide => WIDE_SLOTS * CELLS_MAX,
        CellKind::Dense => LOW_COUNT_SHIFT + LOW_COUNT_BITS,
    }
}

/// Returns the bits of the filter that a key with this hash sets: of a wide leaf two, or one; of a
/// dense one, whose filter is small and has more keys, one.
#[inline(always)]
fn filter_bits<C: CellLayout>(hash: u64) -> u64 {
    let first = filter_start::<C>();
    let count = (COUNT_SHIFT - first) as u64;
    let bit = |part: u64| 1 << (first as u64 + (((part & 0xffff) * count) >> 16));
    match C::KIND {
        CellKind::Wide => bit(hash >> 16) | bit(hash >> 32),
        CellKind::Dense => bit(hash >> 16),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::designs::cell_tree::word::DenseCells;

    fn filters_by_hash<C: CellLayout>(notes: Notes) {
        for hash in (0..1 << 16).map(|part: u64| part << 16 | part.reverse_bits() >> 16) {
            let far = notes.with_far::<C>(hash);
            assert!(far.has_far::<C>(hash) && !notes.has_far::<C>(hash));
            assert_eq!(far.without_filter::<C>(), notes);
            assert_eq!(far.count::<C>(), notes.count::<C>());
            assert_eq!(far.kind::<u64>(), notes.kind::<u64>());
            assert_eq!(far.without_hidden::<C>(), notes.without_hidden::<C>().with_far::<C>(hash));
        }
        let count = |hash: u64| filter_bits::<C>(hash).count_ones();
        let two = 1 + u32::from(C::KIND == CellKind::Wide);
        assert_eq!((count(0), count(0xffff << 16), count(u64::MAX)), (1, two, 1));
    }

    #[test]
    fn hidden_slots_the_count_and_the_filter_of_a_wide_leaf_share_a_word() {
        let last = CELLS_MAX - 1;
        let notes = Notes::of(CellKind::Wide)
            .with_count::<WideCells>(45)
            .with_hidden::<WideCells>((last, 0b100), 7)
            .with_hidden::<WideCells>((0, 0b010), 7);
        assert_eq!(
            (notes.count::<WideCells>(), notes.hidden_in(last), notes.hidden_in(0)),
            (45, 0b100, 0b010)
        );
        let shown = notes.without_hidden_in::<WideCells>(last).without_hidden_in::<WideCells>(0);
        assert_eq!(shown, Notes::of(CellKind::Wide).with_count::<WideCells>(45));
        assert_eq!(notes.without_hidden::<WideCells>(), shown);
        for count in 0..=45 {
            let counted = notes.with_count::<WideCells>(count);
            assert_eq!(
                (counted.count::<WideCells>(), counted.kind::<u64>()),
                (count, CellKind::Wide)
            );
            assert_eq!(counted.with_count::<WideCells>(45), notes);
        }
        assert_eq!(notes.kind::<u64>(), CellKind::Wide);
        filters_by_hash::<WideCells>(notes);
    }

    #[test]
    fn the_bound_the_count_and_the_filter_of_a_dense_leaf_share_a_word() {
        let empty = Notes::of(CellKind::Dense);
        let notes = empty
            .with_count::<DenseCells>(60)
            .with_hidden::<DenseCells>((3, 0b1000), u64::MAX << 16 | 7);
        assert_eq!(
            (notes.count::<DenseCells>(), notes.bound()),
            (60, Some(KEPT_RANGE - (1 << 16) + 7))
        );
        assert_eq!(notes.without_hidden_in::<DenseCells>(3), notes);
        assert_eq!(notes.without_hidden::<DenseCells>(), empty.with_count::<DenseCells>(60));
        assert_eq!(notes.with_hidden::<DenseCells>((0, 1), 0).bound(), Some(0));
        assert_eq!(empty.bound(), None);
        for count in 0..=60 {
            let counted = notes.with_count::<DenseCells>(count);
            assert_eq!((counted.count::<DenseCells>(), counted.bound()), (count, notes.bound()));
            assert_eq!(
                (counted.kind::<u64>(), counted.with_count::<DenseCells>(60)),
                (CellKind::Dense, notes)
            );
        }
        assert_eq!(notes.kind::<u64>(), CellKind::Dense);
        filters_by_hash::<DenseCells>(notes);
    }
}
