//! Bulk loads: a chain of new leaves takes the place of the only, empty leaf by one store to the
//! root block; the inner nodes are built anew.

use super::{Hybrid, HybridSpec, ROOT_WORDS};
use crate::bulk::{LeafLoader, LoadedBlocks, NewLeaf, filled, offset_of, write_leaves};
use crate::index::TreeError;
use crate::inner::{InnerNodes, SeparatedLeaf};
use crate::key::Key;
use crate::leaf::{Leaf, TaggedEntry};
use bristlecone_pmem::{Medium, PmPtr, Pool, PoolError};

impl<S: HybridSpec, M: Medium, K: Key> LeafLoader<M, K> for Hybrid<S, M, K> {
    fn loader_pool(&self) -> &Pool<M> {
        &self.pool
    }

    fn reserve_new_leaf(&self) -> Result<PmPtr, PoolError> {
        self.pool.reserve(Self::LEAF_BYTES)
    }

    fn write_new_leaf(
        &self,
        leaf: NewLeaf,
        next: Option<NewLeaf>,
        entries: &[TaggedEntry],
    ) -> Result<(), TreeError> {
        let words = self.pool.words(leaf.at, S::Leaf::WORDS)?;
        Ok(S::Leaf::format::<K, M>(
            &self.pool,
            words,
            leaf.low(),
            offset_of(next).offset(),
            entries,
        )?)
    }
}

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// Fills the empty index with `pairs`, and each leaf to `fill_percent` of its capacity.
    ///
    /// ```text
    /// N leaves, low keys, key records       crash before C: the index is empty
    /// |
    /// C first leaf in the root block        8 B
    /// F root block |                        -> durable   budget: lines of the leaves + 1, 2 fences
    /// ```
    pub(super) fn load_pairs(
        &self,
        pairs: &mut dyn Iterator<Item = (K::Owned, u64)>,
        fill_percent: u32,
    ) -> Result<(), TreeError> {
        let most = filled(S::Leaf::CAPACITY, fill_percent);
        let mut blocks = LoadedBlocks::default();
        let shown = write_leaves(self, pairs, most, &mut blocks).and_then(|leaves| {
            let separated = |leaf: NewLeaf| SeparatedLeaf {
                prefix: leaf.prefix,
                word: leaf.low(),
                leaf: leaf.at.offset(),
            };
            self.show(&leaves.into_iter().map(separated).collect::<Vec<_>>())
        });
        shown.inspect_err(|_| blocks.free::<K, M>(&self.pool, Self::LEAF_BYTES))
    }

    /// Makes `leaves` the leaves of the index, if it is still empty.
    fn show(&self, leaves: &[SeparatedLeaf]) -> Result<(), TreeError> {
        let guard = self.pool.pin();
        let root = &self.pool.words(self.root, ROOT_WORDS)?[0];
        let (leaf, latch_guard) = self.latch_leaf(K::borrow(&K::least()))?;
        let is_only = self.load(root) == leaf.at.offset() && self.next(&leaf).is_null();
        if !is_only || S::Leaf::count(self.pool.medium(), leaf.words) > 0 {
            return Err(TreeError::NotEmpty);
        }
        let first = leaves[0].leaf;
        let is_shown = self.inner.load::<K>(&self.pool, leaf.at, leaves, &mut || {
            self.publish(root, first);
            true
        })?;
        if !is_shown {
            return Err(TreeError::NotEmpty);
        }
        latch_guard.obsolete();
        self.pool.retire(leaf.at, Self::LEAF_BYTES, &guard);
        Ok(())
    }
}
