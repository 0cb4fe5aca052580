//! Remove, and merging a leaf with few entries into its left neighbour.

use super::CellTreeIndex;
use super::check::disagreement;
use super::leaf::{CellLeaf, Placed};
use super::rows::LeafWords;
use super::write::Latched;
use crate::index::TreeError;
use crate::inner::{Direction, InnerNodes};
use crate::key::{self, Key};
use crate::leaf_table::{LeafTable, latch_leaf};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Defect, Medium};

impl<M: Medium, K: Key, const BYTES: usize> CellTreeIndex<M, K, BYTES> {
    /// The number of entries from which on a leaf is merged into its left neighbour.
    const SPARSE: usize = Self::CAPACITY / 8;
    /// The largest number of entries of a merged leaf.
    const MERGED_MAX: usize = Self::CAPACITY / 2;

    /// Removes `key` and returns its value. Merges the leaf if it has few entries left, unless it
    /// is the first one. Durable on return.
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
        let notes = row.notes::<M>();
        let found = leaf.find::<K, M>(&self.pool, notes, (Self::candidates(hash), hash), key)?;
        let Some(found) = found else { return Ok(None) };
        leaf.cell(found.cell).remove(medium, found.slot, found.entry);
        let count = notes.count().saturating_sub(1);
        row.set_notes::<M>(notes.with_count(count));
        drop(held);
        key::retire_entry::<K, M>(&self.pool, found.entry, &guard)?;
        // The left neighbour may have too many entries, so this tries at some counts, down to 0.
        let is_sparse = count <= Self::SPARSE && (count == 0 || count.is_power_of_two());
        if is_sparse && row.at != self.first {
            // The remove is durable. Damage that this meets is in another node, and the next
            // operation that reads that node reports it.
            let _ = self.merge_sparse(key, row, &guard);
        }
        Ok(Some(found.entry.value))
    }

    /// Merges the leaf of `row`, which has covered `key`, into its left neighbour, unless the two
    /// have too many entries or the leaf is unlinked already.
    #[cold]
    fn merge_sparse(
        &self,
        key: K::Ref<'_>,
        row: LeafWords<'_>,
        guard: &Guard,
    ) -> Result<(), Corrupt> {
        loop {
            let (current, held) = latch_leaf(self, key, |_| ())?;
            if current.at != row.at || current.notes::<M>().count() > Self::SPARSE {
                return Ok(());
            }
            let word = self.leaf(current)?.low(self.pool.medium())?;
            let low = K::read(&self.pool, word)?;
            drop(held); // Latches are taken from left to right.
            if let Some(left) = self.latch_left(K::borrow(&low))?
                && self.merge(left, current, (K::borrow(&low), word), guard)?
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

    /// Moves the entries of `row` to its latched left neighbour, which takes over its range, and
    /// unlinks the leaf. `low` is its low key, with the separator word. Does nothing if the two
    /// have too many entries. Returns `false` if another thread has changed one of them. Durable on
    /// return.
    ///
    /// ```text
    /// A clear_hidden of left      hidden entries would count again in the wider range
    /// A add to left |             each entry; crash before C: the low key of the leaf hides it
    /// C next of left, F header |  -> durable     budget: those cells, the entries + 1 lines;
    ///                                            2 fences, and 1 with hidden entries
    /// ```
    fn merge(
        &self,
        (left, _left_held): Latched<'_, M>,
        row: LeafWords<'_>,
        (low, word): (K::Ref<'_>, u64),
        guard: &Guard,
    ) -> Result<bool, Corrupt> {
        let medium = self.pool.medium();
        let (left_leaf, leaf) = (self.leaf(left)?, self.leaf(row)?);
        if left_leaf.next(medium) != row.at {
            return Ok(false);
        }
        let Some(_held) = row.latch::<M>().lock() else { return Ok(false) };
        let (kept, moved) = (left.notes::<M>().count(), row.notes::<M>().count());
        if moved > 0 && kept + moved > Self::MERGED_MAX {
            return Ok(true);
        }
        if !(M::INJECTS_DEFECTS && medium.injects(Defect::HiddenKept)) {
            self.clear_hidden(left, left_leaf);
        }
        self.move_left(leaf, row, (left, left_leaf))?;
        left_leaf.set_next(medium, leaf.next(medium));
        let _ = medium.fence();
        self.inner.unlink::<K>(&self.pool, low, row.at)?;
        self.pool.retire(row.at, BYTES as u64, guard);
        key::retire::<K, M>(&self.pool, word, guard)?;
        Ok(true)
    }

    /// Adds the entries of a latched leaf to its latched left neighbour, which has no hidden
    /// entries. Durable on return.
    fn move_left(
        &self,
        leaf: CellLeaf<'_>,
        row: LeafWords<'_>,
        (left, left_leaf): (LeafWords<'_>, CellLeaf<'_>),
    ) -> Result<(), Corrupt> {
        let medium = self.pool.medium();
        let hashed = |Placed { entry, .. }| Ok((K::with_entry(&self.pool, entry, K::hash)?, entry));
        let entries = leaf.entries(medium, row.notes::<M>()).map(hashed);
        // Damage is met before anything moves.
        let entries = entries.collect::<Result<Vec<_>, Corrupt>>()?;
        for &(hash, entry) in &entries {
            let cell = left_leaf.choose(medium, left.notes::<M>(), Self::candidates(hash));
            let cell = cell.ok_or_else(|| disagreement(left.at, left.notes::<M>().count()))?;
            self.add(left, left_leaf, cell, (hash, entry), None);
        }
        let skips_fence = M::INJECTS_DEFECTS && medium.injects(Defect::MergeWithLink);
        if !entries.is_empty() && !skips_fence {
            let _ = medium.fence();
        }
        Ok(())
    }
}
