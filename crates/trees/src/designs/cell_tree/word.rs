//! The commit word of a cell.
//!
//! | bits | field | meaning |
//! | --- | --- | --- |
//! | 0..3 | valid | the slots that hold an entry |
//! | 3..6 | former | zero, reserved: the valid slots before a batch |
//! | 6..8 | op | 0: plain; 1: either sum may fit, because the newest operation was an update |
//! | 8 | overflow | a key whose first cell this is lies in its third or fourth one |
//! | 9 | | zero |
//! | 10..34 | tags | a byte of the key's hash for each slot; zero in a free slot |
//! | 34..64 | sum | the exclusive or of the sums of all valid entries |
//!
//! A cell without entries and without the overflow bit has the commit word 0.

use crate::fingerprint;
use crate::leaf::slots;

/// The number of entries of a cell.
pub(super) const SLOTS: usize = 3;

const VALID: u64 = (1 << SLOTS) - 1;
const OP: u64 = 0b11 << 6;
const EITHER: u64 = 1 << 6;
const OVERFLOW: u64 = 1 << 8;
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

    /// Returns the number of entries.
    #[inline(always)]
    pub(super) fn count(self) -> usize {
        self.valid().count_ones() as usize
    }

    /// Returns the first free slot; `None` if the cell is full.
    #[inline(always)]
    pub(super) fn free_slot(self) -> Option<usize> {
        let slot = self.valid().trailing_ones() as usize;
        (slot < SLOTS).then_some(slot)
    }

    /// Returns the valid slots with the tag `tag`, as a bit mask.
    #[inline(always)]
    pub(super) fn matching(self, tag: u8) -> u64 {
        let equal = |slot| u64::from(self.tag(slot) == tag) << slot;
        (equal(0) | equal(1) | equal(2)) & self.valid()
    }

    #[inline(always)]
    fn tag(self, slot: usize) -> u8 {
        (self.0 >> (TAGS_SHIFT + 8 * slot)) as u8
    }

    /// Returns `true` if `slot` has the tag of a key with this hash.
    pub(super) fn has_tag(self, slot: usize, hash: u64) -> bool {
        self.tag(slot) == tag_of(hash)
    }

    /// Returns `true` if a key whose first cell this is may lie in its third or fourth one.
    #[inline(always)]
    pub(super) fn overflows(self) -> bool {
        self.0 & OVERFLOW != 0
    }

    /// Returns `true` if the content may fit the former sum, behind the entries, instead.
    pub(super) fn is_either(self) -> bool {
        self.0 & OP == EITHER
    }

    /// Returns `true` if a field that no operation sets is set.
    pub(super) fn is_foreign(self) -> bool {
        let known = VALID | EITHER | OVERFLOW | self.used_tags() | SUM_MASK << SUM_SHIFT;
        self.0 & !known != 0
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

    /// Returns the plain word.
    #[inline(always)]
    pub(super) fn plain(self) -> Self {
        Self(self.0 & !OP)
    }

    /// Returns the word with another sum.
    #[inline(always)]
    pub(super) fn with_sum(self, sum: u64) -> Self {
        Self(self.0 & !(SUM_MASK << SUM_SHIFT) | sum << SUM_SHIFT)
    }

    /// Returns the word with the overflow bit set.
    pub(super) fn with_overflow(self) -> Self {
        Self(self.0 | OVERFLOW)
    }
}

/// Returns the tag of a key with this hash.
#[inline(always)]
pub(super) fn tag_of(hash: u64) -> u8 {
    fingerprint::of(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_comes_and_goes_leaves_the_word_as_it_was() {
        let word = CommitWord::default().with_entry(0, 7, 0x3fff_ffff).with_entry(1, 9, 5);
        assert_eq!((word.valid(), word.sum(), word.free_slot()), (0b11, 0x3fff_fffa, Some(2)));
        let full = word.with_overflow().with_entry(2, 7, 1);
        assert_eq!((full.matching(7), full.free_slot(), full.count()), (0b101, None, 3));
        assert!(!full.is_foreign() && full.overflows());
        assert_eq!(full.without_entry(2, 1), word.with_overflow());
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
    fn bits_that_no_operation_sets_are_noticed() {
        let word = CommitWord::default().with_entry(1, 3, 8);
        for bit in [3, 4, 5, 7, 9, 10, 30] {
            assert!(CommitWord(word.0 | 1 << bit).is_foreign(), "bit {bit}");
        }
    }
}
