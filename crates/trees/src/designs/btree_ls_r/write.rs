//! Insert, update, upsert and remove.

use super::BTreeLsRIndex;
use super::log::{AppendError, AppendRequest};
use super::record::{self, Range};
use super::table::Row;
use super::tuning::Tuning;
use crate::fingerprint;
use crate::index::TreeError;
use crate::key::{self, Entry, Key};
use crate::leaf_table::Contents;
use crate::leaf_table::{EntryChange, Operation, key_word, latch_leaf};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Medium, PmPtr};

/// A change that is being made.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingChange {
    pub(super) change: EntryChange,
    /// The number of keys in the leaf after the change.
    pub(super) live: usize,
    /// `true` if a new key record was written for it.
    pub(super) is_stored: bool,
}

/// The reason why a change was not made.
#[derive(Debug)]
pub(super) enum WriteError {
    NeedsCollection { log: usize, full: Option<TreeError> },
    Error(TreeError),
}

impl From<Corrupt> for WriteError {
    fn from(corrupt: Corrupt) -> Self {
        Self::Error(corrupt.into())
    }
}

impl WriteError {
    pub(super) fn of_append(log: usize, error: AppendError) -> Self {
        match error {
            AppendError::NeedsCollection(full) => {
                Self::NeedsCollection { log, full: full.map(TreeError::from) }
            }
            AppendError::Full(full) => Self::Error(full.into()),
        }
    }
}

impl<M: Medium, K: Key, const NODE: usize, T: Tuning> BTreeLsRIndex<M, K, NODE, T> {
    #[inline]
    pub(super) fn write(
        &self,
        key: K::Ref<'_>,
        operation: Operation,
    ) -> Result<Option<u64>, TreeError> {
        let guard = self.pool.pin();
        let mut attempts = 0;
        loop {
            let (row, held) = latch_leaf(self, key, |row| row.prefetch::<K, M>(&self.pool, key))?;
            let found = row.find::<K, M>(&self.pool, key)?;
            let old = found.and_then(EntryChange::value);
            let Some(value) = operation.value(old) else { return Ok(old) };
            let live = row.size::<M>().live() + usize::from(old.is_none());
            let live = live.saturating_sub(usize::from(operation == Operation::Remove));
            let (word, is_stored) = key_word(self, key, value, found.map(|found| found.entry))?;
            let change = EntryChange {
                entry: Entry::plain(word, value),
                is_removed: operation == Operation::Remove,
            };
            let incoming = PendingChange { change, live, is_stored };
            let log = T::log_of(row.leaf::<M>());
            let put = self.put(row, key, &incoming, &guard);
            drop(held);
            match put {
                Ok(()) => {
                    let is_sparse = operation == Operation::Remove && live <= Self::SPARSE;
                    let merged = if is_sparse { self.merge_at(key, &guard)? } else { None };
                    merged
                        .into_iter()
                        .chain([log])
                        .try_for_each(|log| self.maintain_log(log, &guard))?;
                    return Ok(old);
                }
                Err(failed) => {
                    if is_stored {
                        key::free_entry_key::<K, M>(&self.pool, change.entry);
                    }
                    attempts += 1;
                    self.ensure_space(failed, attempts, &guard)?;
                }
            }
        }
    }

    /// Makes a change: as a delta, in a new base, or in a split. Durable on return.
    ///
    /// ```text
    /// N record of the key |    only for a new key, if its layer has records
    /// W C F delta              1 line    crash before C: no delta
    /// |                        -> durable, then visible   budget: 1 line, 1 fence
    /// ```
    fn put(
        &self,
        row: Row<'_>,
        key: K::Ref<'_>,
        incoming: &PendingChange,
        guard: &Guard,
    ) -> Result<(), WriteError> {
        if incoming.live > Self::CAPACITY {
            return self.split(row, key, incoming, guard);
        }
        if incoming.is_stored {
            let _ = self.pool.medium().fence();
        }
        // A base of one line costs the same as a delta and needs no consolidation later.
        if incoming.live > 1 && row.size::<M>().deltas() < T::DELTAS {
            let sequence = row.sequence::<M>() + 1;
            let image = record::delta_image(row.leaf::<M>(), sequence, incoming.change);
            if let Ok(at) = self.append(row.leaf::<M>(), &image, 0, false)? {
                let _ = self.pool.medium().fence();
                row.push_delta::<M>(at, fingerprint::of(K::hash(key)), incoming.live);
                return Ok(());
            }
        }
        let mut contents = row.contents::<K, M>(&self.pool)?;
        contents.apply(K::to_owned(key), incoming.change);
        let range = row.base_in(&self.pool)?.range(self.pool.medium());
        self.rewrite(row, row.sequence::<M>() + 1, range, &contents, guard)
    }

    /// Appends a record of a leaf. `replaced` is the number of lines that stop being live once it
    /// is durable.
    pub(super) fn append(
        &self,
        leaf: u64,
        image: &[u64],
        replaced: usize,
        is_gc_copy: bool,
    ) -> Result<Result<PmPtr, AppendError>, Corrupt> {
        let request = AppendRequest { log: T::log_of(leaf), image, replaced, is_gc_copy };
        self.log.append(&self.pool, self.root_words()?, &request)
    }

    /// Consolidates a chain: appends a base with the whole leaf in its place. Durable on return.
    ///
    /// ```text
    /// W C F base     its lines   crash before the last C: the chain is unchanged
    /// |              -> durable, then visible; the old chain is garbage
    /// ```
    pub(super) fn rewrite(
        &self,
        row: Row<'_>,
        sequence: u64,
        range: Range,
        contents: &Contents<K>,
        guard: &Guard,
    ) -> Result<(), WriteError> {
        let (leaf, pairs) = (row.leaf::<M>(), &contents.pairs);
        let items = pairs.iter().map(|(_, entry)| entry);
        let image = record::base_image(leaf, sequence, range, items);
        let at = self
            .append(leaf, &image, row.size::<M>().lines(), false)?
            .map_err(|error| WriteError::of_append(T::log_of(leaf), error))?;
        let _ = self.pool.medium().fence();
        self.log.drop_lines(T::log_of(leaf), row.size::<M>().lines());
        row.set_base::<M>(at, contents.fingerprints(), sequence);
        self.retire_all(&contents.removed, guard);
        Ok(())
    }

    /// Retires the key records that no chain names any more. A damaged one is skipped and stays
    /// reserved until the next recovery.
    pub(super) fn retire_all(&self, removed: &[Entry], guard: &Guard) {
        for &entry in removed {
            let _ = key::retire_entry::<K, M>(&self.pool, entry, guard);
        }
    }
}
