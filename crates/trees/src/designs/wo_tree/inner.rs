//! Inner nodes: sorted entries, shifted in place without a log.
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | child 0 | data | the leftmost child, which never changes |
//! | 8 | 8 | next | commit | next node of the level; 0: none |
//! | 16 | 8 | low | data | least key that belongs here; never changes |
//! | 24 | 8 | tag | data | magic number, bytes, level |
//! | 32 | 8 | latch | transient | of writers; its version serves byte-string keys alone |
//! | 40 | 8 | spare | data | zero |
//! | 48 | 16 each | entries | commit | key word, child |
//!
//! A node of 256, 512, 1024 or 2048 B has 13, 29, 61 or 125 entries.
//!
//! 1. The first null child ends the array; a full node has none. No count is stored.
//! 2. An entry counts only if its child is not that of the place before. So a shift, which doubles
//!    a pointer before it changes a key, hides what it has not finished.
//! 3. An entry counts only if its key is below the next node's low key.
//! 4. A writer changes a node only under its latch. A reader takes no latch and checks no version:
//!    it uses an inner node as a hint, and checks the low key of the child that it reaches.

use super::WoTreeIndex;
use super::node::{LOW, NEXT, Node, Separated, line};
use crate::key::{Entry, Key};
use crate::linked_leaves::SearchTarget;
use crate::node::ShiftedEntries;
use bristlecone_pmem::sync::{Latch, OnMedium};
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmPtr, Pool};

const CHILD_0: usize = 0;
const LATCH: usize = 4;
const ENTRIES: usize = 6;

impl<'t, M: Medium, const NODE: usize> Node<'t, M, NODE> {
    /// The maximum number of entries, the leftmost child not counted.
    pub(super) const FANOUT: usize = (Self::WORDS - ENTRIES) / 2;

    #[inline(always)]
    pub(super) fn inner_latch(&self, nonce: u64) -> Latch<OnMedium<'t, M>> {
        OnMedium::latch(self.medium, &self.words[LATCH], nonce)
    }

    #[inline(always)]
    pub(super) fn first_child(&self) -> u64 {
        self.load(CHILD_0)
    }

    #[inline(always)]
    fn shifted(&self) -> ShiftedEntries<'t, M> {
        ShiftedEntries::new(self.medium, self.words, ENTRIES)
    }

    #[inline(always)]
    pub(super) fn key(&self, index: usize) -> u64 {
        self.shifted().key(index)
    }

    #[inline(always)]
    pub(super) fn child(&self, index: usize) -> u64 {
        self.shifted().child(index)
    }

    /// Returns the child left of entry `index`.
    pub(super) fn child_before(&self, index: usize) -> u64 {
        self.shifted().child_before(index)
    }

    /// Returns the number of entries before the null child. The caller holds the latch.
    pub(super) fn count(&self) -> usize {
        self.shifted().count()
    }

    /// Returns the entries before the null child.
    pub(super) fn separated(&self) -> Vec<Separated> {
        let entry = |index| Separated { key: self.key(index), child: self.child(index) };
        (0..self.count()).map(entry).collect()
    }

    /// Fills a fresh block with an inner node. Durable after the next fence.
    pub(super) fn create_inner(
        pool: &'t Pool<M>,
        at: PmPtr,
        (level, low, next): (u32, u64, PmPtr),
        first: u64,
        entries: &[Separated],
    ) -> Result<Self, Corrupt> {
        let mut image = vec![0; Self::WORDS];
        image[CHILD_0] = first;
        image[NEXT] = next.offset();
        image[LOW] = low;
        Self::set_tag(&mut image, level);
        for (pair, entry) in image[ENTRIES..].chunks_exact_mut(2).zip(entries) {
            pair.copy_from_slice(&[entry.key, entry.child]);
        }
        Self::fill(pool, at, level, &image)
    }

    /// Inserts `entry` at `place`, as [`ShiftedEntries::shift_in`].
    pub(super) fn shift_in(&self, count: usize, place: usize, entry: Separated) -> Fenced {
        self.shifted().shift_in(count, place, Entry::plain(entry.key, entry.child))
    }

    /// Removes entry `index`, as [`ShiftedEntries::shift_out`].
    pub(super) fn shift_out(&self, count: usize, index: usize) -> Fenced {
        self.shifted().shift_out(count, index)
    }

    /// Ends the array at entry `index`, and flushes the line. Durable on return.
    pub(super) fn cut(&self, index: usize) -> Fenced {
        self.shifted().cut(index)
    }

    /// Sets the next node. Durable on return: 1 line, 1 fence.
    pub(super) fn link(&self, next: PmPtr, _published: Fenced) -> Fenced {
        self.store(NEXT, next.offset());
        self.persist_line(line(NEXT))
    }

    /// Stores the link and the cut of a split under one fence, as the paper prints it, for an
    /// injected defect.
    #[cold]
    pub(super) fn link_and_cut(&self, next: PmPtr, middle: usize) -> Fenced {
        self.store(NEXT, next.offset());
        self.shifted().set_child(middle, 0);
        self.medium.persist(self.words)
    }

    /// Ends the array of a split node at `middle`.
    ///
    /// # Persist order
    /// ```text
    /// W child[m] = null        crash before: recovery cuts at the next node's low key
    /// F all lines but the first |   -> durable   budget: lines of the node - 1, 1 fence
    /// ```
    pub(super) fn cut_upper(&self, middle: usize) -> Fenced {
        self.shifted().set_child(middle, 0);
        self.medium.persist(&self.words[bristlecone_pmem::line::LINE_WORDS..])
    }
}

impl<M: Medium, K: Key, const NODE: usize> WoTreeIndex<M, K, NODE> {
    /// Returns the child of `node` for the target. Takes no latch, and loads each child once: a
    /// second load may find the null that a writer has stored meanwhile.
    #[inline(always)]
    fn route(&self, node: &Node<'_, M, NODE>, target: SearchTarget<'_, K>) -> Result<u64, Corrupt> {
        let mut child = node.first_child();
        for index in 0..Node::<M, NODE>::FANOUT {
            let found = node.child(index);
            if found == 0 {
                break;
            }
            if found == child {
                continue;
            }
            // A key at or above the next node's low key is above the target, so this covers rule 3.
            if !self.is_at_or_left_of(node.key(index), target)? {
                break;
            }
            let is_twice = M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::ChildTwice);
            child = if is_twice { node.child(index) } else { found };
        }
        Ok(child)
    }

    /// Returns the child of `node` for the target, or `None` if the node is unlinked.
    ///
    /// A reader beside a writer may meet a key word behind the entries whose record has been freed.
    /// So an error that a key record gives counts only if no writer was in the node.
    #[inline(always)]
    pub(super) fn child_for(
        &self,
        node: &Node<'_, M, NODE>,
        target: SearchTarget<'_, K>,
    ) -> Result<Option<u64>, Corrupt> {
        match self.route(node, target) {
            Err(_) if !K::EXACT => self.validated_child(node, target),
            routed => routed.map(Some),
        }
    }

    #[cold]
    fn validated_child(
        &self,
        node: &Node<'_, M, NODE>,
        target: SearchTarget<'_, K>,
    ) -> Result<Option<u64>, Corrupt> {
        let latch = node.inner_latch(self.pool.nonce());
        loop {
            let Some(version) = latch.read() else { return Ok(None) };
            let routed = self.route(node, target);
            if latch.validate(version) {
                return routed.map(Some);
            }
        }
    }

    /// Returns the place of `key` among the entries of `node`, whose latch the caller holds: the
    /// number of entries with a smaller key.
    pub(super) fn place_of(
        &self,
        node: &Node<'_, M, NODE>,
        count: usize,
        key: K::Ref<'_>,
    ) -> Result<usize, Corrupt> {
        for index in 0..count {
            if K::order(&self.pool, node.key(index), key)?.is_ge() {
                return Ok(index);
            }
        }
        Ok(count)
    }
}
