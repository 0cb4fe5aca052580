//! Records under the fence of their cell: the note by which recovery tells a torn record.
//!
//! An entry with a record is written with one fence for record and cell. So a crash may leave the
//! cell and lose lines of the record. The commit word then says *fresh*, and the cell has a note of
//! the record:
//!
//! | bits | field | meaning |
//! | --- | --- | --- |
//! | 0..30 | check | bits of the hash of the record's key; of a pair, of its sum |
//! | 30..64 | epoch | the epoch of the write |
//!
//! 1. A fresh slot counts if its record has valid sums and the check of the note. A record that the
//!    block held before is the same, whole, or has another check, but for a chance of 2^-30.
//! 2. An epoch lasts from an open to the next one. The first leaf has the newest epoch whose
//!    writes have all been fenced. A record without its check is torn if its epoch is later, and
//!    the cell is then as before the write. Otherwise the record is damaged.
//! 3. A recovery completes all leaves before it stores a later epoch. So a crash of a recovery
//!    leaves torn records torn.

use super::word::SUM_MASK;
use bristlecone_pmem::Corrupt;

const EPOCH_SHIFT: u32 = SUM_MASK.count_ones();
/// The position of the check in a hash, below the tag.
const CHECK_SHIFT: u32 = u64::BITS - u8::BITS - EPOCH_SHIFT;

/// The epoch that is later than every other: no insert has it.
pub(super) const EPOCH_MAX: u64 = u64::MAX >> EPOCH_SHIFT;

/// What had ended when a crash came. A recovery takes back later inserts whose records are torn,
/// and all later batches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    /// The newest epoch whose inserts have all been fenced.
    pub(super) epoch: u64,
    /// The number of the newest [batch](super::batch) that is committed.
    pub(super) batch: u64,
}

impl Ended {
    /// Everything, as after a clean close.
    pub(super) const ALL: Self = Self { epoch: EPOCH_MAX, batch: u64::MAX };
}

/// The note of a record, in the last word of a fresh cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Note {
    check: u64,
    pub(super) epoch: u64,
}

impl Note {
    /// Returns the note of the record of a key with this hash, inserted in `epoch`.
    #[inline(always)]
    pub(super) fn new(hash: u64, epoch: u64) -> Self {
        Self { check: hash >> CHECK_SHIFT & SUM_MASK, epoch }
    }

    /// Returns the note in `word`.
    pub(super) fn of_word(word: u64) -> Self {
        Self { check: word & SUM_MASK, epoch: word >> EPOCH_SHIFT }
    }

    /// Returns the word with this note.
    #[inline(always)]
    pub(super) fn word(self) -> u64 {
        self.epoch << EPOCH_SHIFT | self.check
    }

    /// Returns `true` if this is the note of a record whose key has this hash.
    pub(super) fn is_of(self, hash: u64) -> bool {
        self == Self::new(hash, self.epoch)
    }
}

/// Returns the epoch that follows `newest`, the newest epoch in an index whose first leaf is at
/// `at`.
///
/// # Errors
/// There is no later one. No index lives to see that, so it is damage.
pub(super) fn epoch_after(at: u64, newest: u64) -> Result<u64, Corrupt> {
    if newest < EPOCH_MAX - 1 {
        return Ok(newest + 1);
    }
    Err(Corrupt { at, what: "newest epoch of an index", expected: EPOCH_MAX - 2, found: newest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_of_one_hash_and_keeps_its_epoch() {
        let hash = 0x0123_4567_89ab_cdef;
        let note = Note::new(hash, EPOCH_MAX - 2);
        assert_eq!(Note::of_word(note.word()), note);
        assert!(note.is_of(hash) && !note.is_of(hash ^ 1 << 40));
        assert_eq!(epoch_after(0, EPOCH_MAX - 3), Ok(EPOCH_MAX - 2));
        assert!(epoch_after(0, EPOCH_MAX - 1).is_err() && epoch_after(0, u64::MAX).is_err());
    }
}
