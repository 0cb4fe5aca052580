//! Insert, update, upsert and remove.

use super::descend::{DescentState, LatchedNode};
use super::merge::Unlinked;
use super::{FastFairSpec, FastFairTree};
use crate::index::{TreeError, WriteMode};
use crate::key::{self, Entry, Key};
use bristlecone_pmem::{Corrupt, Defect, Medium, PoolError};

impl<M: Medium, K: Key, S: FastFairSpec, const NODE: usize> FastFairTree<M, K, S, NODE> {
    /// Latches the leaf whose key range contains `key`.
    fn lock_leaf(
        &self,
        key: K::Ref<'_>,
        state: &mut DescentState,
    ) -> Result<LatchedNode<'_, M, S::Form, NODE>, Corrupt> {
        loop {
            // Level 0 always exists, so the loop ends in its first round.
            if let Some(latched) = self.lock(key, 0, state)? {
                return Ok(latched);
            }
        }
    }

    /// ```text
    /// N key's record |          only if the layer has records; crash: the record is free again
    /// node: insert | update     as `ShiftNode`; if the leaf is full, a split before it
    ///                           -> durable   budget: theirs
    /// post separators           after a crash, the next writer that passes posts the missing ones
    /// ```
    pub(super) fn put(
        &self,
        key: K::Ref<'_>,
        value: u64,
        mode: WriteMode,
    ) -> Result<Option<u64>, TreeError> {
        let guard = self.pool.pin();
        let mut state = DescentState::default();
        let LatchedNode { node, held, pos } = self.lock_leaf(key, &mut state)?;
        if pos.equal {
            let former = node.value(pos.index);
            if mode != WriteMode::Insert {
                let _ = node.update(pos.index, value);
            }
            return Ok(Some(former));
        }
        if mode == WriteMode::Update {
            return Ok(None);
        }
        let word = self.store_key(key)?;
        let split = self.insert_or_split(&node, pos.index, Entry::plain(word, value));
        drop(held);
        if M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::LinkLate) {
            let _ = self.pool.medium().persist(node.words());
        }
        let split = split.inspect_err(|_| key::free_separator::<K, M>(&self.pool, word))?;
        // The pair is durable, and a separator is only a shortcut, so a full pool is not an error
        // here.
        if let Some(at) = split {
            ignore_full(self.post(at, &guard))?;
        }
        if let Some(reached) = state.unposted {
            ignore_full(self.post_reached(reached, &guard))?;
        }
        Ok(None)
    }

    /// Returns the key word for `key`. Its record, if the layer has records, is durable.
    pub(super) fn store_key(&self, key: K::Ref<'_>) -> Result<u64, PoolError> {
        let word = K::store_separator(&self.pool, key)?;
        if !K::EXACT {
            // The store that commits the word may come before the next fence.
            let _ = self.pool.medium().fence();
        }
        Ok(word)
    }

    /// ```text
    /// node: remove              -> durable   budget: [`ShiftNode::remove`]'s
    /// merge                     only if the leaf has become sparse
    /// ```
    pub(super) fn remove_entry(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        let guard = self.pool.pin();
        let mut state = DescentState::default();
        let LatchedNode { node, held, pos } = self.lock_leaf(key, &mut state)?;
        if !pos.equal {
            return Ok(None);
        }
        let Entry { key: word, value, .. } = node.entry(pos.index);
        let count = node.count_from(pos.index);
        self.shift_out(&node, pos.index, count);
        drop(held);
        key::retire::<K, M>(&self.pool, word, &guard)?;
        if count == 1 || count - 1 == Self::SPARSE_MAX {
            let mut unlinked = Unlinked::new();
            let merged = self.merge(0, K::to_owned(key), &mut unlinked);
            for (block, bytes) in unlinked {
                self.pool.retire(block, bytes, &guard);
            }
            merged?;
        }
        if let Some(reached) = state.unposted {
            ignore_full(self.post_reached(reached, &guard))?;
        }
        Ok(Some(value))
    }
}

/// Turns an error of a full pool into `Ok`, for steps that the tree can do without.
pub(super) fn ignore_full(done: Result<(), TreeError>) -> Result<(), TreeError> {
    match done {
        Err(TreeError::Pool(PoolError::Full { .. })) => Ok(()),
        other => other,
    }
}
