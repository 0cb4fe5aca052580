//! Insert, update, upsert and replace.

use super::CellTreeIndex;
use super::epoch::Note;
use super::leaf::{CellLeaf, Placed};
use super::rows::{LeafWords, Notes};
use super::word::{CellLayout, tag_of, with_kind};
use crate::index::{TreeError, WriteMode};
use crate::key::{Entry, Key, Value};
use crate::leaf_table::{key_word, latch_leaf};
use bristlecone_pmem::sync::{Exclusive, OnDram};
use bristlecone_pmem::{Defect, Medium};
use core::ops::ControlFlow;

/// A row and the guard of its latch.
pub(super) type Latched<'a, M> = (LeafWords<'a>, Exclusive<OnDram<'a, M>>);

/// An entry for an absent key, before it is in a leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewEntry {
    pub(super) hash: u64,
    pub(super) entry: Entry,
}

impl<M: Medium, K: Key, const BYTES: usize> CellTreeIndex<M, K, BYTES> {
    #[inline]
    pub(super) fn write_plain(
        &self,
        key: K::Ref<'_>,
        value: u64,
        mode: WriteMode,
    ) -> Result<Option<u64>, TreeError> {
        Ok(self.write(key, Value::plain(value), mode)?.map(|value| value.word))
    }

    /// Writes `value` as `mode` says, and returns the value before. Durable on return, with the
    /// record that the value names, which the caller has flushed.
    #[inline]
    pub(super) fn write(
        &self,
        key: K::Ref<'_>,
        value: Value,
        mode: WriteMode,
    ) -> Result<Option<Value>, TreeError> {
        self.write_if(key, value, |old| match mode {
            WriteMode::Insert => old.is_none(),
            WriteMode::Update => old.is_some(),
            WriteMode::Upsert => true,
        })
    }

    /// As [`write`](Self::write), if `is_wanted` returns `true` for the value before.
    #[inline(always)]
    pub(super) fn write_if(
        &self,
        key: K::Ref<'_>,
        value: Value,
        is_wanted: impl Fn(Option<Value>) -> bool + Copy,
    ) -> Result<Option<Value>, TreeError> {
        let _guard = self.pool.pin();
        let hash = K::hash(key);
        loop {
            let (row, held) = latch_leaf(self, key, |row| self.prefetch_cells(row, key))?;
            let notes = row.notes::<M>();
            let done = with_kind!(notes.kind::<K>(), C => {
                self.write_in::<C>((row, held), notes, (key, hash), value, is_wanted)
            });
            // By its fields: a copy of the whole would wait for their stores, behind the fence.
            match done {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(None)) => return Ok(None),
                Ok(ControlFlow::Break(Some(Value { word, encoding }))) => {
                    return Ok(Some(Value { word, encoding }));
                }
                Err(error) => return Err(error),
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
        value: Value,
        is_wanted: impl Fn(Option<Value>) -> bool,
    ) -> Result<ControlFlow<Option<Value>>, TreeError> {
        let (leaf, medium, candidates) =
            (self.leaf(row)?, self.pool.medium(), Self::candidates(hash));
        let found = leaf.find::<C, K, M>(&self.pool, (row, notes), (candidates, hash), key)?;
        let old = found.map(|found| found.entry.held_value());
        if !is_wanted(old) {
            return Ok(ControlFlow::Break(old));
        }
        if let Some(found) = found {
            self.update_present::<C>(leaf, found, value);
            return Ok(ControlFlow::Break(old));
        }
        let (word, is_stored) = key_word(self, key, value.word, None)?;
        let entry = Entry { key: word, value: value.word, encoding: value.encoding };
        let new = NewEntry { hash, entry };
        let cell = leaf.choose::<C, M>(medium, (row, notes), candidates);
        if let Some(cell) = cell.filter(|_| notes.count::<C>() + 1 < leaf.capacity::<C>()) {
            self.insert_absent::<C>((row, leaf), cell, &new, is_stored);
            return Ok(ControlFlow::Break(None));
        }
        let is_done = self.split::<C>((row, held), &new, cell)?;
        Ok(if is_done { ControlFlow::Break(None) } else { ControlFlow::Continue(()) })
    }

    /// Replaces the value of an entry of a latched leaf. Durable on return, with the record of the
    /// new value, if there is one.
    ///
    /// ```text
    /// |                                  with a record alone
    /// A cell update | -> durable         budget: 1 line, 1 fence; 2 with a record
    /// ```
    #[inline(always)]
    fn update_present<C: CellLayout>(&self, leaf: CellLeaf<'_>, found: Placed, value: Value) {
        let new = Entry { value: value.word, encoding: value.encoding, ..found.entry };
        self.fence_record(new);
        leaf.cell::<C>(found.cell).update(self.pool.medium(), found.slot, found.entry, value);
    }

    /// Fences the record that an entry names as its value, if there is one. The caller has flushed
    /// it.
    #[inline(always)]
    fn fence_record(&self, entry: Entry) {
        let medium = self.pool.medium();
        let is_skipped = M::INJECTS_DEFECTS && medium.injects(Defect::ValueRecordUnfenced);
        if K::HAS_ENCODINGS && !K::stands_alone(entry.encoding) && !is_skipped {
            let _ = medium.fence();
        }
    }

    /// Inserts an absent key into `cell` of its latched leaf, which has a free slot. Durable on
    /// return, with the record of the entry, if it has one. `is_stored` is `true` if its key has a
    /// new one.
    ///
    /// ```text
    /// |                                  with a record of a value alone
    /// A add |              -> durable    with a note of the record of a key, if it is new
    ///                                    budget: 1 line, 1 fence; 2 with a record of a value
    /// ```
    #[inline(always)]
    fn insert_absent<C: CellLayout>(
        &self,
        (row, leaf): (LeafWords<'_>, CellLeaf<'_>),
        cell: usize,
        new: &NewEntry,
        is_stored: bool,
    ) {
        self.fence_record(new.entry);
        let note = (is_stored && !K::EXACT).then(|| Note::new(new.hash, self.epoch));
        self.add::<C>(row, leaf, cell, (new.hash, new.entry), note);
        let _ = self.pool.medium().fence();
    }

    /// Removes the hidden entries of a cell of a latched leaf. Durable with the next change of the
    /// cell.
    ///
    /// ```text
    /// W commit word
    /// ```
    #[inline(always)]
    fn clear_hidden_in<C: CellLayout>(&self, row: LeafWords<'_>, leaf: CellLeaf<'_>, cell: usize) {
        let (medium, notes) = (self.pool.medium(), row.notes::<M>());
        let hidden = leaf.hidden_in::<C, M>(medium, notes, cell);
        if hidden != 0 {
            leaf.cell::<C>(cell).clear(medium, hidden);
            row.set_notes::<M>(notes.without_hidden_in::<C>(cell));
        }
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
        let medium = self.pool.medium();
        self.clear_hidden_in::<C>(row, leaf, cell);
        let slot = leaf.cell::<C>(cell).insert(medium, hash, entry, note);
        row.set_tag::<M>((cell, slot), tag_of(hash));
        let mut notes = row.notes::<M>();
        if !Self::candidates(hash).is_near(cell) {
            notes = notes.with_far::<C>(hash);
        }
        row.set_notes::<M>(notes.with_count::<C>(notes.count::<C>() + 1));
    }
}
