//! The read side of leaves, by rows of the mapping table; see [`leaf_table`](crate::leaf_table).

use super::BTreeLsRIndex;
use super::table::Row;
use super::tuning::Tuning;
use crate::inner::Inner;
use crate::key::Key;
use crate::leaf_table::{EntryChange, LeafTable, RowCopy};
use bristlecone_pmem::sync::{Latch, OnDram};
use bristlecone_pmem::{Corrupt, Medium, Pool};

impl<M: Medium, K: Key, const NODE: usize, T: Tuning> LeafTable for BTreeLsRIndex<M, K, NODE, T> {
    type Medium = M;
    type Key = K;
    type Inner = Inner<M>;
    type Row<'a> = Row<'a>;

    #[inline(always)]
    fn pool(&self) -> &Pool<M> {
        &self.pool
    }
    #[inline(always)]
    fn inner(&self) -> &Inner<M> {
        &self.inner
    }
    #[inline(always)]
    fn row(&self, index: usize) -> (Row<'_>, Latch<OnDram<'_, M>>) {
        let row = self.table.row(index);
        (row, row.latch())
    }

    #[inline(always)]
    fn find(&self, row: Row<'_>, key: K::Ref<'_>) -> Result<Option<u64>, Corrupt> {
        row.prefetch::<K, M>(&self.pool, key);
        Ok(row.find::<K, M>(&self.pool, key)?.and_then(EntryChange::value))
    }
    #[inline]
    fn prefetch<'a, 'k>(&'a self, places: impl Iterator<Item = (Row<'a>, K::Ref<'k>)> + Clone) {
        places.for_each(|(row, key)| row.prefetch::<K, M>(&self.pool, key));
    }
    fn copy(&self, row: Row<'_>) -> Result<RowCopy<K>, Corrupt> {
        let pool = &*self.pool;
        let contents = row.contents::<K, M>(pool)?;
        let range = row.base_in(pool)?.range(pool.medium());
        let low = K::read(pool, range.low)?;
        let high = range.right.map(|_| K::read(pool, range.high)).transpose()?;
        let at = row.base::<M>();
        contents.check(at, &low, high.as_ref())?;
        Ok(RowCopy { at, pairs: contents.pairs, low, high })
    }
}
