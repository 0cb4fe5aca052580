//! New leaves behind those that lack space for the entries of a batch.

use super::{Added, BatchLeaf, PairChange, SMALL_LEAF_ENTRIES};
use crate::designs::cell_tree::CellTreeIndex;
use crate::designs::cell_tree::leaf::{CellLeaf, disagreement};
use crate::designs::cell_tree::leaf_table::high_of;
use crate::designs::cell_tree::rows::{Notes, bit_of};
use crate::designs::cell_tree::sorted::NEW;
use crate::designs::cell_tree::split::fill;
use crate::designs::cell_tree::word::PairCells;
use crate::designs::cell_tree::write::Latched;
use crate::index::TreeError;
use crate::inner::InnerNodes;
use crate::key::{self, Bytes, Entry, Key, Record};
use bristlecone_pmem::{Corrupt, Medium, PmPtr};
use core::ops::Range;

/// A new leaf, with its separator. Nothing reaches it, so the latch is free when it is taken.
struct NewLeaf<'a, M: Medium> {
    latched: Latched<'a, M>,
    leaf: CellLeaf<'a>,
    separator: Bytes,
    word: u64,
}

/// A leaf of a batch, and the new ones that take its upper entries.
struct Division<'a, M: Medium> {
    /// The leaf, as an index of those of the batch.
    of: usize,
    /// The new leaves, from right to left.
    behind: Vec<NewLeaf<'a, M>>,
    /// The slots of the entries that move, as bits.
    moved: u64,
    /// The notes of the leaf, with the filter of the entries that stay.
    notes: Notes,
    /// `true` if an entry that moves has a record.
    moves_record: bool,
}

impl<M: Medium, const BYTES: usize> CellTreeIndex<M, Record, BYTES> {
    /// Divides each of `leaves` that lacks space for its new entries, which it does not get yet.
    /// Returns the leaves of the batch, all latched, with places for all new entries. Durable on
    /// return.
    ///
    /// ```text
    /// N new leaves, low keys |   crash before C: they are unreachable, free
    /// C next, F header           of each divided leaf: its low key hides the moved entries
    /// |
    /// A clear_hidden             of a divided leaf, if a moved entry has a record
    ///        -> durable          budget: cells in use + 2 lines a new leaf; 2 fences; 1 more for
    ///                            each leaf that is cleared
    /// ```
    ///
    /// # Errors
    /// The pool is full, or damaged. No pair has changed.
    #[cold]
    pub(super) fn make_space<'a>(
        &'a self,
        leaves: Vec<BatchLeaf<'a, M>>,
        added: &mut [Added],
        changes: &[PairChange<'_>],
    ) -> Result<Vec<BatchLeaf<'a, M>>, TreeError> {
        let medium = self.pool.medium();
        let mut divisions: Vec<Division<'a, M>> = Vec::new();
        for (of, leaf) in leaves.iter().enumerate() {
            if leaf.lacks_space() {
                let division = self.write_behind((of, leaf), &added[leaf.added.clone()]);
                divisions.push(division.inspect_err(|_| {
                    for other in &divisions {
                        self.release_behind(&other.behind);
                    }
                })?);
            }
        }
        let used_cells = |division: &Division<'_, M>| {
            leaves[division.of].leaf.used_cells::<PairCells, M>(medium)
        };
        let used: Vec<_> = divisions.iter().map(used_cells).collect();
        let _ = medium.fence();
        for (Division { of, behind, notes, .. }, used) in divisions.iter().zip(used) {
            leaves[*of].row().set_notes::<M>(*notes);
            if let Some(first) = behind.last() {
                leaves[*of].leaf.set_next(medium, first.leaf.at, used);
            }
        }
        let _ = medium.fence();
        for Division { of, behind, moved, moves_record, .. } in &divisions {
            let leaf = &leaves[*of];
            leaf.row().hide::<PairCells, M>(*moved, 0);
            if *moves_record {
                // A remove in a new leaf frees the record, and recovery could not tell any more
                // that the entry is hidden.
                self.clear_hidden::<PairCells>(leaf.row(), leaf.leaf);
            }
            // From right to left: until its own separator is there, the keys of a new leaf lead to
            // the divided one.
            for NewLeaf { leaf, separator, word, .. } in behind {
                self.inner.post::<Record>(&self.pool, separator, *word, leaf.at)?;
            }
        }
        self.plan_divided(leaves, divisions, added, changes)
    }

    /// Returns the leaves of a batch with the new ones among them, and decides once more what
    /// changes in each divided leaf and in the new ones behind it.
    fn plan_divided<'a>(
        &self,
        leaves: Vec<BatchLeaf<'a, M>>,
        divisions: Vec<Division<'a, M>>,
        added: &mut [Added],
        changes: &[PairChange<'_>],
    ) -> Result<Vec<BatchLeaf<'a, M>>, TreeError> {
        let ends: Vec<_> =
            leaves.iter().skip(1).map(|leaf| leaf.change).chain([changes.len()]).collect();
        let mut planned = Vec::with_capacity(changes.len());
        let mut divisions = divisions.into_iter().peekable();
        for ((of, old), end) in leaves.into_iter().enumerate().zip(ends) {
            let Some(division) = divisions.next_if(|division| division.of == of) else {
                planned.push(old);
                continue;
            };
            let (mut behind, from) = (division.behind, old.change);
            let first_added = old.added.start;
            let mut part = BatchLeaf::new(old.latched, old.leaf, from, first_added);
            for (at, change) in (from..end).zip(&changes[from..end]) {
                while let Some(next) =
                    behind.pop_if(|next| change.key >= Record::borrow(&next.separator))
                {
                    let next = BatchLeaf::new(next.latched, next.leaf, at, part.added.end);
                    planned.push(core::mem::replace(&mut part, next));
                }
                self.plan_again(&mut part, change, added)?;
            }
            planned.push(part);
        }
        for leaf in &mut planned {
            if !leaf.place(added) {
                return Err(disagreement(leaf.leaf.at, leaf.added.len()).into());
            }
        }
        Ok(planned)
    }

    /// Decides what a change of the batch changes in `leaf`, which has got the entry of its key.
    /// The new entry, if there is one, is the next one of `added`.
    fn plan_again(
        &self,
        leaf: &mut BatchLeaf<'_, M>,
        change: &PairChange<'_>,
        added: &mut [Added],
    ) -> Result<(), Corrupt> {
        let Some(new) = change.new else { return Ok(()) };
        let words = (leaf.row(), leaf.row().notes::<M>());
        let hash = Record::hash(change.key);
        let place = (Self::candidates(hash), hash);
        let found = leaf.leaf.find::<PairCells, Record, M>(&self.pool, words, place, change.key)?;
        if let Some(found) = found {
            leaf.dropped |= bit_of((found.cell, found.slot));
        }
        if new.value().is_some() {
            added[leaf.added.end].former = found.map(|found| found.cell);
            leaf.added.end += 1;
        }
        Ok(())
    }

    /// Writes the new leaves behind one that lacks space. Each leaf gets as many entries, those of
    /// before and the new ones taken together, as fill three quarters of it, or a few at a small
    /// scale. Durable after the next fence.
    fn write_behind<'a>(
        &'a self,
        (of, leaf): (usize, &BatchLeaf<'a, M>),
        added: &[Added],
    ) -> Result<Division<'a, M>, TreeError> {
        let (old, notes, medium) = (leaf.leaf, leaf.row().notes::<M>(), self.pool.medium());
        let low = Record::read(&self.pool, old.low(medium)?)?;
        let high = high_of::<Record, M>(&self.pool, old, BYTES)?.map(|(_, high)| high);
        let new: Vec<_> = added.iter().map(|new| new.entry).collect();
        let sorted = self.in_order::<PairCells>(old, notes, &new, (&low, high.as_ref()))?;
        let entry = |number| old.entry_numbered::<PairCells, M>(medium, &new, number);
        let key = |number| Record::read_entry(&self.pool, entry(number));
        let hash = |entry| Record::hash_entry(&self.pool, entry);
        let is_same = |first, second| Ok(key(first)? == key(second)?);
        let entries_max = if M::has_small_scale() {
            SMALL_LEAF_ENTRIES
        } else {
            old.capacity::<PairCells>() * 3 / 4
        };
        let starts = starts_of(&sorted, entries_max, is_same)?;
        let first = starts.first().copied().unwrap_or(sorted.len());
        let old_ones = |part: Range<usize>| {
            sorted[part].iter().map(|(_, number)| *number).filter(|number| *number < NEW)
        };
        let kept = old_ones(0..first).map(|number| (number, entry(number)));
        let notes = self.with_filter_of::<PairCells>(notes, kept)?;
        let mut division =
            Division { of, behind: Vec::new(), moved: 0, notes, moves_record: false };
        for number in old_ones(first..sorted.len()) {
            division.moved |= 1 << number;
            division.moves_record |= !Record::stands_alone(entry(number).encoding);
        }
        let (mut next, mut end) = (old.next(medium)?, sorted.len());
        for start in starts.into_iter().rev() {
            let hashed = |number| Ok((entry(number), hash(entry(number))?));
            let write = || {
                let entries =
                    old_ones(start..end).map(hashed).collect::<Result<Vec<_>, Corrupt>>()?;
                let above = key(sorted[start].1)?;
                self.new_leaf(entry(sorted[start - 1].1), &above, next, &entries)
            };
            let new = write().inspect_err(|_: &TreeError| self.release_behind(&division.behind))?;
            (next, end) = (new.leaf.at, start);
            division.behind.push(new);
        }
        Ok(division)
    }

    /// Writes a leaf with these entries, for the keys between the entry `below` and `above`.
    fn new_leaf<'a>(
        &'a self,
        below: Entry,
        above: &[u8],
        next: PmPtr,
        entries: &[(Entry, u64)],
    ) -> Result<NewLeaf<'a, M>, TreeError> {
        let separator = Record::between(&self.pool, below, above)?;
        let at = self.pool.reserve(BYTES as u64)?;
        let release = |_: &_| self.pool.release(at, BYTES as u64);
        let leaf = CellLeaf::new(&self.pool, at, BYTES)?;
        let word = Record::store_separator(&self.pool, &separator).inspect_err(release)?;
        let words = fill::<PairCells, M>(self.pool.medium(), leaf, (word, next), entries);
        self.rows.add::<Record, M>(at, BYTES, words);
        let row = self.row_at(at);
        let held = row.latch::<M>().lock();
        let held = held.ok_or_else(|| disagreement(at, entries.len()))?;
        Ok(NewLeaf { latched: (row, held), leaf, separator, word })
    }

    /// Releases new leaves, which nothing reaches.
    #[cold]
    fn release_behind(&self, behind: &[NewLeaf<'_, M>]) {
        for new in behind {
            self.pool.release(new.leaf.at, BYTES as u64);
            key::free_separator::<Record, M>(&self.pool, new.word);
        }
    }
}

/// Returns the first entry of each leaf but the first, as indices of `sorted` entries, at most
/// `entries_max` of which go to one leaf. No key is in two leaves.
fn starts_of(
    sorted: &[(u64, usize)],
    entries_max: usize,
    is_same: impl Fn(usize, usize) -> Result<bool, Corrupt>,
) -> Result<Vec<usize>, Corrupt> {
    let mut starts = Vec::new();
    let mut start = entries_max;
    while start < sorted.len() {
        let [(below, first), (above, second)] = [sorted[start - 1], sorted[start]];
        if below == above && is_same(first, second)? {
            start -= 1;
        }
        starts.push(start);
        start += entries_max;
    }
    Ok(starts)
}
