//! The commit word of a cell, and the kinds of cells.
//!
//! | bits | field | meaning |
//! | --- | --- | --- |
//! | 0..3, 0..4 | valid | the slots that hold an entry; four in a dense cell |
//! | 3..6 | former | of three slots, if op is 2 or 3: the valid slots before the newest write |
//! | 6..8 | op | 0: plain; 1: either sum may fit, because the newest operation was an update; |
//! | | | 2: batched, the newest change of pairs counts if its [batch](super::batch) does; |
//! | | | 3: fresh, one fence makes the newest entry of three and its record durable |
//! | 8 | used | the cell has had an entry since its leaf was made |
//! | 9 | | zero |
//! | 10..34 | tags | of a wide cell: a byte of the key's hash for each valid slot, never 0 |
//! | | encodings | of a cell of pairs: a byte for each slot that is valid, or was as former says |
//! | | former sum | of a dense cell, if op is 1: the low bits of the sum before the update |
//! | 34..64 | sum | the exclusive or of the sums of all valid entries, and of slot 4 with zeros |
//!
//! Bits without a meaning are zero. A cell that was never used has the commit word 0, so one that
//! damage has zeroed is told from an empty one.

use crate::fingerprint;
use crate::key::{Key, PLAIN};
use crate::leaf::slots;
use core::fmt::Debug;
use core::marker::PhantomData;

/// The kind of the cells of a leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CellKind {
    /// Three entries with keys of any layer.
    #[default]
    Wide,
    /// Four entries, which have the low bits of their keys. The range of the leaf tells the others.
    Dense,
    /// Three entries with an encoding each. The tags are in the leaf words.
    Pairs,
}

impl CellKind {
    /// Returns the number of entries of a cell.
    #[inline(always)]
    pub(super) const fn slots(self) -> usize {
        match self {
            Self::Wide | Self::Pairs => 3,
            Self::Dense => SLOTS_MAX,
        }
    }

    /// Returns the number of a slot among those of its leaf: it says which bit of a set of slots is
    /// that of the slot.
    #[inline(always)]
    pub(super) const fn number(self, (cell, slot): (usize, usize)) -> usize {
        self.slots() * cell + slot
    }

    /// Returns the cell and the slot with this number.
    #[inline(always)]
    pub(super) const fn place(self, number: usize) -> (usize, usize) {
        (number / self.slots(), number % self.slots())
    }

    /// Returns the kind of all leaves with keys of layer `K` whose range is not narrow.
    #[inline(always)]
    pub(super) const fn widest<K: Key>() -> Self {
        if K::HAS_ENCODINGS { Self::Pairs } else { Self::Wide }
    }

    /// Returns the part of a key word that a cell keeps.
    #[inline(always)]
    pub(super) const fn kept(self, key: u64) -> u64 {
        match self {
            Self::Wide | Self::Pairs => key,
            Self::Dense => key & (KEPT_RANGE - 1),
        }
    }
}

/// A kind as a type, for code that is compiled for it alone. See [`with_kind`].
pub(super) trait CellLayout: Copy + Debug + Default + PartialEq {
    const KIND: CellKind;
}

/// See [`CellKind::Wide`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct WideCells;

/// See [`CellKind::Dense`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct DenseCells;

/// See [`CellKind::Pairs`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PairCells;

impl CellLayout for PairCells {
    const KIND: CellKind = CellKind::Pairs;
}

impl CellLayout for WideCells {
    const KIND: CellKind = CellKind::Wide;
}

impl CellLayout for DenseCells {
    const KIND: CellKind = CellKind::Dense;
}

/// Evaluates an expression in which the name is the type of a kind. An operation does so once. The
/// code for dense cells is apart, so that the one for wide cells is as if there were no other.
macro_rules! with_kind {
    ($kind:expr, $name:ident => $body:expr) => {
        match $kind {
            $crate::designs::cell_tree::word::CellKind::Wide => {
                type $name = $crate::designs::cell_tree::word::WideCells;
                $body
            }
            $crate::designs::cell_tree::word::CellKind::Dense => {
                type $name = $crate::designs::cell_tree::word::DenseCells;
                $crate::designs::cell_tree::word::apart(move || $body)
            }
            $crate::designs::cell_tree::word::CellKind::Pairs => {
                type $name = $crate::designs::cell_tree::word::PairCells;
                $body
            }
        }
    };
}
pub(super) use with_kind;

/// See [`with_kind`].
#[inline(never)]
pub(super) fn apart<R>(act: impl FnOnce() -> R) -> R {
    act()
}

/// Returns `true` if there are dense leaves with keys of layer `K`.
pub(super) const fn has_dense<K: Key>() -> bool {
    K::EXACT && K::PREFIX_IN_ENTRY
}

/// The greatest number of entries of a cell.
pub(super) const SLOTS_MAX: usize = 4;

/// The number of keys that the low bits tell apart, which a dense cell keeps.
pub(super) const KEPT_RANGE: u64 = 1 << 48;

const FORMER_SHIFT: u32 = 3;
const FORMER: u64 = 0b111 << FORMER_SHIFT;
const OP: u64 = 0b11 << 6;
const EITHER: u64 = 1 << 6;
const BATCHED: u64 = 2 << 6;
const FRESH: u64 = 3 << 6;
const USED: u64 = 1 << 8;
/// The position of the tags, of the encodings, and of the former sum.
const TAGS_SHIFT: usize = 10;
const SUM_SHIFT: u32 = 34;
const TAGS: u64 = (1 << SUM_SHIFT) - (1 << TAGS_SHIFT);

/// The bits of a sum.
pub(super) const SUM_MASK: u64 = u64::MAX >> SUM_SHIFT;

/// A commit word.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CommitWord<C> {
    pub(super) bits: u64,
    kind: PhantomData<C>,
}

impl<C: CellLayout> CommitWord<C> {
    #[inline(always)]
    pub(super) const fn new(bits: u64) -> Self {
        Self { bits, kind: PhantomData }
    }

    /// Returns the slots that hold an entry, as a bit mask.
    #[inline(always)]
    pub(super) fn valid(self) -> u64 {
        self.bits & ((1 << C::KIND.slots()) - 1)
    }

    /// Returns the first free slot; `None` if the cell is full.
    #[inline(always)]
    pub(super) fn free_slot(self) -> Option<usize> {
        let slot = self.valid().trailing_ones() as usize;
        (slot < C::KIND.slots()).then_some(slot)
    }

    /// Returns `true` if the cell has had an entry since its leaf was made.
    pub(super) fn is_used(self) -> bool {
        self.bits & USED != 0
    }

    /// Returns the tags of all slots of a wide cell, slot 0 lowest; of a cell of pairs the
    /// encodings.
    #[inline(always)]
    fn tags(self) -> u64 {
        (self.bits & TAGS) >> TAGS_SHIFT
    }

    /// Returns `true` if `slot` has the tag of a key with this hash, or if its key needs none.
    pub(super) fn has_tag(self, slot: usize, hash: u64) -> bool {
        C::KIND != CellKind::Wide || self.tags() >> (8 * slot) & 0xff == u64::from(tag_of(hash))
    }

    /// Returns the encoding of the entry in `slot`.
    #[inline(always)]
    pub(super) fn encoding(self, slot: usize) -> u8 {
        if C::KIND == CellKind::Pairs { (self.tags() >> (8 * slot)) as u8 } else { PLAIN }
    }

    /// Returns `true` if the content may fit the former sum instead.
    #[inline(always)]
    pub(super) fn is_either(self) -> bool {
        self.bits & OP == EITHER
    }

    /// Returns the valid slots before the newest write of a fresh cell, or before the batch.
    #[inline(always)]
    pub(super) fn former(self) -> u64 {
        (self.bits & FORMER) >> FORMER_SHIFT
    }

    /// Returns the slot of the newest write, if one fence makes it and its record durable.
    #[inline(always)]
    pub(super) fn fresh_slot(self) -> Option<usize> {
        let added = self.valid() & !self.former();
        (self.bits & OP == FRESH).then_some(added.trailing_zeros() as usize)
    }

    /// Returns `true` if a batch has made the newest change.
    #[inline(always)]
    pub(super) fn is_batched(self) -> bool {
        self.bits & OP == BATCHED
    }

    /// Returns `true` if the last word of the cell says whether the newest change counts.
    #[inline(always)]
    pub(super) fn is_noted(self) -> bool {
        self.bits & BATCHED != 0
    }

    /// Returns `true` if no operation stores this word.
    pub(super) fn is_foreign(self) -> bool {
        let (valid, former) = (self.valid(), self.former());
        let tags = |slots| if C::KIND == CellKind::Dense { 0 } else { bytes_of(slots) };
        let (used, former) = match (C::KIND, self.bits & OP) {
            (_, 0) | (CellKind::Wide | CellKind::Pairs, EITHER) => (tags(valid), 0),
            (CellKind::Wide, FRESH) | (CellKind::Pairs, BATCHED) => (tags(valid | former), former),
            (CellKind::Dense, EITHER) => (TAGS, 0),
            _ => return true,
        };
        let known = valid | former << FORMER_SHIFT | OP | USED | used | SUM_MASK << SUM_SHIFT;
        let is_used = self.bits == 0 || self.is_used();
        self.bits & !known != 0 || !is_used || self.bits & OP == FRESH && !self.is_one_insert()
    }

    /// Returns `true` if one insert makes the valid slots of the former ones.
    fn is_one_insert(self) -> bool {
        (self.valid() ^ self.former()).is_power_of_two() && self.former() & !self.valid() == 0
    }

    /// Returns the sum.
    #[inline(always)]
    pub(super) fn sum(self) -> u64 {
        self.bits >> SUM_SHIFT
    }

    /// Returns the plain word in which `slot`, which is free, holds an entry of this encoding,
    /// whose key has this tag, with this sum.
    #[inline(always)]
    pub(super) fn with_entry(self, slot: usize, (tag, encoding): (u8, u8), sum: u64) -> Self {
        let byte = match C::KIND {
            CellKind::Wide => u64::from(tag),
            CellKind::Pairs => u64::from(encoding),
            CellKind::Dense => 0,
        };
        let byte = byte << (TAGS_SHIFT + 8 * slot);
        Self::new((self.plain().bits | 1 << slot | USED | byte) ^ sum << SUM_SHIFT)
    }

    /// Returns the plain word in which `slot`, whose entry has this sum, is free.
    #[inline(always)]
    pub(super) fn without_entry(self, slot: usize, sum: u64) -> Self {
        let byte = match C::KIND {
            CellKind::Wide | CellKind::Pairs => 0xff << (TAGS_SHIFT + 8 * slot),
            CellKind::Dense => 0,
        };
        Self::new((self.plain().bits & !(1 << slot | byte)) ^ sum << SUM_SHIFT)
    }

    /// Returns the word with another encoding of the entry in `slot`.
    #[inline(always)]
    pub(super) fn with_encoding(self, slot: usize, encoding: u8) -> Self {
        if C::KIND != CellKind::Pairs {
            return self;
        }
        let shift = TAGS_SHIFT + 8 * slot;
        Self::new(self.bits & !(0xff << shift) | u64::from(encoding) << shift)
    }

    /// Returns the word of a cell whose content may have this sum or the former one.
    #[inline(always)]
    pub(super) fn with_either(self, sum: u64) -> Self {
        let former_sum = match C::KIND {
            CellKind::Wide | CellKind::Pairs => 0,
            CellKind::Dense => self.sum() << TAGS_SHIFT & TAGS,
        };
        Self::new(self.plain().with_sum(sum).bits | EITHER | former_sum)
    }

    /// Returns `true` if `sum` may be the former sum, as far as the word of a dense cell tells.
    pub(super) fn had_sum(self, sum: u64) -> bool {
        (self.bits & TAGS) >> TAGS_SHIFT == sum & (TAGS >> TAGS_SHIFT)
    }

    /// Returns the word of a cell in which `slot` is fresh; that slot is valid.
    #[inline(always)]
    pub(super) fn with_fresh(self, slot: usize) -> Self {
        let former = self.valid() & !(1 << slot);
        Self::new(self.plain().bits | FRESH | former << FORMER_SHIFT)
    }

    /// Returns this word of a cell of pairs as that of a batch, which has found the plain word
    /// `former`. An entry that is new lies in a slot that was free.
    #[inline(always)]
    pub(super) fn with_batch(self, former: Self) -> Self {
        let dropped = former.valid() & !self.valid();
        let kept = former.bits & bytes_of(dropped);
        Self::new(self.plain().bits | kept | BATCHED | former.valid() << FORMER_SHIFT)
    }

    /// Returns the plain word.
    #[inline(always)]
    pub(super) fn plain(self) -> Self {
        match C::KIND {
            CellKind::Wide => Self::new(self.bits & !(OP | FORMER)),
            CellKind::Pairs => {
                let gone = self.former() & !self.valid();
                let bytes = if gone == 0 { 0 } else { bytes_of(gone) };
                Self::new(self.bits & !(OP | FORMER | bytes))
            }
            CellKind::Dense => Self::new(self.bits & !(OP | TAGS)),
        }
    }

    /// Returns the word with another sum.
    #[inline(always)]
    pub(super) fn with_sum(self, sum: u64) -> Self {
        Self::new(self.bits & !(SUM_MASK << SUM_SHIFT) | sum << SUM_SHIFT)
    }
}

/// Returns the bits of the tags, or encodings, of these slots, of which there are three.
#[inline(always)]
const fn bytes_of(of: u64) -> u64 {
    let ones = of & 1 | (of & 2) << 7 | (of & 4) << 14;
    (0xff * ones) << TAGS_SHIFT
}

/// Returns the slots of two wide cells that have the tag `tag`: slot i of the second cell as
/// [`SLOTS_MAX`] + i.
#[inline(always)]
pub(super) fn slots_with(
    [first, second]: [CommitWord<WideCells>; 2],
    tag: u8,
) -> impl Iterator<Item = usize> {
    const ONES: u64 = 0x0001_0101_0001_0101;
    const LOW_BITS: u64 = 0x7f * ONES;
    let wanted = ONES * u64::from(tag);
    let differing = (first.tags() | second.tags() << (8 * SLOTS_MAX)) ^ wanted;
    // The highest bit of a byte is set here if another bit of it is, and no sum leaves its byte.
    let low_bits_differ = (differing & LOW_BITS) + LOW_BITS;
    let equal = !(low_bits_differ | differing) & ONES << 7;
    slots(equal).map(|bit| bit / 8)
}

/// The tag of a key that an open could not read, because its record is damaged.
pub(super) const UNKNOWN_TAG: u8 = u8::MAX;

/// Returns the tag of a key with this hash.
#[inline(always)]
pub(super) fn tag_of(hash: u64) -> u8 {
    fingerprint::of(hash).clamp(1, UNKNOWN_TAG - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_comes_and_goes_leaves_the_word_as_it_was() {
        let word = CommitWord::<WideCells>::default()
            .with_entry(0, (7, 0), 0x3fff_ffff)
            .with_entry(1, (9, 0), 5);
        assert_eq!((word.valid(), word.sum(), word.free_slot()), (0b11, 0x3fff_fffa, Some(2)));
        let full = word.with_entry(2, (7, 0), 1);
        assert_eq!((full.free_slot(), full.valid(), full.is_foreign()), (None, 0b111, false));
        assert_eq!(full.without_entry(2, 1), word);
        let empty = word.without_entry(0, 0x3fff_ffff).without_entry(1, 5);
        assert_eq!((empty.bits, empty.is_used(), empty.is_foreign()), (USED, true, false));
    }

    #[test]
    fn an_update_changes_the_sum_alone_and_the_next_change_makes_the_word_plain() {
        let word = CommitWord::<WideCells>::default().with_entry(1, (3, 0), 8);
        let either = word.with_either(12);
        assert!(either.is_either() && !word.is_either() && !either.is_foreign());
        assert_eq!((either.sum(), either.valid()), (12, word.valid()));
        assert_eq!(either.without_entry(1, 12).bits, USED);
    }

    #[test]
    fn the_slots_with_a_tag_are_found_and_no_free_one() {
        for (tags, tag) in [([7, 9, 7, 6, 7, 8], 7), ([1, 2, 1, 255, 2, 1], 1), ([254; 6], 254)] {
            let word = |tags: &[u8]| {
                let slots = tags.iter().enumerate();
                slots.fold(CommitWord::<WideCells>::default(), |word, (slot, &tag)| {
                    word.with_entry(slot, (tag, 0), 0)
                })
            };
            let found: Vec<_> = slots_with([word(&tags[..3]), word(&tags[3..])], tag).collect();
            let slot_of = |at| if at < 3 { at } else { at - 3 + SLOTS_MAX };
            let expected: Vec<_> = (0..6).filter(|&at| tags[at] == tag).map(slot_of).collect();
            assert_eq!(found, expected, "{tags:?}");
        }
        let free = CommitWord::<WideCells>::default();
        for tag in 1..u8::MAX {
            let words = [free.with_entry(0, (tag, 0), 3), free.with_entry(1, (tag, 0), 3)];
            assert_eq!(slots_with(words, tag).collect::<Vec<_>>(), [0, 5], "{tag}");
            assert_eq!(slots_with([free; 2], tag).next(), None, "{tag}");
        }
        assert!((0..300).all(|low: u64| (1..UNKNOWN_TAG).contains(&tag_of(low << 50))));
    }

    #[test]
    fn a_fresh_slot_is_fresh_until_the_next_change() {
        let word =
            CommitWord::<WideCells>::default().with_entry(0, (3, 0), 8).with_entry(1, (4, 0), 2);
        let fresh = word.with_fresh(1);
        assert!(!fresh.is_foreign() && word.fresh_slot().is_none());
        assert_eq!((fresh.fresh_slot(), fresh.valid(), fresh.sum()), (Some(1), 0b11, 10));
        assert_eq!((fresh.plain(), fresh.with_fresh(0).fresh_slot()), (word, Some(0)));
        assert!(fresh.without_entry(0, 8).fresh_slot().is_none());
        assert_eq!(fresh.with_either(10).plain(), word);
        // One slot is fresh, and valid before only if it is valid now.
        for former in [0b000, 0b011, 0b101, 0b111] {
            let word = CommitWord::<WideCells>::new(fresh.bits & !FORMER | former << FORMER_SHIFT);
            assert!(word.is_foreign(), "{former:b}");
        }
    }

    #[test]
    fn bits_that_no_operation_sets_are_noticed() {
        let word = CommitWord::<WideCells>::default().with_entry(1, (3, 0), 8);
        for bit in [3, 4, 5, 7, 9, 10, 30] {
            assert!(CommitWord::<WideCells>::new(word.bits | 1 << bit).is_foreign(), "bit {bit}");
        }
    }

    #[test]
    fn a_cell_with_entries_is_in_use() {
        let word = CommitWord::<WideCells>::default().with_entry(1, (3, 0), 8);
        assert!(CommitWord::<WideCells>::new(word.bits & !USED).is_foreign());
        assert!(!CommitWord::<WideCells>::default().is_foreign());
    }

    #[test]
    fn a_word_of_pairs_keeps_the_encoding_of_what_a_batch_replaces() {
        let word = CommitWord::<PairCells>::default().with_entry(0, (9, 90), 8);
        let word = word.with_entry(2, (9, 7), 2);
        assert_eq!([0, 1, 2].map(|slot| word.encoding(slot)), [90, 0, 7]);
        let batched = word.without_entry(0, 8).with_entry(1, (9, 91), 4).with_batch(word);
        assert!(!batched.is_foreign() && batched.is_batched());
        assert_eq!((batched.valid(), batched.former()), (0b110, 0b101));
        assert_eq!([0, 1, 2].map(|slot| batched.encoding(slot)), [90, 91, 7]);
        assert_eq!([0, 1, 2].map(|slot| batched.plain().encoding(slot)), [0, 91, 7]);
        // No batch writes to a wide cell.
        assert!(CommitWord::<WideCells>::new(batched.bits).is_foreign());
        let either = word.with_either(5).with_encoding(2, 8);
        assert_eq!((either.sum(), either.plain().encoding(2), either.is_foreign()), (5, 8, false));
    }

    #[test]
    fn a_word_of_a_batch_keeps_the_slots_of_before_and_their_encodings() {
        let former = CommitWord::<PairCells>::default().with_entry(0, (0, 90), 8);
        let former = former.with_entry(2, (0, 7), 2);
        let new = former.without_entry(0, 8).without_entry(2, 2).with_entry(1, (0, 91), 4);
        let batched = new.with_batch(former);
        assert!(batched.is_batched() && batched.is_noted() && !batched.is_foreign());
        assert_eq!((batched.valid(), batched.former(), batched.sum()), (0b010, 0b101, 4));
        assert_eq!([0, 1, 2].map(|slot| batched.encoding(slot)), [90, 91, 7]);
        assert_eq!((batched.fresh_slot(), batched.plain()), (None, new));
        assert_eq!(former.with_batch(former).plain(), former);
        assert!(CommitWord::<WideCells>::new(batched.bits).is_foreign());
    }

    #[test]
    fn a_dense_cell_has_four_slots_and_the_former_sum_in_its_word() {
        let empty = CommitWord::<DenseCells>::default();
        let full =
            (0..4).fold(empty, |word, slot| word.with_entry(slot, (7, 0), 1 << slot | 1 << 29));
        assert_eq!((full.valid(), full.free_slot(), full.sum()), (0b1111, None, 0b1111));
        let either = full.with_either(9);
        assert!(either.is_either() && !either.is_foreign() && !full.is_foreign());
        assert!(either.had_sum(0b1111) && either.had_sum(0b1111 | 1 << 24) && !either.had_sum(9));
        assert_eq!((either.sum(), either.valid(), either.plain().sum()), (9, 0b1111, 9));
        assert_eq!(either.plain(), full.with_sum(9));
        assert_eq!(either.without_entry(3, 1).bits & (OP | TAGS), 0);
        for bit in [4, 5, 7, 9, 10, 33] {
            let word = CommitWord::<DenseCells>::new(full.bits | 1 << bit);
            assert!(word.is_foreign(), "bit {bit}");
        }
        for bit in [4, 5, 7, 9] {
            let word = CommitWord::<DenseCells>::new(either.bits | 1 << bit);
            assert!(word.is_foreign(), "bit {bit}");
        }
    }
}
