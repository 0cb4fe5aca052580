//! Inserts, updates and removes of single pairs.

use super::BTreeNativeIndex;
use super::log::NodeOp;
use super::node::SortedNode;
use crate::index::{TreeError, WriteMode};
use crate::key::{self, Entry, Key};
use crate::linked_leaves::SearchTarget;
use bristlecone_pmem::Medium;

/// The result of an attempt to write a pair into a leaf.
pub(super) enum Put {
    Done(Option<u64>),
    /// The leaf is full and the key absent: split it first.
    Full,
}

impl<M: Medium, K: Key, const NODE: usize> BTreeNativeIndex<M, K, NODE> {
    /// Inserts, updates or upserts, as `mode` says.
    pub(super) fn put(
        &self,
        key: K::Ref<'_>,
        value: u64,
        mode: WriteMode,
    ) -> Result<Option<u64>, TreeError> {
        let _guard = self.pool.pin();
        let leaf = self.latch_leaf(SearchTarget::At(key), true)?;
        match self.put_into(&leaf.node, key, value, mode)? {
            Put::Done(former) => Ok(former),
            Put::Full => {
                drop(leaf);
                self.split_and_put(key, value, mode)
            }
        }
    }

    /// Writes a pair into `leaf`, which is held for writing, unless it would have to split.
    ///
    /// # Persist order
    /// ```text
    /// insert at place p of m entries
    ///   N key's record |         only if the layer has records; crash: free again
    ///   C log record, F |        crash from here on: recovery completes the insert
    ///   W the m - p moved entries, F | each, from the last one on
    ///   W entry[p], F |
    ///   W state, F |             -> durable   budget: m - p + 3 lines, as many fences
    /// update
    ///   C value[p], F |          -> durable   budget: 1 line, 1 fence
    /// ```
    pub(super) fn put_into(
        &self,
        leaf: &SortedNode<'_, M, NODE>,
        key: K::Ref<'_>,
        value: u64,
        mode: WriteMode,
    ) -> Result<Put, TreeError> {
        let state = leaf.state()?;
        let (place, found) = self.search(leaf, state.count, key)?;
        if let Some(entry) = found {
            if mode != WriteMode::Insert {
                let _ = leaf.set_value(place, value);
            }
            return Ok(Put::Done(Some(entry.value)));
        }
        if mode == WriteMode::Update {
            return Ok(Put::Done(None));
        }
        if state.count == SortedNode::<M, NODE>::CAPACITY {
            return Ok(Put::Full);
        }
        let entry = Entry::plain(K::store_entry_key(&self.pool, key, value)?, value);
        if !K::EXACT {
            // The log record that names the word may persist before its own fence.
            let _ = self.pool.medium().fence();
        }
        let (op, seq) = (NodeOp::Insert { place, key: entry.key, value }, state.seq + 1);
        self.logged(op, leaf, seq, |_| {
            Ok(leaf.insert_from(state.count, place, entry, (state.count, seq)))
        })?;
        Ok(Put::Done(None))
    }

    /// Removes `key`. Then merges the leaf with a sibling if few entries are left.
    ///
    /// # Persist order
    /// ```text
    /// C log record, F |          crash from here on: recovery completes the removal
    /// W the m - p - 1 moved entries, F | each, from the first one on
    /// W state, F |               -> durable   budget: m - p + 1 lines, as many fences
    /// merge                      only if a quarter of the places or less is in use
    /// ```
    pub(super) fn remove_entry(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        let guard = self.pool.pin();
        let leaf = self.latch_leaf(SearchTarget::At(key), true)?;
        let state = leaf.node.state()?;
        let (place, found) = self.search(&leaf.node, state.count, key)?;
        let Some(entry) = found else { return Ok(None) };
        let (op, seq) = (NodeOp::Remove { place }, state.seq + 1);
        self.logged(op, &leaf.node, seq, |fenced| {
            Ok(leaf.node.remove_from(place + 1, (state.count, seq), fenced))
        })?;
        drop(leaf);
        // The entry is removed, durably. Damage that is met from here on does not make this fail:
        // the next operation that reads it reports it.
        let _ = key::retire_entry::<K, M>(&self.pool, entry, &guard);
        if Self::is_sparse(state.count - 1) {
            let _ = self.shrink(key, &guard);
        }
        Ok(Some(entry.value))
    }
}
