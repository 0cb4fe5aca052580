//! FAIR: a full node splits by linking its new sibling first; the parent learns of it afterwards.

use super::descend::{Locked, Trail};
use super::write::forgive_full;
use super::{FastFairTree, ROOT};
use crate::index::TreeError;
use crate::key::{self, Entry, Key};
use crate::leaf::sorted_shift::{NodeHeader, ShiftNode};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, PoolError};

impl<M: Medium, K: Key, const NODE: usize> FastFairTree<M, K, NODE> {
    /// Adds `entry` before entry `index` of `node`, which is latched, splitting it if it is full.
    /// Gives the new sibling, whose separator is to be posted once the latch is released.
    pub(super) fn add(
        &self,
        node: &ShiftNode<'_, M, NODE>,
        index: usize,
        entry: Entry,
    ) -> Result<Option<PmPtr>, PoolError> {
        let count = node.count_from(index);
        if count < ShiftNode::<M, NODE>::CAPACITY {
            let _ = node.insert(index, count, entry);
            return Ok(None);
        }
        self.split(node, index, entry).map(Some)
    }

    /// Splits `node`, which is full and latched, and adds `entry` to the half where it belongs.
    ///
    /// The sibling is reached through `node` alone until its latch is released, so it needs no
    /// latch of its own. At the right edge of the level the entries stay where they are and the new
    /// one is the sibling's first, so that keys which come in order leave full nodes behind.
    ///
    /// ```text
    /// N sibling, its low key      crash before C: both are free again
    /// |
    /// C sibling of node           8 B   the upper half counts there, and here no more
    /// F header |
    /// W end of node = m           crash before: recovery does it
    /// F its line |
    /// insert                      into one of them; at the right edge it came with C
    ///                             -> durable   budget: NODE / 64 + 2 lines, 3 fences, the insert
    /// ```
    #[cold]
    fn split(
        &self,
        node: &ShiftNode<'_, M, NODE>,
        index: usize,
        entry: Entry,
    ) -> Result<PmPtr, PoolError> {
        let capacity = ShiftNode::<M, NODE>::CAPACITY;
        let level = node.level();
        let at_edge = index == capacity && node.sibling().is_null();
        let middle = if at_edge { capacity } else { capacity / 2 };
        let mut upper: Vec<_> = (middle..capacity).map(|i| node.entry(i)).collect();
        if at_edge {
            upper.push(entry);
        }
        let at = self.pool.reserve(Self::NODE_BYTES)?;
        let low = self
            .low_of(level, upper[0].key)
            .inspect_err(|_| self.pool.release(at, Self::NODE_BYTES))?;
        if level > 0 {
            upper[0].key = 0;
        }
        let header = NodeHeader { sibling: node.sibling(), low, level };
        let right = ShiftNode::<M, NODE>::create(&self.pool, at, header, &upper)?;
        if at_edge && M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::LinkLate) {
            let _ = self.pool.medium().fence();
            node.link_unflushed(at);
            return Ok(at);
        }
        let _ = node.link(at, self.pool.medium().fence());
        if !at_edge {
            let _ = node.truncate(middle);
            if index <= middle {
                let _ = node.insert(index, middle, entry);
            } else {
                let _ = right.insert(index - middle, capacity - middle, entry);
            }
        }
        Ok(at)
    }

    /// The low key of a new node whose first entry has the key word `first`: a leaf keeps the word
    /// in that entry, so it plants another; an inner node takes it.
    fn low_of(&self, level: u32, first: u64) -> Result<u64, PoolError> {
        if level > 0 {
            return Ok(first);
        }
        let key = K::read(&self.pool, first)?;
        K::store_separator(&self.pool, K::borrow(&key))
    }

    /// Makes sure that the parent has a separator for the node at `at`, and so on upwards.
    ///
    /// ```text
    /// N separator's record |
    /// parent: insert            [`ShiftNode::insert`], a split before it if need be   -> durable
    /// ```
    #[cold]
    pub(super) fn post(&self, at: PmPtr, pinned: &Guard) -> Result<(), TreeError> {
        let mut unposted = Some(at);
        while let Some(at) = unposted {
            unposted = self.post_one(at, pinned)?;
        }
        Ok(())
    }

    /// Posts one node; gives the one that then lacks a separator because the parent was split.
    fn post_one(&self, at: PmPtr, _pinned: &Guard) -> Result<Option<PmPtr>, TreeError> {
        let child = ShiftNode::<M, NODE>::view(&self.pool, at)?;
        let low = K::read(&self.pool, child.low())?;
        let key = K::borrow(&low);
        loop {
            let found = self.lock(key, child.level() + 1, &mut Trail::default())?;
            let Some(Locked { node, held: _held, place }) = found else {
                if self.grow(&child, key)? {
                    return Ok(None);
                }
                continue;
            };
            // A leftmost child has its parent's low key and no separator.
            let is_posted = place.equal || K::order(&self.pool, node.low(), key)?.is_eq();
            // Nobody merges the child while its parent is latched, so what is read here stays true.
            if is_posted || self.latch(&child).read().is_none() {
                return Ok(None);
            }
            let word = self.store_key(key)?;
            let entry = Entry::plain(word, at.offset());
            let split = self.add(&node, place.index, entry);
            return Ok(split.inspect_err(|_| key::free_separator::<K, M>(&self.pool, word))?);
        }
    }

    /// Puts a new root above the present one and its sibling `child`. False if there is already a
    /// level above `child`.
    ///
    /// ```text
    /// N new root, separator     crash before C: free again; recovery grows
    /// |
    /// C root                    8 B
    /// F root block |            -> durable   budget: NODE / 64 + 1 lines, 2 fences
    /// ```
    fn grow(&self, child: &ShiftNode<'_, M, NODE>, key: K::Ref<'_>) -> Result<bool, TreeError> {
        let words = self.root_words()?;
        let _held = self.root_latch()?.lock();
        let root = self.root_node()?;
        let is_blind = M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::RootStale);
        if root.level() > child.level() && !is_blind {
            return Ok(false);
        }
        // A root is collapsed under the same latch: a child that was merged meanwhile says so.
        if self.latch(child).read().is_none() {
            return Ok(true);
        }
        if !is_blind && root.level() != child.level() || root.at() == child.at() {
            let (at, what) = (child.at().offset(), "a node beside the root");
            let (expected, found) = (u64::from(root.level()), u64::from(child.level()));
            return Err(Corrupt { at, what, expected, found }.into());
        }
        let at = self.pool.reserve(Self::NODE_BYTES)?;
        let word = K::store_separator(&self.pool, key)
            .inspect_err(|_| self.pool.release(at, Self::NODE_BYTES))?;
        let header = NodeHeader { sibling: PmPtr::NULL, low: 0, level: root.level() + 1 };
        let children = [(0, root.at()), (word, child.at())];
        let entries = children.map(|(key, at)| Entry::plain(key, at.offset()));
        ShiftNode::<M, NODE>::create(&self.pool, at, header, &entries)?;
        let medium = self.pool.medium();
        medium.commit(&words[ROOT], at.offset(), medium.fence());
        let _ = medium.persist(&words[..=ROOT]);
        Ok(true)
    }

    /// Posts all of `nodes`, as far as the pool has room.
    pub(super) fn post_all(&self, nodes: &[PmPtr], pinned: &Guard) -> Result<(), TreeError> {
        nodes.iter().try_for_each(|&at| forgive_full(self.post(at, pinned)))
    }
}
