//! The layout of a leaf: a header line and cells.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | next | commit | offset of the right neighbour; 0 in the last leaf |
//! | 1 | 8 | low | data | separator word of the low key; 0 in the first leaf |
//! | 2 | 8 | check | data | checksum of offset and low |
//! | 3 | 8 | epoch | data | of the first leaf: see [`epoch`](super::epoch); else epoch 0 |
//! | 4 | 32 | | | zero |
//! | 8 | 64 n | n cells | | see [`Cell`] |
//!
//! 1. Low and check never change.
//! 2. The leaf covers the keys from its low key up to that of the right neighbour. It may hold
//!    entries beyond: hidden entries, which a split has moved. No lookup in this leaf asks for
//!    their keys. They leave when their cell is written next, or before the range grows.
//! 3. Lookups and changes of entries do not read the header.

use super::cell::{Cell, NewCell};
use super::epoch::Note;
use super::place::Candidates;
use super::rows::{CELLS_MAX, Notes};
use super::word::{CommitWord, SLOTS, slots_with, tag_of};
use crate::key::{Entry, Key};
use crate::leaf::slots;
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, PmWord, Pool};
use core::hint::select_unpredictable;

const NEXT: usize = 0;
const LOW: usize = 1;
const CHECK: usize = 2;
const EPOCH: usize = 3;
const HEADER_WORDS: usize = 4;

/// Returns the number of cells of a leaf of `bytes` bytes.
pub(super) const fn cells_of(bytes: usize) -> usize {
    let cells = bytes / LINE_BYTES - 1;
    assert!(cells >= 3 && cells <= CELLS_MAX && bytes.is_power_of_two());
    cells
}

/// The place of an entry in its leaf, and the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) cell: usize,
    pub(super) slot: usize,
    pub(super) entry: Entry,
}

/// Returns the checksum of `word` in a header at `at`.
fn check_of(at: PmPtr, word: u64) -> u64 {
    mix(mix(word) ^ at.offset())
}

/// Returns a number that depends on all bits of `word`.
fn mix(word: u64) -> u64 {
    let mixed = (word ^ word >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^ mixed >> 32
}

/// A view of a leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellLeaf<'a> {
    pub(super) at: PmPtr,
    words: &'a [PmWord],
}

impl<'a> CellLeaf<'a> {
    /// Returns the view of the leaf at `at`, of `bytes` bytes.
    #[inline(always)]
    pub(super) fn new<M: Medium>(
        pool: &'a Pool<M>,
        at: PmPtr,
        bytes: usize,
    ) -> Result<Self, Corrupt> {
        Ok(Self { at, words: pool.block(at, bytes / 8)? })
    }

    /// Returns the number of cells.
    #[inline(always)]
    pub(super) fn cells(self) -> usize {
        self.words.len() / LINE_WORDS - 1
    }

    /// Returns the cell with the number `index`.
    #[inline(always)]
    pub(super) fn cell(self, index: usize) -> Cell<'a> {
        let word = (1 + index) * LINE_WORDS;
        Cell::new(self.at.offset() + 8 * word as u64, &self.words[word..])
    }

    /// Returns the offset of the right neighbour; null in the last leaf.
    pub(super) fn next<M: Medium>(self, medium: &M) -> PmPtr {
        PmPtr::new(medium.load(&self.words[NEXT]))
    }

    /// Returns the right neighbour, of `bytes` bytes; `None` for the last leaf.
    pub(super) fn right<M: Medium>(
        self,
        pool: &Pool<M>,
        bytes: usize,
    ) -> Result<Option<CellLeaf<'_>>, Corrupt> {
        let next = self.next(pool.medium());
        if next.is_null() { Ok(None) } else { CellLeaf::new(pool, next, bytes).map(Some) }
    }

    /// Returns the separator word of the low key.
    ///
    /// # Errors
    /// The checksum of the header does not fit.
    pub(super) fn low<M: Medium>(self, medium: &M) -> Result<u64, Corrupt> {
        let [low, found] = [LOW, CHECK].map(|at| medium.load(&self.words[at]));
        let expected = check_of(self.at, low);
        if found != expected {
            let what = "checksum of the header of a leaf";
            return Err(Corrupt { at: self.at.offset(), what, expected, found });
        }
        Ok(low)
    }

    /// Returns the newest epoch whose inserts have all been fenced, from the header of the first
    /// leaf.
    ///
    /// # Errors
    /// The checksum in the word does not fit.
    pub(super) fn epoch<M: Medium>(self, medium: &M) -> Result<u64, Corrupt> {
        let found = medium.load(&self.words[EPOCH]);
        let epoch = Note::of_word(found).epoch;
        let expected = self.epoch_word(epoch);
        if found == expected {
            return Ok(epoch);
        }
        Err(Corrupt { at: self.at.offset(), what: "epoch of an index", expected, found })
    }

    /// Returns the word of `epoch`, which has a checksum like a note.
    fn epoch_word(self, epoch: u64) -> u64 {
        Note::new(check_of(self.at, epoch), epoch).word()
    }

    /// Sets the epoch in the header. Durable on return.
    ///
    /// ```text
    /// W epoch, F header |      -> durable      budget: 1 line, 1 fence
    /// ```
    pub(super) fn set_epoch<M: Medium>(self, medium: &M, epoch: u64) {
        medium.store(&self.words[EPOCH], self.epoch_word(epoch));
        let _ = medium.persist(&self.words[..HEADER_WORDS]);
    }

    /// Returns the newest epoch in the notes of fresh cells; 0 if no cell is fresh.
    pub(super) fn newest_epoch<M: Medium>(self, medium: &M) -> u64 {
        let fresh = (0..self.cells()).filter_map(|cell| self.cell(cell).fresh(medium));
        fresh.map(|(_, note)| note.epoch).max().unwrap_or(0)
    }

    /// Prefetches the near cells of a key.
    #[inline(always)]
    pub(super) fn prefetch<M: Medium>(self, medium: &M, candidates: Candidates) {
        for cell in candidates.0 {
            medium.prefetch(self.cell(cell).line());
        }
    }

    /// Prefetches the header.
    pub(super) fn prefetch_header<M: Medium>(self, medium: &M) {
        medium.prefetch(&self.words[..HEADER_WORDS]);
    }

    /// Prefetches all lines.
    pub(super) fn prefetch_all<M: Medium>(self, medium: &M) {
        medium.prefetch(self.words);
    }

    /// Returns the place and the entry of `key`, which has this hash, in a leaf with these notes. A
    /// writer may run at the same time; the caller validates.
    #[inline(always)]
    pub(super) fn find<K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
        notes: Notes,
        (candidates, hash): (Candidates, u64),
        key: K::Ref<'_>,
    ) -> Result<Option<Placed>, Corrupt> {
        match self.find_in::<K, M>(pool, candidates.0, hash, key)? {
            None if notes.has_far(hash) => self.find_far::<K, M>(pool, candidates, hash, key),
            found => Ok(found),
        }
    }

    /// Looks for `key` in two cells, without a branch that depends on the cell.
    #[inline(always)]
    fn find_in<K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
        cells: [usize; 2],
        hash: u64,
        key: K::Ref<'_>,
    ) -> Result<Option<Placed>, Corrupt> {
        let medium = pool.medium();
        let words = cells.map(|cell| self.cell(cell).commit_word(medium));
        for at in slots_with(words, tag_of(hash)) {
            let is_second = at >= SLOTS;
            let cell = select_unpredictable(is_second, cells[1], cells[0]);
            let slot = at - select_unpredictable(is_second, SLOTS, 0);
            let entry = self.cell(cell).entry(medium, slot);
            if K::order_entry(pool, entry, key)?.is_eq() {
                return Ok(Some(Placed { cell, slot, entry }));
            }
        }
        Ok(None)
    }

    /// Looks for `key` in the far cells.
    #[cold]
    fn find_far<K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
        candidates: Candidates,
        hash: u64,
        key: K::Ref<'_>,
    ) -> Result<Option<Placed>, Corrupt> {
        self.prefetch_all(pool.medium());
        for cell in candidates.far(self.cells()) {
            let found = self.find_in::<K, M>(pool, [cell; 2], hash, key)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Returns the cell in which an insert adds an entry; `None` if all cells are full. The
    /// slots of hidden entries count as free.
    #[inline(always)]
    pub(super) fn choose<M: Medium>(
        self,
        medium: &M,
        notes: Notes,
        candidates: Candidates,
    ) -> Option<usize> {
        candidates.choose(self.cells(), |cell| {
            let valid = self.cell(cell).commit_word(medium).valid();
            (valid & !notes.hidden_in(cell)).count_ones() as usize
        })
    }

    /// Returns the entries with their places, cell by cell, except for those that `notes` hides. A
    /// writer may run at the same time.
    pub(super) fn entries<M: Medium>(
        self,
        medium: &M,
        notes: Notes,
    ) -> impl Iterator<Item = Placed> {
        let in_cell = move |cell| {
            let valid = self.cell(cell).commit_word(medium).valid() & !notes.hidden_in(cell);
            let placed =
                move |slot| Placed { cell, slot, entry: self.cell(cell).entry(medium, slot) };
            slots(valid).map(placed)
        };
        (0..self.cells()).flat_map(in_cell)
    }

    /// Sets the right neighbour. Durable after the next fence.
    ///
    /// ```text
    /// C next          8 B
    /// F header
    /// ```
    pub(super) fn set_next<M: Medium>(self, medium: &M, next: PmPtr) {
        medium.store(&self.words[NEXT], next.offset());
        medium.flush(&self.words[..HEADER_WORDS]);
    }

    /// Writes a new leaf: its header and its cells. Durable after the next fence. A cell without
    /// entries is written only if the block's last use has left something there.
    ///
    /// ```text
    /// N header, cells with entries
    /// W commit word = 0, F cell        in each other cell whose commit word is not 0
    /// ```
    pub(super) fn format<M: Medium>(self, medium: &M, low: u64, next: PmPtr, cells: &[NewCell]) {
        let mut header = [0; LINE_WORDS];
        (header[NEXT], header[LOW], header[CHECK]) = (next.offset(), low, check_of(self.at, low));
        header[EPOCH] = self.epoch_word(0);
        medium.fill(&self.words[..LINE_WORDS], &bytes_of(header));
        for (index, new) in cells.iter().enumerate() {
            let cell = self.cell(index);
            if new.word != CommitWord::default() {
                medium.fill(cell.words, &bytes_of(new.words()));
            } else if cell.commit_word(medium) != new.word {
                cell.set_commit_word(medium, new.word);
                if !(M::INJECTS_DEFECTS && medium.injects(Defect::CellsKept)) {
                    cell.flush(medium);
                }
            }
        }
    }
}

/// Returns the bytes of a line.
fn bytes_of(words: [u64; LINE_WORDS]) -> [u8; LINE_BYTES] {
    let mut bytes = [0; LINE_BYTES];
    for (target, word) in bytes.chunks_exact_mut(8).zip(words) {
        target.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Returns the error for an entry that a lookup of its key does not find.
#[cold]
pub(super) fn unfindable(at: PmPtr, entry: Entry) -> Corrupt {
    let what = "entry that a lookup does not find";
    Corrupt { at: at.offset(), what, expected: 0, found: entry.key }
}
