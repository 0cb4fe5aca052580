//! Remove, and unlinking a leaf without entries.

use super::CellTreeIndex;
use super::rows::LeafWords;
use super::write::Latched;
use crate::index::TreeError;
use crate::inner::{Direction, InnerNodes};
use crate::key::{self, Key};
use crate::leaf_table::{LeafTable, latch_leaf};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Defect, Medium};

impl<M: Medium, K: Key, const BYTES: usize> CellTreeIndex<M, K, BYTES> {
    /// Removes `key` and returns its value. Unlinks the leaf if it has no entry left, unless it is
    /// the first one. Durable on return.
    ///
    /// ```text
    /// A cell remove     8 B
    /// F cell |          -> durable      budget: 1 line, 1 fence
    /// ```
    pub(super) fn remove_key(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        let guard = self.pool.pin();
        let hash = K::hash(key);
        let (row, held) = latch_leaf(self, key, |row| self.prefetch_cells(row, key))?;
        let (leaf, medium) = (self.leaf(row)?, self.pool.medium());
        let found = leaf.find::<K, M>(&self.pool, Self::candidates(hash), hash, key)?;
        let Some(found) = found else { return Ok(None) };
        leaf.cell(found.cell).remove(medium, found.slot, found.entry);
        let notes = row.notes::<M>();
        let count = notes.count().saturating_sub(1);
        row.set_notes::<M>(notes.with_count(count));
        drop(held);
        key::retire_entry::<K, M>(&self.pool, found.entry, &guard)?;
        if count == 0 && row.at != self.first {
            // The remove is durable. Damage that this meets is in another node, and the next
            // operation that reads that node reports it.
            let _ = self.unlink_empty(key, row, &guard);
        }
        Ok(Some(found.entry.value))
    }

    /// Unlinks the leaf of `row`, which has covered `key`, unless it has entries again or is
    /// unlinked already.
    #[cold]
    fn unlink_empty(
        &self,
        key: K::Ref<'_>,
        row: LeafWords<'_>,
        guard: &Guard,
    ) -> Result<(), Corrupt> {
        loop {
            let (current, held) = latch_leaf(self, key, |_| ())?;
            if current.at != row.at || current.notes::<M>().count() != 0 {
                return Ok(());
            }
            let word = self.leaf(current)?.low(self.pool.medium())?;
            let low = K::read(&self.pool, word)?;
            drop(held); // Latches are taken from left to right.
            if let Some(left) = self.latch_left(K::borrow(&low))?
                && self.unlink(left, current, (K::borrow(&low), word), guard)?
            {
                return Ok(());
            }
        }
    }

    /// Latches the leaf that covers the keys just below `low`. Returns `None` if another thread
    /// changed it meanwhile.
    fn latch_left(&self, low: K::Ref<'_>) -> Result<Option<Latched<'_, M>>, Corrupt> {
        let route = self.inner.seek::<K>(&self.pool, low, Direction::Below)?;
        let (left, latch) = self.row(route.leaf.offset() as usize);
        let Some(version) = latch.read() else { return Ok(None) };
        if !self.inner.is_current(&route) {
            return Ok(None);
        }
        Ok(latch.upgrade(version).map(|held| (left, held)))
    }

    /// Unlinks the leaf of `row`, an empty one with the low key `low`, whose word is `word`, from
    /// its latched left neighbour, which takes over its range. Returns `false` if another thread
    /// has changed one of them. Durable on return.
    ///
    /// ```text
    /// A clear_hidden of left      hidden entries would count again in the wider range
    /// C next of left, F header |  -> durable     budget: those cells + 1 lines, 2 fences, or 1
    /// ```
    fn unlink(
        &self,
        (left, _left_held): Latched<'_, M>,
        row: LeafWords<'_>,
        (low, word): (K::Ref<'_>, u64),
        guard: &Guard,
    ) -> Result<bool, Corrupt> {
        let medium = self.pool.medium();
        let left_leaf = self.leaf(left)?;
        if left_leaf.next(medium) != row.at {
            return Ok(false);
        }
        let Some(_held) = row.latch::<M>().lock() else { return Ok(false) };
        if row.notes::<M>().count() != 0 {
            return Ok(false);
        }
        if !(M::INJECTS_DEFECTS && medium.injects(Defect::HiddenKept)) {
            self.clear_hidden(left, left_leaf);
        }
        left_leaf.set_next(medium, self.leaf(row)?.next(medium));
        let _ = medium.fence();
        self.inner.unlink::<K>(&self.pool, low, row.at)?;
        self.pool.retire(row.at, BYTES as u64, guard);
        key::retire::<K, M>(&self.pool, word, guard)?;
        Ok(true)
    }
}
