//! Statistics, and the check of a whole store.

use crate::Flagship;
use crate::error::Error;
use crate::store::Store;
use bristlecone_pmem::alloc::{ClassUsage, NodeUsage};
use bristlecone_pmem::journal::JournalStats;
use bristlecone_pmem::pool::{FORMAT_VERSION, HEADER_BYTES};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::sys::WriteBack;
use bristlecone_pmem::{Corrupt, Domain, Journaled, Medium};
use bristlecone_trees::key::Value;
use bristlecone_trees::{Design, Order, PmIndex, Record, TreeStats};
use core::ops::{Bound, ControlFlow};
use std::path::Path;

/// The state and size of a store, as [`Store::stats`] returns them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The persistence domain in force: the crashes that cannot undo a write. A file never has more
    /// than its mount gives.
    pub domain: Domain,
    /// The instruction that writes a cache line back; `None` where the domain needs none.
    pub write_back: WriteBack,
    /// The name of the tree design that the index uses.
    pub design: &'static str,
    /// The size of a leaf node of the index, in bytes.
    pub node_bytes: usize,
    /// The version of the file format.
    pub format_version: u32,
    /// The random number that was drawn when the store was created. A copy of the file has it too.
    pub uuid: u128,
    /// The number of times that the store has been opened, including its creation.
    pub generation: u64,
    /// `true` if this open found a store that was not closed, and recovered it.
    pub was_recovered: bool,
    /// The number of structures saved by the last `close` (free map, inner nodes) that were damaged
    /// and rebuilt from the pairs. No crash causes this: above 0, the file was damaged.
    pub rebuilt_count: u64,
    /// The size of the pool, in bytes: the file without `tail_bytes`. It is the sum of
    /// `used_bytes`, `free_bytes`, `partial_bytes`, `free_page_bytes`, `rest_bytes` and
    /// `kept_bytes`.
    pub pool_bytes: u64,
    /// The bytes of blocks in use, including those that wait for readers.
    pub used_bytes: u64,
    /// The bytes in chunks that no block uses, and that blocks of any size can use. Free bytes
    /// inside other chunks do not count.
    pub free_bytes: u64,
    /// The free bytes in chunks that blocks of one size use in part. Only blocks of that size can
    /// use them, until [`compact`](Store::compact) moves the others away.
    pub partial_bytes: u64,
    /// The free bytes in chunks that blocks of over 8 KiB use in part. Only such blocks can use
    /// them.
    pub free_page_bytes: u64,
    /// The bytes that no block can use: the ends of chunks that are shorter than one more block.
    pub rest_bytes: u64,
    /// The bytes that are kept for what [`close`](Store::close) saves.
    pub kept_bytes: u64,
    /// The bytes at the end of the file that do not belong to the pool. They are less than a chunk
    /// of 32 KiB, or space that the store has allocated ahead of its growth. `pool_bytes` does not
    /// include them.
    pub tail_bytes: u64,
    /// The number of blocks in use, including those that wait for readers.
    pub blocks: u64,
    /// The number of blocks that were replaced or deleted, and that wait until no reader can hold
    /// them.
    pub waiting_blocks: u64,
    /// The bytes of those blocks. `used_bytes` includes them.
    pub waiting_bytes: u64,
    /// The bytes of the pool's header: superblocks, root table and logs. `used_bytes` includes
    /// them.
    pub header_bytes: u64,
    /// The chunks of each block size, the smallest size first. They show where `partial_bytes` are.
    pub classes: Vec<ClassUsage>,
    /// The bytes of each NUMA node, if the store is open with a
    /// [placement](crate::Options::placement); otherwise empty.
    pub nodes: Vec<NodeUsage>,
    /// The state of the journal, if the store is [open with one](crate::Options::durability). A
    /// child of `fork` gets none.
    pub journal: Option<JournalStats>,
}

/// The counts of a store in which [`Store::check`] found no damage.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The number of pairs.
    pub keys: u64,
    /// The sum of the lengths of all keys, in bytes.
    pub key_bytes: u64,
    /// The sum of the lengths of all values, in bytes.
    pub value_bytes: u64,
    /// The bytes of the records that hold keys and values, each rounded up to lines of 64 B.
    pub record_bytes: u64,
    /// The size of the index: leaves, inner nodes, height, bytes in the pool and in DRAM.
    pub index: TreeStats,
    /// The number of blocks in use that neither the index reaches nor readers delay: leaks. Always
    /// 0 unless the store has a defect.
    pub unreachable_blocks: u64,
}

impl Store {
    /// Returns the state and size of the store and of its journal: domain, version, bytes used and
    /// free.
    ///
    /// It reads no pair, and takes a time that does not depend on the size of the file; with a
    /// [placement](crate::Options::placement) it counts chunk by chunk. The numbers of the journal
    /// are from one moment, but for those that only count. In a child of `fork` there is no
    /// journal, and all amounts are zeros if a thread was changing them.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// let stats = store.stats();
    /// println!("{} of {} B in use", stats.used_bytes, stats.pool_bytes);
    /// if !stats.domain.covers(bristlecone::Domain::Disk) {
    ///     println!("a power cut may damage {}", store.path().display());
    /// }
    /// if let Some(journal) = stats.journal {
    ///     println!("a power cut now would lose {} B", journal.unsynced_bytes());
    /// }
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    pub fn stats(&self) -> Stats {
        let pool = self.pool();
        let medium = pool.medium();
        let usage = pool.usage();
        let file_bytes = std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len());
        Stats {
            domain: medium.domain(),
            write_back: medium.write_back(),
            design: Flagship::SPEC.name,
            node_bytes: Flagship::SPEC.node_bytes,
            format_version: FORMAT_VERSION,
            uuid: pool.uuid(),
            generation: pool.generation(),
            was_recovered: self.was_recovered(),
            rebuilt_count: pool.rebuilt_count(),
            pool_bytes: usage.pool_bytes,
            used_bytes: usage.used_bytes,
            free_bytes: usage.free_bytes,
            partial_bytes: usage.partial_bytes,
            free_page_bytes: usage.free_page_bytes,
            rest_bytes: usage.rest_bytes,
            kept_bytes: usage.kept_bytes,
            tail_bytes: file_bytes.saturating_sub(usage.pool_bytes),
            blocks: usage.blocks,
            waiting_blocks: usage.waiting_blocks,
            waiting_bytes: usage.waiting_bytes,
            header_bytes: HEADER_BYTES,
            classes: pool.usage_of_classes(),
            nodes: pool.usage_of_nodes(),
            // A child of `fork` has no mapping of the ring.
            journal: medium.journaled().filter(|_| !medium.is_inherited()).map(Journaled::stats),
        }
    }
}

impl<M: Medium, const LEAF_BYTES: usize> Store<M, LEAF_BYTES> {
    /// Reads the whole store and checks it: O(n). Returns counts if it is sound.
    ///
    /// The check covers every structural invariant of the index, the order of keys, the checksum of
    /// each leaf and record, and that each block in use belongs to one node or record. The
    /// exclusive borrow keeps writers out.
    ///
    /// It does not detect all damage. An older state of a line or page, such as a power cut leaves
    /// in a plain file, can pass every checksum.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let mut store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// store.put("sequoia", "3266 years")?;
    /// let report = store.check()?;
    /// assert_eq!((report.keys, report.unreachable_blocks), (1, 0));
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Damaged`]: the first damage, with its offset in the file.
    pub fn check(&mut self) -> Result<Report, Error> {
        self.inspect()
    }

    /// Returns the path that the store was opened with; `(no file)` if the store is on a
    /// [medium](Self::open_on) of the caller.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let path = dir.path().join("trees.pool");
    /// let store = bristlecone::Store::create(&path)?;
    /// assert_eq!(store.path(), path);
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns `true` if this open found a store that was not closed, and recovered it.
    ///
    /// This is no test for damage: after a power cut that lost pages of a plain file it may be
    /// `false`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("trees.pool");
    /// drop(bristlecone::Store::create(&path)?); // not closed
    /// assert!(bristlecone::Store::open(&path)?.was_recovered());
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    pub fn was_recovered(&self) -> bool {
        self.recovered
    }

    /// Checks like [`check`](Self::check), for callers that know that no thread writes.
    ///
    /// # Errors
    /// The errors of [`check`](Self::check).
    #[doc(hidden)]
    pub fn inspect(&self) -> Result<Report, Error> {
        self.check_process()?;
        let counted = self.index.check().map_err(|e| self.error(e))?;
        let mut report = Report {
            keys: 0,
            key_bytes: 0,
            value_bytes: 0,
            record_bytes: 0,
            index: counted,
            unreachable_blocks: 0,
        };
        let mut records = Vec::new();
        let mut former: Option<Vec<u8>> = None;
        let mut damage = None;
        let guard = self.pool().pin();
        let mut visit = |key: &[u8], value: Value| {
            if former.as_deref().is_some_and(|former| former >= key) {
                damage = Some(corrupt(value.word, "keys do not ascend", 0, 0));
            } else {
                match self.check_pair(key, value, &guard, &mut report) {
                    Ok(record) => records.extend(record),
                    Err(found) => damage = Some(found),
                }
            }
            former = Some(key.to_vec());
            if damage.is_none() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let all = (Bound::Unbounded, Bound::Unbounded);
        self.index.scan_pairs(all, Order::Ascending, &mut visit).map_err(|e| self.error(e))?;
        drop(guard);
        records.sort_unstable();
        if let Some(pair) = records.windows(2).find(|pair| pair[0] == pair[1]) {
            damage = Some(corrupt(pair[0], "two keys share a record", 1, 2));
        }
        if report.keys != counted.keys && damage.is_none() {
            let what = "scan and index disagree on the number of pairs";
            damage = Some(corrupt(0, what, counted.keys, report.keys));
        }
        if let Some(damage) = damage {
            return Err(self.damaged(damage));
        }
        let usage = self.pool().usage();
        let known = HEADER_BLOCKS + counted.blocks + usage.waiting_blocks;
        if known > usage.blocks {
            let what = "more blocks are reached than are in use";
            return Err(self.damaged(corrupt(0, what, usage.blocks, known)));
        }
        report.unreachable_blocks = usage.blocks - known;
        Ok(report)
    }

    /// Checks one pair and counts it. Returns the offset of its record, if it has one.
    fn check_pair(
        &self,
        key: &[u8],
        value: Value,
        guard: &Guard,
        report: &mut Report,
    ) -> Result<Option<u64>, Corrupt> {
        report.keys += 1;
        report.key_bytes += key.len() as u64;
        report.value_bytes += self.value(key, value, guard)?.len() as u64;
        let Some((block, bytes)) = Record::extent(self.pool(), value)? else { return Ok(None) };
        if !self.pool().is_block(block, bytes) {
            let what = "record is in no block of its length";
            return Err(corrupt(block.offset(), what, bytes, 0));
        }
        report.record_bytes += bytes;
        Ok(Some(block.offset()))
    }
}

/// The number of blocks that the pool itself uses.
const HEADER_BLOCKS: u64 = 1;

fn corrupt(at: u64, what: &'static str, expected: u64, found: u64) -> Corrupt {
    Corrupt { at, what, expected, found }
}
