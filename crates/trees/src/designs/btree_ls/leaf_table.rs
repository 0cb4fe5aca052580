//! The read side of leaves, by rows of the mapping table; see [`leaf_table`](crate::leaf_table).

use super::BTreeLsIndex;
use super::chain::FoldedChain;
use super::table::ChainRow;
use super::tuning::LsOptions;
use crate::inner::{Inner, LinearSearch};
use crate::key::Key;
use crate::leaf_table::{EntryChange, LeafTable, RowCopy};
use bristlecone_pmem::sync::{Latch, OnDram};
use bristlecone_pmem::{Corrupt, Medium, Pool};

impl<M: Medium, K: Key, const NODE: usize, T: LsOptions> LeafTable for BTreeLsIndex<M, K, NODE, T> {
    type Medium = M;
    type Key = K;
    type Inner = Inner<M, LinearSearch>;
    type Row<'a> = ChainRow<'a>;

    #[inline(always)]
    fn pool(&self) -> &Pool<M> {
        &self.pool
    }
    #[inline(always)]
    fn inner(&self) -> &Inner<M, LinearSearch> {
        &self.inner
    }
    #[inline(always)]
    fn row(&self, index: usize) -> (ChainRow<'_>, Latch<OnDram<'_, M>>) {
        let row = self.table.row(index);
        (row, row.latch())
    }

    #[inline(always)]
    fn find(&self, row: ChainRow<'_>, key: K::Ref<'_>) -> Result<Option<u64>, Corrupt> {
        row.prefetch::<M, T>(&self.pool);
        Ok(row.find::<K, M>(&self.pool, key)?.and_then(EntryChange::value))
    }
    #[inline]
    fn prefetch<'a, 'k>(
        &'a self,
        places: impl Iterator<Item = (ChainRow<'a>, K::Ref<'k>)> + Clone,
    ) {
        places.for_each(|(row, _)| row.prefetch::<M, T>(&self.pool));
    }
    fn copy(&self, row: ChainRow<'_>) -> Result<RowCopy<K>, Corrupt> {
        let pool = &*self.pool;
        row.prefetch::<M, T>(pool);
        let chain = FoldedChain::<K>::read(pool, row.head::<M>())?;
        let range = chain.base.range(pool.medium());
        let low = K::read(pool, range.low)?;
        let high = range.high.map(|high| K::read(pool, high)).transpose()?;
        let at = chain.base.at;
        chain.contents.check(at, &low, high.as_ref())?;
        Ok(RowCopy { at, pairs: chain.contents.pairs, low, high })
    }
}
