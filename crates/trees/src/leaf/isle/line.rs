//! One line of an isle leaf: its pairs, and the order of stores that shifts them.
//!
//! Nothing here flushes. The stores of each method persist in their order, being to one line; each
//! image that a crash leaves of them reads, by the rules of the [leaf](super), as the line before the
//! operation or after it.

use super::count_word::CountWord;
use crate::key::Entry;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Medium, PmWord};
use core::marker::PhantomData;

/// Words of a pair.
const PAIR_WORDS: usize = 2;

/// A line with pairs, of the leaf in `words`.
#[derive(Debug)]
pub(super) struct LineView<'p, M, T> {
    medium: &'p M,
    words: &'p [PmWord],
    index: usize,
    tally: PhantomData<fn() -> T>,
}

impl<'p, M: Medium, T: CountWord> LineView<'p, M, T> {
    #[inline(always)]
    pub(super) fn new(medium: &'p M, words: &'p [PmWord], index: usize) -> Self {
        Self { medium, words, index, tally: PhantomData }
    }

    /// Which line of the leaf it is.
    #[inline(always)]
    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// The first word of its pairs.
    #[inline(always)]
    fn start(&self) -> usize {
        if self.index == 0 { T::HEADER_WORDS } else { self.index * LINE_WORDS }
    }

    /// How many pairs it has room for.
    #[inline(always)]
    pub(super) fn places(&self) -> usize {
        (LINE_WORDS - self.start() % LINE_WORDS) / PAIR_WORDS
    }

    /// The word of the leaf at which the pair of that place begins.
    #[inline(always)]
    pub(super) fn word(&self, place: usize) -> usize {
        self.start() + PAIR_WORDS * place
    }

    /// The place of the pair that begins at that word of the leaf.
    #[inline(always)]
    pub(super) fn place(&self, word: usize) -> usize {
        (word - self.start()) / PAIR_WORDS
    }

    #[inline(always)]
    pub(super) fn key(&self, place: usize) -> u64 {
        self.medium.load(&self.words[self.word(place)])
    }

    #[inline(always)]
    pub(super) fn value(&self, place: usize) -> u64 {
        self.medium.load(&self.words[self.word(place) + 1])
    }

    #[inline(always)]
    pub(super) fn entry(&self, place: usize) -> Entry {
        Entry::plain(self.key(place), self.value(place))
    }

    #[inline(always)]
    fn set_key(&self, place: usize, key: u64) {
        self.medium.store(&self.words[self.word(place)], key);
    }

    #[inline(always)]
    fn set_value(&self, place: usize, value: u64) {
        self.medium.store(&self.words[self.word(place) + 1], value);
    }

    /// Whether there is any pair.
    #[inline(always)]
    pub(super) fn has_first(&self) -> bool {
        self.key(1) != 0 || T::shows_first(self.medium, self.words, self.index)
    }

    /// Number of pairs; after a crash one of them may be there twice.
    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        if self.key(1) == 0 {
            return usize::from(T::shows_first(self.medium, self.words, self.index));
        }
        (2..self.places()).find(|&place| self.key(place) == 0).unwrap_or(self.places())
    }

    /// The left one of two places, of the first `count`, with the same key word.
    pub(super) fn repeated(&self, count: usize) -> Option<usize> {
        (1..count).find(|&place| self.key(place - 1) == self.key(place)).map(|place| place - 1)
    }

    /// The left one of two places, of the first `count`, with the same value: see
    /// [`Defect::ValuesEqual`](bristlecone_pmem::Defect::ValuesEqual).
    pub(super) fn repeats_value(&self, count: usize) -> Option<usize> {
        (1..count).find(|&place| self.value(place - 1) == self.value(place)).map(|place| place - 1)
    }

    /// The word and content of a key behind the first `count` places, and the second, that is none.
    pub(super) fn behind(&self, count: usize) -> Option<(usize, u64)> {
        let keys = (count.max(1)..self.places()).map(|place| (self.word(place), self.key(place)));
        keys.into_iter().find(|&(_, key)| key != 0)
    }

    /// Inserts `entry` at `place` of a line of `count` pairs, which has room.
    ///
    /// ```text
    /// for i = n-1 down to p:    crash: pair i is at i and i+1, or i+1 has the key of the pair
    ///   W value[i+1], key[i+1]  behind it, which counts
    /// W value[p]                the key there is still that of the pair behind it
    /// C key[p]                  8 B; of an empty line it shows nothing yet: the tally is C
    /// ```
    #[inline(always)]
    pub(super) fn insert(&self, place: usize, count: usize, entry: Entry) {
        for moved in (place..count).rev() {
            let Entry { key, value, .. } = self.entry(moved);
            self.set_value(moved + 1, value);
            self.set_key(moved + 1, key);
        }
        self.set_value(place, entry.value);
        self.set_key(place, entry.key);
    }

    /// Removes the pair at `place` of a line of `count`; the only one goes with the tally alone.
    ///
    /// ```text
    /// for i = d to n-2:         the first key is C: of two with one key the right one counts
    ///   W key[i], value[i]
    /// R tally                   if one pair is left: it will be there without a second
    /// W key[n-1] = 0            C if d = n-1
    /// ```
    #[inline(always)]
    pub(super) fn remove(&self, place: usize, count: usize) {
        for target in place..count.saturating_sub(1) {
            let Entry { key, value, .. } = self.entry(target + 1);
            self.set_key(target, key);
            self.set_value(target, value);
        }
        self.drop_last(count);
    }

    /// Takes all pairs from `place` on away, the last one first; the first one goes with the tally.
    pub(super) fn truncate(&self, place: usize, count: usize) {
        for count in (place + 1..=count).rev() {
            self.drop_last(count);
        }
    }

    /// Takes the last of `count` pairs away, but the first one.
    #[inline(always)]
    fn drop_last(&self, count: usize) {
        if count == 2 {
            T::show_first(self.medium, self.words, self.index);
        }
        if count >= 2 {
            self.set_key(count - 1, 0);
        }
    }
}
