//! The words of a node together with the medium that holds them.

use crate::key::Entry;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Fenced, Medium, PmWord};
use core::ops::RangeInclusive;

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

    /// Returns the entry at `index`; `entries` is the first word of the first entry.
    #[inline(always)]
    pub fn entry(self, entries: usize, index: usize) -> Entry {
        let at = entries + 2 * index;
        Entry::plain(self.load(at), self.load(at + 1))
    }

    /// Stores the entry at `index`; `entries` is the first word of the first entry.
    #[inline(always)]
    pub fn store_entry(self, entries: usize, index: usize, entry: Entry) {
        let at = entries + 2 * index;
        self.store(at, entry.key);
        self.store(at + 1, entry.value);
    }

    /// Flushes the lines of the entries at `indices`, each line once. Entries are aligned to 16 B,
    /// so none crosses a line.
    pub fn flush_entries(self, entries: usize, indices: impl IntoIterator<Item = usize>) {
        let mut lines: Vec<_> =
            indices.into_iter().map(|index| (entries + 2 * index) / LINE_WORDS).collect();
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
