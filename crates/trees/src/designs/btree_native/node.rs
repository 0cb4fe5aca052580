//! Nodes: entries in key order without gaps, behind a header of 32 B.
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | state | commit | number of entries (8 bits), sequence number of the last record |
//! | 8 | 8 | link | commit | leaf: the next one, 0 for none; inner node: the leftmost child |
//! | 16 | 8 | latch | transient | shared by readers, held by a writer |
//! | 24 | 8 | mark | data | magic number, level |
//! | 32 | 16 each | entries | data | key word; value word or child |
//!
//! A node of 256, 512, 1024 or 2048 B has 14, 30, 62 or 126 entries.
//!
//! 1. Entries, link and state of a node change only under its latch and a record of the log that
//!    names the node. Link and state lie in one line, and the state is stored last.
//! 2. The key word of an entry is stored before its value word. So an entry whose move a crash has
//!    interrupted either has the key word of the entry that was to move there, or is as it was.
//! 3. Key words of different keys differ ([`UniqueWords`](crate::unique_words::UniqueWords)).

use super::BTreeNativeIndex;
use crate::key::{Entry, Key};
use crate::linked_leaves::SearchTarget;
use crate::node::{Entries, LEVEL_MAX, View, bisect, encode, level_of, mark};
use bristlecone_pmem::sync::{OnMedium, SharedLatch};
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmPtr, Pool};

const STATE: usize = 0;
const LINK: usize = 1;
const LATCH: usize = 2;
const MARK: usize = 3;
pub(super) const ENTRIES: Entries = Entries::pairs(4);
/// The magic number of the layout: "native" in ASCII.
const MAGIC: u64 = 0x6576_6974_616e;
const COUNT_BITS: u32 = 8;

/// The commit word of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// The number of entries.
    pub(super) count: usize,
    /// The sequence number of the last record that changed the node.
    pub(super) seq: u64,
}

impl State {
    const fn word(self) -> u64 {
        self.seq << COUNT_BITS | self.count as u64
    }
}

/// A node of `NODE` bytes.
#[derive(Debug)]
pub(super) struct SortedNode<'t, M, const NODE: usize> {
    pub(super) view: View<'t, M>,
    pub(super) at: PmPtr,
    pub(super) level: u64,
}

impl<M, const NODE: usize> Clone for SortedNode<'_, M, NODE> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<M, const NODE: usize> Copy for SortedNode<'_, M, NODE> {}

impl<'t, M: Medium, const NODE: usize> SortedNode<'t, M, NODE> {
    /// The maximum number of entries.
    pub(super) const CAPACITY: usize = ENTRIES.capacity(NODE);
    const COUNT_FITS: () = assert!(Self::CAPACITY < 1 << COUNT_BITS);

    /// Returns the node at `at`, of the level that its mark says.
    #[inline(always)]
    pub(super) fn view_any(pool: &'t Pool<M>, at: PmPtr) -> Result<Self, Corrupt> {
        let view = View::new(pool.medium(), pool.block(at, NODE / 8)?);
        Ok(Self { view, at, level: level_of(view, MARK, MAGIC)? })
    }

    /// Returns the node of `level` at `at`.
    #[inline(always)]
    pub(super) fn view(pool: &'t Pool<M>, at: PmPtr, level: u64) -> Result<Self, Corrupt> {
        let node = Self::view_any(pool, at)?;
        if node.level == level {
            return Ok(node);
        }
        Err(node.view.corrupt(MARK, "level of a node", level, node.level))
    }

    /// Fills the fresh block at `at` with a node. Flushes the lines of its header and its entries.
    /// Durable after the next fence.
    pub(super) fn create(
        pool: &Pool<M>,
        at: PmPtr,
        (level, seq, link): (u64, u64, u64),
        entries: &[Entry],
    ) -> Result<(), Corrupt> {
        const { Self::COUNT_FITS };
        debug_assert!(level <= LEVEL_MAX && entries.len() <= Self::CAPACITY);
        let state = State { count: entries.len(), seq }.word();
        let bytes = encode(&[state, link, 0, mark(MAGIC, level)], ENTRIES, entries);
        let words = pool.block(at, NODE / 8)?;
        pool.medium().fill(&words[..bytes.len() / 8], &bytes);
        Ok(())
    }

    #[inline(always)]
    pub(super) fn latch(&self, nonce: u64) -> SharedLatch<OnMedium<'t, M>> {
        OnMedium::shared(self.view.medium(), self.view.word(LATCH), nonce)
    }

    /// Returns the state, after a check of the number of entries.
    #[inline(always)]
    pub(super) fn state(&self) -> Result<State, Corrupt> {
        let word = self.view.load(STATE);
        let count = word & ((1 << COUNT_BITS) - 1);
        if count > Self::CAPACITY as u64 {
            let what = "number of entries of a node";
            return Err(self.view.corrupt(STATE, what, Self::CAPACITY as u64, count));
        }
        Ok(State { count: count as usize, seq: word >> COUNT_BITS })
    }

    #[inline(always)]
    pub(super) fn link(&self) -> PmPtr {
        PmPtr::new(self.view.load(LINK))
    }

    #[inline(always)]
    pub(super) fn entry(&self, index: usize) -> Entry {
        self.view.entry(ENTRIES, index)
    }

    #[inline(always)]
    fn key(&self, index: usize) -> u64 {
        self.view.load(ENTRIES.word(index))
    }

    /// Returns the first `count` entries.
    pub(super) fn entries(&self, count: usize) -> Vec<Entry> {
        (0..count).map(|index| self.entry(index)).collect()
    }

    /// Returns the child of that rank: the leftmost one, or that of the entry before.
    #[inline(always)]
    pub(super) fn child(&self, rank: usize) -> PmPtr {
        rank.checked_sub(1).map_or_else(|| self.link(), |at| PmPtr::new(self.entry(at).value))
    }

    /// Replaces the value of entry `index`. Durable on return.
    ///
    /// # Persist order
    /// ```text
    /// C value      8 B
    /// F value |    -> durable   budget: 1 line, 1 fence
    /// ```
    pub(super) fn set_value(&self, index: usize, value: u64) -> Fenced {
        let word = ENTRIES.word(index) + 1;
        self.view.store(word, value);
        self.view.persist(word..=word)
    }

    /// Stores entry `index`. Durable on return.
    ///
    /// # Persist order
    /// ```text
    /// W key word, value word   in this order
    /// F entry |                -> durable   budget: 1 line, 1 fence
    /// ```
    fn set_entry(&self, index: usize, entry: Entry) -> Fenced {
        let word = ENTRIES.word(index);
        if self.injects(Defect::MoveValueFirst) {
            self.view.store(word + 1, entry.value);
        }
        self.view.store_entry(ENTRIES, index, entry);
        if self.injects(Defect::MovesUnfenced) {
            self.view.flush(word..=word + 1);
            return Fenced::nothing();
        }
        self.view.persist(word..=word + 1)
    }

    fn injects(&self, defect: Defect) -> bool {
        M::INJECTS_DEFECTS && self.view.medium().injects(defect)
    }

    /// Returns the error that `what` in this node is damaged.
    #[cold]
    pub(super) fn damage(&self, what: &'static str, expected: usize, found: usize) -> Corrupt {
        Corrupt { at: self.at.offset(), what, expected: expected as u64, found: found as u64 }
    }

    /// Stores entries behind the first `count`, which no state shows. Durable after the next fence.
    pub(super) fn append(&self, count: usize, entries: &[Entry]) {
        for (index, entry) in (count..).zip(entries) {
            self.view.store_entry(ENTRIES, index, *entry);
        }
        self.view.flush_entries(ENTRIES, count..count + entries.len());
    }

    /// Stores the state, and with it ends the record. Durable on return.
    ///
    /// # Persist order
    /// ```text
    /// C state      8 B
    /// F line 0 |   -> durable   budget: 1 line, 1 fence
    /// ```
    fn commit(&self, state: State, fenced: Fenced) -> Fenced {
        self.view.medium().commit(self.view.word(STATE), state.word(), fenced);
        self.view.persist(STATE..=STATE)
    }

    /// Stores link and state. Durable on return.
    ///
    /// # Persist order
    /// ```text
    /// W link, C state   in one line, in this order
    /// F line 0 |        -> durable   budget: 1 line, 1 fence
    /// ```
    pub(super) fn commit_link(&self, link: PmPtr, state: State, fenced: Fenced) -> Fenced {
        self.view.store(LINK, link.offset());
        self.commit(state, fenced)
    }

    /// Inserts `entry` at `place` among `count` entries, of which those from `first` on have moved
    /// already: `count` for a new insert.
    ///
    /// # Persist order
    /// ```text
    /// for i = first - 1 down to place
    ///   W entry[i + 1] = entry[i]   key word first
    ///   F entry[i + 1] |
    /// W entry[place]; F |           crash before C: recovery resumes
    /// C state; F line 0 |           -> durable   budget: first - place + 2 lines, as many fences
    /// ```
    pub(super) fn insert_from(
        &self,
        first: usize,
        place: usize,
        entry: Entry,
        (count, seq): (usize, u64),
    ) -> Fenced {
        debug_assert!(place <= first && first <= count && count < Self::CAPACITY);
        for index in (place..first).rev() {
            let _ = self.set_entry(index + 1, self.entry(index));
        }
        let fenced = self.set_entry(place, entry);
        self.commit(State { count: count + 1, seq }, fenced)
    }

    /// Removes entry `place` of `count`; those before `first` have moved already: `place + 1` for a
    /// new removal. `fenced` is the fence of the record.
    ///
    /// # Persist order
    /// ```text
    /// for i = first to count - 1
    ///   W entry[i - 1] = entry[i]   key word first
    ///   F entry[i - 1] |            crash before C: recovery resumes
    /// C state; F line 0 |           -> durable   budget: count - first + 1 lines, as many fences
    /// ```
    pub(super) fn remove_from(
        &self,
        first: usize,
        (count, seq): (usize, u64),
        fenced: Fenced,
    ) -> Fenced {
        debug_assert!(0 < first && first <= count && count <= Self::CAPACITY);
        let mut fenced = fenced;
        for index in first..count {
            fenced = self.set_entry(index - 1, self.entry(index));
        }
        self.commit(State { count: count - 1, seq }, fenced)
    }

    /// Returns the first index from `place` on, below `last`, of two entries with one key word.
    pub(super) fn doubled(&self, place: usize, last: usize) -> Option<usize> {
        (place..last).find(|&index| self.key(index) == self.key(index + 1))
    }
}

impl<M: Medium, K: Key, const NODE: usize> BTreeNativeIndex<M, K, NODE> {
    /// Returns the rank of the child of `node` for the target: the number of separators at or left
    /// of it. The caller has a latch of the node.
    #[inline(always)]
    pub(super) fn route(
        &self,
        node: &SortedNode<'_, M, NODE>,
        count: usize,
        target: SearchTarget<'_, K>,
    ) -> Result<usize, Corrupt> {
        bisect(count, |index| {
            let word = node.entry(index).key;
            Ok(match target {
                SearchTarget::At(key) => K::order(&self.pool, word, key)?.is_le(),
                SearchTarget::Below(key) => K::order(&self.pool, word, key)?.is_lt(),
                SearchTarget::Last => true,
            })
        })
    }

    /// Searches a leaf of `count` entries. Returns the number of smaller keys, and the entry of
    /// that rank if its key is `key`. The caller has a latch of the leaf.
    #[inline(always)]
    pub(super) fn search(
        &self,
        leaf: &SortedNode<'_, M, NODE>,
        count: usize,
        key: K::Ref<'_>,
    ) -> Result<(usize, Option<Entry>), Corrupt> {
        let order = |index| K::order_entry(&self.pool, leaf.entry(index), key);
        let rank = bisect(count, |index| Ok(order(index)?.is_lt()))?;
        let is_found = rank < count && order(rank)?.is_eq();
        Ok((rank, is_found.then(|| leaf.entry(rank))))
    }
}
