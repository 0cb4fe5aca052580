//! Bulk loads: a list of new leaves takes the place of the only leaf, which has no pair, by one
//! store to the root block; buffers and inner nodes are built anew.
//!
//! New leaves get a stamp above that of every log entry, so no entry from before the load counts.

use super::CclBTreeIndex;
use super::layout::{self, CAPACITY, LeafView};
use super::techniques::Techniques;
use crate::bulk::{LeafLoader, LoadedBlocks, NewLeaf, filled, write_leaves};
use crate::index::TreeError;
use crate::inner::{Direction, InnerNodes, SeparatedLeaf};
use crate::key::Key;
use crate::leaf::TaggedEntry;
use crate::leaf_table::latch_leaf;
use bristlecone_pmem::{Medium, PmPtr, Pool, PoolError};

/// An index, and the stamp of the leaves of a load.
struct Loader<'t, M: Medium, K: Key, const BATCH: usize, T> {
    tree: &'t CclBTreeIndex<M, K, BATCH, T>,
    stamp: u64,
}

impl<M: Medium, K: Key, const BATCH: usize, T: Techniques> LeafLoader<M, K>
    for Loader<'_, M, K, BATCH, T>
{
    fn loader_pool(&self) -> &Pool<M> {
        &self.tree.pool
    }

    fn reserve_new_leaf(&self) -> Result<PmPtr, PoolError> {
        self.tree.pool.reserve(layout::BYTES)
    }

    fn write_new_leaf(
        &self,
        leaf: NewLeaf,
        next: Option<NewLeaf>,
        entries: &[TaggedEntry],
    ) -> Result<(), TreeError> {
        let next = next.map_or(0, |next| next.at.offset());
        let image = layout::image(leaf.low(), next, self.stamp, entries);
        self.tree.pool.medium().fill(LeafView::new(&self.tree.pool, leaf.at)?.words, &image);
        Ok(())
    }
}

impl<M: Medium, K: Key, const BATCH: usize, T: Techniques> CclBTreeIndex<M, K, BATCH, T> {
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
        let most = filled(CAPACITY, fill_percent);
        let mut blocks = LoadedBlocks::default();
        let stamp = layout::after(self.empty_leaf()?);
        let shown = write_leaves(&Loader { tree: self, stamp }, pairs, most, &mut blocks)
            .and_then(|leaves| self.show(&leaves, stamp));
        shown.inspect_err(|_| blocks.free::<K, M>(&self.pool, layout::BYTES))
    }

    /// Returns the last stamp of the only leaf.
    ///
    /// # Errors
    /// [`TreeError::NotEmpty`], or damage.
    fn empty_leaf(&self) -> Result<u64, TreeError> {
        let _guard = self.pool.pin();
        let least = K::least();
        let (node, _held) = latch_leaf(self, K::borrow(&least), |_| {})?;
        let leaf = self.leaf(node.leaf::<M>())?;
        if !leaf.next(self.pool.medium()).is_null() || !self.contents(&node, &leaf)?.is_empty() {
            return Err(TreeError::NotEmpty);
        }
        Ok(self.last_stamp(&node, &leaf, node.meta::<M>()))
    }

    /// Makes `leaves` the leaves of the index, if it is still empty and no log entry has their
    /// stamp.
    fn show(&self, leaves: &[NewLeaf], stamp: u64) -> Result<(), TreeError> {
        let guard = self.pool.pin();
        let (pool, medium, least) = (&*self.pool, self.pool.medium(), K::least());
        let (node, held) = latch_leaf(self, K::borrow(&least), |_| {})?;
        let (leaf, meta) = (self.leaf(node.leaf::<M>())?, node.meta::<M>());
        let is_empty = leaf.next(medium).is_null() && self.contents(&node, &leaf)?.is_empty();
        if !is_empty || self.last_stamp(&node, &leaf, meta) >= stamp {
            return Err(TreeError::NotEmpty);
        }
        // The only leaf is latched, so no other takes its place in the inner nodes.
        let only = self.inner.seek::<K>(pool, K::borrow(&least), Direction::Key)?.leaf;
        let separated: Vec<_> = leaves
            .iter()
            .map(|leaf| SeparatedLeaf {
                prefix: leaf.prefix,
                word: leaf.low(),
                leaf: self.buffers.take::<M>(leaf.at) as u64,
            })
            .collect();
        let root = &self.root_words()?[..1];
        let is_shown = self.inner.load::<K>(pool, only, &separated, &mut || {
            medium.commit(&root[0], leaves[0].at.offset(), medium.fence());
            let _ = medium.persist(root);
            true
        })?;
        if !is_shown {
            for leaf in &separated {
                self.buffers.put_back(leaf.leaf as usize);
            }
            return Err(TreeError::NotEmpty);
        }
        let removed: Vec<_> = (0..meta.count()).map(|slot| node.change::<M>(meta, slot)).collect();
        node.keep::<M>(core::iter::empty());
        self.log.count_settled(meta.count());
        // Fails only if the record of a removed key is damaged. It then stays reserved.
        let _ = self.retire_removed(&removed, &guard);
        pool.retire(leaf.at, layout::BYTES, &guard);
        drop(held);
        self.buffers.put_back(only.offset() as usize);
        Ok(())
    }
}
