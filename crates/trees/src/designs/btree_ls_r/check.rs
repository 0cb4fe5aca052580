//! The check of the whole index.

use super::BTreeLsRIndex;
use super::chunk;
use super::replay::{LeafChain, leaves, replay_all};
use super::tuning::Tuning;
use crate::index::{TreeError, TreeStats};
use crate::inner::InnerNodes;
use crate::key::Key;
use crate::leaf_table::Contents;
use bristlecone_pmem::{Corrupt, Medium};

impl<M: Medium, K: Key, const NODE: usize, T: Tuning> BTreeLsRIndex<M, K, NODE, T> {
    /// Checks that mapping table and logs agree and that the design's invariants hold. Returns the
    /// counts.
    pub(super) fn collect_stats(&self) -> Result<TreeStats, TreeError> {
        let mut stats = TreeStats {
            height: self.inner.height() + 1,
            inner_nodes: self.inner.node_count(),
            dram_bytes: self.inner.dram_bytes() + self.table.bytes(),
            ..TreeStats::default()
        };
        stats.count_block(&self.pool, Some(self.root_block()))?;
        let mut replayed = replay_all::<M, T>(&self.pool, self.root_words()?, self.log.lines())?;
        for (log, replayed) in replayed.iter().enumerate() {
            let (chunks, found) = (self.log.chunks(log), &replayed.ring.chunks);
            if chunks != *found {
                let (expected, found) = (chunks.len() as u64, found.len() as u64);
                let what = "list of a log's chunks differs from the one in DRAM";
                return Err(Corrupt { at: self.root.offset(), what, expected, found }.into());
            }
            for at in chunks {
                stats.count_block(&self.pool, Some((at, chunk::bytes(self.log.lines()))))?;
            }
        }
        let mut by_descent = Vec::new();
        self.inner.for_each_leaf(&mut |separated| by_descent.push(separated));
        let by_log = leaves::<M, K, T>(&self.pool, &mut replayed, self.root)?;
        if by_log.len() != by_descent.len() || by_log.len() as u64 != self.table.in_use() {
            let (expected, found) = (by_log.len() as u64, by_descent.len() as u64);
            let what = "inner nodes and logs have different numbers of leaves";
            return Err(Corrupt { at: self.root.offset(), what, expected, found }.into());
        }
        let mut live = vec![0; T::LOGS];
        for (linked, separated) in by_log.iter().zip(&by_descent) {
            let prefix = K::prefix(K::borrow(&linked.low));
            if (separated.prefix, separated.word) != (prefix, linked.word) {
                return Err(differs(linked, "inner nodes and logs name different leaves", 0).into());
            }
            self.check_leaf(linked, separated.leaf as usize, &mut live, &mut stats)?;
        }
        for (log, &expected) in live.iter().enumerate() {
            let (expected, found) = (expected as u64, self.log.live(log) as u64);
            if expected != found {
                let what = "wrong count of live lines in a log";
                return Err(Corrupt { at: self.root.offset(), what, expected, found }.into());
            }
        }
        Ok(stats)
    }

    fn check_leaf(
        &self,
        linked: &LeafChain<K>,
        index: usize,
        live: &mut [usize],
        stats: &mut TreeStats,
    ) -> Result<(), Corrupt> {
        let (pool, row) = (&*self.pool, self.table.row(index));
        let newest = linked.base_sequence + linked.deltas.len() as u64;
        let size = row.size::<M>();
        let is_same = row.leaf::<M>() == linked.leaf
            && row.sequence::<M>() == newest
            && size.items() == linked.items
            && size.deltas() == linked.deltas.len()
            && self.log.leaf(linked.leaf) == Some(index);
        if !is_same {
            return Err(differs(linked, "mapping table and logs differ", row.leaf::<M>()));
        }
        let contents: Contents<K> = row.contents(pool)?;
        contents.check(linked.base, &linked.low, linked.high.as_ref())?;
        if contents.pairs.len() != size.live() || size.live() > Self::CAPACITY {
            return Err(differs(linked, "wrong number of keys in a leaf", size.live() as u64));
        }
        for (key, entry) in &contents.pairs {
            let found = row.find::<K, M>(pool, K::borrow(key))?;
            if found.is_none_or(|found| found.is_removed || found.entry != *entry) {
                return Err(differs(linked, "entry that a lookup does not find", entry.key));
            }
        }
        for entry in contents.entries() {
            stats.count_entry::<K, M>(pool, entry)?;
        }
        live[T::log_of(linked.leaf)] += size.lines();
        stats.leaves += 1;
        stats.keys += contents.pairs.len() as u64;
        stats.count_block(pool, K::block(pool, linked.word)?)
    }
}

#[cold]
fn differs<K: Key>(linked: &LeafChain<K>, what: &'static str, found: u64) -> Corrupt {
    Corrupt { at: linked.base.offset(), what, expected: linked.leaf, found }
}
