//! The read side of leaves; see [`leaf_table`](crate::leaf_table). The index of a row is the offset
//! of its leaf.

use super::CellTreeIndex;
use super::leaf::{CellLeaf, Placed};
use super::rows::{LeafWords, Notes};
use super::word::{CellKind, CellLayout, DenseCells, PairCells, WideCells, with_kind};
use crate::inner::Inner;
use crate::key::{Key, Value};
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
        let row = self.row_at(PmPtr::new(index as u64));
        (row, row.latch())
    }

    #[inline(always)]
    fn visit(&self, row: LeafWords<'_>) -> Result<(), Corrupt> {
        if row.is_unvisited() { self.visit_first(row) } else { Ok(()) }
    }
    /// A leaf as a whole: a key may be absent because an entry of any cell has gone.
    #[inline(always)]
    fn note_read(&self, row: LeafWords<'_>) {
        if let Ok(leaf) = self.leaf(row) {
            self.pool.medium().note_read(leaf.words());
        }
    }
    #[inline(always)]
    fn find(&self, row: LeafWords<'_>, key: K::Ref<'_>) -> Result<Option<u64>, Corrupt> {
        Ok(self.find_value(row, key)?.map(|value| value.word))
    }
    #[inline(always)]
    fn find_value(&self, row: LeafWords<'_>, key: K::Ref<'_>) -> Result<Option<Value>, Corrupt> {
        let (leaf, hash) = (self.leaf(row)?, K::hash(key));
        let candidates = Self::candidates(hash);
        leaf.prefetch(self.pool.medium(), candidates);
        let notes = row.notes::<M>();
        if notes.kind::<K>() == CellKind::Dense {
            return self.find_dense(row, notes, key);
        }
        let place = (candidates, hash);
        let found = if K::HAS_ENCODINGS {
            leaf.find::<PairCells, K, M>(&self.pool, (row, notes), place, key)?
        } else {
            leaf.find::<WideCells, K, M>(&self.pool, (row, notes), place, key)?
        };
        Ok(found.map(|found| found.entry.held_value()))
    }
    #[inline(always)]
    fn prefetch_row(&self, index: usize, key: K::Ref<'_>) {
        let row = self.row_at(PmPtr::new(index as u64));
        row.prefetch();
        self.prefetch_cells(row, key);
    }
    /// Does nothing: a key's cells follow from the offset of its leaf.
    fn prefetch<'a, 'k>(&'a self, _: impl Iterator<Item = (LeafWords<'a>, K::Ref<'k>)> + Clone) {}
    /// For keys whose prefixes are not in their entries; see [`scan`](super::scan) for others.
    /// Prefetches the right neighbour, too: a scan copies it next.
    fn copy(&self, row: LeafWords<'_>) -> Result<RowCopy<K>, Corrupt> {
        let (leaf, medium) = (self.leaf(row)?, self.pool.medium());
        leaf.prefetch_all(medium);
        if let Some(next) = leaf.right::<M>(&self.pool, BYTES)? {
            self.rows.prefetch(next.at, BYTES);
            next.prefetch_all(medium);
        }
        let pairs = sorted_entries::<K, M>(&self.pool, leaf, row.notes::<M>())?;
        let low = K::read(&self.pool, leaf.low(medium)?)?;
        let high = high_of::<K, M>(&self.pool, leaf, BYTES)?.map(|(_, high)| high);
        check_range::<K>(leaf.at, &pairs, &low, high.as_ref())?;
        Ok(RowCopy { at: leaf.at, pairs, low, high })
    }
}

impl<M: Medium, K: Key, const BYTES: usize> CellTreeIndex<M, K, BYTES> {
    /// As [`find`](LeafTable::find), in a dense leaf. It is apart, see [`with_kind`], and shares no
    /// variable with it.
    #[inline(never)]
    fn find_dense(
        &self,
        row: LeafWords<'_>,
        notes: Notes,
        key: K::Ref<'_>,
    ) -> Result<Option<Value>, Corrupt> {
        let hash = K::hash(key);
        let (leaf, place) = (self.leaf(row)?, (Self::candidates(hash), hash));
        let found = leaf.find::<DenseCells, K, M>(&self.pool, (row, notes), place, key)?;
        Ok(found.map(|found| found.entry.held_value()))
    }

    /// Prefetches the near cells of `key` in the leaf of `row`.
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
    with_kind!(notes.kind::<K>(), C => sorted_entries_of::<C, K, M>(pool, leaf, notes))
}

fn sorted_entries_of<C: CellLayout, K: Key, M: Medium>(
    pool: &Pool<M>,
    leaf: CellLeaf<'_>,
    notes: Notes,
) -> Result<KeyedEntries<K>, Corrupt> {
    let mut pairs = Vec::with_capacity(leaf.capacity::<C>());
    leaf.entries::<C, M>(pool.medium(), notes).try_for_each(|Placed { entry, .. }| {
        pairs.push((K::read_entry(pool, entry)?, entry));
        Ok(())
    })?;
    sort_pairs(&mut pairs);
    Ok(pairs)
}

/// Returns the right neighbour of `leaf` and its low key; `None` for the last leaf.
#[inline]
pub(super) fn high_of<'p, K: Key, M: Medium>(
    pool: &'p Pool<M>,
    leaf: CellLeaf<'_>,
    bytes: usize,
) -> Result<Option<(CellLeaf<'p>, K::Owned)>, Corrupt> {
    let Some(next) = leaf.right(pool, bytes)? else { return Ok(None) };
    let low = K::read(pool, next.low(pool.medium())?)?;
    Ok(Some((next, low)))
}
