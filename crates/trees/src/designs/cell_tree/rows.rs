//! The leaf words: two words in DRAM for each leaf, by the number of its block in the pool; eight
//! if keys have [encodings](Key::HAS_ENCODINGS).
//!
//! | word | bits | field |
//! | --- | --- | --- |
//! | 0 | 0..64 | latch of the leaf |
//! | 1 | 0..45 | wide, pairs: the slots whose entries the last split has moved, three a cell |
//! | 1 | 45..58 | wide, pairs: filter; for a key in a far cell, two bits that its hash chooses |
//! | | | are set |
//! | 1 | 0..48 | dense: the part of the key that ends the leaf's range, as cells keep it, if |
//! | 1 | 48 | dense: there may be hidden entries |
//! | 1 | 49..51 | dense: the low bits of the number of entries that are not hidden |
//! | 1 | 51..58 | dense: filter; one bit |
//! | 1 | 58..64 | wide, pairs: the number of entries that are not hidden, at most 45 |
//! | | | dense: 46 and the other bits of that number |
//! | | | 63, in memory as 0: the leaf was not visited since the open; the rest is not valid |
//! | 2..8 | 0..360 | pairs: tags, one byte for each slot, three slots for each cell; 0 if the |
//! | | | slot has no entry, or a hidden one; 255 if its key could not be read |
//! | | 360 | pairs: a tag was 255 when the leaf was visited |
//!
//! 1. The words of a block stay where they are, and the version of its latch only grows, also when
//!    the block becomes another leaf. So a thread that follows a stale offset restarts.
//! 2. The second word changes only under the latch.
//! 3. The offset of a leaf is a multiple of its size, so no two leaves share words.
//! 4. An open after a clean close reads no leaf and writes no words: zeros are those of a leaf that
//!    was not visited. The first operation that reaches one verifies it, under its latch, and makes
//!    its words.

use super::word::{CellKind, CellLayout, KEPT_RANGE, SLOTS_MAX, UNKNOWN_TAG, WideCells, has_dense};
use crate::fingerprint;
use crate::inner::{Arena, load, store};
use crate::key::Key;
use bristlecone_pmem::sync::{Latch, OnDram};
use bristlecone_pmem::{Medium, PmPtr, PoolError, sys};
use core::sync::atomic::{AtomicU64, Ordering};

/// The words with the latch and the notes.
const WORDS: usize = 2;
/// The words with tags, and all words of a leaf that has them.
const TAG_WORDS: usize = 6;
const TAGGED_WORDS: usize = WORDS + TAG_WORDS;

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
/// The number in the place of the count that says that the leaf was not visited.
const UNVISITED: u64 = 63;
/// The bits of all slots, three for each cell.
const ALL_SLOTS: u64 = slots_in(CELLS_MAX);
const _: () = assert!(BOUNDED == 1 << (LOW_COUNT_SHIFT - 1));
const _: () = assert!(WIDE_SLOTS * CELLS_MAX < 8 * TAG_WORDS);
/// The bit of the last tag word that says that there are keys which could not be read.
const UNKNOWN: u64 = 1 << (8 * (WIDE_SLOTS * CELLS_MAX % 8));
const _: () =
    assert!(DENSE as usize + ((SLOTS_MAX * CELLS_MAX) >> LOW_COUNT_BITS) < UNVISITED as usize);

/// The words of all leaves.
#[derive(Debug)]
pub(super) enum LeafWordTable {
    Plain(Arena<WORDS>),
    Tagged(Arena<TAGGED_WORDS>),
}

impl LeafWordTable {
    /// Returns the table of an index with keys of layer `K`.
    pub(super) fn new<K: Key>() -> Result<Self, PoolError> {
        let is_tagged = K::HAS_ENCODINGS;
        Ok(if is_tagged { Self::Tagged(Arena::new()?) } else { Self::Plain(Arena::new()?) })
    }

    /// Returns the words of the leaf at `at`, of `bytes` bytes.
    #[inline(always)]
    pub(super) fn row<K: Key>(&self, at: PmPtr, bytes: usize) -> LeafWords<'_> {
        let index = at.offset() as usize / bytes;
        match self {
            Self::Tagged(words) if K::HAS_ENCODINGS => {
                let [latch, notes, tags @ ..] = words.get(index);
                LeafWords { at, latch, notes, tags }
            }
            Self::Plain(words) if !K::HAS_ENCODINGS => {
                let [latch, notes] = words.get(index);
                LeafWords { at, latch, notes, tags: &[] }
            }
            _ => unreachable!("the table is that of the layer"),
        }
    }

    /// Prefetches the words of the leaf at `at`, of `bytes` bytes, if there is one.
    pub(super) fn prefetch(&self, at: PmPtr, bytes: usize) {
        let index = at.offset() as usize / bytes;
        match self {
            Self::Plain(words) => words.prefetch(index),
            Self::Tagged(words) => words.prefetch(index),
        }
    }

    /// Makes words exist up to those of the leaf at `at`, for leaves that were not visited. Writes
    /// none.
    pub(super) fn extend(&self, at: PmPtr, bytes: usize) {
        let index = at.offset() as usize / bytes;
        match self {
            Self::Plain(words) => words.extend(index),
            Self::Tagged(words) => words.extend(index),
        }
    }

    /// Makes the words of the new leaf at `at` exist, with the notes `notes` and these tags. No
    /// other thread reaches the leaf yet.
    pub(super) fn add<K: Key, M: Medium>(
        &self,
        at: PmPtr,
        bytes: usize,
        (notes, tags): (Notes, Tags),
    ) {
        self.extend(at, bytes);
        let row = self.row::<K>(at, bytes);
        row.set_notes::<M>(notes);
        row.set_tags::<M>(tags);
    }

    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Plain(words) => words.bytes(),
            Self::Tagged(words) => words.bytes(),
        }
    }
}

/// The tags of a leaf: one byte for each slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tags([u64; TAG_WORDS]);

impl Tags {
    /// Sets the tag of a slot of a cell; 0 for no entry.
    #[inline(always)]
    pub(super) fn set(&mut self, (cell, slot): (usize, usize), tag: u8) {
        let (word, shift) = place_of(cell, slot);
        self.0[word] = self.0[word] & !(0xff << shift) | u64::from(tag) << shift;
        if tag == UNKNOWN_TAG {
            self.0[TAG_WORDS - 1] |= UNKNOWN;
        }
    }

    /// Returns the slots with this tag, three for each cell, as bits.
    #[inline(always)]
    pub(super) fn slots(self, tag: u8) -> u64 {
        fingerprint::matches(self.0, tag) & ALL_SLOTS
    }

    /// Returns the slots whose keys could not be read, as [`slots`](Self::slots).
    #[inline(always)]
    pub(super) fn unknown(self) -> u64 {
        if self.0[TAG_WORDS - 1] & UNKNOWN == 0 { 0 } else { self.slots(UNKNOWN_TAG) }
    }
}

/// Returns the tag word of a slot, and the position of its tag there.
#[inline(always)]
fn place_of(cell: usize, slot: usize) -> (usize, usize) {
    let at = WIDE_SLOTS * cell + slot;
    (at / 8, 8 * (at % 8))
}

/// A view of the words of a leaf.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafWords<'a> {
    /// The offset of the leaf in the pool.
    pub(super) at: PmPtr,
    latch: &'a AtomicU64,
    notes: &'a AtomicU64,
    /// The tags, if the leaf has any.
    tags: &'a [AtomicU64],
}

impl<'a> LeafWords<'a> {
    #[inline(always)]
    pub(super) fn latch<M: Medium>(self) -> Latch<OnDram<'a, M>> {
        OnDram::latch(self.latch)
    }

    #[inline(always)]
    pub(super) fn prefetch(self) {
        sys::prefetch(core::ptr::from_ref(self.latch) as usize);
    }

    /// Returns the notes. A reader validates the version of the latch.
    #[inline(always)]
    pub(super) fn notes<M: Medium>(self) -> Notes {
        Notes::of_memory(load::<M>(self.notes))
    }

    /// Returns `true` if the leaf was not visited. Once it is, it stays so.
    #[inline(always)]
    pub(super) fn is_unvisited(self) -> bool {
        Notes::of_memory(self.notes.load(Ordering::Acquire)).is_unvisited()
    }

    /// Sets the notes, under the latch.
    #[inline(always)]
    pub(super) fn set_notes<M: Medium>(self, notes: Notes) {
        store::<M>(self.notes, notes.in_memory());
    }

    /// Returns the tags. A reader validates the version of the latch.
    #[inline(always)]
    pub(super) fn tags<M: Medium>(self) -> Tags {
        M::yield_point(); // one for all
        let mut tags = Tags::default();
        for (tags, word) in tags.0.iter_mut().zip(self.tags) {
            *tags = word.load(Ordering::Acquire);
        }
        tags
    }

    /// Returns the slots with entries that are not hidden, three for each cell, as bits.
    #[inline(always)]
    pub(super) fn shown<M: Medium>(self) -> u64 {
        ALL_SLOTS & !self.tags::<M>().slots(0)
    }

    /// Sets the tag of a slot, under the latch; 0 for no entry. Does nothing if the leaf has none.
    #[inline(always)]
    pub(super) fn set_tag<M: Medium>(self, (cell, slot): (usize, usize), tag: u8) {
        let (word, shift) = place_of(cell, slot);
        if let Some(word) = self.tags.get(word) {
            let tags = load::<M>(word) & !(0xff << shift);
            store::<M>(word, tags | u64::from(tag) << shift);
        }
    }

    /// Sets the tags of these slots to 0, under the latch.
    #[inline(always)]
    pub(super) fn clear_tags<M: Medium>(self, slots: u64) {
        for (word, at) in self.tags.iter().zip((0..).step_by(8)) {
            let cleared = bytes_of(slots >> at & 0xff);
            if cleared != 0 {
                store::<M>(word, load::<M>(word) & !cleared);
            }
        }
    }

    /// Hides the entries in `slots`, bits by their numbers, under the latch, as all entries are
    /// from the key with the prefix `bound` on.
    pub(super) fn hide<C: CellLayout, M: Medium>(self, slots: u64, bound: u64) {
        let notes = self.notes::<M>();
        let count = notes.count::<C>().saturating_sub(slots.count_ones() as usize);
        let notes = notes.with_count::<C>(count);
        self.set_notes::<M>(if slots == 0 { notes } else { notes.with_hidden::<C>(slots, bound) });
        self.clear_tags::<M>(slots);
    }

    /// Sets all tags, under the latch, if the leaf has any.
    pub(super) fn set_tags<M: Medium>(self, tags: Tags) {
        for (word, tags) in self.tags.iter().zip(tags.0) {
            store::<M>(word, tags);
        }
    }
}

/// Returns a word with each byte set whose bit in the byte `bits` is.
#[inline(always)]
const fn bytes_of(bits: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let spread = (bits * ONES) & 0x8040_2010_0804_0201;
    // Sets the highest bit of each byte that is not 0; no sum leaves its byte.
    let high = (spread + 0x7f * ONES) & (0x80 * ONES);
    (high >> 7) * 0xff
}

/// Returns the bits of the slots of `cell` among those of all cells, three for each.
#[inline(always)]
pub(super) const fn slots_of(cell: usize) -> u64 {
    ((1 << WIDE_SLOTS) - 1) << (WIDE_SLOTS * cell)
}

/// Returns the bits of all slots of this many cells, three for each.
pub(super) const fn slots_in(cells: usize) -> u64 {
    (1 << (WIDE_SLOTS * cells)) - 1
}

/// Returns the bit of a slot, of three slots for each cell.
#[inline(always)]
pub(super) const fn bit_of((cell, slot): (usize, usize)) -> u64 {
    1 << (WIDE_SLOTS * cell + slot)
}

/// Returns those of the slots `of`, three for each cell, that lie in `cell`.
#[inline(always)]
pub(super) const fn part_in(cell: usize, of: u64) -> u64 {
    of >> (WIDE_SLOTS * cell) & slots_in(1)
}

/// Returns the cell and the slot of a bit, of three slots for each cell.
#[inline(always)]
pub(super) const fn place_at(bit: usize) -> (usize, usize) {
    (bit / WIDE_SLOTS, bit % WIDE_SLOTS)
}

/// The second word of a leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Notes(u64);

impl Notes {
    /// Returns the notes of a leaf of this kind without entries.
    pub(super) fn of(kind: CellKind) -> Self {
        match kind {
            CellKind::Wide | CellKind::Pairs => Self(0),
            CellKind::Dense => Self(DENSE << COUNT_SHIFT),
        }
    }

    /// Returns the notes that memory has as `word`. Zeros are those of a leaf that was not visited.
    #[inline(always)]
    const fn of_memory(word: u64) -> Self {
        Self(word ^ UNVISITED << COUNT_SHIFT)
    }

    #[inline(always)]
    const fn in_memory(self) -> u64 {
        self.0 ^ UNVISITED << COUNT_SHIFT
    }

    /// Returns `true` if the leaf was not visited.
    #[inline(always)]
    pub(super) const fn is_unvisited(self) -> bool {
        self.0 >> COUNT_SHIFT == UNVISITED
    }

    /// Returns the kind of the cells of a leaf with keys of layer `K`.
    #[inline(always)]
    pub(super) fn kind<K: Key>(self) -> CellKind {
        let is_dense = has_dense::<K>() && self.0 >> COUNT_SHIFT >= DENSE;
        if is_dense { CellKind::Dense } else { CellKind::widest::<K>() }
    }

    /// Returns the number of entries that are not hidden.
    #[inline(always)]
    pub(super) fn count<C: CellLayout>(self) -> usize {
        let high = self.0 >> COUNT_SHIFT;
        let count = match C::KIND {
            CellKind::Wide | CellKind::Pairs => high,
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
            CellKind::Wide | CellKind::Pairs => Self(rest | count << COUNT_SHIFT),
            CellKind::Dense => {
                let rest = rest & !(LOW_COUNT << LOW_COUNT_SHIFT);
                let high = DENSE + (count >> LOW_COUNT_BITS);
                Self(rest | (count & LOW_COUNT) << LOW_COUNT_SHIFT | high << COUNT_SHIFT)
            }
        }
    }

    /// Returns the hidden slots of `cell` of a leaf with three slots a cell, as a bit mask.
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

    /// Returns the notes with the entries in `slots`, bits by their numbers, hidden, as all entries
    /// are from the key with the prefix `bound` on.
    pub(super) fn with_hidden<C: CellLayout>(self, slots: u64, bound: u64) -> Self {
        match C::KIND {
            CellKind::Wide | CellKind::Pairs => Self(self.0 | slots),
            CellKind::Dense => Self(self.0 & !BOUND | BOUNDED | C::KIND.kept(bound)),
        }
    }

    /// Returns the notes with no slot of `cell` marked as hidden.
    #[inline(always)]
    pub(super) fn without_hidden_in<C: CellLayout>(self, cell: usize) -> Self {
        match C::KIND {
            CellKind::Wide | CellKind::Pairs => Self(self.0 & !slots_of(cell)),
            CellKind::Dense => self,
        }
    }

    /// Returns the notes without hidden entries.
    pub(super) fn without_hidden<C: CellLayout>(self) -> Self {
        match C::KIND {
            CellKind::Wide | CellKind::Pairs => Self(self.0 & u64::MAX << filter_start::<C>()),
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
        CellKind::Wide | CellKind::Pairs => WIDE_SLOTS * CELLS_MAX,
        CellKind::Dense => LOW_COUNT_SHIFT + LOW_COUNT_BITS,
    }
}

/// Returns the bits of the filter that a key with this hash sets: of three slots a cell two, or
/// one; of a dense leaf, whose filter is small and has more keys, one.
#[inline(always)]
fn filter_bits<C: CellLayout>(hash: u64) -> u64 {
    let first = filter_start::<C>();
    let count = (COUNT_SHIFT - first) as u64;
    let bit = |part: u64| 1 << (first as u64 + (((part & 0xffff) * count) >> 16));
    match C::KIND {
        CellKind::Wide | CellKind::Pairs => bit(hash >> 16) | bit(hash >> 32),
        CellKind::Dense => bit(hash >> 16),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::designs::cell_tree::word::DenseCells;
    use crate::key::Record;
    use bristlecone_pmem::Mapped;

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
            .with_hidden::<WideCells>(bit_of((last, 2)), 7)
            .with_hidden::<WideCells>(bit_of((0, 1)), 7);
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
        assert!(Notes::of_memory(0).is_unvisited() && !notes.is_unvisited());
        assert_eq!(Notes::of_memory(notes.in_memory()), notes);
    }

    #[test]
    fn tags_tell_the_slots_in_use_and_those_of_a_key() {
        let words = LeafWordTable::new::<Record>().unwrap();
        words.add::<Record, Mapped>(PmPtr::new(3 << 10), 1 << 10, Default::default());
        let row = words.row::<Record>(PmPtr::new(3 << 10), 1 << 10);
        assert_eq!((row.shown::<Mapped>(), row.tags::<Mapped>().slots(7)), (0, 0));
        for (place, tag) in [((0, 0), 7), ((14, 2), 7), ((2, 1), 254), ((2, 2), 1)] {
            row.set_tag::<Mapped>(place, tag);
        }
        let bits = |places: &[(usize, usize)]| {
            places.iter().map(|&(cell, slot)| slots_of(cell) & 1 << (3 * cell + slot)).sum()
        };
        let all: u64 = bits(&[(0, 0), (14, 2), (2, 1), (2, 2)]);
        assert_eq!(row.shown::<Mapped>(), all);
        assert_eq!(row.tags::<Mapped>().slots(7), bits(&[(0, 0), (14, 2)]));
        assert_eq!(place_at(all.ilog2() as usize), (14, 2));
        row.set_tag::<Mapped>((14, 2), 0);
        assert_eq!(row.tags::<Mapped>().slots(7), 1);
        row.clear_tags::<Mapped>(bits(&[(0, 0), (2, 1), (5, 1)]));
        assert_eq!(row.shown::<Mapped>(), bits(&[(2, 2)]));
        let mut tags = row.tags::<Mapped>();
        assert_eq!(tags.unknown(), 0);
        tags.set((14, 1), UNKNOWN_TAG);
        row.set_tags::<Mapped>(tags);
        assert_eq!(row.tags::<Mapped>().unknown(), bits(&[(14, 1)]));
    }

    #[test]
    fn each_bit_of_a_byte_spreads_to_a_byte() {
        for bits in 0..=0xff_u64 {
            let bytes = bytes_of(bits).to_le_bytes();
            let expected = core::array::from_fn(|at| if bits >> at & 1 == 1 { 0xff } else { 0 });
            assert_eq!(bytes, expected, "{bits:#b}");
        }
    }

    #[test]
    fn the_bound_the_count_and_the_filter_of_a_dense_leaf_share_a_word() {
        let empty = Notes::of(CellKind::Dense);
        let notes = empty
            .with_count::<DenseCells>(60)
            .with_hidden::<DenseCells>(1 << CellKind::Dense.number((3, 3)), u64::MAX << 16 | 7);
        assert_eq!(
            (notes.count::<DenseCells>(), notes.bound()),
            (60, Some(KEPT_RANGE - (1 << 16) + 7))
        );
        assert_eq!(notes.without_hidden_in::<DenseCells>(3), notes);
        assert_eq!(notes.without_hidden::<DenseCells>(), empty.with_count::<DenseCells>(60));
        assert_eq!(notes.with_hidden::<DenseCells>(1, 0).bound(), Some(0));
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
