//! Splits as in FAIR: a full node links its new sibling first; the separator in the parent follows.

use super::descend::{DescentState, LatchedNode};
use super::{FastFairSpec, FastFairTree};
use crate::index::TreeError;
use crate::key::{self, Entry, Key};
use crate::leaf::sorted_shift::{NodeHeader, ShiftForm, ShiftNode};
use crate::root_block::ROOT;
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, PoolError};

impl<M: Medium, K: Key, S: FastFairSpec, const NODE: usize> FastFairTree<M, K, S, NODE> {
    /// Inserts `entry` before entry `index` of `node`, which is latched, and splits the node if it
    /// is full. Returns the new sibling, whose separator the caller posts after releasing the
    /// latch.
    pub(super) fn insert_or_split(
        &self,
        node: &ShiftNode<'_, M, S::Form, NODE>,
        index: usize,
        entry: Entry,
    ) -> Result<Option<PmPtr>, PoolError> {
        let count = node.count_from(index);
        if count < ShiftNode::<M, S::Form, NODE>::CAPACITY {
            self.shift_in(node, index, count, entry);
            return Ok(None);
        }
        self.split(node, index, entry).map(Some)
    }

    /// Inserts `entry` before entry `index` of `node`, which is latched and has `count` entries.
    ///
    /// ```text
    /// R shifts                  entries move to the right, for readers
    /// node: insert              -> durable   budget: [`ShiftNode::insert`]'s
    /// ```
    fn shift_in(
        &self,
        node: &ShiftNode<'_, M, S::Form, NODE>,
        index: usize,
        count: usize,
        entry: Entry,
    ) {
        self.shifts(node).turn(false);
        let _ = node.insert(index, count, entry);
    }

    /// Removes entry `index` of `node`, which is latched and has `count` entries.
    ///
    /// ```text
    /// R shifts                  entries move to the left, for readers
    /// node: remove              -> durable   budget: [`ShiftNode::remove`]'s
    /// ```
    pub(super) fn shift_out(
        &self,
        node: &ShiftNode<'_, M, S::Form, NODE>,
        index: usize,
        count: usize,
    ) {
        self.shifts(node).turn(true);
        let _ = node.remove(index, count);
    }

    /// Splits `node`, which is full and latched, and adds `entry` to the half where it belongs.
    ///
    /// The sibling is latched until the split ends. No writer reaches it before the latch of `node`
    /// is released, but readers do: the latch tells them that what they see may not be durable. A
    /// thread that would post its separator waits, so no parent names a node that a crash frees. At
    /// the right edge of the level all entries stay, and the new entry becomes the sibling's first.
    /// So keys inserted in ascending order leave full nodes behind.
    ///
    /// ```text
    /// N sibling, its low key      crash before C: both are free again
    /// |
    /// C sibling of node           8 B   the upper half is valid there, no longer here
    /// F header |
    /// W end of node = m           crash before: the next writer does it
    /// F its line |
    /// insert                      into one of them; at the right edge it came with C
    ///                             -> durable   budget: NODE / 64 + 2 lines, 3 flushes, the insert
    /// ```
    #[cold]
    fn split(
        &self,
        node: &ShiftNode<'_, M, S::Form, NODE>,
        index: usize,
        entry: Entry,
    ) -> Result<PmPtr, PoolError> {
        let capacity = ShiftNode::<M, S::Form, NODE>::CAPACITY;
        let level = node.level();
        let at_edge = index == capacity && node.sibling().is_null();
        let middle = if at_edge { capacity } else { capacity / 2 };
        let mut upper: Vec<_> = (middle..capacity).map(|i| node.entry(i)).collect();
        if at_edge {
            upper.push(entry);
        }
        let at = self.pool.reserve(Self::NODE_BYTES)?;
        let low = self
            .new_low_key(level, upper[0].key)
            .inspect_err(|_| self.pool.release(at, Self::NODE_BYTES))?;
        if level > 0 {
            upper[0].key = 0;
        }
        let header = NodeHeader { sibling: node.sibling(), low, level };
        let right = ShiftNode::<M, S::Form, NODE>::create(&self.pool, at, header, &upper)?;
        let _right_held = self.latch(&right).lock();
        if at_edge && M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::LinkLate) {
            let _ = self.pool.medium().fence();
            node.link_unflushed(at);
            return Ok(at);
        }
        let _ = node.link(at, self.pool.medium().fence());
        if !at_edge {
            let _ = node.truncate(middle);
            if index <= middle {
                self.shift_in(node, index, middle, entry);
            } else {
                self.shift_in(&right, index - middle, capacity - middle, entry);
            }
        }
        Ok(at)
    }

    /// Returns the low key word of a new node whose first entry has the key word `first`. A leaf
    /// keeps `first` in its entry, so the low key is a new word; an inner node passes `first` on.
    fn new_low_key(&self, level: u32, first: u64) -> Result<u64, PoolError> {
        if level > 0 {
            return Ok(first);
        }
        let key = K::read(&self.pool, first)?;
        K::store_separator(&self.pool, K::borrow(&key))
    }

    /// Ensures that the parent has a separator for the node at `at`, and repeats this for each
    /// parent that this splits.
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

    /// Posts one node. Returns the new sibling, which still lacks a separator, if the parent was
    /// split.
    fn post_one(&self, at: PmPtr, _pinned: &Guard) -> Result<Option<PmPtr>, TreeError> {
        let child = ShiftNode::<M, S::Form, NODE>::view(&self.pool, at)?;
        let low = K::read(&self.pool, child.low())?;
        let key = K::borrow(&low);
        loop {
            let found = self.lock(key, child.level() + 1, &mut DescentState::default())?;
            let Some(LatchedNode { node, held: _held, pos }) = found else {
                if self.grow(&child, key)? {
                    return Ok(None);
                }
                continue;
            };
            // A leftmost child has its parent's low key and no separator.
            let is_posted = pos.equal || K::order(&self.pool, node.low(), key)?.is_eq();
            // No thread merges the child while its parent is latched, so this check stays valid.
            if is_posted || self.latch(&child).read().is_none() {
                return Ok(None);
            }
            let word = self.store_key(key)?;
            let entry = Entry::plain(word, at.offset());
            let split = self.insert_or_split(&node, pos.index, entry);
            return Ok(split.inspect_err(|_| key::free_separator::<K, M>(&self.pool, word))?);
        }
    }

    /// Puts a new root above the present root and its sibling `child`. Returns `false` if there
    /// already is a level above `child`.
    ///
    /// ```text
    /// N new root, separator     crash before C: free again; the next writer grows
    /// |
    /// C root                    8 B
    /// F root block |            -> durable   budget: NODE / 64 + 1 lines, 2 flushes
    /// ```
    fn grow(
        &self,
        child: &ShiftNode<'_, M, S::Form, NODE>,
        key: K::Ref<'_>,
    ) -> Result<bool, TreeError> {
        let words = self.root.words(&self.pool)?;
        let _held = self.root_latch()?.lock();
        let root = self.root_node()?;
        let is_blind = M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::RootStale);
        if root.level() > child.level() && !is_blind {
            return Ok(false);
        }
        // The root collapses under the same latch, so a child that was merged meanwhile is obsolete
        // here.
        if self.latch(child).read().is_none() {
            return Ok(true);
        }
        if !is_blind && root.level() != child.level() || root.at() == child.at() {
            let (at, what) = (child.at().offset(), "node to post is not a sibling of the root");
            let (expected, found) = (u64::from(root.level()), u64::from(child.level()));
            return Err(Corrupt { at, what, expected, found }.into());
        }
        let at = self.pool.reserve(Self::NODE_BYTES)?;
        let word = K::store_separator(&self.pool, key)
            .inspect_err(|_| self.pool.release(at, Self::NODE_BYTES))?;
        let header = NodeHeader { sibling: PmPtr::NULL, low: 0, level: root.level() + 1 };
        let children = [(0, root.at()), (word, child.at())];
        let entries = children.map(|(key, at)| Entry::plain(key, at.offset()));
        ShiftNode::<M, S::Form, NODE>::create(&self.pool, at, header, &entries)?;
        let medium = self.pool.medium();
        medium.commit(&words[ROOT], at.offset(), medium.fence());
        S::Form::before_flush(medium);
        let _ = medium.persist(&words[..=ROOT]);
        Ok(true)
    }
}
