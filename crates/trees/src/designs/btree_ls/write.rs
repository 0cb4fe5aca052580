//! Insert, update, upsert and remove.

use super::BTreeLsIndex;
use super::chain::FoldedChain;
use super::log::{AppendedRecord, NotAppended};
use super::record::{self, BaseOrigin, LeafRange};
use super::table::ChainRow;
use super::tuning::LsOptions;
use crate::index::TreeError;
use crate::key::{self, Entry, Key};
use crate::leaf_table::{Contents, EntryChange, Operation, key_word, latch_leaf};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};

/// A change that is being made.
#[derive(Clone, Copy, Debug)]
pub(super) struct IncomingChange {
    pub(super) change: EntryChange,
    /// The number of keys in the leaf after the change.
    pub(super) live: usize,
    /// `true` if a new key record was written for it.
    pub(super) is_stored: bool,
}

/// The reason why a change was not made.
#[derive(Debug)]
pub(super) enum NotWritten {
    NeedsCollection { log: usize, full: Option<TreeError> },
    Error(TreeError),
}

impl From<Corrupt> for NotWritten {
    fn from(corrupt: Corrupt) -> Self {
        Self::Error(corrupt.into())
    }
}

impl NotWritten {
    /// Returns `Ok` for lack of space, and the error for damage.
    pub(super) fn lacks_space(self) -> Result<(), Corrupt> {
        match self {
            Self::Error(TreeError::Pool(bristlecone_pmem::PoolError::Corrupt(corrupt))) => {
                Err(corrupt)
            }
            Self::Error(_) | Self::NeedsCollection { .. } => Ok(()),
        }
    }
}

impl<M: Medium, K: Key, const NODE: usize, T: LsOptions> BTreeLsIndex<M, K, NODE, T> {
    #[inline]
    pub(super) fn write(
        &self,
        key: K::Ref<'_>,
        operation: Operation,
    ) -> Result<Option<u64>, TreeError> {
        let guard = self.pool.pin();
        let mut attempts = 0;
        loop {
            let (row, held) = latch_leaf(self, key, |row| row.prefetch::<M, T>(&self.pool))?;
            let found = row.find::<K, M>(&self.pool, key)?;
            let old = found.and_then(EntryChange::value);
            let Some(value) = operation.value(old) else { return Ok(old) };
            let live = row.size::<M>().live + usize::from(old.is_none());
            let live = live.saturating_sub(usize::from(operation == Operation::Remove));
            let (word, is_stored) = key_word(self, key, value, found.map(|found| found.entry))?;
            let change = EntryChange {
                entry: Entry::plain(word, value),
                is_removed: operation == Operation::Remove,
            };
            let incoming = IncomingChange { change, live, is_stored };
            let (log, mut touched) = (T::log_of(row.leaf::<M>()), Vec::new());
            let put = self.put(row, key, &incoming, &guard, &mut touched);
            drop(held);
            match put {
                Ok(()) => {
                    if operation == Operation::Remove && live <= Self::SPARSE {
                        self.merge_at(key, &guard, &mut touched)?;
                    }
                    touched.iter().try_for_each(|&log| self.clear_if_dead(log, &guard))?;
                    self.maintain_log(log, &guard)?;
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

    /// Makes a change: as a delta; if the chain has as many items as a node, in a split, or in a
    /// base. Durable on return. Adds the logs in which lines stopped being live to `touched`.
    ///
    /// ```text
    /// N record of the key |    only for a new key, if its layer has records
    /// W C F delta              1 line    crash before C: no delta
    /// |                        -> durable, then visible   budget: 1 line, 1 fence
    /// ```
    fn put(
        &self,
        row: ChainRow<'_>,
        key: K::Ref<'_>,
        incoming: &IncomingChange,
        guard: &Guard,
        touched: &mut Vec<usize>,
    ) -> Result<(), NotWritten> {
        if incoming.is_stored {
            let _ = self.pool.medium().fence();
        }
        let (leaf, size) = (row.leaf::<M>(), row.size::<M>());
        let is_long = size.items + 1 > Self::CAPACITY;
        // A base without items costs the same as a delta, and drops the removed keys.
        if !is_long && incoming.live > 0 {
            let image = record::delta_image(leaf, row.head::<M>(), incoming.change);
            match self.append(leaf, &image, 0, false)? {
                Ok(at) => {
                    self.push_delta(row, at, incoming.live, touched);
                    return Ok(());
                }
                Err(error) if incoming.live > size.live => {
                    return Err(Self::failed(leaf, error));
                }
                Err(_) => {}
            }
        }
        let chain = FoldedChain::<K>::read(&self.pool, row.head::<M>())?;
        let mut contents = chain.contents;
        contents.apply(K::to_owned(key), incoming.change);
        let range = chain.base.range(self.pool.medium());
        if is_long && contents.pairs.len() > Self::CAPACITY / 2 {
            match self.split(row, range, &contents, guard, touched) {
                // A change that adds no key needs no split.
                Err(error) if contents.pairs.len() <= Self::CAPACITY => error.lacks_space()?,
                split => return split,
            }
        }
        self.rewrite(row, range, &contents, false, guard, touched)
    }

    /// Makes a delta durable and then visible.
    fn push_delta(&self, row: ChainRow<'_>, at: PmPtr, live: usize, touched: &mut Vec<usize>) {
        let medium = self.pool.medium();
        let is_early = M::INJECTS_DEFECTS && medium.injects(Defect::LsDeltaEarly);
        if !is_early {
            let _ = medium.fence();
        }
        let after = row.after::<M>();
        row.push_delta::<M, T>(at, live);
        self.confirm(after, touched);
    }

    /// Counts a base that waited for the end of leaf `after` as replaced: a later record of its
    /// chain, or the end of its own leaf, is durable.
    pub(super) fn confirm(&self, after: Option<u64>, touched: &mut Vec<usize>) {
        if let Some(ended) = after {
            self.log.confirm(ended);
            touched.push(T::log_of(ended));
        }
    }

    pub(super) fn failed(leaf: u64, error: NotAppended) -> NotWritten {
        match error {
            NotAppended::NeedsCollection(full) => NotWritten::NeedsCollection {
                log: T::log_of(leaf),
                full: full.map(TreeError::from),
            },
            NotAppended::Full(full) => NotWritten::Error(full.into()),
        }
    }

    /// Appends a record of a leaf. `replaced` is the number of lines that stop being live once it
    /// is durable.
    pub(super) fn append(
        &self,
        leaf: u64,
        image: &[u64],
        replaced: usize,
        is_gc_copy: bool,
    ) -> Result<Result<PmPtr, NotAppended>, Corrupt> {
        let request = AppendedRecord { log: T::log_of(leaf), image, replaced, is_gc_copy };
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
        row: ChainRow<'_>,
        range: LeafRange,
        contents: &Contents<K>,
        is_gc_copy: bool,
        guard: &Guard,
        touched: &mut Vec<usize>,
    ) -> Result<(), NotWritten> {
        let (leaf, lines) = (row.leaf::<M>(), row.size::<M>().lines);
        let items = contents.pairs.iter().map(|(_, entry)| entry);
        let image = record::base_image(leaf, BaseOrigin::COUNTS, range, items);
        let at = self
            .append(leaf, &image, lines, is_gc_copy)?
            .map_err(|error| Self::failed(leaf, error))?;
        let _ = self.pool.medium().fence();
        self.replace(row, at, contents, None, touched);
        self.retire_all(&contents.removed, guard);
        Ok(())
    }

    /// Makes a durable base visible in place of the chain.
    pub(super) fn replace(
        &self,
        row: ChainRow<'_>,
        at: PmPtr,
        contents: &Contents<K>,
        after: Option<u64>,
        touched: &mut Vec<usize>,
    ) {
        let (leaf, former) = (row.leaf::<M>(), row.after::<M>());
        self.log.drop_lines(T::log_of(leaf), row.size::<M>().lines);
        row.set_base::<M>(leaf, at, contents.pairs.len(), after);
        self.confirm(former, touched);
    }

    /// Retires the key records that no chain names any more. A damaged one is skipped and stays
    /// reserved until the next recovery.
    pub(super) fn retire_all(&self, removed: &[Entry], guard: &Guard) {
        for &entry in removed {
            let _ = key::retire_entry::<K, M>(&self.pool, entry, guard);
        }
    }
}
