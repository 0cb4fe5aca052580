//! The layout of a leaf: a header line and cells.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | next | commit | the right neighbour, 0 if none, in 48 bits; their check in 16 |
//! | 1 | 8 | low | data | separator word of the low key; 0 in the first leaf |
//! | 2 | 8 | check | data | checksum of offset, low and kind |
//! | 3 | 8 | epoch | data | of the first leaf: see [`epoch`](super::epoch); else epoch 0 |
//! | 4 | 8 | state | data | bits 0..2 kind: 0 wide cells, 1 dense, 2 of pairs; 16..31 the cells |
//! | | | | | in use when next was set; 32..64 check of offset and the others |
//! | 5 | 8 | checkpoint | hint | of the first leaf: inner nodes as a clean close saved them |
//! | 6 | 8 | checkpoint nonce | hint | of the first leaf: nonce of the open that saved them |
//! | 7 | 8 | batch | commit | of the first leaf: number of the newest committed |
//! | | | | | [batch](super::batch); else 0 |
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
//! 5. A cell in use does not come out of use. So a cell of zeros that was in use is damage.

use super::batch::number;
use super::cell::{Cell, NewCell, ReadWords};
use super::epoch::Note;
use super::place::Candidates;
use super::rows::{CELLS_MAX, LeafWords, Notes, place_at, slots_of};
use super::word::{
    CellKind, CellLayout, CommitWord, KEPT_RANGE, SLOTS_MAX, WideCells, has_dense, slots_with,
    tag_of,
};
use crate::key::{Entry, Key};
use crate::leaf::{link, slots};
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmPtr, PmWord, Pool};
use core::hint::select_unpredictable;

const NEXT: usize = 0;
const LOW: usize = 1;
const CHECK: usize = 2;
const EPOCH: usize = 3;
const STATE: usize = 4;
const CHECKPOINT: usize = 5;
const BATCH: usize = 7;
const HEADER_WORDS: usize = 8;

/// The bits of a state word with the kind.
const KIND_MASK: u64 = 0b11;
const USED_SHIFT: u32 = 16;
const STATE_CHECK_SHIFT: u32 = 32;

/// The error for a cell that was in use and is not any more.
pub(super) const ZEROED: &str = "cell that was in use and is zero";

/// Returns the number of cells of a leaf of `bytes` bytes.
pub(super) const fn cells_of(bytes: usize) -> usize {
    let cells = bytes / LINE_BYTES - 1;
    assert!(cells >= 3 && cells <= CELLS_MAX && bytes.is_power_of_two());
    cells
}

/// The place of an entry in its leaf, and the entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    if has_dense::<K>() && is_narrow { CellKind::Dense } else { CellKind::widest::<K>() }
}

/// Returns the number of a kind in a header.
fn kind_number(kind: CellKind) -> u64 {
    match kind {
        CellKind::Wide => 0,
        CellKind::Dense => 1,
        CellKind::Pairs => 2,
    }
}

/// Returns the kind with this number; wide for one that no kind has.
fn kind_numbered(number: u64) -> CellKind {
    match number {
        1 => CellKind::Dense,
        2 => CellKind::Pairs,
        _ => CellKind::Wide,
    }
}

/// Returns the state word of a leaf at `at`, of this kind, with these cells in use.
fn state_word(at: PmPtr, kind: CellKind, used: u64) -> u64 {
    let state = kind_number(kind) | used << USED_SHIFT;
    state | mix(mix(state) ^ at.offset()) >> STATE_CHECK_SHIFT << STATE_CHECK_SHIFT
}

/// Returns the checksum of a header at `at` with this low word.
fn check_of(at: PmPtr, low: u64, kind: CellKind) -> u64 {
    mix(mix(low) ^ at.offset() ^ kind_number(kind))
}

/// Returns a number that depends on all bits of `word`.
fn mix(word: u64) -> u64 {
    let mixed = (word ^ word >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^ mixed >> 32
}

/// A view of a leaf.
#[derive(Debug)]
pub(super) struct CellLeaf<'a, W = PmWord> {
    pub(super) at: PmPtr,
    words: &'a [W],
}

// A derive would need words that are `Copy`.
impl<W> Copy for CellLeaf<'_, W> {}
impl<W> Clone for CellLeaf<'_, W> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<'a, W> CellLeaf<'a, W> {
    /// Returns the view of the leaf at `at` whose words are `words`.
    pub(super) const fn of_words(at: PmPtr, words: &'a [W]) -> Self {
        Self { at, words }
    }

    /// Returns the number of cells.
    #[inline(always)]
    pub(super) fn cells(self) -> usize {
        self.words.len() / LINE_WORDS - 1
    }

    /// Returns the cell with the number `index`.
    #[inline(always)]
    pub(super) fn cell<C: CellLayout>(self, index: usize) -> Cell<'a, C, W> {
        let word = (1 + index) * LINE_WORDS;
        Cell::new(self.at.offset() + 8 * word as u64, &self.words[word..])
    }

    /// Returns the number of entries that a leaf of this kind holds.
    #[inline(always)]
    pub(super) fn capacity<C: CellLayout>(self) -> usize {
        self.cells() * C::KIND.slots()
    }

    /// Returns the offset of the right neighbour; null in the last leaf.
    ///
    /// # Errors
    /// The link does not have its check.
    #[inline]
    pub(super) fn next<R: ReadWords<W>>(self, medium: &R) -> Result<PmPtr, Corrupt> {
        link::checked(self.at.offset(), medium.read(&self.words[NEXT]))
    }

    /// Returns the separator word of the low key.
    ///
    /// # Errors
    /// The checksum of the header does not fit.
    #[inline]
    pub(super) fn low<R: ReadWords<W>>(self, medium: &R) -> Result<u64, Corrupt> {
        Ok(self.header(medium)?.0)
    }

    /// Returns the separator word of the low key, and the kind.
    ///
    /// # Errors
    /// The checksum of the header does not fit.
    #[inline]
    pub(super) fn header<R: ReadWords<W>>(self, medium: &R) -> Result<(u64, CellKind), Corrupt> {
        let kind = kind_numbered(medium.read(&self.words[STATE]) & KIND_MASK);
        self.used_of(medium, kind)?;
        Ok((self.low_of(medium, kind)?, kind))
    }

    /// Returns the separator word of the low key, if the leaf is of this kind.
    ///
    /// # Errors
    /// The checksum of offset, low key and kind does not fit.
    #[inline]
    pub(super) fn low_of<R: ReadWords<W>>(
        self,
        medium: &R,
        kind: CellKind,
    ) -> Result<u64, Corrupt> {
        let [low, found] = [LOW, CHECK].map(|at| medium.read(&self.words[at]));
        let (at, expected) = (self.at.offset(), check_of(self.at, low, kind));
        if found != expected {
            let what = "checksum of the header of a leaf";
            return Err(Corrupt { at, what, expected, found });
        }
        Ok(low)
    }

    /// Returns the cells that were in use when the link was set, as bits, if the leaf is of this
    /// kind.
    ///
    /// # Errors
    /// The check of the state does not fit.
    #[inline]
    pub(super) fn used_of<R: ReadWords<W>>(
        self,
        medium: &R,
        kind: CellKind,
    ) -> Result<u64, Corrupt> {
        let found = medium.read(&self.words[STATE]);
        let used = used_of(found);
        let expected = state_word(self.at, kind, used);
        if found != expected {
            let at = self.at.offset() + 8 * STATE as u64;
            let what = "kind of a leaf, or its cells in use, or their check";
            return Err(Corrupt { at, what, expected, found });
        }
        Ok(used)
    }

    /// Returns the cells in use, as bits.
    pub(super) fn used_cells<C: CellLayout, R: ReadWords<W>>(self, medium: &R) -> u64 {
        let is_used = |&cell: &usize| self.cell::<C>(cell).commit_word(medium).is_used();
        (0..self.cells()).filter(is_used).fold(0, |used, cell| used | 1 << cell)
    }

    /// Checks that no cell is zeroed that was in use when the link was set.
    ///
    /// # Errors
    /// One is.
    pub(super) fn verify_used<C: CellLayout, R: ReadWords<W>>(
        self,
        medium: &R,
    ) -> Result<(), Corrupt> {
        let expected = used_of(medium.read(&self.words[STATE]));
        let found = self.used_cells::<C, R>(medium);
        if expected & !found == 0 {
            return Ok(());
        }
        let at = self.cell::<C>((expected & !found).trailing_zeros() as usize).at();
        Err(Corrupt { at, what: ZEROED, expected, found })
    }

    /// Returns the number of the newest batch that is committed, from the header of the first leaf.
    ///
    /// # Errors
    /// The check in the word does not fit.
    pub(super) fn batch<R: ReadWords<W>>(self, medium: &R) -> Result<u64, Corrupt> {
        number::in_word(self.at.offset(), medium.read(&self.words[BATCH]))
    }

    /// Returns the newest epoch whose inserts have all been fenced, from the header of the first
    /// leaf.
    ///
    /// # Errors
    /// The checksum in the word does not fit.
    pub(super) fn epoch<R: ReadWords<W>>(self, medium: &R) -> Result<u64, Corrupt> {
        let found = medium.read(&self.words[EPOCH]);
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

    /// Returns the right neighbour, of `bytes` bytes; `None` for the last leaf.
    pub(super) fn right<M: Medium>(
        self,
        pool: &Pool<M>,
        bytes: usize,
    ) -> Result<Option<CellLeaf<'_>>, Corrupt> {
        let next = self.next(pool.medium())?;
        if next.is_null() { Ok(None) } else { CellLeaf::new(pool, next, bytes).map(Some) }
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

    /// Commits the batch with this number, in the header of the first leaf. Durable after the next
    /// fence. `published` shows that all of its cells are durable.
    ///
    /// ```text
    /// C batch         8 B
    /// F header
    /// ```
    pub(super) fn commit_batch<M: Medium>(self, medium: &M, number: u64, published: Fenced) {
        let word = &self.words[BATCH];
        medium.commit(word, number::word_of(self.at.offset(), number), published);
        medium.flush(core::slice::from_ref(word));
    }

    /// Returns the newest epoch in the notes of fresh cells; 0 if no cell is fresh.
    pub(super) fn newest_epoch<K: Key, M: Medium>(self, medium: &M) -> u64 {
        if K::EXACT || K::HAS_ENCODINGS {
            return 0; // No key has a record of its own.
        }
        let fresh = (0..self.cells()).filter_map(|cell| self.cell::<WideCells>(cell).fresh(medium));
        fresh.map(|(_, note)| note.epoch).max().unwrap_or(0)
    }

    /// Returns the words that name the checkpoint, in the first leaf: its offset and its nonce.
    pub(super) fn checkpoint(self) -> &'a [PmWord] {
        &self.words[CHECKPOINT..BATCH]
    }

    /// Returns the words of the leaf, for a reader who waits for their writers.
    #[inline(always)]
    pub(super) fn words(self) -> &'a [PmWord] {
        self.words
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

    /// Returns the place and the entry of `key`, which has this hash, in a leaf with these words
    /// and notes. A writer may run at the same time; the caller validates.
    #[inline(always)]
    pub(super) fn find<C: CellLayout, K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
        (row, notes): (LeafWords<'_>, Notes),
        (candidates, hash): (Candidates, u64),
        key: K::Ref<'_>,
    ) -> Result<Option<Placed>, Corrupt> {
        if C::KIND == CellKind::Pairs {
            let near = slots_of(candidates.0[0]) | slots_of(candidates.0[1]);
            let within = if notes.has_far::<C>(hash) { u64::MAX } else { near };
            let tags = row.tags::<M>();
            let tagged = tags.slots(tag_of(hash)) & within | tags.unknown();
            return self.find_tagged::<C, K, M>(pool, tagged, key);
        }
        match self.find_in::<C, K, M>(pool, candidates.0, hash, key)? {
            None if notes.has_far::<C>(hash) => {
                self.find_far::<C, K, M>(pool, candidates, hash, key)
            }
            found => Ok(found),
        }
    }

    /// Looks for `key` in these slots, three for each cell, which have its tag.
    #[inline(always)]
    fn find_tagged<C: CellLayout, K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
        tagged: u64,
        key: K::Ref<'_>,
    ) -> Result<Option<Placed>, Corrupt> {
        for bit in slots(tagged) {
            let (cell, slot) = place_at(bit);
            let entry = self.cell::<C>(cell).entry(pool.medium(), slot);
            if K::order_entry(pool, entry, key)?.is_eq() {
                return Ok(Some(Placed { cell, slot, entry }));
            }
            // A matching tag with another key is rare, and is what a damaged key looks like.
            K::verify_mismatch(pool, entry, key)?;
        }
        Ok(None)
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
        if C::KIND != CellKind::Dense {
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
        (row, notes): (LeafWords<'_>, Notes),
        candidates: Candidates,
    ) -> Option<usize> {
        if C::KIND == CellKind::Pairs {
            let shown = row.shown::<M>();
            return candidates.choose((self.cells(), C::KIND.slots()), |cell| {
                (shown & slots_of(cell)).count_ones() as usize
            });
        }
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
        if C::KIND != CellKind::Dense {
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

    /// Sets the right neighbour of a leaf in which these cells were in use at the last fence.
    /// Durable after the next fence.
    ///
    /// ```text
    /// W cells in use
    /// C next          8 B
    /// F header
    /// ```
    pub(super) fn set_next<M: Medium>(self, medium: &M, next: PmPtr, used: u64) {
        let kind = kind_numbered(medium.load(&self.words[STATE]) & KIND_MASK);
        medium.store(&self.words[STATE], state_word(self.at, kind, used));
        medium.store(&self.words[NEXT], link::encode(next.offset()));
        medium.flush(&self.words[..HEADER_WORDS]);
    }

    /// Writes a new leaf: its header and its cells. Durable after the next fence. The cells
    /// without entries are written only if the block's last use has left something in one of them.
    ///
    /// ```text
    /// N header, cells with entries
    /// W commit word = 0, F cell        in each other cell, if the block was a leaf before
    /// ```
    pub(super) fn format<C: CellLayout, M: Medium>(
        self,
        medium: &M,
        (low, next): (u64, PmPtr),
        cells: &[NewCell<C>],
    ) {
        let mut header = [0; LINE_WORDS];
        let used = cells.iter().zip(0..).map(|(new, cell)| u64::from(new.word.is_used()) << cell);
        (header[NEXT], header[LOW]) = (link::encode(next.offset()), low);
        header[CHECK] = check_of(self.at, low, C::KIND);
        header[STATE] = state_word(self.at, C::KIND, used.sum());
        header[EPOCH] = self.epoch_word(0);
        header[BATCH] = number::word_of(self.at.offset(), 0);
        medium.fill(&self.words[..LINE_WORDS], &bytes_of(header));
        let empty = CommitWord::default();
        let all = || cells.iter().enumerate().map(|(index, new)| (self.cell::<C>(index), new));
        let mut idle = all().filter(|(_, new)| new.word == empty);
        // The first cell that was used tells it. What a crash has left of the others is not read.
        let was_used = idle.any(|(cell, _)| cell.commit_word(medium) != empty);
        for (cell, new) in all() {
            if new.word != empty {
                medium.fill(cell.words, &bytes_of(new.words()));
            } else if was_used {
                cell.set_commit_word(medium, empty);
                if !(M::INJECTS_DEFECTS && medium.injects(Defect::CellsKept)) {
                    cell.flush(medium);
                }
            }
        }
    }
}

/// Returns the cells in use that a state word tells, as bits.
fn used_of(state: u64) -> u64 {
    state >> USED_SHIFT & ((1 << CELLS_MAX) - 1)
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

/// Returns the error for a leaf with `count` entries where the leaf word, or an inner node, has
/// another number.
#[cold]
pub(super) fn disagreement(at: PmPtr, count: usize) -> Corrupt {
    let what = "inner nodes, leaf words and chain disagree";
    Corrupt { at: at.offset(), what, expected: count as u64, found: at.offset() }
}
