//! Insert, update, upsert, remove.

use super::BTreeLsIndex;
use super::chain::Contents;
use super::log::{Refused, Wanted};
use super::record::{self, Range};
use super::table::Row;
use super::tuning::Tuning;
use crate::fingerprint;
use crate::index::TreeError;
use crate::key::{self, Entry, Key};
use crate::leaf_table::{EntryChange, Operation, key_word, latch_leaf};
use bristlecone_pmem::sync::{Guard, pin};
use bristlecone_pmem::{Corrupt, Medium, PmPtr};

/// A change on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingChange {
    pub(super) change: EntryChange,
    /// Keys that are there after it.
    pub(super) live: usize,
    /// Whether a record has just been planted for its key.
    pub(super) is_stored: bool,
}

/// Why a change was not made: an error, or that a log has to be collected first.
#[derive(Debug)]
pub(super) enum WriteError {
    Uncollected { log: usize, full: Option<TreeError> },
    Error(TreeError),
}

impl From<Corrupt> for WriteError {
    fn from(corrupt: Corrupt) -> Self {
        Self::Error(corrupt.into())
    }
}

impl WriteError {
    pub(super) fn refused(log: usize, refused: Refused) -> Self {
        match refused {
            Refused::Uncollected(full) => {
                Self::Uncollected { log, full: full.map(TreeError::from) }
            }
            Refused::Full(full) => Self::Error(full.into()),
        }
    }
}

impl<M: Medium, K: Key, const NODE: usize, T: Tuning> BTreeLsIndex<M, K, NODE, T> {
    #[inline]
    pub(super) fn write(
        &self,
        key: K::Ref<'_>,
        operation: Operation,
    ) -> Result<Option<u64>, TreeError> {
        let guard = pin();
        let mut attempts = 0;
        loop {
            let (row, held) = latch_leaf(self, key, |row| row.prefetch::<K, M>(&self.pool, key))?;
            let seen = row.find::<K, M>(&self.pool, key)?;
            let there = seen.and_then(EntryChange::value);
            let Some(value) = operation.value(there) else { return Ok(there) };
            let live = row.shape::<M>().live() + usize::from(there.is_none());
            let live = live.saturating_sub(usize::from(operation == Operation::Remove));
            let (word, is_stored) = key_word(self, key, value, seen.map(|seen| seen.entry))?;
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
                    return Ok(there);
                }
                Err(unmade) => {
                    if is_stored {
                        key::free_entry_key::<K, M>(&self.pool, change.entry);
                    }
                    attempts += 1;
                    self.ensure_space(unmade, attempts, &guard)?;
                }
            }
        }
    }

    /// Makes a change where there is room for it: as a delta, in a base, or in one of two. Durable at
    /// return.
    ///
    /// ```text
    /// N record of the key |    only of a new key that has a record: the delta names it
    /// W C F delta              1 line    crash before C: no delta
    /// |                        -> durable, and then seen   budget: 1 line, 1 fence
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
        // A base of one line costs what a delta does, and leaves nothing to be put together.
        if incoming.live > 1 && row.shape::<M>().deltas() < T::DELTAS {
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

    /// Appends a record of a leaf, in place of lines of its log that are live no more once it is durable.
    pub(super) fn append(
        &self,
        leaf: u64,
        image: &[u64],
        replaced: usize,
        is_collected: bool,
    ) -> Result<Result<PmPtr, Refused>, Corrupt> {
        let wanted = Wanted { log: T::log_of(leaf), image, replaced, is_collected };
        self.log.append(&self.pool, self.root_words()?, &wanted)
    }

    /// Appends a base with all of a leaf, in place of its chain. Durable at return.
    ///
    /// ```text
    /// W C F base     its lines   crash before the last C: the chain says what it said
    /// |              -> durable, and then seen; the chain is garbage
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
            .append(leaf, &image, row.shape::<M>().lines(), false)?
            .map_err(|refused| WriteError::refused(T::log_of(leaf), refused))?;
        let _ = self.pool.medium().fence();
        self.log.drop_lines(T::log_of(leaf), row.shape::<M>().lines());
        row.set_base::<M>(at, contents.prints(), sequence);
        self.retire_all(&contents.gone, guard);
        Ok(())
    }

    /// Retires the records of keys that no chain has any more. One that is damaged stays in use until the
    /// next recovery.
    pub(super) fn retire_all(&self, gone: &[Entry], guard: &Guard) {
        for &entry in gone {
            let _ = key::retire_entry::<K, M>(&self.pool, entry, guard);
        }
    }
}
