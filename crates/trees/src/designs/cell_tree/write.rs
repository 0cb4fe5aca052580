//! Insert, update and upsert.

use super::CellTreeIndex;
use super::epoch::Note;
use super::leaf::CellLeaf;
use super::rows::{LeafWords, Notes};
use super::word::{CellLayout, with_kind};
use crate::index::{TreeError, WriteMode};
use crate::key::{Entry, Key};
use crate::leaf_table::{Operation, key_word, latch_leaf};
use bristlecone_pmem::Medium;
use bristlecone_pmem::sync::{Exclusive, OnDram};
use core::ops::ControlFlow;

/// A row and the guard of its latch.
pub(super) type Latched<'a, M> = (LeafWords<'a>, Exclusive<OnDram<'a, M>>);

/// An entry for an absent key, before it is in a leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewEntry<K> {
    pub(super) key: K,
    pub(super) hash: u64,
    pub(super) entry: Entry,
}

impl<M: Medium, K: Key, const BYTES: usize> CellTreeIndex<M, K, BYTES> {
    #[inline]
    pub(super) fn write(
        &self,
        key: K::Ref<'_>,
        value: u64,
        mode: WriteMode,
    ) -> Result<Option<u64>, TreeError> {
        let _guard = self.pool.pin();
        let hash = K::hash(key);
        loop {
            let (row, held) = latch_leaf(self, key, |row| self.prefetch_cells(row, key))?;
            let notes = row.notes::<M>();
            let done = with_kind!(notes.kind::<K>(), C => {
                self.write_in::<C>((row, held), notes, (key, hash), (mode, value))
            });
            if let ControlFlow::Break(old) = done? {
                return Ok(old);
            }
        }
    }

    /// Writes to a latched leaf with these notes. Returns the value before, or to continue if the
    /// leaf is split and the write has to begin again.
    #[inline(always)]
    fn write_in<C: CellLayout>(
        &self,
        (row, held): Latched<'_, M>,
        notes: Notes,
        (key, hash): (K::Ref<'_>, u64),
        (mode, value): (WriteMode, u64),
    ) -> Result<ControlFlow<Option<u64>>, TreeError> {
        let (leaf, medium, candidates) =
            (self.leaf(row)?, self.pool.medium(), Self::candidates(hash));
        let found = leaf.find::<C, K, M>(&self.pool, notes, (candidates, hash), key)?;
        let old = found.map(|found| found.entry.value);
        let Some(value) = Operation::Write(mode, value).value(old) else {
            return Ok(ControlFlow::Break(old));
        };
        if let Some(found) = found {
            leaf.cell::<C>(found.cell).update(medium, found.slot, found.entry, value);
            return Ok(ControlFlow::Break(old));
        }
        let (word, is_stored) = key_word(self, key, value, None)?;
        let new = NewEntry { key, hash, entry: Entry::plain(word, value) };
        let cell = leaf.choose::<C, M>(medium, notes, candidates);
        if let Some(cell) = cell.filter(|_| notes.count::<C>() + 1 < leaf.capacity::<C>()) {
            self.insert_absent::<C>(row, leaf, cell, &new, is_stored);
            return Ok(ControlFlow::Break(None));
        }
        let is_done = self.split::<C>((row, held), &new, cell)?;
        Ok(if is_done { ControlFlow::Break(None) } else { ControlFlow::Continue(()) })
    }

    /// Inserts an absent key into `cell` of its latched leaf, which has a free slot. Durable on
    /// return, with the key's record if it has a new one. `is_stored` is `true` if it has one that
    /// no fence has followed.
    ///
    /// ```text
    /// A add |              -> durable    with a note of the new record, if there is one
    ///                                    budget: 1 line, 1 fence
    /// ```
    #[inline(always)]
    fn insert_absent<C: CellLayout>(
        &self,
        row: LeafWords<'_>,
        leaf: CellLeaf<'_>,
        cell: usize,
        new: &NewEntry<K::Ref<'_>>,
        is_stored: bool,
    ) {
        let note = (is_stored && !K::EXACT).then(|| Note::new(new.hash, self.epoch));
        self.add::<C>(row, leaf, cell, (new.hash, new.entry), note);
        let _ = self.pool.medium().fence();
    }

    /// Adds an absent key to `cell` of its latched leaf, which has a free slot. Durable after the
    /// next fence. The caller has made durable the key's record, or gives a note of it.
    ///
    /// ```text
    /// W commit word                      without hidden entries, if the cell has some
    /// A cell insert
    /// ```
    #[inline(always)]
    pub(super) fn add<C: CellLayout>(
        &self,
        row: LeafWords<'_>,
        leaf: CellLeaf<'_>,
        cell: usize,
        (hash, entry): (u64, Entry),
        note: Option<Note>,
    ) {
        let (medium, mut notes) = (self.pool.medium(), row.notes::<M>());
        if !Self::candidates(hash).is_near(cell) {
            notes = notes.with_far::<C>(hash);
        }
        let hidden = leaf.hidden_in::<C, M>(medium, notes, cell);
        if hidden != 0 {
            leaf.cell::<C>(cell).clear(medium, hidden);
        }
        leaf.cell::<C>(cell).insert(medium, hash, entry, note);
        row.set_notes::<M>(
            notes.without_hidden_in::<C>(cell).with_count::<C>(notes.count::<C>() + 1),
        );
    }
}
