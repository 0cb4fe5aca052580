//! Sorted entries of an inner node that move in place, without a log.
//!
//! 1. The first null child ends the array; a full node has none. No count is stored.
//! 2. An entry counts only if its child is not that of the place before. So a shift, which doubles
//!    a pointer before it changes a key, hides what it has not finished.

use crate::key::Entry;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Defect, Fenced, Medium, PmWord};

/// The index of the word that holds the leftmost child.
const CHILD_0: usize = 0;

/// The entries of an inner node: pairs of a key word and a child.
#[derive(Debug)]
pub struct ShiftedEntries<'a, M> {
    medium: &'a M,
    words: &'a [PmWord],
    /// The index of the first entry's key word.
    first: usize,
}

impl<'a, M: Medium> ShiftedEntries<'a, M> {
    /// Returns the entries of the node in `words`, which begin at the word `first`.
    #[inline(always)]
    pub(crate) fn new(medium: &'a M, words: &'a [PmWord], first: usize) -> Self {
        Self { medium, words, first }
    }

    fn capacity(&self) -> usize {
        (self.words.len() - self.first) / 2
    }

    #[inline(always)]
    fn child_word(&self, index: usize) -> usize {
        self.first + 2 * index + 1
    }

    /// Returns `true` if entry `index` is the first of its line.
    fn starts_line(&self, index: usize) -> bool {
        let word = self.first + 2 * index;
        word / LINE_WORDS != (word - 1) / LINE_WORDS
    }

    #[inline(always)]
    pub(crate) fn key(&self, index: usize) -> u64 {
        self.medium.load(&self.words[self.first + 2 * index])
    }

    #[inline(always)]
    pub(crate) fn child(&self, index: usize) -> u64 {
        self.medium.load(&self.words[self.child_word(index)])
    }

    /// Returns the child left of entry `index`.
    pub(crate) fn child_before(&self, index: usize) -> u64 {
        let word = index.checked_sub(1).map_or(CHILD_0, |before| self.child_word(before));
        self.medium.load(&self.words[word])
    }

    /// Returns the number of entries before the null child.
    pub(crate) fn count(&self) -> usize {
        let capacity = self.capacity();
        (0..capacity).find(|&index| self.child(index) == 0).unwrap_or(capacity)
    }

    fn set_key(&self, index: usize, key: u64) {
        self.medium.store(&self.words[self.first + 2 * index], key);
    }

    /// Stores the child of entry `index`.
    pub(crate) fn set_child(&self, index: usize, child: u64) {
        self.medium.store(&self.words[self.child_word(index)], child);
    }

    /// Flushes the line of entry `index` and fences.
    fn persist(&self, index: usize) -> Fenced {
        self.medium.persist(core::slice::from_ref(&self.words[self.child_word(index)]))
    }

    fn injects(&self, defect: Defect) -> bool {
        M::INJECTS_DEFECTS && self.medium.injects(defect)
    }

    /// Inserts `entry` at `place` among the node's `count` entries, of which there is room for one
    /// more. The caller holds the latch, or no other thread uses the tree.
    ///
    /// # Persist order
    /// ```text
    /// W child[n+1] = null      only if it is not null; F | only if it starts a line
    /// for i = n-1 down to p
    ///   W child[i+1], key[i+1] entry i+1 has the child of entry i and does not count
    ///   F line of i+1 |        only if i+1 starts it (delayed flushing)
    /// W child[p] = child[p-1]  entry p does not count; its pair is at p+1
    /// W key[p]
    /// C child[p]               8 B; crash before: the node as it was
    /// F line of p |            -> durable   budget: lines from p to n, as many fences
    /// ```
    pub(crate) fn shift_in(&self, count: usize, place: usize, entry: Entry) -> Fenced {
        debug_assert!(place <= count && count < self.capacity());
        if count + 1 < self.capacity() && self.child(count + 1) != 0 {
            self.set_child(count + 1, 0);
            if self.starts_line(count + 1) {
                let _ = self.persist(count + 1);
            }
        }
        for index in (place..count).rev() {
            let (key, child) = (self.key(index), self.child(index));
            if self.injects(Defect::ShiftKeyFirst) {
                self.set_key(index + 1, key);
                self.set_child(index + 1, child);
            } else {
                self.set_child(index + 1, child);
                self.set_key(index + 1, key);
            }
            if self.starts_line(index + 1) {
                let _ = self.persist(index + 1);
            }
        }
        if !self.injects(Defect::PointerNotDoubled) {
            self.set_child(place, self.child_before(place));
        }
        self.set_key(place, entry.key);
        self.set_child(place, entry.value);
        self.persist(place)
    }

    /// Removes entry `index` of the node's `count` entries. The caller holds the latch, or no
    /// other thread uses the tree.
    ///
    /// # Persist order
    /// ```text
    /// C child[d] = child[d-1]  8 B; entry d does not count
    /// for i = d to n-2
    ///   W key[i], child[i]     those of i+1; then entry i+1 does not count
    ///   F line of i |          only if i ends it
    /// W child[n-1] = null
    /// F its line |             -> durable   budget: lines from d to n-1, as many fences
    /// ```
    pub(crate) fn shift_out(&self, count: usize, index: usize) -> Fenced {
        debug_assert!(index < count && count <= self.capacity());
        self.set_child(index, self.child_before(index));
        for at in index..count - 1 {
            self.set_key(at, self.key(at + 1));
            self.set_child(at, self.child(at + 1));
            if self.starts_line(at + 1) {
                let _ = self.persist(at);
            }
        }
        self.cut(count - 1)
    }

    /// Ends the array at entry `index`, and flushes the line. Durable on return.
    pub(crate) fn cut(&self, index: usize) -> Fenced {
        self.set_child(index, 0);
        self.persist(index)
    }

    /// Replaces the child of entry `index`, or the leftmost child. Durable on return.
    ///
    /// # Persist order
    /// ```text
    /// C child    8 B
    /// F its line |             -> durable   budget: 1 line, 1 fence
    /// ```
    pub(crate) fn replace_child(&self, index: Option<usize>, child: u64, fenced: Fenced) -> Fenced {
        let word = &self.words[index.map_or(CHILD_0, |index| self.child_word(index))];
        self.medium.commit(word, child, fenced);
        self.medium.persist(core::slice::from_ref(word))
    }
}
