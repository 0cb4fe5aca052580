//! Splits: a new right leaf takes the greatest entries.
//!
//! 1. The insert that would take the last free slot of a leaf splits it. So its key has a slot in
//!    either leaf, and needs no slot of a moved entry.
//! 2. A leaf without a free slot is what a crash leaves between that insert and the link. It is
//!    split, and then the insert begins again.

use super::CellTreeIndex;
use super::cell::NewCell;
use super::leaf::{CellLeaf, disagreement, kind_of};
use super::leaf_table::high_of;
use super::place::{Candidates, ENTRIES_MAX, pack};
use super::rows::{CELLS_MAX, LeafWords, Notes, Tags};
use super::sorted::NEW;
use super::word::{CellKind, CellLayout, tag_of, with_kind};
use super::write::{Latched, NewEntry};
use crate::index::TreeError;
use crate::inner::InnerNodes;
use crate::key::{self, Entry, Key};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, PoolError};

/// The new leaf and its low key.
struct RightLeaf<K: Key> {
    at: PmPtr,
    /// The separator word of the low key.
    word: u64,
    separator: K::Owned,
}

/// The entries of a split.
struct Division<K: Key> {
    separator: K::Owned,
    /// The entries of the right leaf, with the hashes of their keys.
    moved: Vec<(Entry, u64)>,
    new_goes_right: bool,
    /// The kind of the right leaf.
    kind: CellKind,
    /// The notes of the left leaf, with the filter of the entries that stay.
    kept: Notes,
    /// The slots of the moved entries in the left leaf, as bits by their numbers.
    slots: u64,
}

impl<K: Key> Division<K> {
    /// Hides the moved entries in the words of the left leaf, which it has latched.
    fn hide<C: CellLayout, M: Medium>(&self, row: LeafWords<'_>) {
        row.hide::<C, M>(self.slots, K::prefix(K::borrow(&self.separator)));
    }
}

impl<M: Medium, K: Key, const BYTES: usize> CellTreeIndex<M, K, BYTES> {
    /// Splits the latched leaf and inserts `new`, for which `cell` has the last free slot. If there
    /// is none, splits the leaf alone and returns `false`. Durable on return.
    #[cold]
    pub(super) fn split<C: CellLayout>(
        &self,
        (row, _held): Latched<'_, M>,
        new: &NewEntry,
        cell: Option<usize>,
    ) -> Result<bool, TreeError> {
        let free_key = || {
            // A block that comes free holds nothing that a crash could take back.
            let _ = self.pool.medium().fence();
            key::free_entry_key::<K, M>(&self.pool, new.entry);
        };
        let placed = cell.map(|cell| (new, cell));
        let right = self.cut::<C>(row, self.leaf(row)?, placed).inspect_err(|_| free_key())?;
        if cell.is_none() {
            free_key();
        }
        let separator = K::borrow(&right.separator);
        self.inner.post::<K>(&self.pool, separator, right.word, right.at)?;
        Ok(cell.is_some())
    }

    /// Moves the greatest entries of a leaf to a new leaf, and inserts `new`, if that is given with
    /// a cell of the left leaf that has a free slot, into one of the leaves. Durable on return.
    ///
    /// ```text
    /// N right leaf, low key |     the right leaf holds `new` if that is not below the low key
    /// A add                       if `new` is below it: into a slot that was free, so it may
    ///                             persist before C
    /// C next, F header |          crash before C: the right leaf is unreachable, free; after C the
    ///                             low key hides the moved entries, which stay in the left leaf
    /// W commit words, F cells |   if a moved entry has a record: the moved entries leave
    ///         -> durable          budget: cells in use + 2 lines, and that of `new`; 2 fences;
    ///                             1 fence more with records
    /// ```
    fn cut<C: CellLayout>(
        &self,
        row: LeafWords<'_>,
        leaf: CellLeaf<'_>,
        new: Option<(&NewEntry, usize)>,
    ) -> Result<RightLeaf<K>, TreeError> {
        let medium = self.pool.medium();
        leaf.prefetch_all(medium);
        let at = self.pool.reserve(BYTES as u64)?;
        let release = |_: &PoolError| self.pool.release(at, BYTES as u64);
        let right = CellLeaf::new(&self.pool, at, BYTES)?;
        right.prefetch_all(medium);
        if let Ok(Some(next)) = leaf.right(&self.pool, BYTES) {
            next.prefetch_header(medium);
        }
        let division = self.divide::<C>(row, leaf, new.map(|(new, _)| new));
        let division = division.map_err(PoolError::from).inspect_err(release)?;
        let separator = K::borrow(&division.separator);
        let word = K::store_separator(&self.pool, separator).inspect_err(release)?;
        let next = leaf.next(medium).map_err(PoolError::from).inspect_err(release)?;
        let (header, moved) = ((word, next), &division.moved[..]);
        let words = with_kind!(division.kind, R => {
            fill::<R, M>(medium, right, header, moved)
        });
        self.rows.add::<K, M>(at, BYTES, words);
        let used = leaf.used_cells::<C, M>(medium);
        let _ = medium.fence();
        row.set_notes::<M>(division.kept);
        let takes_moved = M::INJECTS_DEFECTS && medium.injects(Defect::KeyWithLink);
        if takes_moved {
            division.hide::<C, M>(row);
        }
        if let Some((new, cell)) = new.filter(|_| !division.new_goes_right) {
            let candidates = Self::candidates(new.hash);
            let reused = leaf.choose::<C, M>(medium, (row, row.notes::<M>()), candidates);
            let cell = reused.filter(|_| takes_moved).unwrap_or(cell);
            self.add::<C>(row, leaf, cell, (new.hash, new.entry), None);
        }
        leaf.set_next(medium, at, used);
        if division.new_goes_right {
            // Who finds the new key there relies on the link, too.
            medium.flush_for_readers(&right.words()[..1]);
        }
        let _ = medium.fence();
        if !takes_moved {
            division.hide::<C, M>(row);
        }
        // A remove in the right leaf frees the record, and recovery could not tell any more that
        // the entry is hidden.
        let keeps_records = M::INJECTS_DEFECTS && medium.injects(Defect::HiddenRecords);
        let names_block = |(entry, _): &(Entry, u64)| !K::stands_alone(entry.encoding);
        if division.moved.iter().any(names_block) && !keeps_records {
            self.clear_hidden::<C>(row, leaf);
        }
        Ok(RightLeaf { at, word, separator: division.separator })
    }

    /// Chooses the separator and the entries that move.
    ///
    /// # Errors
    /// An entry is out of the leaf's range, or there are fewer than the leaf word counts.
    fn divide<C: CellLayout>(
        &self,
        row: LeafWords<'_>,
        leaf: CellLeaf<'_>,
        new: Option<&NewEntry>,
    ) -> Result<Division<K>, Corrupt> {
        let (medium, notes) = (self.pool.medium(), row.notes::<M>());
        let low = K::read(&self.pool, leaf.low(medium)?)?;
        let high = high_of::<K, M>(&self.pool, leaf, BYTES)?.map(|(_, high)| high);
        let added = new.map(|new| new.entry);
        let entry_of = |&(_, number): &(u64, usize)| {
            leaf.entry_numbered::<C, M>(medium, added.as_slice(), number)
        };
        let sorted = self.in_order::<C>(leaf, notes, added.as_slice(), (&low, high.as_ref()))?;
        let moved = (sorted.len() * 2 / 5).max(1);
        let (kept, moved) = sorted.split_at(sorted.len().saturating_sub(moved));
        let Some(least_moved) = moved.first() else {
            return Err(disagreement(leaf.at, 0));
        };
        let least_moved = K::read_entry(&self.pool, entry_of(least_moved))?;
        let separator = match kept.last() {
            Some(below) => K::between(&self.pool, entry_of(below), K::borrow(&least_moved))?,
            None => least_moved,
        };
        let kept = kept.iter().filter(|(_, number)| *number != NEW);
        let kept = kept.map(|item| (item.1, entry_of(item)));
        let kept_notes = self.with_filter_of::<C>(notes, kept)?;
        let (mut entries, mut slots, mut new_goes_right) =
            (Vec::with_capacity(moved.len()), 0, false);
        for item in moved {
            let entry = entry_of(item);
            let hash = if let Some(new) = new.filter(|_| item.1 == NEW) {
                new_goes_right = true;
                new.hash
            } else {
                slots |= 1 << item.1;
                K::hash_entry(&self.pool, entry)?
            };
            entries.push((entry, hash));
        }
        let kind = kind_of::<K>(&separator, high.as_ref());
        Ok(Division { separator, moved: entries, new_goes_right, kind, kept: kept_notes, slots })
    }

    /// Returns `notes` with the filter of the entries that a leaf keeps, which come with their
    /// numbers.
    ///
    /// # Errors
    /// The key of an entry is damaged.
    pub(super) fn with_filter_of<C: CellLayout>(
        &self,
        notes: Notes,
        kept: impl Iterator<Item = (usize, Entry)>,
    ) -> Result<Notes, Corrupt> {
        let mut kept_notes = notes.without_filter::<C>();
        if kept_notes == notes {
            return Ok(notes); // No entry is far.
        }
        for (number, entry) in kept {
            let hash = K::hash_entry(&self.pool, entry)?;
            if !Self::candidates(hash).is_near(C::KIND.place(number).0) {
                kept_notes = kept_notes.with_far::<C>(hash);
            }
        }
        Ok(kept_notes)
    }

    /// Removes the hidden entries of a latched leaf. Durable on return.
    ///
    /// ```text
    /// W commit word, F cell       of each cell with hidden entries
    /// |                           -> durable
    /// ```
    pub(super) fn clear_hidden<C: CellLayout>(&self, row: LeafWords<'_>, leaf: CellLeaf<'_>) {
        let (medium, notes, mut is_changed) = (self.pool.medium(), row.notes::<M>(), false);
        for index in 0..leaf.cells() {
            let hidden = leaf.hidden_in::<C, M>(medium, notes, index);
            if hidden != 0 {
                let cell = leaf.cell::<C>(index);
                cell.clear(medium, hidden);
                cell.flush(medium);
                is_changed = true;
            }
        }
        if is_changed {
            let _ = medium.fence();
        }
        row.set_notes::<M>(notes.without_hidden::<C>());
    }
}

/// Writes the new leaf `right` with this low word and right neighbour and these entries, which come
/// with the hashes of their keys. Returns its words. Durable after the next fence. See
/// [`CellLeaf::format`].
pub(super) fn fill<C: CellLayout, M: Medium>(
    medium: &M,
    right: CellLeaf<'_>,
    header: (u64, PmPtr),
    entries: &[(Entry, u64)],
) -> (Notes, Tags) {
    let count = right.cells();
    let mut places = [Candidates::default(); ENTRIES_MAX];
    for (place, (_, hash)) in places.iter_mut().zip(entries) {
        *place = Candidates::of(*hash, count);
    }
    let chosen = pack(&places[..entries.len()], (count, C::KIND.slots()));
    let mut cells = [NewCell::<C>::default(); CELLS_MAX];
    let mut notes = Notes::of(C::KIND).with_count::<C>(entries.len());
    let mut tags = Tags::default();
    for ((&(entry, hash), place), cell) in entries.iter().zip(places).zip(chosen) {
        let slot = cells[cell].add(right.cell(cell), hash, entry);
        if C::KIND == CellKind::Pairs {
            tags.set((cell, slot), tag_of(hash));
        }
        if !place.is_near(cell) {
            notes = notes.with_far::<C>(hash);
        }
    }
    right.format(medium, header, &cells[..count]);
    (notes, tags)
}
