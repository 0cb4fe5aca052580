//! Remove, and merging a leaf with few entries into its left neighbour.

use super::CellTreeIndex;
use super::leaf::{CellLeaf, Placed, disagreement, kind_of};
use super::leaf_table::high_of;
use super::rows::{LeafWords, Notes};
use super::split::fill;
use super::word::{CellKind, CellLayout, WideCells, with_kind};
use super::write::Latched;
use crate::index::TreeError;
use crate::inner::{Direction, InnerNodes, Replaced};
use crate::key::{self, Entry, Key, Value};
use crate::leaf_table::{LeafTable, latch_leaf};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Defect, Medium};

/// The result of an attempt to merge a leaf into its left neighbour.
enum Merged<'a> {
    /// It is merged, or cannot be.
    Done,
    /// Another thread has changed one of the two.
    Changed,
    /// The range of both is too wide for the left neighbour, which is dense.
    TooWide(LeafWords<'a>),
}

impl<M: Medium, K: Key, const BYTES: usize> CellTreeIndex<M, K, BYTES> {
    /// The number of entries from which on a leaf is merged into its left neighbour.
    pub(super) const SPARSE: usize = Self::CELLS * CellKind::Wide.slots() / 8;

    /// Removes `key` if `is_wanted` returns `true` for its value, and returns the entry. Merges the
    /// leaf if it has few entries left, unless it is the first one. Durable on return.
    ///
    /// ```text
    /// A cell remove     8 B
    /// F cell |          -> durable      budget: 1 line, 1 fence
    /// ```
    pub(super) fn remove_entry_if(
        &self,
        key: K::Ref<'_>,
        is_wanted: impl Fn(Value) -> bool,
    ) -> Result<Option<Entry>, TreeError> {
        let guard = self.pool.pin();
        let hash = K::hash(key);
        let (row, held) = latch_leaf(self, key, |row| self.prefetch_cells(row, key))?;
        let notes = row.notes::<M>();
        with_kind!(notes.kind::<K>(), C => {
            self.remove_in::<C>((row, held), notes, (key, hash), is_wanted, &guard)
        })
    }

    /// As [`remove_entry_if`](Self::remove_entry_if), from a latched leaf with these notes.
    #[inline(always)]
    fn remove_in<C: CellLayout>(
        &self,
        (row, held): Latched<'_, M>,
        notes: Notes,
        (key, hash): (K::Ref<'_>, u64),
        is_wanted: impl Fn(Value) -> bool,
        guard: &Guard,
    ) -> Result<Option<Entry>, TreeError> {
        let (leaf, medium) = (self.leaf(row)?, self.pool.medium());
        let place = (Self::candidates(hash), hash);
        let found = leaf.find::<C, K, M>(&self.pool, (row, notes), place, key)?;
        let Some(found) = found.filter(|found| is_wanted(found.entry.held_value())) else {
            return Ok(None);
        };
        leaf.cell::<C>(found.cell).remove(medium, found.slot, found.entry);
        row.set_tag::<M>((found.cell, found.slot), 0);
        let count = notes.count::<C>().saturating_sub(1);
        row.set_notes::<M>(notes.with_count::<C>(count));
        drop(held);
        key::retire_entry::<K, M>(&self.pool, found.entry, guard)?;
        // The left neighbour may have too many entries, so this tries at some counts, down to 0.
        let is_sparse = count <= Self::SPARSE && (count == 0 || count.is_power_of_two());
        if is_sparse && row.at != self.first {
            // The remove is durable. Damage that this meets is in another node, and the next
            // operation that reads that node reports it.
            let _ = self.merge_sparse(key, row, guard);
            if C::KIND == CellKind::Dense {
                let _ = self.merge_empty_after(row, guard);
            }
        }
        Ok(Some(found.entry))
    }

    /// Merges the leaf of `row`, which has covered `key`, into its left neighbour, unless the two
    /// have too many entries or the leaf is unlinked already.
    #[cold]
    pub(super) fn merge_sparse(
        &self,
        key: K::Ref<'_>,
        row: LeafWords<'_>,
        guard: &Guard,
    ) -> Result<(), TreeError> {
        loop {
            let (current, held) = latch_leaf(self, key, |_| ())?;
            if current.at != row.at || Self::count(current) > Self::SPARSE {
                return Ok(());
            }
            let word = self.leaf(current)?.low(self.pool.medium())?;
            let low = K::read(&self.pool, word)?;
            drop(held); // Latches are taken from left to right.
            let Some(left) = self.latch_left(K::borrow(&low))? else { continue };
            let merged = self.merge(left, current, (K::borrow(&low), word), guard)?;
            let is_done = match merged {
                Merged::Done => true,
                Merged::Changed => false,
                Merged::TooWide(left) => self.merge_to_new((left, current), &low, guard)?,
            };
            if is_done {
                return Ok(());
            }
        }
    }

    /// Merges the empty leaves behind that of `row`, which is dense and has become sparse: it may
    /// have had too many entries when they became empty. See
    /// [`merge_to_new`](Self::merge_to_new).
    #[cold]
    fn merge_empty_after(&self, row: LeafWords<'_>, guard: &Guard) -> Result<(), TreeError> {
        let leaf = self.leaf(row)?;
        let mut next = high_of::<K, M>(&self.pool, leaf, BYTES)?;
        while let Some((empty, low)) = next {
            let row = self.row_at(empty.at);
            self.visit(row)?;
            if Self::count(row) > 0 {
                return Ok(());
            }
            self.merge_sparse(K::borrow(&low), row, guard)?;
            // Also a leaf that is unlinked leads on.
            next = high_of::<K, M>(&self.pool, empty, BYTES)?;
        }
        Ok(())
    }

    /// Returns the number of entries of a leaf that are not hidden.
    pub(super) fn count(row: LeafWords<'_>) -> usize {
        let notes = row.notes::<M>();
        with_kind!(notes.kind::<K>(), C => notes.count::<C>())
    }

    /// Latches the leaf that covers the keys just below `low`. Returns `None` if another thread
    /// changed it meanwhile.
    fn latch_left(&self, low: K::Ref<'_>) -> Result<Option<Latched<'_, M>>, Corrupt> {
        let route = self.inner.seek::<K>(&self.pool, low, Direction::Below)?;
        let (left, latch) = self.row(route.leaf.offset() as usize);
        self.visit(left)?;
        let Some(version) = latch.read() else { return Ok(None) };
        if !self.inner.is_current(&route) {
            return Ok(None);
        }
        Ok(latch.upgrade(version).map(|held| (left, held)))
    }

    /// Moves the entries of `row` to its latched left neighbour, which takes over its range, and
    /// unlinks the leaf. `low` is its low key, with the separator word. Does nothing if the two
    /// have too many entries, or if the range would be too wide. Durable on return.
    ///
    /// ```text
    /// A clear_hidden of left      hidden entries would count again in the wider range
    /// A add to left |             each entry; crash before C: the low key of the leaf hides it
    /// C next of left, F header |  -> durable     budget: those cells, the entries + 1 lines;
    ///                                            2 fences, and 1 with hidden entries
    /// ```
    fn merge<'a>(
        &'a self,
        (left, _left_held): Latched<'a, M>,
        row: LeafWords<'_>,
        (low, word): (K::Ref<'_>, u64),
        guard: &Guard,
    ) -> Result<Merged<'a>, Corrupt> {
        let medium = self.pool.medium();
        let (left_leaf, leaf) = (self.leaf(left)?, self.leaf(row)?);
        if left_leaf.next(medium)? != row.at {
            return Ok(Merged::Changed);
        }
        let Some(_held) = self.latch_row(row)? else { return Ok(Merged::Changed) };
        let (kept, moved) = (Self::count(left), Self::count(row));
        let kind = left.notes::<M>().kind::<K>();
        let capacity = with_kind!(kind, C => left_leaf.capacity::<C>());
        if moved > 0 && kept + moved > capacity / 2 {
            return Ok(Merged::Done);
        }
        let injects = |defect| M::INJECTS_DEFECTS && medium.injects(defect);
        if kind == CellKind::Dense
            && self.kind_of_both(left_leaf, leaf)? == CellKind::Wide
            && !injects(Defect::MergedWide)
        {
            return Ok(Merged::TooWide(left));
        }
        with_kind!(kind, C => {
            if !injects(Defect::HiddenKept) {
                self.clear_hidden::<C>(left, left_leaf);
            }
            self.move_left::<C>(leaf, row, (left, left_leaf))
        })?;
        let used = with_kind!(kind, C => left_leaf.used_cells::<C, M>(medium));
        left_leaf.set_next(medium, leaf.next(medium)?, used);
        let _ = medium.fence();
        self.inner.unlink::<K>(&self.pool, low, row.at)?;
        self.pool.retire(row.at, BYTES as u64, guard);
        key::retire::<K, M>(&self.pool, word, guard)?;
        Ok(Merged::Done)
    }

    /// Returns the kind of a leaf with the ranges of two neighbours.
    fn kind_of_both(&self, left: CellLeaf<'_>, leaf: CellLeaf<'_>) -> Result<CellKind, Corrupt> {
        let low = K::read(&self.pool, left.low(self.pool.medium())?)?;
        let high = high_of::<K, M>(&self.pool, leaf, BYTES)?.map(|(_, high)| high);
        Ok(kind_of::<K>(&low, high.as_ref()))
    }

    /// Replaces two neighbours, of which the left one is dense, by a new leaf of wide cells with
    /// the range of both. `low` is the low key of the second. Does nothing if they have too many
    /// entries. Returns `false` if another thread has changed one of them. Durable on return.
    ///
    /// ```text
    /// N new leaf |                   crash before C: it is unreachable, free
    /// C next of the leaf before them, F header |
    ///         -> durable             budget: cells in use + 2 lines; 2 fences
    /// ```
    fn merge_to_new(
        &self,
        (left, row): (LeafWords<'_>, LeafWords<'_>),
        low: &K::Owned,
        guard: &Guard,
    ) -> Result<bool, TreeError> {
        let medium = self.pool.medium();
        let (left_leaf, leaf) = (self.leaf(left)?, self.leaf(row)?);
        let word = left_leaf.low(medium)?;
        let left_low = K::read(&self.pool, word)?;
        let Some((before, _before_held)) = self.latch_left(K::borrow(&left_low))? else {
            return Ok(false);
        };
        let before_leaf = self.leaf(before)?;
        if before_leaf.next(medium)? != left.at {
            return Ok(false);
        }
        let Some(_left_held) = self.latch_row(left)? else { return Ok(false) };
        if left_leaf.next(medium)? != row.at {
            return Ok(false);
        }
        let Some(_held) = self.latch_row(row)? else { return Ok(false) };
        let count = Self::count(left) + Self::count(row);
        let is_full = count >= leaf.capacity::<WideCells>();
        if is_full || self.kind_of_both(left_leaf, leaf)? == CellKind::Dense {
            return Ok(true);
        }
        let mut entries = self.hashed_entries(left_leaf, left)?;
        entries.extend(self.hashed_entries(leaf, row)?);
        let at = self.pool.reserve(BYTES as u64)?;
        let new = CellLeaf::new(&self.pool, at, BYTES)?;
        let words = fill::<WideCells, M>(medium, new, (word, leaf.next(medium)?), &entries);
        self.rows.add::<K, M>(at, BYTES, words);
        if !(M::INJECTS_DEFECTS && medium.injects(Defect::ReplacedEarly)) {
            let _ = medium.fence();
        }
        let kind = before.notes::<M>().kind::<K>();
        let used = with_kind!(kind, C => before_leaf.used_cells::<C, M>(medium));
        before_leaf.set_next(medium, at, used);
        let _ = medium.fence();
        self.inner.unlink::<K>(&self.pool, K::borrow(low), row.at)?;
        let replaced = Replaced { full: left.at, lower: at, upper: None };
        self.inner.replace::<K>(&self.pool, K::borrow(&left_low), replaced)?;
        self.pool.retire(row.at, BYTES as u64, guard);
        self.pool.retire(left.at, BYTES as u64, guard);
        Ok(true)
    }

    /// Returns the entries of a latched leaf that are not hidden, with the hashes of their keys.
    fn hashed_entries(
        &self,
        leaf: CellLeaf<'_>,
        row: LeafWords<'_>,
    ) -> Result<Vec<(Entry, u64)>, Corrupt> {
        let hashed = |Placed { entry, .. }| Ok((entry, K::hash_entry(&self.pool, entry)?));
        let (medium, notes) = (self.pool.medium(), row.notes::<M>());
        with_kind!(notes.kind::<K>(), C => {
            leaf.entries::<C, M>(medium, notes).map(hashed).collect()
        })
    }

    /// Adds the entries of a latched leaf to its latched left neighbour, which has no hidden
    /// entries. Durable on return.
    fn move_left<C: CellLayout>(
        &self,
        leaf: CellLeaf<'_>,
        row: LeafWords<'_>,
        (left, left_leaf): (LeafWords<'_>, CellLeaf<'_>),
    ) -> Result<(), Corrupt> {
        let medium = self.pool.medium();
        // Damage is met before anything moves.
        let entries = self.hashed_entries(leaf, row)?;
        for &(entry, hash) in &entries {
            let words = (left, left.notes::<M>());
            let cell = left_leaf.choose::<C, M>(medium, words, Self::candidates(hash));
            let cell = cell.ok_or_else(|| disagreement(left.at, Self::count(left)))?;
            self.add::<C>(left, left_leaf, cell, (hash, entry), None);
        }
        let skips_fence = M::INJECTS_DEFECTS && medium.injects(Defect::MergeWithLink);
        if !entries.is_empty() && !skips_fence {
            let _ = medium.fence();
        }
        Ok(())
    }
}
