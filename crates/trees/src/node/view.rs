//! The words of a node together with the medium that holds them.

use crate::key::Entry;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Fenced, Medium, PmWord};
use core::ops::RangeInclusive;

/// The place of the entries in a node: one behind another, each in one line.
///
/// Padding lies behind its pair and repeats it, so that a log has as many words as for a key and a
/// value of 16 B. A change of one word leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entries {
    first: usize,
    entry_words: usize,
}

impl Entries {
    /// Entries of `entry_words` words, from the word at `first` on.
    pub const fn new(first: usize, entry_words: usize) -> Self {
        assert!(first.is_multiple_of(entry_words) && LINE_WORDS.is_multiple_of(entry_words));
        Self { first, entry_words }
    }

    /// Entries of one pair, from the word at `first` on.
    pub const fn pairs(first: usize) -> Self {
        Self::new(first, Entry::WORDS)
    }

    /// Returns the index of the key word of entry `index`; the value word is the next.
    #[inline(always)]
    pub const fn word(self, index: usize) -> usize {
        self.first + self.entry_words * index
    }

    /// Returns the maximum number of entries in a node of `node_bytes` bytes.
    pub const fn capacity(self, node_bytes: usize) -> usize {
        (node_bytes / 8 - self.first) / self.entry_words
    }

    /// Yields the words of `entry` at `index`, with their indices.
    #[inline(always)]
    pub fn words(self, index: usize, entry: Entry) -> impl Iterator<Item = (usize, u64)> {
        let of = move |word| if word % Entry::WORDS == 0 { entry.key } else { entry.value };
        (0..self.entry_words).map(move |word| (self.word(index) + word, of(word)))
    }
}

/// A view of the words of one node. Their content is unchecked.
#[derive(Debug)]
pub struct View<'a, M> {
    medium: &'a M,
    words: &'a [PmWord],
}

impl<M> Clone for View<'_, M> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<M> Copy for View<'_, M> {}

impl<'a, M: Medium> View<'a, M> {
    /// Returns a view of the node in `words`.
    #[inline(always)]
    pub fn new(medium: &'a M, words: &'a [PmWord]) -> Self {
        Self { medium, words }
    }

    /// Returns the medium that holds the node.
    #[inline(always)]
    pub fn medium(self) -> &'a M {
        self.medium
    }

    /// Returns all words of the node.
    #[inline(always)]
    pub fn words(self) -> &'a [PmWord] {
        self.words
    }

    /// Returns the word at `index`.
    #[inline(always)]
    pub fn word(self, index: usize) -> &'a PmWord {
        &self.words[index]
    }

    /// Loads the word at `index`.
    #[inline(always)]
    pub fn load(self, index: usize) -> u64 {
        self.medium.load(&self.words[index])
    }

    /// Stores `value` to the word at `index`.
    #[inline(always)]
    pub fn store(self, index: usize, value: u64) {
        self.medium.store(&self.words[index], value);
    }

    /// Flushes the lines of the words in the range.
    #[inline(always)]
    pub fn flush(self, words: RangeInclusive<usize>) {
        self.medium.flush(&self.words[words]);
    }

    /// Flushes the lines of the words in the range, and fences.
    #[inline(always)]
    pub fn persist(self, words: RangeInclusive<usize>) -> Fenced {
        self.medium.persist(&self.words[words])
    }

    /// Returns the entry at `index`.
    #[inline(always)]
    pub fn entry(self, entries: Entries, index: usize) -> Entry {
        let at = entries.word(index);
        Entry::plain(self.load(at), self.load(at + 1))
    }

    /// Stores the entry at `index`.
    #[inline(always)]
    pub fn store_entry(self, entries: Entries, index: usize, entry: Entry) {
        for (word, value) in entries.words(index, entry) {
            self.store(word, value);
        }
    }

    /// Flushes the lines of the entries at `indices`, each line once.
    pub fn flush_entries(self, entries: Entries, indices: impl IntoIterator<Item = usize>) {
        let mut lines: Vec<_> =
            indices.into_iter().map(|index| entries.word(index) / LINE_WORDS).collect();
        lines.sort_unstable();
        lines.dedup();
        for line in lines {
            self.flush(line * LINE_WORDS..=line * LINE_WORDS);
        }
    }

    /// Returns the error for damage in the word at `index`.
    #[cold]
    pub fn corrupt(self, index: usize, what: &'static str, expected: u64, found: u64) -> Corrupt {
        let base = self.medium.base().as_ptr() as usize;
        let at = (core::ptr::from_ref(&self.words[index]) as usize - base) as u64;
        Corrupt { at, what, expected, found }
    }
}
