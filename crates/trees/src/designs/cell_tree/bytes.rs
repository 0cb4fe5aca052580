//! A leaf of the store in the bytes of a file, for a reader that must not map the pool.
//!
//! 1. Nothing is written, and all methods are total: any bytes give a result or an error.
//! 2. [`Cell`] and [`CellLeaf`] decide what is valid, as in a pool, over a copy of the words.
//! 3. Each cell has a sum of its own. So damage to a cell hides its pairs alone, and damage to the
//!    header hides none.

use super::cell::{Cell, ReadWords};
use super::leaf::{CellLeaf, ZEROED, cells_of};
use super::word::{CellKind, CommitWord, PairCells};
use crate::key::{Entry, Record};
use crate::leaf::slots;
use bristlecone_pmem::{Corrupt, Defect, PmPtr};

/// The reader of words in DRAM.
struct InDram;

impl ReadWords<u64> for InDram {
    const SPARES_READS: bool = false;
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
    /// The damage of the cell.
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

    /// Compares the header with its checksums, but for the [link](Self::next) and the number of the
    /// [batch](Self::batch).
    ///
    /// # Errors
    /// The header is damaged, or the leaf is of another kind.
    pub fn verify_header(&self) -> Result<(), Corrupt> {
        self.low()?;
        self.leaf().epoch(&InDram)?;
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

    /// Returns the number of the newest committed batch, if this is the first leaf.
    ///
    /// # Errors
    /// The check of the number does not fit.
    pub fn batch(&self) -> Result<u64, Corrupt> {
        self.leaf().batch(&InDram)
    }

    /// Yields the cells. If a crash has torn the newest write of a cell, or if that is of a batch
    /// after `committed`, its entries are those of before.
    pub fn cells(&self, committed: u64) -> impl Iterator<Item = CellBytes> {
        let used = self.leaf().used_of(&InDram, CellKind::Pairs).unwrap_or(0);
        (0..cells_of(Self::BYTES)).map(move |index| {
            let cell = self.leaf().cell::<PairCells>(index);
            let in_use = used >> index & 1 == 1;
            read_cell(cell, in_use, committed)
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
fn read_cell(cell: Cell<'_, PairCells, u64>, in_use: bool, committed: u64) -> CellBytes {
    let entries = |word: CommitWord<PairCells>, shown| {
        slots(shown).map(|slot| cell.entry_of(&InDram, slot, word)).collect()
    };
    let word = match cell.fitting(&InDram) {
        Ok(word) => word,
        Err(damage) => {
            let word = cell.commit_word(&InDram);
            let mut entries: Vec<Entry> = entries(word, word.valid());
            entries.retain(|entry| !Record::is_inline(entry.encoding));
            return CellBytes { entries, is_whole: false, damage: Some(damage) };
        }
    };
    let at = cell.at();
    let (word, shown, damage) = match cell.committed(&InDram, word, committed) {
        // The number of the batch is damaged: what it has changed is not known.
        Err(damage) => (word, word.valid() & word.former(), Some(damage)),
        Ok(word) if in_use && !word.is_used() => {
            (word, 0, Some(Corrupt { at, what: ZEROED, expected: 1, found: 0 }))
        }
        Ok(word) => (word, word.valid(), None),
    };
    CellBytes { entries: entries(word, shown), is_whole: true, damage }
}

#[cfg(test)]
mod tests;
