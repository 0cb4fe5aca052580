//! The commit word of a cell.
//!
//! | bits | field | meaning |
//! | --- | --- | --- |
//! | 0..3 | valid | the slots that hold an entry |
//! | 3..6 | former | the valid slots before the newest insert, if op is 3; else zero |
//! | 6..8 | op | 0: plain; 1: either sum may fit, because the newest operation was an update; |
//! | | | 3: fresh, one fence makes the newest entry and its record durable |
//! | 8..10 | | zero |
//! | 10..34 | tags | a byte of the key's hash for each slot, never 0; 0 in a free slot |
//! | 34..64 | sum | the exclusive or of the sums of all valid entries |
//!
//! A cell without entries has the commit word 0.

use crate::fingerprint;
use crate::leaf::slots;

/// The number of entries of a cell.
pub(super) const SLOTS: usize = 3;

const VALID: u64 = (1 << SLOTS) - 1;
const FORMER_SHIFT: u32 = 3;
const FORMER: u64 = VALID << FORMER_SHIFT;
const OP: u64 = 0b11 << 6;
const EITHER: u64 = 1 << 6;
const FRESH: u64 = 3 << 6;
const TAGS_SHIFT: usize = 10;
const SUM_SHIFT: u32 = 34;

/// The bits of a sum.
pub(super) const SUM_MASK: u64 = u64::MAX >> SUM_SHIFT;

/// A commit word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CommitWord(pub(super) u64);

impl CommitWord {
    /// Returns the slots that hold an entry, as a bit mask.
    #[inline(always)]
    pub(super) fn valid(self) -> u64 {
        self.0 & VALID
    }

    /// Returns the first free slot; `None` if the cell is full.
    #[inline(always)]
    pub(super) fn free_slot(self) -> Option<usize> {
        let slot = self.valid().trailing_ones() as usize;
        (slot < SLOTS).then_some(slot)
    }

    /// Returns the tags of all slots, slot 0 lowest.
    #[inline(always)]
    fn tags(self) -> u64 {
        self.0 >> TAGS_SHIFT & ((1 << (8 * SLOTS)) - 1)
    }

    /// Returns `true` if `slot` has the tag of a key with this hash.
    pub(super) fn has_tag(self, slot: usize, hash: u64) -> bool {
        self.tags() >> (8 * slot) & 0xff == u64::from(tag_of(hash))
    }

    /// Returns `true` if the content may fit the former sum, behind the entries, instead.
    pub(super) fn is_either(self) -> bool {
        self.0 & OP == EITHER
    }

    /// Returns the slot of the newest insert, if one fence makes it and its record durable.
    #[inline(always)]
    pub(super) fn fresh_slot(self) -> Option<usize> {
        let added = self.valid() & !(self.0 >> FORMER_SHIFT);
        (self.0 & OP == FRESH).then_some(added.trailing_zeros() as usize)
    }

    /// Returns `true` if no operation stores this word.
    pub(super) fn is_foreign(self) -> bool {
        let known = VALID | self.used_tags() | SUM_MASK << SUM_SHIFT;
        let former = (self.0 & FORMER) >> FORMER_SHIFT;
        self.0 & !(known | FORMER | OP) != 0
            || match self.0 & OP {
                0 | EITHER => former != 0,
                FRESH => former & !self.valid() != 0 || (self.valid() & !former).count_ones() != 1,
                _ => true,
            }
    }

    /// Returns the bits of the tags of valid slots.
    fn used_tags(self) -> u64 {
        slots(self.valid()).map(|slot| 0xff << (TAGS_SHIFT + 8 * slot)).sum()
    }

    /// Returns the sum.
    #[inline(always)]
    pub(super) fn sum(self) -> u64 {
        self.0 >> SUM_SHIFT
    }

    /// Returns the plain word in which `slot`, which is free, holds an entry with this hash and
    /// sum.
    #[inline(always)]
    pub(super) fn with_entry(self, slot: usize, tag: u8, sum: u64) -> Self {
        let tag = u64::from(tag) << (TAGS_SHIFT + 8 * slot);
        Self((self.plain().0 | 1 << slot | tag) ^ sum << SUM_SHIFT)
    }

    /// Returns the plain word in which `slot`, whose entry has this sum, is free.
    #[inline(always)]
    pub(super) fn without_entry(self, slot: usize, sum: u64) -> Self {
        let tag = 0xff << (TAGS_SHIFT + 8 * slot);
        Self((self.plain().0 & !(1 << slot | tag)) ^ sum << SUM_SHIFT)
    }

    /// Returns the word of a cell whose content may have this sum or the former one.
    #[inline(always)]
    pub(super) fn with_either(self, sum: u64) -> Self {
        Self(self.plain().with_sum(sum).0 | EITHER)
    }

    /// Returns the word of a cell in which `slot` is fresh; that slot is valid.
    #[inline(always)]
    pub(super) fn with_fresh(self, slot: usize) -> Self {
        let former = self.valid() & !(1 << slot);
        Self(self.plain().0 | FRESH | former << FORMER_SHIFT)
    }

    /// Returns the plain word.
    #[inline(always)]
    pub(super) fn plain(self) -> Self {
        Self(self.0 & !(OP | FORMER))
    }

    /// Returns the word with another sum.
    #[inline(always)]
    pub(super) fn with_sum(self, sum: u64) -> Self {
        Self(self.0 & !(SUM_MASK << SUM_SHIFT) | sum << SUM_SHIFT)
    }
}

/// Yields the slots of two cells that have the tag `tag`: slot i of the second cell as
/// [`SLOTS`] + i.
#[inline(always)]
pub(super) fn slots_with([first, second]: [CommitWord; 2], tag: u8) -> impl Iterator<Item = usize> {
    const ONES: u64 = 0x0101_0101_0101;
    const LOW_BITS: u64 = 0x7f * ONES;
    const _: () = assert!(ONES.count_ones() as usize == 2 * SLOTS);
    let wanted = ONES * u64::from(tag);
    let differing = (first.tags() | second.tags() << (8 * SLOTS)) ^ wanted;
    // The highest bit of a byte is set here if another bit of it is, and no sum leaves its byte.
    let low_bits_differ = (differing & LOW_BITS) + LOW_BITS;
    let equal = !(low_bits_differ | differing) & ONES << 7;
    slots(equal).map(|bit| bit / 8)
}

/// Returns the tag of a key with this hash.
#[inline(always)]
pub(super) fn tag_of(hash: u64) -> u8 {
    fingerprint::of(hash).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_comes_and_goes_leaves_the_word_as_it_was() {
        let word = CommitWord::default().with_entry(0, 7, 0x3fff_ffff).with_entry(1, 9, 5);
        assert_eq!((word.valid(), word.sum(), word.free_slot()), (0b11, 0x3fff_fffa, Some(2)));
        let full = word.with_entry(2, 7, 1);
        assert_eq!((full.free_slot(), full.valid(), full.is_foreign()), (None, 0b111, false));
        assert_eq!(full.without_entry(2, 1), word);
        let empty = word.without_entry(0, 0x3fff_ffff).without_entry(1, 5);
        assert_eq!(empty, CommitWord::default());
    }

    #[test]
    fn an_update_changes_the_sum_alone_and_the_next_change_makes_the_word_plain() {
        let word = CommitWord::default().with_entry(1, 3, 8);
        let either = word.with_either(12);
        assert!(either.is_either() && !word.is_either() && !either.is_foreign());
        assert_eq!((either.sum(), either.valid()), (12, word.valid()));
        assert_eq!(either.without_entry(1, 12), CommitWord::default());
    }

    #[test]
    fn the_slots_with_a_tag_are_found_and_no_free_one() {
        for (tags, tag) in [([7, 9, 7, 6, 7, 8], 7), ([1, 2, 1, 255, 2, 1], 1), ([254; 6], 254)] {
            let word = |tags: &[u8]| {
                let slots = tags.iter().enumerate();
                slots
                    .fold(CommitWord::default(), |word, (slot, &tag)| word.with_entry(slot, tag, 0))
            };
            let found: Vec<_> = slots_with([word(&tags[..3]), word(&tags[3..])], tag).collect();
            let expected: Vec<_> = (0..6).filter(|&at| tags[at] == tag).collect();
            assert_eq!(found, expected, "{tags:?}");
        }
        let free = CommitWord::default();
        for tag in 1..=u8::MAX {
            let words = [free.with_entry(0, tag, 3), free.with_entry(1, tag, 3)];
            assert_eq!(slots_with(words, tag).collect::<Vec<_>>(), [0, 4], "{tag}");
            assert_eq!(slots_with([free; 2], tag).next(), None, "{tag}");
        }
        assert!((0..300).all(|low: u64| tag_of(low << 50) != 0));
    }

    #[test]
    fn a_fresh_slot_is_fresh_until_the_next_change() {
        let word = CommitWord::default().with_entry(0, 3, 8).with_entry(1, 4, 2);
        let fresh = word.with_fresh(1);
        assert!(!fresh.is_foreign() && word.fresh_slot().is_none());
        assert_eq!((fresh.fresh_slot(), fresh.valid(), fresh.sum()), (Some(1), 0b11, 10));
        assert_eq!((fresh.plain(), fresh.with_fresh(0).fresh_slot()), (word, Some(0)));
        assert!(fresh.without_entry(0, 8).fresh_slot().is_none());
        assert_eq!(fresh.with_either(10).plain(), word);
        // One slot is fresh, and valid before only if it is valid now.
        for former in [0b000, 0b011, 0b101, 0b111] {
            let word = CommitWord(fresh.0 & !FORMER | former << FORMER_SHIFT);
            assert!(word.is_foreign(), "{former:b}");
        }
    }

    #[test]
    fn bits_that_no_operation_sets_are_noticed() {
        let word = CommitWord::default().with_entry(1, 3, 8);
        for bit in [3, 4, 5, 7, 8, 9, 10, 30] {
            assert!(CommitWord(word.0 | 1 << bit).is_foreign(), "bit {bit}");
        }
    }
}
