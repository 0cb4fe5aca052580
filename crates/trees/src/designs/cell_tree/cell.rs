//! The layout of a cell: one line with three entries, which commits itself.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | commit word | commit | see [`CommitWord`] |
//! | 1 | 48 | 3 entries | data | key word, value word |
//! | 7 | 8 | former sum | data | the sum before the newest update, if the word is either |
//! | | | note | data | if it is fresh: bits 0..30 check of the record, 30..64 epoch |
//!
//! 1. One store of the commit word decides which entries count. It follows what it publishes in
//!    the same line.
//! 2. A store changes no entry that the commit word counts, except the value of an update.
//! 3. The commit word is plain before word 7 changes, so that word 7 is what the commit word says.
//! 4. The sum covers the place of the cell in the pool, the slots, and keys and values. It fits the
//!    content, or the word is [`either`](CommitWord::is_either) and the former sum does.

use super::epoch::Note;
use super::word::{CommitWord, SLOTS, SUM_MASK, tag_of};
use crate::key::{Entry, Key};
use crate::leaf::slots;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmWord, Pool};

const COMMIT: usize = 0;
const ENTRIES: usize = 1;
const LAST: usize = 7;

const _: () = assert!(ENTRIES + 2 * SLOTS == LAST && LAST + 1 == LINE_WORDS);

/// A view of a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell<'a> {
    /// The offset of the cell in the pool.
    at: u64,
    pub(super) words: &'a [PmWord],
}

impl<'a> Cell<'a> {
    /// Returns the view of the cell at offset `at`, whose words are `words`.
    #[inline(always)]
    pub(super) fn new(at: u64, words: &'a [PmWord]) -> Self {
        Self { at, words: &words[..LINE_WORDS] }
    }

    /// Returns the commit word.
    #[inline(always)]
    pub(super) fn commit_word<M: Medium>(self, medium: &M) -> CommitWord {
        CommitWord(medium.load(&self.words[COMMIT]))
    }

    /// Returns the entry in `slot`.
    #[inline(always)]
    pub(super) fn entry<M: Medium>(self, medium: &M, slot: usize) -> Entry {
        let [key, value] = self.entry_words(slot);
        Entry::plain(medium.load(key), medium.load(value))
    }

    #[inline(always)]
    fn entry_words(self, slot: usize) -> [&'a PmWord; 2] {
        [&self.words[ENTRIES + 2 * slot], &self.words[ENTRIES + 2 * slot + 1]]
    }

    /// Returns the slots that count, with their entries.
    pub(super) fn entries<M: Medium>(self, medium: &M) -> impl Iterator<Item = (usize, Entry)> {
        slots(self.commit_word(medium).valid()).map(move |slot| (slot, self.entry(medium, slot)))
    }

    /// Returns the sum of `entry` in `slot`.
    #[inline(always)]
    pub(super) fn sum(self, slot: usize, entry: Entry) -> u64 {
        const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
        let mixed = (entry.key ^ self.at.rotate_left(32)).wrapping_mul(MULTIPLIER);
        let mixed = (mixed ^ mixed >> 32 ^ entry.value).wrapping_mul(MULTIPLIER);
        let mixed = (mixed ^ mixed >> 29 ^ slot as u64).wrapping_mul(MULTIPLIER);
        (mixed ^ mixed >> 32) & SUM_MASK
    }

    /// Returns the sum of the entries that count.
    fn content_sum<M: Medium>(self, medium: &M) -> u64 {
        self.entries(medium).fold(0, |sum, (slot, entry)| sum ^ self.sum(slot, entry))
    }

    /// Returns the commit word that counts: that of the cell, or, if a crash has interrupted an
    /// operation, the plain one from before. `durable` is the newest epoch whose inserts have all
    /// been fenced.
    ///
    /// # Errors
    /// The cell is damaged, or the record of its fresh slot.
    pub(super) fn settled<K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
        durable: u64,
    ) -> Result<CommitWord, Corrupt> {
        let medium = pool.medium();
        let word = self.fitting(medium)?;
        let Some((slot, note)) = self.fresh(medium) else { return Ok(word) };
        let entry = self.entry(medium, slot);
        let injects = |defect| M::INJECTS_DEFECTS && medium.injects(defect);
        let found = K::with_entry(pool, entry, K::hash);
        let is_whole = |&hash: &u64| note.is_of(hash) || injects(Defect::OlderRecord);
        if injects(Defect::FreshUnchecked) || found.as_ref().is_ok_and(is_whole) {
            return Ok(word);
        }
        if !K::EXACT && note.epoch > durable {
            return Ok(self.without(medium, word, 1 << slot));
        }
        let (what, found) = ("record of an entry, or its check", found?);
        Err(Corrupt { at: self.at, what, expected: note.word(), found })
    }

    /// Returns the commit word whose sum fits the content: that of the cell, or, if a crash has
    /// interrupted an update, the plain one with the former sum.
    ///
    /// # Errors
    /// Neither sum fits: the cell is damaged.
    fn fitting<M: Medium>(self, medium: &M) -> Result<CommitWord, Corrupt> {
        let (word, found) = (self.commit_word(medium), self.content_sum(medium));
        if !word.is_foreign() && word.sum() == found {
            return Ok(word);
        }
        let former = medium.load(&self.words[LAST]);
        if !word.is_foreign() && word.is_either() && former == found {
            return Ok(word.plain().with_sum(former));
        }
        let what = "sum of the entries of a cell";
        Err(Corrupt { at: self.at, what, expected: word.sum(), found })
    }

    /// Returns the slot that is fresh, and the note of its record.
    pub(super) fn fresh<M: Medium>(self, medium: &M) -> Option<(usize, Note)> {
        let slot = self.commit_word(medium).fresh_slot()?;
        Some((slot, Note::of_word(medium.load(&self.words[LAST]))))
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
    pub(super) fn set_commit_word<M: Medium>(self, medium: &M, word: CommitWord) {
        medium.store(&self.words[COMMIT], word.0);
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

    /// Returns the word without the entries of the slots `removed`.
    pub(super) fn without<M: Medium>(
        self,
        medium: &M,
        word: CommitWord,
        removed: u64,
    ) -> CommitWord {
        slots(removed).fold(word, |word, slot| {
            word.without_entry(slot, self.sum(slot, self.entry(medium, slot)))
        })
    }

    /// Adds an entry to a cell that has a free slot, and flushes. Durable after the next fence. The
    /// caller has made durable what the entry refers to, or gives a note of the record, which it
    /// has flushed.
    ///
    /// ```text
    /// W commit word            plain, if there is a note and it is not
    /// W note                   if there is one
    /// W entry[j]
    /// C commit word   8 B      crash before C: slot j is free
    /// F cell                   with a note: fresh; the slot counts if the record has its check
    /// ```
    #[inline(always)]
    pub(super) fn insert<M: Medium>(self, medium: &M, hash: u64, entry: Entry, note: Option<Note>) {
        let former = self.commit_word(medium);
        let Some(slot) = former.free_slot() else {
            unreachable!("the caller has found a free slot")
        };
        let mut word = former.with_entry(slot, tag_of(hash), self.sum(slot, entry));
        if let Some(note) = note {
            word = word.with_fresh(slot);
            self.make_plain(medium, former);
            if !(M::INJECTS_DEFECTS && medium.injects(Defect::NoteLate)) {
                medium.store(&self.words[LAST], note.word());
            }
        }
        if M::INJECTS_DEFECTS && medium.injects(Defect::CellCommitFirst) {
            self.set_commit_word(medium, word);
        }
        let [key_word, value_word] = self.entry_words(slot);
        medium.store(key_word, entry.key);
        medium.store(value_word, entry.value);
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
    fn make_plain<M: Medium>(self, medium: &M, word: CommitWord) {
        let is_kept = M::INJECTS_DEFECTS && medium.injects(Defect::FreshKept);
        if word != word.plain() && !is_kept {
            self.set_commit_word(medium, word.plain());
        }
    }

    /// Replaces the value of `entry` in `slot`. Durable on return.
    ///
    /// ```text
    /// W commit word: plain            if it is fresh
    /// W former sum
    /// W commit word: either, sum      both sums count: the value decides which one fits
    /// C value[j]      8 B
    /// F cell |        -> durable      budget: 1 line, 1 fence
    /// ```
    pub(super) fn update<M: Medium>(self, medium: &M, slot: usize, entry: Entry, value: u64) {
        let word = self.commit_word(medium);
        let sum =
            word.sum() ^ self.sum(slot, entry) ^ self.sum(slot, Entry::plain(entry.key, value));
        let either = word.with_either(sum);
        let injects = |defect| M::INJECTS_DEFECTS && medium.injects(defect);
        if injects(Defect::SumsLate) {
            medium.store(self.entry_words(slot)[1], value);
        }
        if injects(Defect::FormerSumLate) {
            self.set_commit_word(medium, either);
        }
        if word.fresh_slot().is_some() {
            self.make_plain(medium, word);
        }
        medium.store(&self.words[LAST], word.sum());
        self.set_commit_word(medium, either);
        medium.store(self.entry_words(slot)[1], value);
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

/// The content of a new cell, before it is written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewCell {
    pub(super) word: CommitWord,
    entries: [Entry; SLOTS],
}

impl NewCell {
    /// Adds an entry to the content of `cell`, which has a free slot.
    pub(super) fn add(&mut self, cell: Cell<'_>, hash: u64, entry: Entry) {
        let Some(slot) = self.word.free_slot() else {
            unreachable!("the caller has found a free slot")
        };
        self.entries[slot] = entry;
        self.word = self.word.with_entry(slot, tag_of(hash), cell.sum(slot, entry));
    }

    /// Returns the words of the cell.
    pub(super) fn words(&self) -> [u64; LINE_WORDS] {
        let [a, b, c] = self.entries;
        [self.word.0, a.key, a.value, b.key, b.value, c.key, c.value, 0]
    }
}
