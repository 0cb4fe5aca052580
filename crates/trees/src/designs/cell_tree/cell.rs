//! The layout of a cell: one line with three or four entries, which commits itself.
//!
//! A wide cell, and a cell of pairs:
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | commit word | commit | see [`CommitWord`] |
//! | 1 | 48 | 3 entries | data | key word, value word |
//! | 7 | 8 | former sum | data | the sum before the newest update, if the word is either; of a |
//! | | | | | cell of pairs also bits 32..34: its slot, 40..48: the encoding before |
//! | | | note | data | if it is fresh: bits 0..30 check of the record, 30..64 epoch |
//! | | | number | data | if it is batched: that of the [batch](super::batch) |
//!
//! A dense cell:
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | commit word | commit | see [`CommitWord`] |
//! | 1 | 24 | 3 words | data | bits 0..16 a third of key 3, lowest first; 16..64 a key, 0 to 2 |
//! | 4 | 32 | 4 values | data | value words |
//!
//! 1. One store of the commit word decides which entries count. It follows what it publishes in
//!    the same line.
//! 2. A store changes no entry that the commit word counts, except the value of an update.
//! 3. The commit word of a wide cell is plain before word 7 changes, so that word 7 is what the
//!    commit word says.
//! 4. The sum covers the place of the cell in the pool, the slots, and keys and values. It fits the
//!    content, or the word is [`either`](CommitWord::is_either) and the former sum does.

use super::batch::number;
use super::epoch::{Ended, Note};
use super::word::{CellKind, CellLayout, CommitWord, KEPT_RANGE, SLOTS_MAX, SUM_MASK, tag_of};
use crate::key::{Entry, Key, Value};
use crate::leaf::slots;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmWord, Pool};
use core::marker::PhantomData;

const COMMIT: usize = 0;
/// The first word of the entries of a wide cell, and of the keys of a dense one.
const ENTRIES: usize = 1;
/// The last word of a wide cell.
const LAST: usize = 7;

/// The positions of the slot of an update, and of the encoding that it replaces, in the last word
/// of a cell of pairs.
const FORMER_SLOT_SHIFT: u32 = 32;
const FORMER_ENCODING_SHIFT: u32 = 40;

/// The words with keys of a dense cell.
const KEY_WORDS: usize = SLOTS_MAX - 1;
/// The bits of the last key in each of them, below a key.
const PART_BITS: usize = 16;
const PART: u64 = (1 << PART_BITS) - 1;

const _: () = assert!(ENTRIES + 2 * CellKind::Wide.slots() == LAST && LAST + 1 == LINE_WORDS);
const _: () = assert!(ENTRIES + KEY_WORDS + SLOTS_MAX == LINE_WORDS);
const _: () = assert!(KEPT_RANGE == 1 << (KEY_WORDS * PART_BITS));

/// A way to read words: a medium, or a copy of them in DRAM.
pub(super) trait ReadWords<W> {
    /// `true` if a read costs more than a branch that spares it.
    const SPARES_READS: bool;
    fn read(&self, word: &W) -> u64;
    /// Returns `true` if `defect` is injected.
    fn has_defect(&self, defect: Defect) -> bool;
}

impl<M: Medium> ReadWords<PmWord> for M {
    const SPARES_READS: bool = M::COMPACT;
    #[inline(always)]
    fn read(&self, word: &PmWord) -> u64 {
        self.load(word)
    }
    #[inline(always)]
    fn has_defect(&self, defect: Defect) -> bool {
        M::INJECTS_DEFECTS && self.injects(defect)
    }
}

/// A view of a cell.
#[derive(Debug)]
pub(super) struct Cell<'a, C, W = PmWord> {
    /// The offset of the cell in the pool.
    at: u64,
    pub(super) words: &'a [W],
    kind: PhantomData<C>,
}

// A derive would need words that are `Copy`.
impl<C, W> Copy for Cell<'_, C, W> {}
impl<C, W> Clone for Cell<'_, C, W> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<'a, C: CellLayout, W> Cell<'a, C, W> {
    /// Returns the view of the cell at offset `at`, whose words are `words`.
    #[inline(always)]
    pub(super) fn new(at: u64, words: &'a [W]) -> Self {
        Self { at, words: &words[..LINE_WORDS], kind: PhantomData }
    }

    /// Returns the offset of the cell in the pool.
    pub(super) fn at(self) -> u64 {
        self.at
    }

    /// Returns the commit word.
    #[inline(always)]
    pub(super) fn commit_word<R: ReadWords<W>>(self, medium: &R) -> CommitWord<C> {
        CommitWord::new(medium.read(&self.words[COMMIT]))
    }

    /// Returns the entry in `slot`, with the part of its key that the cell keeps.
    #[inline(always)]
    pub(super) fn entry<R: ReadWords<W>>(self, medium: &R, slot: usize) -> Entry {
        self.entry_of(medium, slot, self.commit_word(medium))
    }

    /// As [`entry`](Self::entry), in a cell with this commit word.
    #[inline(always)]
    pub(super) fn entry_of<R: ReadWords<W>>(
        self,
        medium: &R,
        slot: usize,
        word: CommitWord<C>,
    ) -> Entry {
        let key = match C::KIND {
            CellKind::Wide | CellKind::Pairs => medium.read(&self.words[ENTRIES + 2 * slot]),
            CellKind::Dense => self.dense_keys(medium)[slot],
        };
        Entry { key, value: self.value(medium, slot), encoding: word.encoding(slot) }
    }

    /// Returns the value in `slot`.
    #[inline(always)]
    pub(super) fn value<R: ReadWords<W>>(self, medium: &R, slot: usize) -> u64 {
        medium.read(self.value_word(slot))
    }

    #[inline(always)]
    fn value_word(self, slot: usize) -> &'a W {
        match C::KIND {
            CellKind::Wide | CellKind::Pairs => &self.words[ENTRIES + 2 * slot + 1],
            CellKind::Dense => &self.words[ENTRIES + KEY_WORDS + slot],
        }
    }

    /// Returns the parts of keys that a dense cell keeps.
    #[inline(always)]
    fn dense_keys<R: ReadWords<W>>(self, medium: &R) -> [u64; SLOTS_MAX] {
        let [a, b, c] = [0, 1, 2].map(|at| medium.read(&self.words[ENTRIES + at]));
        let last = a & PART | (b & PART) << PART_BITS | (c & PART) << (2 * PART_BITS);
        [a >> PART_BITS, b >> PART_BITS, c >> PART_BITS, last]
    }

    /// Returns the valid slots of a dense cell whose keys fit, given the parts that it keeps.
    #[inline(always)]
    pub(super) fn dense_slots<R: ReadWords<W>>(
        self,
        medium: &R,
        fits: impl Fn(u64) -> bool,
    ) -> u64 {
        let keys = self.dense_keys(medium);
        let fitting = (0..SLOTS_MAX).map(|slot| u64::from(fits(keys[slot])) << slot);
        fitting.fold(0, |slots, slot| slots | slot) & self.commit_word(medium).valid()
    }

    /// Returns the sum of `entry` in `slot`.
    #[inline(always)]
    pub(super) fn sum(self, slot: usize, entry: Entry) -> u64 {
        const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
        let key = C::KIND.kept(entry.key);
        let mixed = (key ^ self.at.rotate_left(32)).wrapping_mul(MULTIPLIER);
        let mixed = (mixed ^ mixed >> 32 ^ entry.value).wrapping_mul(MULTIPLIER);
        let place = slot as u64 | u64::from(entry.encoding) << 8;
        let mixed = (mixed ^ mixed >> 29 ^ place).wrapping_mul(MULTIPLIER);
        (mixed ^ mixed >> 32) & SUM_MASK
    }

    /// Returns the sum of a cell in use without entries, which tells it from one of another place.
    #[inline(always)]
    fn empty_sum(self) -> u64 {
        self.sum(SLOTS_MAX, Entry::default())
    }

    /// Returns the sum of the entries that count if `word` is the commit word.
    #[inline(always)]
    fn content_sum<R: ReadWords<W>>(self, medium: &R, word: CommitWord<C>) -> u64 {
        let sum = |slot| self.sum(slot, self.entry_of(medium, slot, word));
        let mask = |is_set: bool| 0u64.wrapping_sub(u64::from(is_set));
        let empty = self.empty_sum() & mask(word.is_used());
        let is_valid = |slot: usize| word.valid() >> slot & 1 == 1;
        // Free slots are summed, too: a branch for each would be mispredicted often.
        (0..C::KIND.slots())
            .filter(|&slot| !R::SPARES_READS || is_valid(slot))
            .fold(empty, |all, slot| all ^ sum(slot) & mask(is_valid(slot)))
    }

    /// Returns the plain word in which `slot`, which is free in `word`, holds `entry`, whose key
    /// has this tag.
    #[inline(always)]
    pub(super) fn with_entry(
        self,
        word: CommitWord<C>,
        (slot, tag): (usize, u8),
        entry: Entry,
    ) -> CommitWord<C> {
        let first = if word.is_used() { 0 } else { self.empty_sum() };
        word.with_entry(slot, (tag, entry.encoding), self.sum(slot, entry) ^ first)
    }

    /// Returns the commit word that counts: `word`, which fits the cell, or, if its newest change
    /// is of a later batch than `committed`, the plain one from before.
    ///
    /// # Errors
    /// The number of the batch is damaged.
    pub(super) fn committed<R: ReadWords<W>>(
        self,
        medium: &R,
        word: CommitWord<C>,
        committed: u64,
    ) -> Result<CommitWord<C>, Corrupt> {
        if !word.is_batched() {
            return Ok(word);
        }
        let number = number::in_word(self.at, medium.read(&self.words[LAST]))?;
        let counts = number <= committed || medium.has_defect(Defect::BatchKept);
        Ok(if counts { word } else { self.before_write(medium, word) })
    }

    /// Returns the plain commit word before the newest write, if `word` is fresh or batched.
    fn before_write<R: ReadWords<W>>(self, medium: &R, word: CommitWord<C>) -> CommitWord<C> {
        slots(word.former() & !word.valid()).fold(
            self.without(medium, word, word.valid() & !word.former()),
            |before, dropped| {
                let entry = self.entry_of(medium, dropped, word);
                // Cells of pairs alone drop an entry, and their words have no tags.
                self.with_entry(before, (dropped, 0), entry)
            },
        )
    }

    /// Returns the commit word whose sum fits the content: that of the cell, or, if a crash has
    /// interrupted an update, the plain one with the former sum.
    ///
    /// # Errors
    /// Neither sum fits: the cell is damaged.
    #[inline]
    pub(super) fn fitting<R: ReadWords<W>>(self, medium: &R) -> Result<CommitWord<C>, Corrupt> {
        let word = self.commit_word(medium);
        let found = self.content_sum(medium, word);
        if !word.is_foreign() && word.sum() == found {
            return Ok(word);
        }
        if !word.is_foreign()
            && word.is_either()
            && let Some(former) = self.before_update(medium, word, found)
        {
            return Ok(former);
        }
        let what = "sum of the entries of a cell";
        Err(Corrupt { at: self.at, what, expected: word.sum(), found })
    }

    /// Returns the commit word before the newest update, if it fits the content, whose sum with
    /// `word` is `found`.
    fn before_update<R: ReadWords<W>>(
        self,
        medium: &R,
        word: CommitWord<C>,
        found: u64,
    ) -> Option<CommitWord<C>> {
        let last = medium.read(&self.words[LAST]);
        let fits = match C::KIND {
            CellKind::Wide => last == found,
            CellKind::Dense => word.had_sum(found),
            CellKind::Pairs => {
                let slot = (last >> FORMER_SLOT_SHIFT & 0xff) as usize;
                let former = former_word(last, slot, word)?;
                let sum = self.content_sum(medium, former);
                return (former_last(sum, slot, former) == last).then(|| former.with_sum(sum));
            }
        };
        fits.then(|| word.plain().with_sum(found))
    }

    /// Returns the slot of a wide cell that is fresh, and the note of its record.
    pub(super) fn fresh<R: ReadWords<W>>(self, medium: &R) -> Option<(usize, Note)> {
        if C::KIND != CellKind::Wide {
            return None;
        }
        let slot = self.commit_word(medium).fresh_slot()?;
        Some((slot, Note::of_word(medium.read(&self.words[LAST]))))
    }

    /// Returns the word without the entries of the slots `removed`.
    pub(super) fn without<R: ReadWords<W>>(
        self,
        medium: &R,
        word: CommitWord<C>,
        removed: u64,
    ) -> CommitWord<C> {
        slots(removed).fold(word, |word, slot| {
            word.without_entry(slot, self.sum(slot, self.entry(medium, slot)))
        })
    }
}

impl<'a, C: CellLayout> Cell<'a, C> {
    /// Returns the commit word that counts: that of the cell, or, if a crash has interrupted an
    /// operation, the plain one from before. `ended` tells what no crash has interrupted.
    ///
    /// # Errors
    /// The cell is damaged, or the record of its fresh slot.
    pub(super) fn settled<K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
        ended: Ended,
    ) -> Result<CommitWord<C>, Corrupt> {
        let medium = pool.medium();
        let word = self.fitting(medium)?;
        let Some((slot, note)) = self.fresh(medium) else {
            return self.committed(medium, word, ended.batch);
        };
        let found = K::hash_entry(pool, self.entry_of(medium, slot, word));
        let injects = |defect| M::INJECTS_DEFECTS && medium.injects(defect);
        let is_whole = |&hash: &u64| note.is_of(hash) || injects(Defect::OlderRecord);
        if injects(Defect::FreshUnchecked) || found.as_ref().is_ok_and(is_whole) {
            return Ok(word);
        }
        if !K::EXACT && note.epoch > ended.epoch {
            return Ok(self.before_write(medium, word));
        }
        let (what, found) = ("record of an entry, or its check", found?);
        Err(Corrupt { at: self.at, what, expected: note.word(), found })
    }

    /// Stores the key of an entry into a free slot.
    #[inline(always)]
    fn store_key<M: Medium>(self, medium: &M, slot: usize, key: u64) {
        match C::KIND {
            CellKind::Wide | CellKind::Pairs => {
                medium.store(&self.words[ENTRIES + 2 * slot], key);
            }
            CellKind::Dense => {
                let kept = |at: usize| medium.load(&self.words[ENTRIES + at]);
                let kept = [0, 1, 2].map(kept);
                let changed = with_dense_key(kept, slot, key);
                for (at, word) in changed.into_iter().enumerate() {
                    if at == slot || slot == KEY_WORDS {
                        medium.store(&self.words[ENTRIES + at], word);
                    }
                }
            }
        }
    }

    /// Returns the first word. It names the line of the cell to the medium, without a loop over
    /// lines.
    #[inline(always)]
    pub(super) fn line(self) -> &'a [PmWord] {
        &self.words[..1]
    }

    /// Flushes the cell.
    #[inline(always)]
    pub(super) fn flush<M: Medium>(self, medium: &M) {
        medium.flush(self.line());
    }

    /// Stores the commit word. The caller flushes, if the change needs it.
    #[inline(always)]
    pub(super) fn set_commit_word<M: Medium>(self, medium: &M, word: CommitWord<C>) {
        medium.store(&self.words[COMMIT], word.bits);
    }

    /// Removes the entries of the slots `hidden`. The caller flushes.
    ///
    /// ```text
    /// C commit word   8 B
    /// ```
    pub(super) fn clear<M: Medium>(self, medium: &M, hidden: u64) {
        let word = self.commit_word(medium);
        self.set_commit_word(medium, self.without(medium, word, hidden));
    }

    /// Begins a change of several entries: removes those of the slots `hidden` and makes the commit
    /// word plain, so that the cell has the same content and all free slots can be written. Stores
    /// the number of a batch, if there is one. Returns the commit word. The caller stores entries
    /// and the commit word, and flushes.
    ///
    /// ```text
    /// W commit word            plain, without hidden entries, if it is another one
    /// W number                 if there is one
    /// ```
    #[inline(always)]
    pub(super) fn begin<M: Medium>(
        self,
        medium: &M,
        hidden: u64,
        number: Option<u64>,
    ) -> CommitWord<C> {
        let word = self.commit_word(medium);
        let plain = self.without(medium, word, hidden).plain();
        if plain != word {
            self.set_commit_word(medium, plain);
        }
        if let Some(number) = number {
            medium.store(&self.words[LAST], number::word_of(self.at, number));
        }
        plain
    }

    /// Stores an entry to a free slot.
    #[inline(always)]
    pub(super) fn put<M: Medium>(self, medium: &M, slot: usize, entry: Entry) {
        self.store_key(medium, slot, C::KIND.kept(entry.key));
        medium.store(self.value_word(slot), entry.value);
    }

    /// Adds an entry to a cell that has a free slot, and flushes. Durable after the next fence. The
    /// caller has made durable what the entry refers to, or gives a note of the record, which it
    /// has flushed. Returns the slot.
    ///
    /// ```text
    /// W commit word            plain, if there is a note and it is not
    /// W note                   if there is one
    /// W entry[j]
    /// C commit word   8 B      crash before C: slot j is free
    /// F cell                   with a note: fresh; the slot counts if the record has its check
    /// ```
    #[inline(always)]
    pub(super) fn insert<M: Medium>(
        self,
        medium: &M,
        hash: u64,
        entry: Entry,
        note: Option<Note>,
    ) -> usize {
        let former = self.commit_word(medium);
        let Some(slot) = former.free_slot() else {
            unreachable!("the caller has found a free slot")
        };
        let word = self.with_entry(former, (slot, tag_of(hash)), entry);
        let word = if note.is_some() { word.with_fresh(slot) } else { word };
        self.write_slot(medium, (slot, entry), (former, word), note);
        slot
    }

    /// Stores an entry into a free slot, and `word` over the commit word `former`. Flushes. See
    /// [`insert`](Self::insert).
    #[inline(always)]
    fn write_slot<M: Medium>(
        self,
        medium: &M,
        (slot, entry): (usize, Entry),
        (former, word): (CommitWord<C>, CommitWord<C>),
        note: Option<Note>,
    ) {
        if note.is_some() {
            self.make_plain(medium, former);
        }
        if let Some(note) = note
            && !(M::INJECTS_DEFECTS && medium.injects(Defect::NoteLate))
        {
            medium.store(&self.words[LAST], note.word());
        }
        if M::INJECTS_DEFECTS && medium.injects(Defect::CellCommitFirst) {
            self.set_commit_word(medium, word);
        }
        self.put(medium, slot, entry);
        self.set_commit_word(medium, word);
        if M::INJECTS_DEFECTS
            && medium.injects(Defect::NoteLate)
            && let Some(note) = note
        {
            medium.store(&self.words[LAST], note.word());
        }
        self.flush(medium);
    }

    /// Stores the plain word if `word`, the commit word, is not plain. The caller flushes.
    #[inline(always)]
    fn make_plain<M: Medium>(self, medium: &M, word: CommitWord<C>) {
        let is_kept = M::INJECTS_DEFECTS && medium.injects(Defect::FreshKept);
        if word != word.plain() && !is_kept {
            self.set_commit_word(medium, word.plain());
        }
    }

    /// Replaces the value of `entry` in `slot`. Durable on return. The caller has made durable what
    /// the value refers to.
    ///
    /// ```text
    /// W commit word: plain            if it is fresh or batched
    /// W former sum                    of a wide cell; a dense one has it in the commit word; of a
    ///                                 cell of pairs with the slot and its encoding
    /// W commit word: either, sum      both sums count: the value decides which one fits
    /// C value[j]      8 B
    /// F cell |        -> durable      budget: 1 line, 1 fence
    /// ```
    pub(super) fn update<M: Medium>(self, medium: &M, slot: usize, entry: Entry, value: Value) {
        let word = self.commit_word(medium);
        let new = Entry { key: entry.key, value: value.word, encoding: value.encoding };
        let sum = word.sum() ^ self.sum(slot, entry) ^ self.sum(slot, new);
        let either = word.with_either(sum).with_encoding(slot, value.encoding);
        let injects = |defect| M::INJECTS_DEFECTS && medium.injects(defect);
        if injects(Defect::SumsLate) {
            medium.store(self.value_word(slot), value.word);
        }
        if injects(Defect::FormerSumLate) {
            self.set_commit_word(medium, either);
        }
        if word.is_noted() {
            self.make_plain(medium, word);
        }
        match C::KIND {
            CellKind::Wide => medium.store(&self.words[LAST], word.sum()),
            CellKind::Pairs => {
                let kept = if injects(Defect::EncodingLost) { either } else { word };
                medium.store(&self.words[LAST], former_last(word.sum(), slot, kept));
            }
            CellKind::Dense => {}
        }
        self.set_commit_word(medium, either);
        medium.store(self.value_word(slot), value.word);
        let _ = medium.persist(self.line());
    }

    /// Removes `entry` from `slot`. Durable on return.
    ///
    /// ```text
    /// C commit word   8 B
    /// F cell |        -> durable      budget: 1 line, 1 fence
    /// ```
    pub(super) fn remove<M: Medium>(self, medium: &M, slot: usize, entry: Entry) {
        let word = self.commit_word(medium);
        self.set_commit_word(medium, word.without_entry(slot, self.sum(slot, entry)));
        let _ = medium.persist(self.line());
    }
}

/// Returns the last word of a cell of pairs whose commit word is `former` before an update of
/// `slot`, with this sum.
#[inline(always)]
fn former_last<C: CellLayout>(sum: u64, slot: usize, former: CommitWord<C>) -> u64 {
    let encoding = u64::from(former.encoding(slot));
    sum | (slot as u64) << FORMER_SLOT_SHIFT | encoding << FORMER_ENCODING_SHIFT
}

/// Returns the plain commit word before the update of `slot` that `last`, the last word of the
/// cell, is of, except for the sum. `None` if the slot is not valid.
fn former_word<C: CellLayout>(
    last: u64,
    slot: usize,
    word: CommitWord<C>,
) -> Option<CommitWord<C>> {
    let encoding = (last >> FORMER_ENCODING_SHIFT) as u8;
    let is_valid = slot < C::KIND.slots() && word.valid() >> slot & 1 == 1;
    is_valid.then(|| word.plain().with_encoding(slot, encoding))
}

/// Returns the words with the keys of a dense cell, with `key` in `slot`.
#[inline(always)]
fn with_dense_key(mut words: [u64; KEY_WORDS], slot: usize, key: u64) -> [u64; KEY_WORDS] {
    if slot < KEY_WORDS {
        words[slot] = words[slot] & PART | key << PART_BITS;
    } else {
        for (at, word) in words.iter_mut().enumerate() {
            *word = *word & !PART | key >> (at * PART_BITS) & PART;
        }
    }
    words
}

/// The content of a new cell, before it is written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewCell<C> {
    pub(super) word: CommitWord<C>,
    entries: [Entry; SLOTS_MAX],
}

impl<C: CellLayout> NewCell<C> {
    /// Adds an entry to the content of `cell`, which has a free slot, and returns that.
    pub(super) fn add(&mut self, cell: Cell<'_, C>, hash: u64, entry: Entry) -> usize {
        let Some(slot) = self.word.free_slot() else {
            unreachable!("the caller has found a free slot")
        };
        self.entries[slot] = entry;
        self.word = cell.with_entry(self.word, (slot, tag_of(hash)), entry);
        slot
    }

    /// Returns the words of the cell.
    pub(super) fn words(&self) -> [u64; LINE_WORDS] {
        let [a, b, c, d] = self.entries;
        let word = self.word.bits;
        match C::KIND {
            CellKind::Wide | CellKind::Pairs => {
                [word, a.key, a.value, b.key, b.value, c.key, c.value, 0]
            }
            CellKind::Dense => {
                let keys = [a, b, c, d].map(|entry| CellKind::Dense.kept(entry.key));
                let [k, l, m] = (0..)
                    .zip(keys)
                    .fold([0; KEY_WORDS], |words, (slot, key)| with_dense_key(words, slot, key));
                [word, k, l, m, a.value, b.value, c.value, d.value]
            }
        }
    }
}
