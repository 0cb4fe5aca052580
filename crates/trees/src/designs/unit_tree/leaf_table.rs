//! The read side of leaves; see [`leaf_table`](crate::leaf_table).

use super::UnitTreeIndex;
use super::rows::UnitRow;
use super::unit::UnitLeaf;
use crate::inner::Inner;
use crate::key::Key;
use crate::leaf_table::{EntryChange, KeyedEntries, LeafTable, RowCopy, check_range};
use bristlecone_pmem::sync::{Latch, OnDram};
use bristlecone_pmem::{Corrupt, Medium, Pool};

impl<M: Medium, K: Key, const BYTES: usize> LeafTable for UnitTreeIndex<M, K, BYTES> {
    type Medium = M;
    type Key = K;
    type Inner = Inner<M>;
    type Row<'a> = UnitRow<'a>;

    #[inline(always)]
    fn pool(&self) -> &Pool<M> {
        &self.pool
    }
    #[inline(always)]
    fn inner(&self) -> &Inner<M> {
        &self.inner
    }
    #[inline(always)]
    fn row(&self, number: usize) -> (UnitRow<'_>, Latch<OnDram<'_, M>>) {
        let row = self.rows.row(number);
        (row, row.latch())
    }
    #[inline(always)]
    fn find(&self, row: UnitRow<'_>, key: K::Ref<'_>) -> Result<Option<u64>, Corrupt> {
        let (leaf, hash) = (self.leaf(row)?, K::hash(key));
        self.prefetch_home(row, hash);
        Ok(self.key_state(row, leaf, (key, hash))?.value())
    }
    #[inline(always)]
    fn prefetch_row(&self, number: usize, _key: K::Ref<'_>) {
        self.rows.prefetch(number);
    }
    /// Prefetches the home units.
    fn prefetch<'a, 'k>(&'a self, places: impl Iterator<Item = (UnitRow<'a>, K::Ref<'k>)> + Clone) {
        places.for_each(|(row, key)| self.prefetch_home(row, K::hash(key)));
    }
    fn copy(&self, row: UnitRow<'_>) -> Result<RowCopy<K>, Corrupt> {
        let (pool, medium) = (&*self.pool, self.pool.medium());
        let leaf = self.leaf(row)?;
        medium.prefetch(leaf.words);
        let low = K::read(pool, leaf.low(medium)?)?;
        let next = leaf.next(medium)?;
        let high = if next.is_null() {
            None
        } else {
            Some(K::read(pool, UnitLeaf::<BYTES>::new(pool, next)?.low(medium)?)?)
        };
        let pairs = self.contents(row, leaf)?;
        check_range::<K>(leaf.at, &pairs, &low, high.as_ref())?;
        Ok(RowCopy { at: leaf.at, pairs, low, high })
    }
}

impl<M: Medium, K: Key, const BYTES: usize> UnitTreeIndex<M, K, BYTES> {
    /// Returns the pairs of a leaf: its entries, and the changes that its row refers to. A writer
    /// may run at the same time.
    pub(super) fn contents(
        &self,
        row: UnitRow<'_>,
        leaf: UnitLeaf<'_, BYTES>,
    ) -> Result<KeyedEntries<K>, Corrupt> {
        let mut pairs = leaf.sorted::<K, M>(&self.pool)?;
        for at in 0..row.pending::<M>().count {
            let EntryChange { entry, is_removed } =
                self.log.change(&self.pool, row.position::<M>(at))?;
            let key = K::read_entry(&self.pool, entry)?;
            match (pairs.binary_search_by(|(other, _)| other.cmp(&key)), is_removed) {
                (Ok(at), false) => pairs[at].1 = entry,
                (Err(at), false) => pairs.insert(at, (key, entry)),
                (Ok(at), true) => {
                    pairs.remove(at);
                }
                (Err(_), true) => {}
            }
        }
        Ok(pairs)
    }
}
