//! Batches: changes of several pairs, of which a crash or another thread finds all or none.
//!
//! 1. A thread latches all leaves of a batch, from left to right, before it changes one, and
//!    releases them after the last fence. So each lookup finds the pairs of before, or waits for
//!    those of after; once one has found a pair of after, all do.
//! 2. A batch makes each of its cells *batched*: the commit word has the slots that are valid, and
//!    those that were before, which stay as they are; the last word has the number of the batch.
//!    The header of the first leaf has the number of the newest batch that is committed. So one
//!    store commits all cells. A cell stays batched until its next change.
//! 3. Numbers ascend in the order of the commits: a thread has the turn from the number to the last
//!    fence. So all batches up to the newest committed one are.
//! 4. A recovery takes back the cells of a batch that is not committed, before any write. So a
//!    number that comes again is in no cell.
//! 5. A batch in one cell needs no number: the commit word decides.
//! 6. A leaf that lacks space for the entries of a batch is divided before, under its latch. That
//!    changes no pair. New leaves are latched before a thread can reach them.
//! 7. Nothing that can fail comes after the first store to a cell.

mod behind;
pub(super) mod number;
mod plan;
#[cfg(test)]
mod tests;

use super::CellTreeIndex;
use super::leaf::CellLeaf;
use super::place::Candidates;
use super::rows::{CELLS_MAX, LeafWords, bit_of, part_in, place_at, slots_in, slots_of};
use super::word::{CellKind, CommitWord, PairCells, tag_of};
use super::write::Latched;
use crate::index::TreeError;
use crate::inner::{load, store};
use crate::key::{Entry, Record, Value};
use crate::leaf::slots;
use bristlecone_pmem::sync::{Guard, OnDram};
use bristlecone_pmem::{Defect, Fenced, Medium};
use core::ops::Range;
use core::sync::atomic::AtomicU64;
use plan::Plan;

/// A change of one pair in a batch, or a condition on it, or both.
#[derive(Clone, Copy, Debug)]
pub struct PairChange<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The state that the key must have, as the index returned it; `None` for any.
    pub expected: Option<PairState>,
    /// The new state; `None` for no change.
    pub new: Option<PairState>,
}

/// The state of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairState {
    /// There is no pair with the key.
    Absent,
    /// There is one with this value.
    Present(Value),
}

impl PairState {
    /// Returns the value, if there is one.
    pub const fn value(self) -> Option<Value> {
        match self {
            Self::Absent => None,
            Self::Present(value) => Some(value),
        }
    }
}

impl From<Option<Value>> for PairState {
    fn from(value: Option<Value>) -> Self {
        value.map_or(Self::Absent, Self::Present)
    }
}

/// A batch that is committed.
#[derive(Debug)]
pub struct CommittedPairs {
    /// The values that were replaced, if they name records.
    pub formers: Vec<Value>,
}

/// The batches of an index.
#[derive(Debug)]
pub(super) struct Batches {
    /// The latch of the thread that has the turn.
    turn: AtomicU64,
    /// The number of the newest batch that is committed. It changes under that latch.
    newest: AtomicU64,
}

impl Batches {
    /// Returns the batches of an index whose newest committed one has the number `newest`.
    pub(super) fn new(newest: u64) -> Self {
        Self { turn: AtomicU64::new(0), newest: AtomicU64::new(newest) }
    }
}

/// The entries of a leaf beyond which a batch divides it at a
/// [small scale](Medium::has_small_scale).
const SMALL_LEAF_ENTRIES: usize = 3;

/// An entry that a batch adds.
struct Added {
    hash: u64,
    entry: Entry,
    /// The cell of the entry that it replaces, if there is one.
    former: Option<usize>,
    /// The cell and the slot that it takes.
    place: (usize, usize),
}

/// A leaf of a batch.
struct BatchLeaf<'a, M: Medium> {
    latched: Latched<'a, M>,
    leaf: CellLeaf<'a>,
    /// The first change of the batch that the leaf covers.
    change: usize,
    /// The slots whose entries leave, as bits, three for each cell.
    dropped: u64,
    /// The entries that are new, as a range of all that the batch adds.
    added: Range<usize>,
    /// The cells that change, as bits.
    touched: u64,
}

impl<M: Medium, const BYTES: usize> CellTreeIndex<M, Record, BYTES> {
    /// Makes all of `changes`, whose keys ascend strictly, if all of their conditions hold. Returns
    /// `None` if a condition does not hold; nothing has changed then. Durable on return, with the
    /// records that the new values name, which the caller has flushed.
    ///
    /// ```text
    /// A make_space             if a leaf lacks space: new leaves, without a change of a pair
    /// W cells                  entries in free slots, then batched commit words
    /// F cells |                with the records
    /// C number of the batch    8 B, in the header of the first leaf; crash before C: a recovery
    ///                          stores the commit words of before; after C: the new ones count
    /// F header |               -> durable       budget: cells + 1 lines, 2 fences; in one cell
    ///                                           1 line, 1 fence, and 1 more with records
    /// ```
    ///
    /// # Errors
    /// The pool is full, or damaged on the path to a key: nothing has changed.
    pub fn commit_pairs(
        &self,
        changes: &[PairChange<'_>],
    ) -> Result<Option<CommittedPairs>, TreeError> {
        debug_assert!(changes.windows(2).all(|pair| pair[0].key < pair[1].key), "sorted keys");
        if self.injects(Defect::BatchUnlatched) && changes.len() > 1 {
            let mut formers = Vec::new();
            for change in changes.chunks(1) {
                let Some(committed) = self.commit_pairs(change)? else { return Ok(None) };
                formers.extend(committed.formers);
            }
            return Ok(Some(CommittedPairs { formers }));
        }
        let guard = self.pool.pin();
        let Some(plan) = self.plan_all(changes)? else { return Ok(None) };
        let Plan { mut leaves, mut added, formers } = plan;
        let mut has_space = true;
        for leaf in &mut leaves {
            has_space &= leaf.place(&mut added);
        }
        if !has_space {
            leaves = self.make_space(leaves, &mut added, changes)?;
        }
        self.apply_planned(&leaves, &added)?;
        self.merge_after(leaves, changes, &guard);
        Ok(Some(CommittedPairs { formers }))
    }

    fn injects(&self, defect: Defect) -> bool {
        M::INJECTS_DEFECTS && self.pool.medium().injects(defect)
    }

    /// Changes all leaves as planned. Durable on return.
    fn apply_planned(&self, leaves: &[BatchLeaf<'_, M>], added: &[Added]) -> Result<(), TreeError> {
        let first = CellLeaf::new(&self.pool, self.first, BYTES)?;
        if self.injects(Defect::BatchFractured) {
            leaves.chunks(1).for_each(|leaf| self.apply_all(first, leaf, added));
        } else {
            self.apply_all(first, leaves, added);
        }
        Ok(())
    }

    /// Releases the latches, and merges the leaves that a batch has left with few entries.
    fn merge_after(
        &self,
        leaves: Vec<BatchLeaf<'_, M>>,
        changes: &[PairChange<'_>],
        guard: &Guard,
    ) {
        let is_sparse = |leaf: &&BatchLeaf<'_, M>| {
            let loses = leaf.dropped.count_ones() as usize > leaf.added.len();
            loses && leaf.row().at != self.first && Self::count(leaf.row()) <= Self::SPARSE
        };
        let sparse: Vec<_> =
            leaves.iter().filter(is_sparse).map(|leaf| (leaf.change, leaf.row())).collect();
        drop(leaves);
        for (change, row) in sparse {
            let _ = self.merge_sparse(changes[change].key, row, guard); // as after a remove
        }
    }

    /// Changes all leaves together, and their words. Durable on return.
    fn apply_all(&self, first: CellLeaf<'_>, leaves: &[BatchLeaf<'_, M>], added: &[Added]) {
        let cells: u32 = leaves.iter().map(|leaf| leaf.touched.count_ones()).sum();
        match cells {
            0 => {}
            1 => self.apply_to_one(leaves, added),
            _ => self.apply_to_many(first, leaves, added),
        }
        for leaf in leaves {
            leaf.note(added);
        }
    }

    /// Changes one cell. Durable on return.
    fn apply_to_one(&self, leaves: &[BatchLeaf<'_, M>], added: &[Added]) {
        let medium = self.pool.medium();
        let names_record = |new: &Added| !Record::is_inline(new.entry.encoding);
        if added.iter().any(names_record) {
            let _ = medium.fence();
        }
        for leaf in leaves {
            leaf.write_cells(medium, added, None);
        }
        let _ = medium.fence();
    }

    /// Changes several cells. Durable on return.
    fn apply_to_many(&self, first: CellLeaf<'_>, leaves: &[BatchLeaf<'_, M>], added: &[Added]) {
        let medium = self.pool.medium();
        let turn = OnDram::<M>::latch(&self.batches.turn).lock();
        debug_assert!(turn.is_some(), "no thread marks the turn as obsolete");
        let number = load::<M>(&self.batches.newest) + 1;
        for leaf in leaves {
            leaf.write_cells(medium, added, Some(number));
        }
        first.commit_batch(medium, number, self.fence_cells());
        // After the number: a fence of many lines may be synced in parts. The cells are published
        // by it, and their readers must wait for it.
        for leaf in leaves.iter().filter(|leaf| leaf.touched != 0) {
            let cell = leaf.leaf.cell::<PairCells>(leaf.touched.trailing_zeros() as usize);
            medium.flush_for_readers(cell.line());
        }
        let _ = medium.fence();
        store::<M>(&self.batches.newest, number);
    }

    /// Fences the cells of a batch.
    fn fence_cells(&self) -> Fenced {
        if self.injects(Defect::BatchEarly) {
            return Fenced::after_fence(); // Wrong: the number may become durable before the cells.
        }
        self.pool.medium().fence()
    }
}

impl<'a, M: Medium> BatchLeaf<'a, M> {
    /// A leaf that covers the change at index `change`; the next new entry is number `added`.
    const fn new(latched: Latched<'a, M>, leaf: CellLeaf<'a>, change: usize, added: usize) -> Self {
        Self { latched, leaf, change, dropped: 0, added: added..added, touched: 0 }
    }

    /// Returns the words of the leaf.
    fn row(&self) -> LeafWords<'a> {
        self.latched.0
    }

    /// Returns the slots without an entry that counts, as bits. A hidden entry leaves before its
    /// slot is written.
    fn free_slots(&self) -> u64 {
        slots_in(self.leaf.cells()) & !self.row().shown::<M>()
    }

    /// Returns `true` if there are too few free slots for the new entries.
    fn lacks_space(&self) -> bool {
        let free = self.free_slots().count_ones() as usize;
        let kept = self.row().shown::<M>().count_ones() as usize;
        let is_full = M::has_small_scale() && kept + self.added.len() > SMALL_LEAF_ENTRIES;
        is_full || self.added.len() > free
    }

    /// Chooses the places of the new entries. Returns `false` if the leaf lacks space for them.
    fn place(&mut self, added: &mut [Added]) -> bool {
        if self.lacks_space() {
            return false;
        }
        let mut free = self.free_slots();
        let cells = self.leaf.cells();
        let mut touched =
            slots(self.dropped).fold(0, |touched, bit| touched | 1u64 << place_at(bit).0);
        for new in &mut added[self.added.clone()] {
            let in_use = |cell| part_in(cell, !free).count_ones() as usize;
            let former = new.former.filter(|&cell| free & slots_of(cell) != 0);
            let near = Candidates::of(new.hash, cells);
            // There are as many free slots as new entries.
            let Some(cell) =
                former.or_else(|| near.choose((cells, CellKind::Pairs.slots()), in_use))
            else {
                return false;
            };
            let slot = part_in(cell, free).trailing_zeros() as usize;
            new.place = (cell, slot);
            free &= !bit_of(new.place);
            touched |= 1 << cell;
        }
        self.touched = touched;
        true
    }

    /// Writes the cells that change. `added` are the new entries of all leaves, and `number` is
    /// that of the batch; without one, the cell alone is the batch. Durable after the next fence.
    ///
    /// ```text
    /// A cell begin
    /// W entries
    /// C commit word, F cell        crash before: the cell has the same content
    /// ```
    fn write_cells(&self, medium: &M, added: &[Added], number: Option<u64>) {
        let notes = self.row().notes::<M>();
        let mut words = [(CommitWord::<PairCells>::default(), CommitWord::default()); CELLS_MAX];
        for index in slots(self.touched) {
            let cell = self.leaf.cell::<PairCells>(index);
            let former = cell.begin(medium, notes.hidden_in(index), number);
            let kept = cell.without(medium, former, part_in(index, self.dropped));
            words[index] = (former, kept);
        }
        for &Added { entry, place: (index, slot), .. } in &added[self.added.clone()] {
            let cell = self.leaf.cell::<PairCells>(index);
            cell.put(medium, slot, entry);
            let word = &mut words[index].1;
            *word = cell.with_entry(*word, (slot, 0), entry);
        }
        for index in slots(self.touched) {
            let (former, word) = words[index];
            let cell = self.leaf.cell::<PairCells>(index);
            cell.set_commit_word(medium, number.map_or(word, |_| word.with_batch(former)));
            cell.flush(medium);
        }
    }

    /// Brings the words of the leaf up to date with its cells.
    fn note(&self, added: &[Added]) {
        let (row, added) = (self.row(), &added[self.added.clone()]);
        let mut notes = row.notes::<M>();
        for cell in slots(self.touched) {
            notes = notes.without_hidden_in::<PairCells>(cell);
        }
        for bit in slots(self.dropped) {
            row.set_tag::<M>(place_at(bit), 0);
        }
        for new in added {
            row.set_tag::<M>(new.place, tag_of(new.hash));
            if !Candidates::of(new.hash, self.leaf.cells()).is_near(new.place.0) {
                notes = notes.with_far::<PairCells>(new.hash);
            }
        }
        let count = notes.count::<PairCells>() + added.len();
        let count = count.saturating_sub(self.dropped.count_ones() as usize);
        row.set_notes::<M>(notes.with_count::<PairCells>(count));
    }
}
