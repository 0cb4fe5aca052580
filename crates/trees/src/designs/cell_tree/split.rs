//! Splits: a new right leaf takes the greatest entries.
//!
//! 1. The insert that would take the last free slot of a leaf splits it. So its key has a slot in
//!    either leaf, and needs no slot of a moved entry.
//! 2. A leaf without a free slot is what a crash leaves between that insert and the link. It is
//!    split, and then the insert begins again.

use super::CellTreeIndex;
use super::cell::NewCell;
use super::check::disagreement;
use super::leaf::{CellLeaf, Placed, kind_of};
use super::leaf_table::high_of;
use super::place::{Candidates, ENTRIES_MAX, pack};
use super::rows::{CELLS_MAX, LeafWords, Notes, Tags};
use super::word::{CellKind, CellLayout, SLOTS_MAX, tag_of, with_kind};
use super::write::{Latched, NewEntry};
use crate::index::TreeError;
use crate::inner::InnerNodes;
use crate::key::{self, Entry, Key};
use crate::leaf::slots;
use crate::leaf_table::misplaced_key;
use crate::sorting::{ranks, sort_pairs};
use bristlecone_pmem::sys::RANKED_MAX;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, PoolError};

const _: () = assert!(ENTRIES_MAX < RANKED_MAX);

/// The new leaf and its low key.
struct RightLeaf<K: Key> {
    at: PmPtr,
    /// The separator word of the low key.
    word: u64,
    separator: K::Owned,
}

/// The keys of a leaf, each with the number of its slot in the leaf. The new key has [`NEW`].
pub(super) type KeySlots<K> = Vec<(<K as Key>::Owned, usize)>;

pub(super) const NEW: usize = ENTRIES_MAX;

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
    /// The slots of the moved entries in the left leaf, for each cell.
    slots: [u64; CELLS_MAX],
}

impl<K: Key> Division<K> {
    /// Hides the moved entries in the words of the left leaf, which it has latched.
    fn hide<C: CellLayout, M: Medium>(&self, row: LeafWords<'_>) {
        row.set_notes::<M>(self.hiding::<C>(row.notes::<M>()));
        for (cell, moved) in self.slots.iter().enumerate() {
            slots(*moved).for_each(|slot| row.set_tag::<M>((cell, slot), 0));
        }
    }

    /// Returns `notes`, those of the left leaf, with the moved entries hidden.
    fn hiding<C: CellLayout>(&self, notes: Notes) -> Notes {
        let count: u32 = self.slots.iter().map(|slots| slots.count_ones()).sum();
        let notes = notes.with_count::<C>(notes.count::<C>().saturating_sub(count as usize));
        let bound = K::prefix(K::borrow(&self.separator));
        let moved = self.slots.iter().copied().enumerate().filter(|(_, slots)| *slots != 0);
        moved.fold(notes, |notes, moved| notes.with_hidden::<C>(moved, bound))
    }
}

impl<M: Medium, K: Key, const BYTES: usize> CellTreeIndex<M, K, BYTES> {
    /// Splits the latched leaf and inserts `new`, for which `cell` has the last free slot. If there
    /// is none, splits the leaf alone and returns `false`. Durable on return.
    #[cold]
    pub(super) fn split<C: CellLayout>(
        &self,
        (row, _held): Latched<'_, M>,
        new: &NewEntry<K::Ref<'_>>,
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
        new: Option<(&NewEntry<K::Ref<'_>>, usize)>,
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
        let names_block =
            |(entry, _): &(Entry, u64)| !K::EXACT && !key::stands_alone::<K, M>(&self.pool, *entry);
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
        new: Option<&NewEntry<K::Ref<'_>>>,
    ) -> Result<Division<K>, Corrupt> {
        let (medium, notes) = (self.pool.medium(), row.notes::<M>());
        let low = K::read(&self.pool, leaf.low(medium)?)?;
        let high = high_of::<K, M>(&self.pool, leaf, BYTES)?.map(|(_, high)| high);
        let keys = self.keys::<C>(leaf, notes, new, (&low, high.as_ref()))?;
        let kept = keys.len() - (keys.len() * 2 / 5).max(1);
        let ranks = ranks_of::<K>(&keys);
        let mut at_rank = keys.iter().zip(ranks).filter(|(_, rank)| *rank == kept as u64);
        let Some(((least_moved, _), _)) = at_rank.next() else {
            return Err(misplaced_key(leaf.at, kept as u64));
        };
        let mut below_it = keys.iter().zip(ranks).filter(|(_, rank)| *rank + 1 == kept as u64);
        let below = below_it.next().map(|((_, slot), _)| match new.filter(|_| *slot == NEW) {
            Some(new) => new.entry,
            None => leaf.entry::<C, M>(medium, slot / SLOTS_MAX, slot % SLOTS_MAX),
        });
        let separator = match below {
            Some(below) => K::between(&self.pool, below, K::borrow(least_moved))?,
            None => least_moved.clone(),
        };
        let mut kept_notes = notes.without_filter::<C>();
        if kept_notes != notes {
            let stays = |(_, rank): &(_, u64)| *rank < kept as u64;
            for ((key, slot), _) in keys.iter().zip(ranks).filter(stays) {
                let hash = K::hash(K::borrow(key));
                if *slot != NEW && !Self::candidates(hash).is_near(slot / SLOTS_MAX) {
                    kept_notes = kept_notes.with_far::<C>(hash);
                }
            }
        }
        let (mut moved, mut moved_slots) = (Vec::with_capacity(keys.len() - kept), [0; CELLS_MAX]);
        let mut new_goes_right = false;
        for ((key, slot), _) in keys.iter().zip(ranks).filter(|(_, rank)| *rank >= kept as u64) {
            let (cell, in_cell) = (slot / SLOTS_MAX, slot % SLOTS_MAX);
            let entry = if let Some(new) = new.filter(|_| *slot == NEW) {
                new_goes_right = true;
                new.entry
            } else {
                moved_slots[cell] |= 1 << in_cell;
                leaf.entry::<C, M>(medium, cell, in_cell)
            };
            moved.push((entry, K::hash(K::borrow(key))));
        }
        let kind = kind_of::<K>(&separator, high.as_ref());
        Ok(Division {
            separator,
            moved,
            new_goes_right,
            kind,
            kept: kept_notes,
            slots: moved_slots,
        })
    }

    /// Returns the keys of a leaf and the new one, in any order.
    ///
    /// # Errors
    /// See [`divide`](Self::divide).
    pub(super) fn keys<C: CellLayout>(
        &self,
        leaf: CellLeaf<'_>,
        notes: Notes,
        new: Option<&NewEntry<K::Ref<'_>>>,
        (low, high): (&K::Owned, Option<&K::Owned>),
    ) -> Result<KeySlots<K>, Corrupt> {
        let medium = self.pool.medium();
        let mut keys = Vec::with_capacity(leaf.capacity::<C>() + 1);
        leaf.entries::<C, M>(medium, notes).try_for_each(|Placed { cell, slot, entry }| {
            keys.push((K::read_entry(&self.pool, entry)?, SLOTS_MAX * cell + slot));
            Ok(())
        })?;
        if keys.len() != notes.count::<C>() {
            return Err(disagreement(leaf.at, keys.len()));
        }
        if let Some(new) = new {
            keys.push((K::to_owned(new.key), NEW));
        }
        let prefix = |key: &K::Owned| K::prefix(K::borrow(key));
        let (least, end) = (prefix(low), high.map(prefix));
        for (key, slot) in &keys {
            // The prefixes alone tell most keys.
            let is_inside = prefix(key) > least && end.is_none_or(|end| prefix(key) < end);
            if !is_inside && (key < low || high.is_some_and(|high| key >= high)) {
                return Err(misplaced_key(leaf.at, *slot as u64));
            }
        }
        Ok(keys)
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

/// Returns the rank of each key.
fn ranks_of<K: Key>(keys: &KeySlots<K>) -> [u64; RANKED_MAX] {
    let mut prefixes = [0; RANKED_MAX];
    for (prefix, (key, _)) in prefixes.iter_mut().zip(keys) {
        *prefix = K::prefix(K::borrow(key));
    }
    if let Some(ranks) = ranks(&prefixes[..keys.len()]) {
        return ranks;
    }
    let mut in_order: Vec<_> = keys.iter().map(|(key, _)| key).zip(0..).collect();
    sort_pairs(&mut in_order);
    let mut ranks = [0; RANKED_MAX];
    for (rank, (_, index)) in (0..).zip(in_order) {
        let index: usize = index;
        ranks[index] = rank;
    }
    ranks
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
