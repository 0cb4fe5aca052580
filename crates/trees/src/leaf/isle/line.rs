//! One line of an isle leaf: its pairs, and the order of stores that shifts them.
//!
//! The methods only store; the caller flushes. All stores of one method go to one line, so they
//! persist in their order. By the rules of the [leaf](super), every crash image of them reads as
//! the line before the operation or after it. The proof is by induction over the stores. A line
//! reads as its places up to the first vacancy, less the left of two equal keys; X(i) is the pair
//! at i.
//!
//! 1. Right shift. Before step i, places i+1 and i+2 hold one pair Y, or i+1 is vacant.
//!    `value[i+1]` spoils the left Y, which does not count. `key[i+1]` makes it a second X(i),
//!    whose left does not count. At the end `value[p]` spoils the copy that does not count, and
//!    `key[p]` adds exactly (k, v).
//! 2. Left shift. `key[d]` makes d the left of two equal keys: X(d) alone is gone. `value[d]`
//!    makes it a copy, and so on; the last copy goes with `key[n-1] = 0`.
//! 3. Key word 0 never moves right: nothing is inserted below the least key.
//! 4. The mark of a layout without counters is read only if place 1 is vacant. It becomes 1 after
//!    the pair and before anything else of the line, and is 1 before place 1 becomes vacant. A
//!    value overwrites it only while place 1 is live.

use super::count_word::CountWord;
use crate::key::Entry;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Medium, PmWord};
use core::marker::PhantomData;

const PAIR_WORDS: usize = 2;

/// A view of a line that holds pairs, in the leaf in `words`.
#[derive(Debug)]
pub(super) struct LineView<'p, M, T> {
    medium: &'p M,
    words: &'p [PmWord],
    index: usize,
    count_word: PhantomData<fn() -> T>,
}

impl<'p, M: Medium, T: CountWord> LineView<'p, M, T> {
    #[inline(always)]
    pub(super) fn new(medium: &'p M, words: &'p [PmWord], index: usize) -> Self {
        Self { medium, words, index, count_word: PhantomData }
    }

    /// Returns the index of the line in the leaf.
    #[inline(always)]
    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// Returns the index of the line's first pair word in the leaf.
    #[inline(always)]
    fn start(&self) -> usize {
        if self.index == 0 { T::HEADER_WORDS } else { self.index * LINE_WORDS }
    }

    /// Returns the maximum number of pairs in the line.
    #[inline(always)]
    pub(super) fn capacity(&self) -> usize {
        (LINE_WORDS - self.start() % LINE_WORDS) / PAIR_WORDS
    }

    /// Returns the index, in the leaf, of the first word of the pair at `position`.
    #[inline(always)]
    pub(super) fn word(&self, position: usize) -> usize {
        self.start() + PAIR_WORDS * position
    }

    /// Returns the position of the pair that begins at `word` of the leaf.
    #[inline(always)]
    pub(super) fn position(&self, word: usize) -> usize {
        (word - self.start()) / PAIR_WORDS
    }

    #[inline(always)]
    pub(super) fn key(&self, position: usize) -> u64 {
        self.medium.load(&self.words[self.word(position)])
    }

    #[inline(always)]
    pub(super) fn value(&self, position: usize) -> u64 {
        self.medium.load(&self.words[self.word(position) + 1])
    }

    #[inline(always)]
    pub(super) fn entry(&self, position: usize) -> Entry {
        Entry::plain(self.key(position), self.value(position))
    }

    #[inline(always)]
    fn set_key(&self, position: usize, key: u64) {
        self.medium.store(&self.words[self.word(position)], key);
    }

    #[inline(always)]
    fn set_value(&self, position: usize, value: u64) {
        self.medium.store(&self.words[self.word(position) + 1], value);
    }

    /// Returns `true` if the line holds a pair.
    #[inline(always)]
    pub(super) fn is_nonempty(&self) -> bool {
        self.key(1) != 0 || T::has_first_pair(self.medium, self.words, self.index)
    }

    /// Returns the number of pairs. After a crash one key may appear twice, and both are counted.
    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        if self.key(1) == 0 {
            return usize::from(T::has_first_pair(self.medium, self.words, self.index));
        }
        (2..self.capacity()).find(|&position| self.key(position) == 0).unwrap_or(self.capacity())
    }

    /// Returns the number of pairs, of a line that no operation is changing and that recovery has
    /// repaired. Any count word leads to a number that the line can hold.
    #[inline(always)]
    pub(super) fn settled_count(&self) -> usize {
        T::settled_count(self.medium, self.words, self.index, || self.count()).min(self.capacity())
    }

    /// Returns the left one of two neighbours with equal keys, among the first `count` positions.
    pub(super) fn duplicate_key(&self, count: usize) -> Option<usize> {
        (1..count)
            .find(|&position| self.key(position - 1) == self.key(position))
            .map(|position| position - 1)
    }

    /// Returns the left one of two neighbours with equal values, among the first `count` positions:
    /// for [`Defect::ValuesEqual`](bristlecone_pmem::Defect::ValuesEqual).
    pub(super) fn duplicate_value(&self, count: usize) -> Option<usize> {
        (1..count)
            .find(|&position| self.value(position - 1) == self.value(position))
            .map(|position| position - 1)
    }

    /// Returns the word and the content of a nonzero key at or after position `count`. Position 0
    /// is exempt, because key word 0 is a key there.
    pub(super) fn stray_key(&self, count: usize) -> Option<(usize, u64)> {
        let keys = (count.max(1)..self.capacity())
            .map(|position| (self.word(position), self.key(position)));
        keys.into_iter().find(|&(_, key)| key != 0)
    }

    /// Inserts `entry` at position `p` of a line of `n` pairs, which has a vacancy.
    ///
    /// ```text
    /// for i = n-1 down to p:    crash: pair i is at i and i+1, or position i+1 has the key of the
    ///   W value[i+1], key[i+1]  pair after it, which is valid
    /// W value[p]                the key there is still that of the pair after it
    /// C key[p]                  8 B; in an empty line the count word is C
    /// ```
    #[inline(always)]
    pub(super) fn insert(&self, position: usize, count: usize, entry: Entry) {
        for moved in (position..count).rev() {
            let Entry { key, value, .. } = self.entry(moved);
            self.set_value(moved + 1, value);
            self.set_key(moved + 1, key);
        }
        self.set_value(position, entry.value);
        self.set_key(position, entry.key);
    }

    /// Removes the pair at position `d` of a line of `n` pairs. The only pair of a line goes with
    /// the count word alone.
    ///
    /// ```text
    /// for i = d to n-2:         the first key is C: of two equal keys the right one is valid
    ///   W key[i], value[i]
    /// R count word              if one pair is left: it is valid without a second one
    /// W key[n-1] = 0            C if d = n-1
    /// ```
    #[inline(always)]
    pub(super) fn remove(&self, position: usize, count: usize) {
        for target in position..count.saturating_sub(1) {
            let Entry { key, value, .. } = self.entry(target + 1);
            self.set_key(target, key);
            self.set_value(target, value);
        }
        self.clear_last(count);
    }

    /// Removes all pairs from `position` on, the last one first. The first pair of the line goes
    /// with the count word alone.
    pub(super) fn truncate(&self, position: usize, count: usize) {
        for count in (position + 1..=count).rev() {
            self.clear_last(count);
        }
    }

    /// Removes the last of `count` pairs, unless it is the only one: that goes with the count word.
    #[inline(always)]
    fn clear_last(&self, count: usize) {
        if count == 2 {
            T::keep_first_pair(self.medium, self.words, self.index);
        }
        if count >= 2 {
            self.set_key(count - 1, 0);
        }
    }
}
