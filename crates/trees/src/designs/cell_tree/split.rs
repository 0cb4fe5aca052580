//! Splits: a new right leaf takes the upper half.

use super::CellTreeIndex;
use super::cell::NewCell;
use super::leaf::{CellLeaf, Placed, unfindable};
use super::place::{Candidates, pack};
use super::rows::{LeafWords, Notes};
use super::write::{Latched, NewEntry};
use crate::index::TreeError;
use crate::inner::InnerNodes;
use crate::key::{self, Entry, Key};
use crate::leaf_table::LeafTable;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, PoolError};

/// An entry that a split moves: its place in the left leaf, and its key's hash.
type Moved = (Placed, u64);

/// The result of a cut.
struct RightLeaf<K: Key> {
    at: PmPtr,
    /// The separator word of the low key.
    word: u64,
    separator: K::Owned,
    /// `true` if one of the leaves has the new entry.
    has_new: bool,
}

/// The entries of a split.
struct Division<K: Key> {
    separator: K::Owned,
    moved: Vec<Moved>,
    /// `true` if the new entry belongs to the right leaf.
    new_goes_right: bool,
}

impl<M: Medium, K: Key, const BYTES: usize> CellTreeIndex<M, K, BYTES> {
    /// Splits the latched leaf, in which `new` finds no cell, and inserts `new`. Returns `false` if
    /// the leaf is split, and `new` finds no cell in its half either. Durable on return.
    #[cold]
    pub(super) fn split(
        &self,
        (row, _held): Latched<'_, M>,
        new: &NewEntry<K::Ref<'_>>,
    ) -> Result<bool, TreeError> {
        let free_key = || {
            // A block that comes free holds nothing that a crash could take back.
            let _ = self.pool.medium().fence();
            key::free_entry_key::<K, M>(&self.pool, new.entry);
        };
        let right = self.cut(row, self.leaf(row)?, new).inspect_err(|_| free_key())?;
        if !right.has_new {
            free_key();
        }
        let separator = K::borrow(&right.separator);
        self.inner.post::<K>(&self.pool, separator, right.word, right.at)?;
        Ok(right.has_new)
    }

    /// Moves the upper half of a leaf to a new leaf, and inserts `new` into its half. Durable on
    /// return.
    ///
    /// ```text
    /// N right leaf, low key |     the right leaf holds `new` if that is not below the low key
    /// C next, F header |          crash before C: the right leaf is unreachable, free; after C the
    ///                             low key hides the moved entries, which stay in the left leaf
    /// W commit words, F cells |   if keys have records: the moved entries leave
    /// A insert_absent             if `new` belongs to the left leaf, after the fence of C: it may
    ///                             take the slot of a moved entry
    ///         -> durable          budget: cells in use + 2 lines and that of `new`, 2 or 3 fences;
    ///                             1 fence more with records
    /// ```
    fn cut(
        &self,
        row: LeafWords<'_>,
        leaf: CellLeaf<'_>,
        new: &NewEntry<K::Ref<'_>>,
    ) -> Result<RightLeaf<K>, TreeError> {
        let medium = self.pool.medium();
        let Division { separator, moved, new_goes_right } = self.divide(row, leaf, new)?;
        let at = self.pool.reserve(BYTES as u64)?;
        let release = |_: &PoolError| self.pool.release(at, BYTES as u64);
        let word = K::store_separator(&self.pool, K::borrow(&separator)).inspect_err(release)?;
        let right = CellLeaf::new(&self.pool, at, BYTES)?;
        let (cells, mut has_new) = Self::fill(right, &moved, new_goes_right.then_some(new));
        right.format(medium, word, leaf.next(medium), &cells);
        let count = cells.iter().map(|cell| cell.word.count()).sum();
        self.rows.add::<M>(at, BYTES, Notes::default().with_count(count));
        let _ = medium.fence();
        leaf.set_next(medium, at);
        let injects = |defect| M::INJECTS_DEFECTS && medium.injects(defect);
        if new_goes_right || !injects(Defect::KeyWithLink) {
            let _ = medium.fence();
        }
        self.hide(row, leaf, &moved);
        let cell = leaf.choose(medium, row.notes::<M>(), Self::candidates(new.hash));
        if !new_goes_right && let Some(cell) = cell {
            self.insert_absent(row, leaf, cell, new, false);
            has_new = true;
        }
        Ok(RightLeaf { at, word, separator, has_new })
    }

    /// Chooses the separator between the halves of a leaf, `new` included.
    ///
    /// # Errors
    /// An entry is out of the leaf's range, or no lookup finds it.
    fn divide(
        &self,
        row: LeafWords<'_>,
        leaf: CellLeaf<'_>,
        new: &NewEntry<K::Ref<'_>>,
    ) -> Result<Division<K>, Corrupt> {
        let mut pairs = self.copy(row)?.pairs;
        let below = |(key, _): &(K::Owned, Entry)| K::compare(K::borrow(key), new.key).is_lt();
        let rank = pairs.partition_point(below);
        let kept = pairs.len().div_ceil(2);
        let new_goes_right = rank >= kept;
        let upper = pairs.split_off(if new_goes_right { kept } else { kept - 1 });
        let separator = if rank == kept { K::to_owned(new.key) } else { upper[0].0.clone() };
        let place = |(key, entry): &(K::Owned, Entry)| {
            let hash = K::hash(K::borrow(key));
            let candidates = Self::candidates(hash);
            let found = leaf.find::<K, M>(&self.pool, candidates, hash, K::borrow(key))?;
            found.map(|placed| (placed, hash)).ok_or_else(|| unfindable(leaf.at, *entry))
        };
        let moved = upper.iter().map(place).collect::<Result<_, _>>()?;
        Ok(Division { separator, moved, new_goes_right })
    }

    /// Returns the cells of a right leaf with the moved entries, and with `new` if that is given
    /// and finds a cell. The flag is `true` if it has.
    fn fill(
        right: CellLeaf<'_>,
        moved: &[Moved],
        new: Option<&NewEntry<K::Ref<'_>>>,
    ) -> (Vec<NewCell>, bool) {
        let mut entries: Vec<_> =
            moved.iter().map(|(placed, hash)| (placed.entry, *hash)).collect();
        let mut candidates: Vec<_> =
            moved.iter().map(|&(_, hash)| Self::candidates(hash)).collect();
        let mut places = None;
        if let Some(new) = new {
            candidates.push(Self::candidates(new.hash));
            places = pack(&candidates, right.cells());
            if places.is_some() {
                entries.push((new.entry, new.hash));
            }
        }
        let has_new = places.is_some();
        candidates.truncate(entries.len());
        // The cells of the left leaf are one way to place the moved entries.
        let places = places
            .or_else(|| pack(&candidates, right.cells()))
            .unwrap_or_else(|| moved.iter().map(|(placed, _)| placed.cell).collect());
        (new_cells(right, &entries, &candidates, &places), has_new)
    }

    /// Notes that the moved entries of a latched leaf are hidden. Keys with records leave instead,
    /// durably: a remove in the right leaf frees the record, and recovery could not tell any more
    /// that the entry is hidden.
    fn hide(&self, row: LeafWords<'_>, leaf: CellLeaf<'_>, moved: &[Moved]) {
        let notes = row.notes::<M>();
        let hide = |notes: Notes, (placed, _): &Moved| notes.with_hidden(placed.cell, placed.slot);
        let count = notes.count().saturating_sub(moved.len());
        row.set_notes::<M>(moved.iter().fold(notes.with_count(count), hide));
        if !K::EXACT {
            self.clear_hidden(row, leaf);
        }
    }

    /// Removes the hidden entries of a latched leaf. Durable on return.
    ///
    /// ```text
    /// W commit word, F cell       of each cell with hidden entries
    /// |                           -> durable
    /// ```
    pub(super) fn clear_hidden(&self, row: LeafWords<'_>, leaf: CellLeaf<'_>) {
        let (medium, mut notes) = (self.pool.medium(), row.notes::<M>());
        if notes.has_none_hidden() {
            return;
        }
        for index in 0..leaf.cells() {
            let hidden = notes.hidden_in(index);
            if hidden != 0 {
                leaf.cell(index).clear(medium, hidden);
                leaf.cell(index).flush(medium);
                notes = notes.without_hidden_in(index);
            }
        }
        let _ = medium.fence();
        row.set_notes::<M>(notes);
    }
}

/// Returns the cells of `leaf` with `entries`, which have these hashes and candidates and lie in
/// the cells `places`.
fn new_cells(
    leaf: CellLeaf<'_>,
    entries: &[(Entry, u64)],
    candidates: &[Candidates],
    places: &[usize],
) -> Vec<NewCell> {
    let mut cells = vec![NewCell::default(); leaf.cells()];
    for ((&(entry, hash), candidates), &cell) in entries.iter().zip(candidates).zip(places) {
        cells[cell].add(leaf.cell(cell), hash, entry);
        if !candidates.is_near(cell) {
            let first = &mut cells[candidates.0[0]];
            first.word = first.word.with_overflow();
        }
    }
    cells
}
