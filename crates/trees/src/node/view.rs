//! A node's words together with the medium that they are reached through.

use crate::key::Entry;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Fenced, Medium, PmWord};
use core::ops::RangeInclusive;

/// The words of one node. Nothing is known of their content.
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
    /// The node in `words`.
    #[inline(always)]
    pub fn new(medium: &'a M, words: &'a [PmWord]) -> Self {
        Self { medium, words }
    }

    /// The medium.
    #[inline(always)]
    pub fn medium(self) -> &'a M {
        self.medium
    }

    /// All words.
    #[inline(always)]
    pub fn words(self) -> &'a [PmWord] {
        self.words
    }

    /// The word at `index`.
    #[inline(always)]
    pub fn word(self, index: usize) -> &'a PmWord {
        &self.words[index]
    }

    /// Reads the word at `index`.
    #[inline(always)]
    pub fn load(self, index: usize) -> u64 {
        self.medium.load(&self.words[index])
    }

    /// Writes the word at `index`.
    #[inline(always)]
    pub fn store(self, index: usize, value: u64) {
        self.medium.store(&self.words[index], value);
    }

    /// Begins to write back the lines of some words.
    #[inline(always)]
    pub fn flush(self, words: RangeInclusive<usize>) {
        self.medium.flush(&self.words[words]);
    }

    /// Flushes some words and fences.
    #[inline(always)]
    pub fn persist(self, words: RangeInclusive<usize>) -> Fenced {
        self.medium.persist(&self.words[words])
    }

    /// The entry at `index`, where the first entry begins at the word `entries`.
    #[inline(always)]
    pub fn entry(self, entries: usize, index: usize) -> Entry {
        let at = entries + 2 * index;
        Entry::plain(self.load(at), self.load(at + 1))
    }

    /// Writes the entry at `index`, where the first entry begins at the word `entries`.
    #[inline(always)]
    pub fn store_entry(self, entries: usize, index: usize, entry: Entry) {
        let at = entries + 2 * index;
        self.store(at, entry.key);
        self.store(at + 1, entry.value);
    }

    /// Flushes the lines of the entries at `places`, each line once. Entries are aligned to 16 B,
    /// so none crosses a line.
    pub fn flush_entries(self, entries: usize, places: impl IntoIterator<Item = usize>) {
        let mut lines: Vec<_> =
            places.into_iter().map(|index| (entries + 2 * index) / LINE_WORDS).collect();
        lines.sort_unstable();
        lines.dedup();
        for line in lines {
            self.flush(line * LINE_WORDS..=line * LINE_WORDS);
        }
    }

    /// Damage in the word at `index`.
    #[cold]
    pub fn corrupt(self, index: usize, what: &'static str, expected: u64, found: u64) -> Corrupt {
        let base = self.medium.base().as_ptr() as usize;
        let at = (core::ptr::from_ref(&self.words[index]) as usize - base) as u64;
        Corrupt { at, what, expected, found }
    }
}
