//! Reads of a node without its latch, beside a writer that shifts its entries (FAST & FAIR).
//!
//! A read scans in the direction in which entries move, which the caller takes from the
//! [shift counter](ShiftNode::shifts) and checks afterwards.
//!
//! 1. An entry that moves is at its new place before it leaves the old one. So a scan in the same
//!    direction meets it. A scan whose direction changes meanwhile counts for nothing.
//! 2. While entries move to the right, the key word of a place only changes to a lesser key's or to
//!    the terminator, and the value of a place changes only after the place to the right has its
//!    key. While entries move to the left, a key changes before its value. So a value belongs to
//!    the key if the right neighbour then has another key, and the place afterwards still has it.
//! 3. No scan passes a terminator: a writer moves it before it overwrites it. So a scan meets only
//!    key words that were valid after it began, and their records are still there for a thread that
//!    is pinned.

use super::{ENTRIES, LIVE, ShiftForm, ShiftNode};
use crate::key::{Entry, Key};
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, Pool};
use core::cmp::Ordering;

const _: () =
    assert!(LIVE / LINE_WORDS == ENTRIES / LINE_WORDS, "entry 0 is in the line that says if it is");

/// The result of a search without a latch.
#[derive(Clone, Copy, Debug)]
pub enum Unlatched {
    /// The place and the value of the key.
    Found(usize, u64),
    /// The place where the key would be.
    Absent {
        /// The index of the first greater entry.
        index: usize,
        /// `true` if there is no such entry.
        end: bool,
    },
}

impl<M: Medium, F: ShiftForm, const NODE: usize> ShiftNode<'_, M, F, NODE> {
    /// Returns the value of entry `index` if its key word is `word` and stays so (rule 2).
    #[inline(always)]
    fn settled_value(&self, index: usize, word: u64) -> Option<u64> {
        let value = self.value(index);
        if M::INJECTS_DEFECTS && self.medium.injects(Defect::EntryLoadedOnce) {
            return Some(value);
        }
        // The least key, word 0, is at place 0 or absent; the word 0 behind it is a terminator.
        let moves = word != 0 && index + 1 < Self::CAPACITY && self.key(index + 1) == word;
        (!moves && self.key(index) == word).then_some(value)
    }

    /// Searches for `key` without a latch, in the direction in which entries move.
    ///
    /// # Errors
    /// A key word is damaged.
    #[inline(always)]
    pub fn find_unlatched<K: Key>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
        leftward: bool,
    ) -> Result<Unlatched, Corrupt> {
        if leftward && !(M::INJECTS_DEFECTS && self.medium.injects(Defect::DirectionIgnored)) {
            self.find_leftward::<K>(pool, key)
        } else {
            self.find_rightward::<K>(pool, key)
        }
    }

    #[inline(always)]
    fn find_rightward<K: Key>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
    ) -> Result<Unlatched, Corrupt> {
        if self.is_empty() {
            return Ok(Unlatched::Absent { index: 0, end: true });
        }
        for index in 0..Self::CAPACITY {
            let word = self.key(index);
            if word == 0 && index > 0 {
                return Ok(Unlatched::Absent { index, end: true });
            }
            match K::order(pool, word, key)? {
                Ordering::Less => {}
                Ordering::Equal => {
                    if let Some(value) = self.settled_value(index, word) {
                        return Ok(Unlatched::Found(index, value));
                    }
                }
                Ordering::Greater => return Ok(Unlatched::Absent { index, end: false }),
            }
        }
        Ok(Unlatched::Absent { index: Self::CAPACITY, end: true })
    }

    fn find_leftward<K: Key>(&self, pool: &Pool<M>, key: K::Ref<'_>) -> Result<Unlatched, Corrupt> {
        let count = self.count();
        for index in (0..count).rev() {
            let word = self.key(index);
            if word == 0 && index > 0 {
                continue; // The end has moved to the left since it was found.
            }
            match K::order(pool, word, key)? {
                Ordering::Greater => {}
                Ordering::Equal => {
                    if let Some(value) = self.settled_value(index, word) {
                        return Ok(Unlatched::Found(index, value));
                    }
                }
                Ordering::Less => {
                    let index = index + 1;
                    return Ok(Unlatched::Absent { index, end: index == count });
                }
            }
        }
        Ok(Unlatched::Absent { index: 0, end: count == 0 })
    }

    /// Copies the entries to `entries`, in key order, without a latch. Each is copied once, and as
    /// it was at some time during the call; all of them together may never have been there.
    ///
    /// # Errors
    /// A key word is damaged.
    pub fn copy_unlatched<K: Key>(
        &self,
        pool: &Pool<M>,
        leftward: bool,
        entries: &mut Vec<Entry>,
    ) -> Result<(), Corrupt> {
        entries.clear();
        if leftward {
            for index in (0..self.count()).rev() {
                self.copy_entry::<K>(pool, index, Ordering::Less, entries)?;
            }
            entries.reverse();
        } else if !self.is_empty() {
            for index in 0..Self::CAPACITY {
                if index > 0 && self.key(index) == 0 {
                    break;
                }
                self.copy_entry::<K>(pool, index, Ordering::Greater, entries)?;
            }
        }
        Ok(())
    }

    /// Copies entry `index` if its key compares to the last copied key as `order` says. If it does
    /// not, it was copied at its former place.
    fn copy_entry<K: Key>(
        &self,
        pool: &Pool<M>,
        index: usize,
        order: Ordering,
        entries: &mut Vec<Entry>,
    ) -> Result<(), Corrupt> {
        let word = self.key(index);
        if word == 0 && index > 0 {
            return Ok(()); // The end has moved to the left meanwhile.
        }
        if let Some(last) = entries.last() {
            let last = K::read(pool, last.key)?;
            if K::order(pool, word, K::borrow(&last))? != order {
                return Ok(());
            }
        }
        if let Some(value) = self.settled_value(index, word) {
            entries.push(Entry::plain(word, value));
        }
        Ok(())
    }

    /// Makes durable what a search without a latch has `found`, which a writer may not have flushed
    /// yet: the line of the entry; of an absent key, those of its neighbours. So no crash undoes
    /// the answer.
    ///
    /// ```text
    /// F line of e[i]    or, if the key is absent, of e[i-1] and e[i] |
    ///                            -> durable   budget: 1 or 2 lines, 1 fence
    /// ```
    #[cold]
    pub fn persist_found(&self, found: Unlatched) -> Fenced {
        let (first, last) = match found {
            Unlatched::Found(index, _) => (index, index),
            Unlatched::Absent { index, .. } => {
                (index.saturating_sub(1), index.min(Self::CAPACITY - 1))
            }
        };
        let (first, last) = (Self::key_word(first), Self::key_word(last));
        self.medium.persist(&self.words[first..=last])
    }

    /// Makes the link to the sibling durable, which a writer may not have flushed yet.
    ///
    /// ```text
    /// F header |                 -> durable   budget: 1 line, 1 fence
    /// ```
    #[cold]
    pub fn persist_link(&self) -> Fenced {
        self.persist(super::SIBLING)
    }
}
