//! New leaves behind those that lack space for the entries of a batch.

use super::{Added, BatchLeaf};
use crate::designs::cell_tree::CellTreeIndex;
use crate::designs::cell_tree::leaf::CellLeaf;
use crate::designs::cell_tree::leaf_table::high_of;
use crate::designs::cell_tree::place::Candidates;
use crate::designs::cell_tree::rows::{Notes, bit_of, part_in, place_at};
use crate::designs::cell_tree::split::{KeySlots, NEW, fill};
use crate::designs::cell_tree::word::{PairCells, SLOTS_MAX};
use crate::index::TreeError;
use crate::inner::InnerNodes;
use crate::key::{self, Bytes, Entry, Key, Record};
use crate::leaf::slots;
use bristlecone_pmem::{Medium, PmPtr};

/// A new leaf, with its separator.
struct NewLeaf {
    at: PmPtr,
    separator: Bytes,
    word: u64,
}

/// A leaf and the new ones that take its upper entries.
struct Division<'l, 'a, M: Medium> {
    leaf: &'l BatchLeaf<'a, M>,
    /// The new leaves, from right to left.
    behind: Vec<NewLeaf>,
    /// The slots of the entries that move, as bits.
    moved: u64,
    /// The notes of the leaf, with the filter of the entries that stay.
    notes: Notes,
    /// `true` if an entry that moves has a record.
    moves_record: bool,
}

impl<M: Medium, const BYTES: usize> CellTreeIndex<M, Record, BYTES> {
    /// Divides each of `leaves` that lacks space for its new entries, which it does not get. The
    /// leaves stay latched. Durable on return.
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
    pub(super) fn make_space(
        &self,
        leaves: &[BatchLeaf<'_, M>],
        added: &[Added<'_>],
    ) -> Result<(), TreeError> {
        let medium = self.pool.medium();
        let mut divisions: Vec<Division<'_, '_, M>> = Vec::new();
        for leaf in leaves {
            if leaf.added.len() > leaf.free_slots().count_ones() as usize {
                let division = self.write_behind(leaf, &added[leaf.added.clone()]);
                divisions.push(division.inspect_err(|_| {
                    divisions.iter().for_each(|other| self.release_behind(&other.behind));
                })?);
            }
        }
        let used: Vec<_> = divisions
            .iter()
            .map(|division| division.leaf.leaf.used_cells::<PairCells, M>(medium))
            .collect();
        let _ = medium.fence();
        for (Division { leaf, behind, notes, .. }, used) in divisions.iter().zip(used) {
            leaf.row().set_notes::<M>(*notes);
            if let Some(first) = behind.last() {
                leaf.leaf.set_next(medium, first.at, used);
            }
        }
        let _ = medium.fence();
        for division in &divisions {
            division.hide();
            if division.moves_record {
                // A remove in a new leaf frees the record, and recovery could not tell any more
                // that the entry is hidden.
                self.clear_hidden::<PairCells>(division.leaf.row(), division.leaf.leaf);
            }
            // From right to left: until its own separator is there, the keys of a new leaf lead to
            // the latched one, never to another new leaf.
            for NewLeaf { at, separator, word } in &division.behind {
                self.inner.post::<Record>(&self.pool, separator, *word, *at)?;
            }
        }
        Ok(())
    }

    /// Writes the new leaves behind one that lacks space. Each leaf gets as many entries, those of
    /// before and the new ones taken together, as fill three quarters of it. Durable after the next
    /// fence.
    fn write_behind<'l, 'a>(
        &self,
        leaf: &'l BatchLeaf<'a, M>,
        added: &[Added<'_>],
    ) -> Result<Division<'l, 'a, M>, TreeError> {
        let (old, notes, medium) = (leaf.leaf, leaf.row().notes::<M>(), self.pool.medium());
        let low = Record::read(&self.pool, old.low(medium)?)?;
        let high = high_of::<Record, M>(&self.pool, old, BYTES)?.map(|(_, high)| high);
        let mut keys = self.keys::<PairCells>(old, notes, None, (&low, high.as_ref()))?;
        keys.extend(added.iter().map(|new| Bytes::from_slice(new.key)).zip(NEW..));
        keys.sort_unstable();
        let starts = starts_of(&keys, old.capacity::<PairCells>() * 3 / 4);
        let place = |number: usize| (number / SLOTS_MAX, number % SLOTS_MAX);
        let entry = |number: usize| match number.checked_sub(NEW) {
            Some(new) => added[new].entry,
            None => old.entry::<PairCells, M>(medium, place(number).0, place(number).1),
        };
        let first = starts.first().copied().unwrap_or(keys.len());
        let is_old = |(_, number): &&(Bytes, usize)| *number < NEW;
        let mut division =
            Division { leaf, behind: Vec::new(), moved: 0, notes, moves_record: false };
        division.notes = filtered(notes, keys[..first].iter().filter(is_old), self.leaf_cells());
        for (_, number) in keys[first..].iter().filter(is_old) {
            division.moved |= bit_of(place(*number));
            division.moves_record |= !key::stands_alone::<Record, M>(&self.pool, entry(*number));
        }
        let (mut next, mut end) = (old.next(medium)?, keys.len());
        for start in starts.into_iter().rev() {
            let group = keys[start..end].iter().filter(is_old);
            let entries: Vec<_> =
                group.map(|(key, number)| (entry(*number), Record::hash(key))).collect();
            let below = entry(keys[start - 1].1);
            let new = self
                .new_leaf(below, &keys[start].0, next, &entries)
                .inspect_err(|_| self.release_behind(&division.behind))?;
            (next, end) = (new.at, start);
            division.behind.push(new);
        }
        Ok(division)
    }

    /// Writes a leaf with these entries, for the keys between the entry `below` and `above`.
    fn new_leaf(
        &self,
        below: Entry,
        above: &[u8],
        next: PmPtr,
        entries: &[(Entry, u64)],
    ) -> Result<NewLeaf, TreeError> {
        let separator = Record::between(&self.pool, below, above)?;
        let at = self.pool.reserve(BYTES as u64)?;
        let release = |_: &_| self.pool.release(at, BYTES as u64);
        let leaf = CellLeaf::new(&self.pool, at, BYTES)?;
        let word = Record::store_separator(&self.pool, &separator).inspect_err(release)?;
        let words = fill::<PairCells, M>(self.pool.medium(), leaf, (word, next), entries);
        self.rows.add::<Record, M>(at, BYTES, words);
        Ok(NewLeaf { at, separator, word })
    }

    fn leaf_cells(&self) -> usize {
        Self::CELLS
    }

    /// Releases new leaves, which nothing reaches.
    #[cold]
    fn release_behind(&self, behind: &[NewLeaf]) {
        for new in behind {
            self.pool.release(new.at, BYTES as u64);
            key::free_separator::<Record, M>(&self.pool, new.word);
        }
    }
}

impl<M: Medium> Division<'_, '_, M> {
    /// Hides the moved entries in the words of the leaf.
    fn hide(&self) {
        let row = self.leaf.row();
        let mut notes = row.notes::<M>();
        for bit in slots(self.moved) {
            row.set_tag::<M>(place_at(bit), 0);
        }
        for cell in 0..self.leaf.leaf.cells() {
            notes = notes.with_hidden::<PairCells>((cell, part_in(cell, self.moved)), 0);
        }
        let count = notes.count::<PairCells>().saturating_sub(self.moved.count_ones() as usize);
        row.set_notes::<M>(notes.with_count::<PairCells>(count));
    }
}

/// Returns the first key of each leaf but the first, as indices of `keys`, at most `entries_max` of
/// which go to one leaf. No key is in two leaves.
fn starts_of(keys: &KeySlots<Record>, entries_max: usize) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut start = entries_max;
    while start < keys.len() {
        if keys[start].0 == keys[start - 1].0 {
            start -= 1;
        }
        starts.push(start);
        start += entries_max;
    }
    starts
}

/// Returns `notes` with the filter of these entries alone.
fn filtered<'k>(
    notes: Notes,
    kept: impl Iterator<Item = &'k (Bytes, usize)>,
    cells: usize,
) -> Notes {
    kept.fold(notes.without_filter::<PairCells>(), |notes, (key, number)| {
        let hash = Record::hash(key);
        let is_near = Candidates::of(hash, cells).is_near(number / SLOTS_MAX);
        if is_near { notes } else { notes.with_far::<PairCells>(hash) }
    })
}
