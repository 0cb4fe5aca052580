//! Making the rows refer to the log records that count, when an index is opened.
//!
//! 1. Threads read parts of the logs, and divide the records by the part of the list of leaves
//!    whose range has their key. Then threads take the parts of the list: the leaves, rows and
//!    records of one part are in the cache of a processor at the same time.
//! 2. A part of the list has one thread, which needs no latch.

use super::UnitTreeIndex;
use super::record::{Position, VersionedChange};
use super::rows::{Pending, REFERENCES, UnitRow, tag_of};
use super::settle::no_space;
use super::unit::{UnitLeaf, check_stamp, home_of};
use crate::inner::SeparatedLeaf;
use crate::key::Key;
use crate::parallel::in_parallel;
use bristlecone_pmem::{Corrupt, Medium};

/// A log record that an open finds, without its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundRecord {
    /// The key word.
    key: u64,
    version: u64,
    position: u32,
    is_removed: bool,
}

/// The log records that one thread finds, for each part of the list of leaves.
pub(super) type DividedRecords = Vec<Vec<FoundRecord>>;

impl<M: Medium, K: Key, const BYTES: usize> UnitTreeIndex<M, K, BYTES> {
    /// Reads all logs, on up to `threads` threads, and divides their records by the parts of
    /// `share` leaves.
    ///
    /// # Errors
    /// A line or a version is damaged, or keys with records have logs.
    pub(super) fn divide_records(
        &self,
        leaves: &[SeparatedLeaf],
        share: usize,
        threads: usize,
    ) -> Result<Vec<DividedRecords>, Corrupt> {
        let chunks = self.log.numbers();
        if !K::EXACT && !chunks.is_empty() {
            let (what, found) = ("logs of an index whose keys have records", chunks.len() as u64);
            return Err(Corrupt { at: self.root.offset(), what, expected: 0, found });
        }
        let starts: Vec<_> = leaves.iter().step_by(share).map(|leaf| leaf.prefix).collect();
        let jobs: Vec<_> = chunks.chunks(chunks.len().div_ceil(threads).max(1)).collect();
        let divided = in_parallel(threads, &jobs, |chunks| {
            let mut divided = vec![Vec::new(); starts.len()];
            for &chunk in *chunks {
                for (position, VersionedChange { change, version }) in
                    self.log.records_in(&self.pool, chunk)?
                {
                    check_stamp(self.root, version)?;
                    let prefix = K::entry_prefix(&self.pool, change.entry)?;
                    let part = starts.partition_point(|start| *start <= prefix).saturating_sub(1);
                    divided[part].push(FoundRecord {
                        key: change.entry.key,
                        version,
                        position: position.word(),
                        is_removed: change.is_removed,
                    });
                }
            }
            Ok(divided)
        });
        divided.into_iter().collect()
    }

    /// Makes the rows of a part of the list refer to those of its records that count. Returns the
    /// greatest version of a record.
    ///
    /// # Errors
    /// A row has no room for its references, or a leaf for the keys that only they have.
    pub(super) fn refer_part<'r>(
        &self,
        leaves: &[SeparatedLeaf],
        records: impl Iterator<Item = &'r FoundRecord>,
    ) -> Result<u64, Corrupt> {
        let (pool, medium) = (&*self.pool, self.pool.medium());
        let mut newest = 0;
        for record in records {
            newest = newest.max(record.version);
            let key = K::read(pool, record.key)?;
            let (key, hash) = (K::borrow(&key), K::hash(K::borrow(&key)));
            let prefix = K::prefix(key);
            let number = leaves.partition_point(|leaf| leaf.prefix <= prefix).saturating_sub(1);
            let row = self.rows.row(leaves[number].leaf as usize);
            let leaf = self.leaf(row)?;
            if record.version > leaf.word(medium, home_of(hash)).stamp() {
                self.refer_to(record, (row, leaf), (key, hash))?;
            }
        }
        for leaf in leaves {
            let row = self.rows.row(leaf.leaf as usize);
            let (leaf, fresh) = (self.leaf(row)?, row.pending::<M>().fresh);
            if fresh > 0 && leaf.used(medium) + fresh > UnitLeaf::<BYTES>::CAPACITY {
                return Err(no_space(leaf));
            }
        }
        Ok(newest)
    }

    /// Makes a row refer to a record of `key` that counts, if no newer one does.
    ///
    /// # Errors
    /// The row has no room for a reference.
    fn refer_to(
        &self,
        record: &FoundRecord,
        (row, leaf): (UnitRow<'_>, UnitLeaf<'_, BYTES>),
        (key, hash): (K::Ref<'_>, u64),
    ) -> Result<(), Corrupt> {
        let pool = &*self.pool;
        row.set_version::<M>(row.version::<M>().max(record.version));
        let state = self.key_state(row, leaf, (key, hash))?;
        let pending = row.pending::<M>();
        let removed = pending.removed + usize::from(record.is_removed);
        if let Some((at, former)) = state.reference {
            let other = Position::of_word(row.position::<M>(at));
            let other = self.log.record(pool, other)?.map_or(0, |other| other.version);
            if record.version > other {
                let removed = removed.saturating_sub(usize::from(former.is_removed));
                row.replace::<M>(at, record.position, Pending { removed, ..pending });
            }
            return Ok(());
        }
        if pending.count == REFERENCES {
            return Err(no_space(leaf));
        }
        let fresh = pending.fresh + usize::from(state.entry.is_none());
        row.add::<M>(tag_of(hash), record.position, Pending { fresh, removed, ..pending });
        Ok(())
    }
}
