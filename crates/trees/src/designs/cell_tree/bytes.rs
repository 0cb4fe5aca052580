//! A leaf of the store in the bytes of a file, for a reader that must not map the pool.
//!
//! 1. Nothing is written, and all methods are total: any bytes give a result or an error.
//! 2. [`Cell`] and [`CellLeaf`] decide what is valid, as in a pool, over a copy of the words.
//! 3. Each cell has a sum of its own. So damage to a cell hides its pairs alone, and damage to the
//!    header hides none.

use super::cell::{Cell, ReadWords};
use super::epoch::Ended;
use super::leaf::{CellLeaf, ZEROED, cells_of};
use super::word::{CellKind, CommitWord, PairCells};
use crate::key::{Entry, Record};
use crate::leaf::slots;
use bristlecone_pmem::{Corrupt, Defect, PmPtr};

/// The reader of words in DRAM.
struct InDram;

impl ReadWords<u64> for InDram {
    fn read(&self, word: &u64) -> u64 {
        *word
    }
    fn has_defect(&self, _: Defect) -> bool {
        false
    }
}

/// The size of a leaf in words.
const WORDS: usize = LeafBytes::BYTES / 8;

/// A copy of a leaf of the store that may be damaged. All methods are total: any bytes give a
/// result or an error.
#[derive(Clone, Debug)]
pub struct LeafBytes {
    at: u64,
    words: [u64; WORDS],
}

/// What is left of one cell of a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellBytes {
    /// The entries that count. Of a cell that is not whole, those that name a record, which must
    /// vouch for itself.
    pub entries: Vec<Entry>,
    /// `true` if the sum of the cell vouches for the entries.
    pub is_whole: bool,
    /// The damage of the cell, or of the record that its newest write names. Nothing tells a record
    /// that a crash has torn from one that was damaged before the next open.
    pub damage: Option<Corrupt>,
}

impl LeafBytes {
    /// The size of a leaf in bytes.
    pub const BYTES: usize = 1024;

    /// Returns the leaf at offset `at` of a file, below 2^63, whose bytes are `bytes`.
    pub fn new(at: u64, bytes: &[u8; Self::BYTES]) -> Self {
        let (words, _) = bytes.as_chunks();
        Self { at, words: core::array::from_fn(|i| u64::from_le_bytes(words[i])) }
    }

    const fn leaf(&self) -> CellLeaf<'_, u64> {
        CellLeaf::of_words(PmPtr::new(self.at), &self.words)
    }

    /// Returns the offset of the leaf.
    pub const fn at(&self) -> u64 {
        self.at
    }

    /// Compares the header with its checksums, but for the [link](Self::next).
    ///
    /// # Errors
    /// The header is damaged, or the leaf is of another kind.
    pub fn verify_header(&self) -> Result<(), Corrupt> {
        self.low()?;
        self.leaf().used_of(&InDram, CellKind::Pairs).map(drop)
    }

    /// Returns the offset of the right neighbour; null for the last leaf.
    ///
    /// # Errors
    /// The link does not have its check.
    pub fn next(&self) -> Result<PmPtr, Corrupt> {
        self.leaf().next(&InDram)
    }

    /// Returns the separator word of the low key.
    ///
    /// # Errors
    /// The checksum of the low key does not fit.
    pub fn low(&self) -> Result<u64, Corrupt> {
        self.leaf().low_of(&InDram, CellKind::Pairs)
    }

    /// Returns what had ended when a crash came, if this is the first leaf.
    ///
    /// # Errors
    /// The check of the epoch, or that of the number of the newest batch, does not fit.
    pub fn ended(&self) -> Result<Ended, Corrupt> {
        let (epoch, batch) = (self.leaf().epoch(&InDram)?, self.leaf().batch(&InDram)?);
        Ok(Ended { epoch, batch })
    }

    /// Yields the cells. If a crash has torn the newest write of a cell, its entries are those of
    /// before. `ended` is [that](Self::ended) of the first leaf. `check` returns the
    /// [check](crate::key::format::RecordBytes::check) of the record of an entry.
    pub fn cells(
        &self,
        ended: Ended,
        mut check: impl FnMut(Entry) -> Result<u64, Corrupt>,
    ) -> impl Iterator<Item = CellBytes> {
        let used = self.leaf().used_of(&InDram, CellKind::Pairs).unwrap_or(0);
        (0..cells_of(Self::BYTES)).map(move |index| {
            let cell = self.leaf().cell::<PairCells>(index);
            let in_use = used >> index & 1 == 1;
            read_cell(cell, in_use, ended, &mut check)
        })
    }

    /// Returns `true` if a cell with a right sum has entries.
    pub fn has_entries(&self) -> bool {
        (0..cells_of(Self::BYTES)).any(|index| {
            let word = self.leaf().cell::<PairCells>(index).fitting(&InDram);
            word.is_ok_and(|word| word.valid() != 0)
        })
    }
}

/// Returns what is left of `cell`, which was in use when the link of its leaf was set, if
/// `in_use`.
fn read_cell(
    cell: Cell<'_, PairCells, u64>,
    in_use: bool,
    ended: Ended,
    check: impl FnOnce(Entry) -> Result<u64, Corrupt>,
) -> CellBytes {
    let settled = cell.settled_by::<Record, _>(&InDram, ended, check);
    let entries = |word: CommitWord<PairCells>, shown| {
        slots(shown).map(|slot| cell.entry_of(&InDram, slot, word)).collect()
    };
    let Ok(word) = cell.fitting(&InDram) else {
        let word = cell.commit_word(&InDram);
        let mut entries: Vec<Entry> = entries(word, word.valid());
        entries.retain(|entry| !Record::is_inline(entry.encoding));
        return CellBytes { entries, is_whole: false, damage: settled.err() };
    };
    let at = cell.at();
    let (word, shown, damage) = match (settled, cell.fresh(&InDram)) {
        (Ok(before), Some((slot, note))) if before != word => {
            let what = "record of the newest write of a cell: torn by a crash, or damaged";
            let expected = note.word();
            (before, before.valid(), Some(Corrupt { at, what, expected, found: slot as u64 }))
        }
        // The record of the fresh slot is damaged.
        (Err(damage), Some((slot, _))) => (word, word.valid() & !(1 << slot), Some(damage)),
        // The number of the batch is damaged: what it has changed is not known.
        (Err(damage), None) => (word, word.valid() & word.former(), Some(damage)),
        (Ok(word), _) if in_use && !word.is_used() => {
            (word, 0, Some(Corrupt { at, what: ZEROED, expected: 1, found: 0 }))
        }
        (Ok(word), _) => (word, word.valid(), None),
    };
    CellBytes { entries: entries(word, shown), is_whole: true, damage }
}

#[cfg(test)]
mod tests;
