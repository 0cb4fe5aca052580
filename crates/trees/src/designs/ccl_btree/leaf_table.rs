//! The read side of leaves and their buffers: a buffer node is a row; see
//! [`leaf_table`](crate::leaf_table).

use super::buffer::BufferNode;
use super::techniques::Techniques;
use super::{CclBTreeIndex, InnerFast};
use crate::key::Key;
use crate::leaf_table::{LeafTable, RowCopy, check_range};
use bristlecone_pmem::sync::{Latch, OnDram};
use bristlecone_pmem::{Corrupt, Medium, Pool};

impl<M: Medium, K: Key, const BATCH: usize, T: Techniques> LeafTable
    for CclBTreeIndex<M, K, BATCH, T>
{
    type Medium = M;
    type Key = K;
    type Inner = InnerFast<M>;
    type Row<'a> = BufferNode<'a>;

    #[inline(always)]
    fn pool(&self) -> &Pool<M> {
        &self.pool
    }
    #[inline(always)]
    fn inner(&self) -> &InnerFast<M> {
        &self.inner
    }
    #[inline(always)]
    fn row(&self, index: usize) -> (BufferNode<'_>, Latch<OnDram<'_, M>>) {
        let node = self.node(index);
        (node, node.latch())
    }

    #[inline(always)]
    fn find(&self, node: BufferNode<'_>, key: K::Ref<'_>) -> Result<Option<u64>, Corrupt> {
        let leaf = self.leaf(node.leaf::<M>())?;
        self.pool.medium().prefetch(leaf.words);
        if let Some((slot, meta)) = node.find::<K, M>(&self.pool, key)? {
            return Ok(node.change::<M>(meta, slot).value());
        }
        Ok(leaf.find::<K, M>(&self.pool, key)?.map(|(_, entry)| entry.value))
    }
    /// Prefetches the leaves first, then the key records that the lookups will read.
    fn prefetch<'a, 'k>(
        &'a self,
        places: impl Iterator<Item = (BufferNode<'a>, K::Ref<'k>)> + Clone,
    ) {
        let leaves =
            places.filter_map(|(node, key)| Some((self.leaf(node.leaf::<M>()).ok()?, key)));
        leaves.clone().for_each(|(leaf, _)| self.pool.medium().prefetch(leaf.words));
        if !K::EXACT {
            leaves.for_each(|(leaf, key)| leaf.prefetch_candidates::<K, M>(&self.pool, key));
        }
    }
    fn copy(&self, node: BufferNode<'_>) -> Result<RowCopy<K>, Corrupt> {
        let (pool, medium) = (&*self.pool, self.pool.medium());
        let leaf = self.leaf(node.leaf::<M>())?;
        medium.prefetch(leaf.words);
        let low = K::read(pool, leaf.low(medium))?;
        let next = leaf.next(medium);
        let high =
            if next.is_null() { None } else { Some(K::read(pool, self.leaf(next)?.low(medium))?) };
        let pairs = self.contents(&node, &leaf)?;
        check_range::<K>(leaf.at, &pairs, &low, high.as_ref())?;
        Ok(RowCopy { at: leaf.at, pairs, low, high })
    }
}
