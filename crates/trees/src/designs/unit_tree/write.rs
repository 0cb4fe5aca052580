//! Insert, update, upsert and remove.

use super::UnitTreeIndex;
use super::rows::{Pending, REFERENCES, UnitRow, tag_of};
use super::settle::Unlogged;
use super::unit::{UnitLeaf, home_of};
use crate::index::TreeError;
use crate::key::{self, Entry, Key};
use crate::leaf_table::{EntryChange, Operation, key_word, latch_leaf};
use bristlecone_pmem::{Corrupt, Medium};

/// The newest write of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyState {
    /// The reference to its record, with the change, if the row has one.
    pub(super) reference: Option<(usize, EntryChange)>,
    /// The entry in a unit, if there is no reference, and one has the key.
    pub(super) entry: Option<Entry>,
}

impl KeyState {
    /// Returns the value; `None` if the key is absent.
    #[inline(always)]
    pub(super) fn value(&self) -> Option<u64> {
        match self.reference {
            Some((_, change)) => change.value(),
            None => self.entry.map(|entry| entry.value),
        }
    }
}

impl<M: Medium, K: Key, const BYTES: usize> UnitTreeIndex<M, K, BYTES> {
    /// Returns the newest write of `key`, which has this hash. A writer may run at the same time;
    /// the caller validates.
    #[inline(always)]
    pub(super) fn key_state(
        &self,
        row: UnitRow<'_>,
        leaf: UnitLeaf<'_, BYTES>,
        (key, hash): (K::Ref<'_>, u64),
    ) -> Result<KeyState, Corrupt> {
        if K::EXACT {
            for at in row.tagged::<M>(tag_of(hash)) {
                let change = self.log.change(&self.pool, row.position::<M>(at))?;
                if K::order_entry(&self.pool, change.entry, key)?.is_eq() {
                    return Ok(KeyState { reference: Some((at, change)), entry: None });
                }
            }
        }
        let home = home_of(hash);
        let found = leaf.find::<K, M>(&self.pool, (home, row.is_spilled::<M>(home)), key)?;
        Ok(KeyState { reference: None, entry: found.map(|(_, entry)| entry) })
    }

    /// Does `operation` and returns the value before. Durable on return.
    pub(super) fn write(
        &self,
        key: K::Ref<'_>,
        operation: Operation,
    ) -> Result<Option<u64>, TreeError> {
        let guard = self.pool.pin();
        let hash = K::hash(key);
        loop {
            let (row, held) = latch_leaf(self, key, |row| self.prefetch_home(row, hash))?;
            let leaf = self.leaf(row)?;
            let state = self.key_state(row, leaf, (key, hash))?;
            let Some(value) = operation.value(state.value()) else { return Ok(state.value()) };
            let is_new = state.reference.is_none() && state.entry.is_none();
            let taken = leaf.used(self.pool.medium()) + row.pending::<M>().fresh;
            if is_new && taken >= UnitLeaf::<BYTES>::CAPACITY {
                self.split((row, held), leaf)?;
                continue;
            }
            let existing = state.reference.map(|(_, change)| change.entry).or(state.entry);
            let (word, is_stored) = key_word(self, key, value, existing)?;
            let is_removed = operation == Operation::Remove;
            let change = EntryChange { entry: Entry::plain(word, value), is_removed };
            let is_logged = self.put(row, leaf, (change, hash), &state).inspect_err(|_| {
                if is_stored {
                    key::free_entry_key::<K, M>(&self.pool, change.entry);
                }
            })?;
            let live = self.live(leaf, row.pending::<M>());
            drop(held);
            if K::EXACT {
                self.clean(!is_logged, &guard);
            }
            if is_removed {
                key::retire_entry::<K, M>(&self.pool, change.entry, &guard)?;
                // The left neighbour may have too many entries, so this tries at some counts.
                if live <= Self::SPARSE && (live == 0 || live.is_power_of_two()) {
                    // The remove is durable. Damage that this meets is in another node, and the
                    // next operation that reads that node reports it.
                    let _ = self.merge_sparse(key, leaf.at, &guard);
                }
            }
            return Ok(state.value());
        }
    }

    /// Makes a change of the key with this hash and state in a latched leaf, which has room for
    /// it. Returns `true` if it is logged. Durable on return.
    ///
    /// ```text
    /// settle_fullest              only if the row has no room for a reference
    /// append a record |           as `Logs::append`     -> durable     budget: 1 line, 1 fence
    /// or settle_unit with the change     keys with records; or the logs have no room
    /// ```
    fn put(
        &self,
        row: UnitRow<'_>,
        leaf: UnitLeaf<'_, BYTES>,
        (change, hash): (EntryChange, u64),
        state: &KeyState,
    ) -> Result<bool, Corrupt> {
        let replaced = state.reference.map(|(at, _)| at);
        if K::EXACT {
            if replaced.is_none() && row.pending::<M>().count == REFERENCES {
                self.settle_fullest(row, leaf)?;
            }
            let (root, logged) = (self.root_words()?, (change, row.version::<M>()));
            let appended = self.log.append(&self.pool, root, logged, self.log_target())?;
            if let Some((position, version)) = appended {
                row.set_version::<M>(version);
                let pending = row.pending::<M>();
                let removed = pending.removed + usize::from(change.is_removed);
                if let Some((at, former)) = state.reference {
                    let removed = removed.saturating_sub(usize::from(former.is_removed));
                    row.replace::<M>(at, position.word(), Pending { removed, ..pending });
                    return Ok(true);
                }
                let fresh = pending.fresh + usize::from(state.entry.is_none());
                row.add::<M>(tag_of(hash), position.word(), Pending { fresh, removed, ..pending });
                if pending.count + 1 == REFERENCES && self.maintainers.are_registered::<M>() {
                    self.rows.note_full(row);
                }
                return Ok(true);
            }
        }
        self.settle_unit(row, leaf, home_of(hash), Some(&Unlogged { change, replaced }))?;
        Ok(false)
    }

    /// Prefetches what a lookup of a key with this hash reads.
    #[inline(always)]
    pub(super) fn prefetch_home(&self, row: UnitRow<'_>, hash: u64) {
        row.prefetch();
        if let Ok(leaf) = self.leaf(row) {
            leaf.prefetch(self.pool.medium(), home_of(hash));
        }
    }
}
