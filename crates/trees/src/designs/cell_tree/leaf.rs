//! The layout of a leaf: a header line and cells.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | next | commit | offset of the right neighbour; 0 in the last leaf |
//! | 1 | 8 | low | data | separator word of the low key; 0 in the first leaf |
//! | 2 | 8 | check | data | checksum of offset, low and kind |
//! | 3 | 8 | epoch | data | of the first leaf: see [`epoch`](super::epoch); else epoch 0 |
//! | 4 | 8 | kind | data | 0: wide cells; 1: dense cells |
//! | 5 | 24 | | | zero |
//! | 8 | 64 n | n cells | | see [`Cell`] |
//!
//! 1. Low, kind and check never change.
//! 2. The leaf covers the keys from its low key up to that of the right neighbour. It may hold
//!    entries beyond: hidden entries, which a split has moved. No lookup in this leaf asks for
//!    their keys. They leave when their cell is written next, or before the range grows.
//! 3. Lookups do not read the header, and changes of entries only that of a dense leaf with hidden
//!    entries.
//! 4. The range of a dense leaf is narrow: see [`kind_of`]. So the low bits of a key tell it from
//!    all other keys that the leaf ever holds.

use super::cell::{Cell, NewCell};
use super::epoch::Note;
use super::place::Candidates;
use super::rows::{CELLS_MAX, Notes};
use super::word::{
    CellKind, CellLayout, CommitWord, KEPT_RANGE, SLOTS_MAX, WideCells, has_dense, slots_with,
    tag_of,
};
use crate::key::{Entry, Key};
use crate::leaf::slots;
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, PmWord, Pool};
use core::hint::select_unpredictable;

const NEXT: usize = 0;
const LOW: usize = 1;
const CHECK: usize = 2;
const EPOCH: usize = 3;
const KIND: usize = 4;
const HEADER_WORDS: usize = 5;

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

/// Returns the kind of a leaf that covers the keys from `low` up to `high`, or all from `low` on:
/// dense, if the keys have layer `K` and are at most [`KEPT_RANGE`].
pub(super) fn kind_of<K: Key>(low: &K::Owned, high: Option<&K::Owned>) -> CellKind {
    let prefix = |key: &K::Owned| K::prefix(K::borrow(key));
    // 0 for all keys.
    let width = high.map_or(0, prefix).wrapping_sub(prefix(low));
    let is_narrow = (1..=KEPT_RANGE).contains(&width);
    if has_dense::<K>() && is_narrow { CellKind::Dense } else { CellKind::Wide }
}

/// Returns the word of a kind in a header.
fn kind_word(kind: CellKind) -> u64 {
    u64::from(kind == CellKind::Dense)
}

/// Returns the checksum of a header at `at` with this low word.
fn check_of(at: PmPtr, low: u64, kind: CellKind) -> u64 {
    mix(mix(low) ^ at.offset() ^ kind_word(kind))
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
    pub(super) fn cell<C: CellLayout>(self, index: usize) -> Cell<'a, C> {
        let word = (1 + index) * LINE_WORDS;
        Cell::new(self.at.offset() + 8 * word as u64, &self.words[word..])
    }

    /// Returns the number of entries that a leaf of this kind holds.
    #[inline(always)]
    pub(super) fn capacity<C: CellLayout>(self) -> usize {
        self.cells() * C::KIND.slots()
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
    #[inline]
    pub(super) fn low<M: Medium>(self, medium: &M) -> Result<u64, Corrupt> {
        Ok(self.header(medium)?.0)
    }

    /// Returns the separator word of the low key, and the kind.
    ///
    /// # Errors
    /// The checksum of the header does not fit.
    #[inline]
    pub(super) fn header<M: Medium>(self, medium: &M) -> Result<(u64, CellKind), Corrupt> {
        let [low, found, word] = [LOW, CHECK, KIND].map(|at| medium.load(&self.words[at]));
        let kind = if word == 0 { CellKind::Wide } else { CellKind::Dense };
        let expected = check_of(self.at, low, kind);
        if found != expected || word != kind_word(kind) {
            let what = "checksum of the header of a leaf";
            return Err(Corrupt { at: self.at.offset(), what, expected, found });
        }
        Ok((low, kind))
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
        Note::new(check_of(self.at, epoch, CellKind::Wide), epoch).word()
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
        // No dense cell is fresh.
        let fresh = (0..self.cells()).filter_map(|cell| self.cell::<WideCells>(cell).fresh(medium));
        fresh.map(|(_, note)| note.epoch).max().unwrap_or(0)
    }

    /// Prefetches the near cells of a key.
    #[inline(always)]
    pub(super) fn prefetch<M: Medium>(self, medium: &M, candidates: Candidates) {
        for cell in candidates.0 {
            medium.prefetch(self.cell::<WideCells>(cell).line());
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
    pub(super) fn find<C: CellLayout, K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
        notes: Notes,
        (candidates, hash): (Candidates, u64),
        key: K::Ref<'_>,
    ) -> Result<Option<Placed>, Corrupt> {
        match self.find_in::<C, K, M>(pool, candidates.0, hash, key)? {
            None if notes.has_far::<C>(hash) => {
                self.find_far::<C, K, M>(pool, candidates, hash, key)
            }
            found => Ok(found),
        }
    }

    /// Looks for `key` in two cells, without a branch that depends on the cell.
    #[inline(always)]
    fn find_in<C: CellLayout, K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
        cells: [usize; 2],
        hash: u64,
        key: K::Ref<'_>,
    ) -> Result<Option<Placed>, Corrupt> {
        let medium = pool.medium();
        let place = |at: usize| {
            let is_second = at >= SLOTS_MAX;
            let cell = select_unpredictable(is_second, cells[1], cells[0]);
            (cell, at - select_unpredictable(is_second, SLOTS_MAX, 0))
        };
        if C::KIND == CellKind::Dense {
            let key = K::prefix(key);
            let is_key = |kept: u64| kept == C::KIND.kept(key);
            // Without `map`, whose closure the compiler does not inline here.
            let slots_of = |cell| self.cell::<C>(cell).dense_slots(medium, is_key);
            let (first, second) = (slots_of(cells[0]), slots_of(cells[1]));
            return Ok(slots(first | second << SLOTS_MAX).next().map(|at| {
                let (cell, slot) = place(at);
                let value = self.cell::<C>(cell).value(medium, slot);
                Placed { cell, slot, entry: Entry::plain(key, value) }
            }));
        }
        let words = cells.map(|cell| self.cell::<WideCells>(cell).commit_word(medium));
        for (cell, slot) in slots_with(words, tag_of(hash)).map(place) {
            let entry = self.cell::<C>(cell).entry(medium, slot);
            if K::order_entry(pool, entry, key)?.is_eq() {
                return Ok(Some(Placed { cell, slot, entry }));
            }
        }
        Ok(None)
    }

    /// Looks for `key` in the far cells.
    #[cold]
    fn find_far<C: CellLayout, K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
        candidates: Candidates,
        hash: u64,
        key: K::Ref<'_>,
    ) -> Result<Option<Placed>, Corrupt> {
        self.prefetch_all(pool.medium());
        let mut far = candidates.far(self.cells());
        while let Some(first) = far.next() {
            let second = far.next().unwrap_or(first);
            let found = self.find_in::<C, K, M>(pool, [first, second], hash, key)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Returns the slots of `cell` with hidden entries.
    #[inline(always)]
    pub(super) fn hidden_in<C: CellLayout, M: Medium>(
        self,
        medium: &M,
        notes: Notes,
        cell: usize,
    ) -> u64 {
        if C::KIND == CellKind::Wide {
            return notes.hidden_in(cell);
        }
        // Without `map_or`, whose closure the compiler does not inline here.
        let Some(bound) = notes.bound() else { return 0 };
        // The leaf has no key further from its low key than kept parts tell.
        let low = medium.load(&self.words[LOW]);
        let distance = |kept: u64| C::KIND.kept(kept.wrapping_sub(low));
        let least = distance(bound);
        self.cell::<C>(cell).dense_slots(medium, |kept| distance(kept) >= least)
    }

    /// Returns the slots of `cell` that count.
    #[inline(always)]
    pub(super) fn shown_in<C: CellLayout, M: Medium>(
        self,
        medium: &M,
        notes: Notes,
        cell: usize,
    ) -> u64 {
        let valid = self.cell::<C>(cell).commit_word(medium).valid();
        valid & !self.hidden_in::<C, M>(medium, notes, cell)
    }

    /// Returns the cell in which an insert adds an entry; `None` if all cells are full. The
    /// slots of hidden entries count as free.
    #[inline(always)]
    pub(super) fn choose<C: CellLayout, M: Medium>(
        self,
        medium: &M,
        notes: Notes,
        candidates: Candidates,
    ) -> Option<usize> {
        candidates.choose((self.cells(), C::KIND.slots()), |cell| {
            self.shown_in::<C, M>(medium, notes, cell).count_ones() as usize
        })
    }

    /// Returns the entry in a slot, with its whole key.
    #[inline(always)]
    pub(super) fn entry<C: CellLayout, M: Medium>(
        self,
        medium: &M,
        cell: usize,
        slot: usize,
    ) -> Entry {
        let entry = self.cell::<C>(cell).entry(medium, slot);
        if C::KIND == CellKind::Wide {
            return entry;
        }
        // A reader may meet a block that is in other use; the caller validates.
        let base = medium.load(&self.words[LOW]);
        Entry { key: base.wrapping_add(C::KIND.kept(entry.key.wrapping_sub(base))), ..entry }
    }

    /// Returns the entries with their places, cell by cell, except for those that `notes` hides. A
    /// writer may run at the same time.
    pub(super) fn entries<C: CellLayout, M: Medium>(
        self,
        medium: &M,
        notes: Notes,
    ) -> impl Iterator<Item = Placed> {
        let in_cell = move |cell| {
            let placed =
                move |slot| Placed { cell, slot, entry: self.entry::<C, M>(medium, cell, slot) };
            slots(self.shown_in::<C, M>(medium, notes, cell)).map(placed)
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
    pub(super) fn format<C: CellLayout, M: Medium>(
        self,
        medium: &M,
        (low, next): (u64, PmPtr),
        cells: &[NewCell<C>],
    ) {
        let mut header = [0; LINE_WORDS];
        (header[NEXT], header[LOW]) = (next.offset(), low);
        (header[CHECK], header[KIND]) = (check_of(self.at, low, C::KIND), kind_word(C::KIND));
        header[EPOCH] = self.epoch_word(0);
        medium.fill(&self.words[..LINE_WORDS], &bytes_of(header));
        for (index, new) in cells.iter().enumerate() {
            let cell = self.cell::<C>(index);
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
