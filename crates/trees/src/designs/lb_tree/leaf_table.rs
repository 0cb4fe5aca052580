//! The read side of leaves, by rows; see [`leaf_table`](crate::leaf_table).

use super::table::LeafRow;
use super::{InnerNodes256, LbTreeIndex};
use crate::key::Key;
use crate::leaf_table::{LeafTable, RowCopy, check_range};
use bristlecone_pmem::sync::{Latch, OnDram};
use bristlecone_pmem::{Corrupt, Medium, Pool};

impl<M: Medium, K: Key> LeafTable for LbTreeIndex<M, K> {
    type Medium = M;
    type Key = K;
    type Inner = InnerNodes256<M>;
    type Row<'a> = LeafRow<'a>;

    #[inline(always)]
    fn pool(&self) -> &Pool<M> {
        &self.pool
    }
    #[inline(always)]
    fn inner(&self) -> &InnerNodes256<M> {
        &self.inner
    }
    #[inline(always)]
    fn row(&self, index: usize) -> (LeafRow<'_>, Latch<OnDram<'_, M>>) {
        let row = self.table.row(index);
        (row, row.latch())
    }

    #[inline(always)]
    fn find(&self, row: LeafRow<'_>, key: K::Ref<'_>) -> Result<Option<u64>, Corrupt> {
        let leaf = self.leaf(row)?;
        leaf.prefetch(self.pool.medium());
        Ok(leaf.find::<K, M>(&self.pool, key)?.map(|(_, entry)| entry.value))
    }
    /// Prefetches the leaves first, then the key records that the lookups will read.
    fn prefetch<'a, 'k>(&'a self, places: impl Iterator<Item = (LeafRow<'a>, K::Ref<'k>)> + Clone) {
        let leaves = places.filter_map(|(row, key)| Some((self.leaf(row).ok()?, key)));
        leaves.clone().for_each(|(leaf, _)| leaf.prefetch(self.pool.medium()));
        if !K::EXACT {
            leaves.for_each(|(leaf, key)| leaf.prefetch_candidates::<K, M>(&self.pool, key));
        }
    }
    fn copy(&self, row: LeafRow<'_>) -> Result<RowCopy<K>, Corrupt> {
        let leaf = self.leaf(row)?;
        leaf.prefetch(self.pool.medium());
        let low = K::read(&self.pool, row.low::<M>())?;
        let high = self.table.next::<M>(row).map(|next| K::read(&self.pool, next.low::<M>()));
        let (high, pairs) = (high.transpose()?, leaf.sorted::<K, M>(&self.pool)?);
        check_range::<K>(leaf.at, &pairs, &low, high.as_ref())?;
        Ok(RowCopy { at: leaf.at, pairs, low, high })
    }
}
