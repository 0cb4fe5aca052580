//! What a store says of itself, and what it finds when it looks at all of itself.

use crate::Flagship;
use crate::error::Error;
use crate::store::Store;
use bristlecone_pmem::alloc::NodeUsage;
use bristlecone_pmem::pool::FORMAT_VERSION;
use bristlecone_pmem::sync::{Guard, pin};
use bristlecone_pmem::sys::WriteBack;
use bristlecone_pmem::{Corrupt, Domain, Medium};
use bristlecone_trees::key::Value;
use bristlecone_trees::{Design, Order, PmIndex, Record, TreeStats};
use core::ops::{Bound, ControlFlow};

/// What a store says of itself. Cheap: nothing of the data is read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// What the store survives. Never more than the file can give.
    pub domain: Domain,
    /// The instruction that writes a cache line back; none where the domain needs none.
    pub write_back: WriteBack,
    /// The design of the index.
    pub design: &'static str,
    /// Bytes of a node of the index.
    pub node_bytes: usize,
    /// Version of the file's format.
    pub format_version: u32,
    /// The number drawn when the store was created.
    pub uuid: u128,
    /// Times that the store has been opened, its creation included.
    pub generation: u64,
    /// Whether this open found a store that was not closed, and recovered it.
    pub was_recovered: bool,
    /// Of what the last close had saved, so that this open would be fast, how much was damaged and
    /// was made anew from the pairs: free map, inner nodes. More than 0 is damage of the file, never a crash.
    pub rebuilt_count: u64,
    /// Bytes of the pool, which is all of the file.
    pub pool_bytes: u64,
    /// Bytes of blocks in use, those included that wait until their last reader is gone.
    pub used_bytes: u64,
    /// Bytes that no block uses, and that any block can.
    pub free_bytes: u64,
    /// Blocks in use.
    pub blocks: u64,
    /// Blocks among them that were replaced or deleted, and wait until their last reader is gone.
    pub waiting_blocks: u64,
    /// The bytes of each node, if the store is open with a [placement](crate::Options::placement).
    pub nodes: Vec<NodeUsage>,
}

/// What [`Store::check`] found in a store that is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Pairs.
    pub keys: u64,
    /// Bytes of all keys.
    pub key_bytes: u64,
    /// Bytes of all values.
    pub value_bytes: u64,
    /// Bytes of the records that hold keys and values, each in whole lines of 64 B.
    pub record_bytes: u64,
    /// What the index counted: leaves, inner nodes, height, bytes in the pool and in DRAM.
    pub index: TreeStats,
    /// Blocks in use that nothing reaches and that do not wait for readers either: always 0.
    pub unreachable_blocks: u64,
}

impl Store {
    /// What the store says of itself.
    pub fn stats(&self) -> Stats {
        let pool = self.pool();
        let usage = pool.usage();
        Stats {
            domain: pool.medium().domain(),
            write_back: pool.medium().write_back(),
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
            blocks: usage.blocks,
            waiting_blocks: usage.waiting_blocks,
            nodes: pool.usage_of_nodes(),
        }
    }
}

impl<M: Medium> Store<M> {
    /// Reads all of the store and checks it: every structural invariant of the index, that keys
    /// ascend, that every pair is whole and every record in a block of its own, and that no other block is in
    /// use. Nobody can write meanwhile.
    ///
    /// # Errors
    /// The first thing that is wrong, and its offset.
    pub fn check(&mut self) -> Result<Report, Error> {
        self.inspect()
    }

    /// [`check`](Self::check) for those who know that nobody writes.
    ///
    /// # Errors
    /// The first thing that is wrong, and its offset.
    #[doc(hidden)]
    pub fn inspect(&self) -> Result<Report, Error> {
        let census = self.index.check().map_err(|e| self.error(e))?;
        let mut report = Report {
            keys: 0,
            key_bytes: 0,
            value_bytes: 0,
            record_bytes: 0,
            index: census,
            unreachable_blocks: 0,
        };
        let mut records = Vec::new();
        let mut former: Option<Vec<u8>> = None;
        let mut damage = None;
        let guard = pin();
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
        if report.keys != census.keys && damage.is_none() {
            let what = "pairs that a scan finds, and that the index counts";
            damage = Some(corrupt(0, what, census.keys, report.keys));
        }
        if let Some(damage) = damage {
            return Err(self.damaged(damage));
        }
        let usage = self.pool().usage();
        let known = HEADER_BLOCKS + census.blocks + usage.waiting_blocks;
        if known > usage.blocks {
            let what = "blocks that are reached, and that are in use";
            return Err(self.damaged(corrupt(0, what, usage.blocks, known)));
        }
        report.unreachable_blocks = usage.blocks - known;
        Ok(report)
    }

    /// Checks one pair and counts it; gives the offset of its record, if it has one.
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

/// The pool's own blocks.
const HEADER_BLOCKS: u64 = 1;

fn corrupt(at: u64, what: &'static str, expected: u64, found: u64) -> Corrupt {
    Corrupt { at, what, expected, found }
}
