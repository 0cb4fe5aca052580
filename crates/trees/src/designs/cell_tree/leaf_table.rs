//! The read side of leaves; see [`leaf_table`](crate::leaf_table). The index of a row is the offset
//! of its leaf.

use super::CellTreeIndex;
use super::leaf::CellLeaf;
use super::rows::{LeafWords, Notes};
use crate::inner::Inner;
use crate::key::Key;
use crate::leaf_table::{KeyedEntries, LeafTable, RowCopy, check_range};
use crate::sorting::sort_pairs;
use bristlecone_pmem::sync::{Latch, OnDram};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool};

impl<M: Medium, K: Key, const BYTES: usize> LeafTable for CellTreeIndex<M, K, BYTES> {
    type Medium = M;
    type Key = K;
    type Inner = Inner<M>;
    type Row<'a> = LeafWords<'a>;

    #[inline(always)]
    fn pool(&self) -> &Pool<M> {
        &self.pool
    }
    #[inline(always)]
    fn inner(&self) -> &Inner<M> {
        &self.inner
    }
    #[inline(always)]
    fn row(&self, index: usize) -> (LeafWords<'_>, Latch<OnDram<'_, M>>) {
        let row = self.rows.row(PmPtr::new(index as u64), BYTES);
        (row, row.latch())
    }

    #[inline(always)]
    fn find(&self, row: LeafWords<'_>, key: K::Ref<'_>) -> Result<Option<u64>, Corrupt> {
        let (leaf, hash) = (self.leaf(row)?, K::hash(key));
        let candidates = Self::candidates(hash);
        leaf.prefetch(self.pool.medium(), candidates);
        let found = leaf.find::<K, M>(&self.pool, candidates, hash, key)?;
        Ok(found.map(|found| found.entry.value))
    }
    fn prefetch<'a, 'k>(
        &'a self,
        places: impl Iterator<Item = (LeafWords<'a>, K::Ref<'k>)> + Clone,
    ) {
        for (row, key) in places {
            self.prefetch_cells(row, key);
        }
    }
    fn copy(&self, row: LeafWords<'_>) -> Result<RowCopy<K>, Corrupt> {
        let (leaf, medium) = (self.leaf(row)?, self.pool.medium());
        leaf.prefetch_all(medium);
        let low = K::read(&self.pool, leaf.low(medium)?)?;
        let high = high_of::<K, M>(&self.pool, leaf, BYTES)?.map(|(_, high)| high);
        let pairs = sorted_entries::<K, M>(&self.pool, leaf, row.notes::<M>())?;
        check_range::<K>(leaf.at, &pairs, &low, high.as_ref())?;
        Ok(RowCopy { at: leaf.at, pairs, low, high })
    }
}

impl<M: Medium, K: Key, const BYTES: usize> CellTreeIndex<M, K, BYTES> {
    /// Prefetches the first two candidates of `key` in the leaf of `row`.
    #[inline(always)]
    pub(super) fn prefetch_cells(&self, row: LeafWords<'_>, key: K::Ref<'_>) {
        if let Ok(leaf) = self.leaf(row) {
            leaf.prefetch(self.pool.medium(), Self::candidates(K::hash(key)));
        }
    }
}

/// Returns the entries of a leaf with their keys, in key order, except for those that `notes`
/// hides.
pub(super) fn sorted_entries<K: Key, M: Medium>(
    pool: &Pool<M>,
    leaf: CellLeaf<'_>,
    notes: Notes,
) -> Result<KeyedEntries<K>, Corrupt> {
    let mut pairs = Vec::new();
    for placed in leaf.entries(pool.medium(), notes) {
        pairs.push((K::read_entry(pool, placed.entry)?, placed.entry));
    }
    sort_pairs(&mut pairs);
    Ok(pairs)
}

/// Returns the right neighbour of `leaf` and its low key; `None` for the last leaf.
pub(super) fn high_of<'p, K: Key, M: Medium>(
    pool: &'p Pool<M>,
    leaf: CellLeaf<'_>,
    bytes: usize,
) -> Result<Option<(CellLeaf<'p>, K::Owned)>, Corrupt> {
    let next = leaf.next(pool.medium());
    if next.is_null() {
        return Ok(None);
    }
    let next = CellLeaf::new(pool, next, bytes)?;
    let low = K::read(pool, next.low(pool.medium())?)?;
    Ok(Some((next, low)))
}
