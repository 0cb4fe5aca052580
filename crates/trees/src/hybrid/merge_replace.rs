//! Replacing two sparse leaves by one new leaf.
//!
//! 1. A thread latches the left neighbour, then the two leaves, from left to right, and only then
//!    the inner node above them. It holds all four until the new leaf is durable and linked. So the
//!    latch order of the engine holds, and no other thread changes one of the two links that the
//!    new leaf takes over.
//! 2. Both leaves are under one inner node, as the paper of Isle-Tree has it. So one change of that
//!    node replaces both.

use super::{Hybrid, HybridSpec, LeafRef};
use crate::index::TreeError;
use crate::inner::InnerNodes;
use crate::key::Key;
use crate::leaf::{Leaf, TaggedEntry};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PoolError};

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// Merges the leaf that covers `key` with a neighbour if both are sparse, and the merged leaf
    /// with the next one for as long as that is sparse too. The caller holds no latch.
    #[cold]
    pub(super) fn merge_by_replacement(
        &self,
        key: K::Ref<'_>,
        guard: &Guard,
    ) -> Result<(), TreeError> {
        loop {
            let [left, leaf, right] = self.inner.siblings::<K>(&self.pool, key)?;
            let is_sparse = |at: PmPtr| -> Result<bool, Corrupt> {
                Ok(S::Leaf::count(self.pool.medium(), self.leaf(at)?.words) <= Self::SPARSE_MAX)
            };
            let mut is_merged = false;
            for (left, right) in [left.zip(leaf), leaf.zip(right)].into_iter().flatten() {
                // Read without a latch: only a hint that spares most attempts their latches.
                if !is_sparse(left)? || !is_sparse(right)? {
                    continue;
                }
                is_merged = match self.merge_into_fresh(left, right, guard) {
                    // A remove must not need space; the leaves stay sparse.
                    Err(TreeError::Pool(PoolError::Full { .. })) => false,
                    merged => merged?,
                };
                if is_merged {
                    break;
                }
            }
            if !is_merged {
                return Ok(());
            }
        }
    }

    /// Replaces `left` and `right` by one new leaf, if both are sparse and under one inner node.
    /// Returns `true` if it did. Durable on return.
    ///
    /// ```text
    /// |                                     nothing in DRAM or PM reaches what follows
    /// N new leaf |                          crash before C: unreachable, free again
    /// C next of the left neighbour, or the root block's first leaf   8 B
    /// F its line |              -> durable   budget: lines of the leaf + 1, 3 fences
    /// ```
    fn merge_into_fresh(
        &self,
        left: PmPtr,
        right: PmPtr,
        guard: &Guard,
    ) -> Result<bool, TreeError> {
        let (left, right) = (self.leaf(left)?, self.leaf(right)?);
        let low = self.low(&left);
        let before = if low == 0 { None } else { Some(self.latch_left(low)?) };
        // Damage may lead to one of the two leaves itself, and a second latch would wait for ever.
        if before.as_ref().is_some_and(|(at, _)| at.at == left.at || at.at == right.at) {
            return Err(wrong_link(&left, left.at).into());
        }
        let Some(left_guard) = self.latch(&left).lock() else { return Ok(false) };
        let Some(right_guard) = self.latch(&right).lock() else { return Ok(false) };
        let medium = self.pool.medium();
        let counts = [&left, &right].map(|leaf| S::Leaf::count(medium, leaf.words));
        if counts.iter().any(|&count| count > Self::SPARSE_MAX) {
            return Ok(false);
        }
        // The leaves are not obsolete, so they still are neighbours: each replacement of one of the
        // three leaves would have made it obsolete.
        let link = match &before {
            Some((before, _)) => &before.words[S::Leaf::NEXT],
            None => &self.root_words()?[0],
        };
        let linked = match &before {
            Some((before, _)) => self.next(before),
            None => PmPtr::new(self.load(link)),
        };
        if linked != left.at || self.next(&left) != right.at {
            return Err(wrong_link(&left, linked).into());
        }
        let mut entries: Vec<TaggedEntry> = Vec::with_capacity(S::Leaf::CAPACITY);
        for leaf in [&left, &right] {
            entries.extend(self.sorted_entries(leaf)?.into_iter().map(|(_, tagged)| tagged));
        }
        if entries.len() > S::Leaf::CAPACITY {
            let (at, what) = (left.at.offset(), "number of entries of two sparse leaves");
            let (expected, found) = (S::Leaf::CAPACITY as u64, entries.len() as u64);
            return Err(Corrupt { at, what, expected, found }.into());
        }
        let key = K::read(&self.pool, low)?;
        let dropped_low = K::block(&self.pool, self.low(&right))?;
        let pair = (left.at, right.at);
        let is_merged =
            self.inner.replace_two::<K, TreeError>(&self.pool, K::borrow(&key), pair, || {
                let _ = medium.fence(); // the batch of flushes begins
                let fresh = self.write_leaf(low, self.next(&right), &entries)?;
                let to_fresh = match &before {
                    Some(_) => S::Leaf::encode_next(fresh.offset()),
                    None => fresh.offset(),
                };
                self.publish(link, to_fresh);
                Ok(fresh)
            })?;
        if is_merged {
            left_guard.obsolete();
            right_guard.obsolete();
            self.pool.retire(left.at, Self::LEAF_BYTES, guard);
            self.pool.retire(right.at, Self::LEAF_BYTES, guard);
            if let Some((block, bytes)) = dropped_low {
                // Fails only if the record's length is damaged. The block then stays in use until
                // recovery.
                let _ = self.pool.try_retire(block, bytes, guard);
            }
            self.inner.merge_path::<K>(&self.pool, K::borrow(&key))?;
        }
        Ok(is_merged)
    }
}

#[cold]
fn wrong_link(leaf: &LeafRef<'_>, found: PmPtr) -> Corrupt {
    let (at, what) = (leaf.at.offset(), "link of the left neighbour of a leaf");
    Corrupt { at, what, expected: at, found: found.offset() }
}
