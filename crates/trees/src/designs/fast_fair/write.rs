//! Changes of one leaf: insert, update, upsert, remove.

use super::FastFairTree;
use super::descend::{Locked, Trail};
use super::merge::Unlinked;
use crate::index::TreeError;
use crate::key::{self, Entry, Key};
use crate::leaf::sorted_shift::ShiftNode;
use bristlecone_pmem::sync::pin;
use bristlecone_pmem::{Corrupt, Defect, Medium, PoolError};

/// What to do about a key that is there, or is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// Add; leave what is there.
    Insert,
    /// Replace; add nothing.
    Update,
    /// Either.
    Upsert,
}

impl<M: Medium, K: Key, const NODE: usize> FastFairTree<M, K, NODE> {
    /// Latches the leaf to which `key` belongs.
    fn lock_leaf(
        &self,
        key: K::Ref<'_>,
        trail: &mut Trail,
    ) -> Result<Locked<'_, M, NODE>, Corrupt> {
        loop {
            // Every tree has leaves: this comes out of the first turn.
            if let Some(locked) = self.lock(key, 0, trail)? {
                return Ok(locked);
            }
        }
    }

    /// ```text
    /// N key's record |          only if the layer has records; crash: free again
    /// node: insert | update     [`ShiftNode::insert`], [`ShiftNode::update`], a split before it if need be
    ///                           -> durable   budget: theirs
    /// post separators           whatever a crash leaves undone is done by recovery
    /// ```
    pub(super) fn put(
        &self,
        key: K::Ref<'_>,
        value: u64,
        put: Put,
    ) -> Result<Option<u64>, TreeError> {
        let guard = pin();
        let mut trail = Trail::default();
        let Locked { node, held, place } = self.lock_leaf(key, &mut trail)?;
        if place.equal {
            let former = node.value(place.index);
            if put != Put::Insert {
                let _ = node.update(place.index, value);
            }
            return Ok(Some(former));
        }
        if put == Put::Update {
            return Ok(None);
        }
        let word = self.store_key(key)?;
        let split = self.add(&node, place.index, Entry::plain(word, value));
        drop(held);
        if M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::LinkLate) {
            let _ = self.pool.medium().persist(node.words());
        }
        let split = split.inspect_err(|_| key::free_separator::<K, M>(&self.pool, word))?;
        // The key is durable. That the pool has no room for a separator is no reason to say else.
        for at in [split, trail.missed].into_iter().flatten() {
            forgive_full(self.post(at, &guard))?;
        }
        Ok(None)
    }

    /// The word for `key`, with a record that is durable, if the layer has records.
    pub(super) fn store_key(&self, key: K::Ref<'_>) -> Result<u64, PoolError> {
        let word = K::store_separator(&self.pool, key)?;
        if !K::EXACT {
            // What commits the word may come before any other fence.
            let _ = self.pool.medium().fence();
        }
        Ok(word)
    }

    /// ```text
    /// node: remove              -> durable   budget: [`ShiftNode::remove`]'s
    /// merge                     only if the leaf has become sparse
    /// ```
    pub(super) fn take(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        let guard = pin();
        let mut trail = Trail::default();
        let Locked { node, held, place } = self.lock_leaf(key, &mut trail)?;
        if !place.equal {
            return Ok(None);
        }
        let Entry { key: word, value, .. } = node.entry(place.index);
        let count = node.count_from(place.index);
        let _ = node.remove(place.index, count);
        drop(held);
        key::retire::<K, M>(&self.pool, word, &guard)?;
        if count == 1 || count - 1 == ShiftNode::<M, NODE>::CAPACITY / 4 {
            let mut unlinked = Unlinked::new();
            let merged = self.merge(0, K::to_owned(key), &mut unlinked);
            for (block, bytes) in unlinked {
                self.pool.retire(block, bytes, &guard);
            }
            merged?;
        }
        if let Some(at) = trail.missed {
            forgive_full(self.post(at, &guard))?;
        }
        Ok(Some(value))
    }
}

/// Lets a full pool pass: what could not be added can be done without.
pub(super) fn forgive_full(done: Result<(), TreeError>) -> Result<(), TreeError> {
    match done {
        Err(TreeError::Pool(PoolError::Full { .. })) => Ok(()),
        other => other,
    }
}
