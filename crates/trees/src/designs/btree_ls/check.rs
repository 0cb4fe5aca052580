//! The check of the whole index.

use super::BTreeLsIndex;
use super::chain::FoldedChain;
use super::replay::{ReplayedLeaf, leaves, replay_all};
use super::segment;
use super::tuning::LsOptions;
use crate::index::{TreeError, TreeStats};
use crate::inner::InnerNodes;
use crate::key::Key;
use bristlecone_pmem::{Corrupt, Medium};
use std::collections::HashSet;

impl<M: Medium, K: Key, const NODE: usize, T: LsOptions> BTreeLsIndex<M, K, NODE, T> {
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
        let replayed = replay_all::<M, T>(&self.pool, self.root_words()?, self.log.lines)?;
        for (log, replayed) in replayed.iter().enumerate() {
            let (known, found) = (self.log.segments(log), &replayed.ring.linked);
            if known != *found {
                let what = "list of a log's segments differs from the one in DRAM";
                return Err(self.wrong_count(what, known.len(), found.len()).into());
            }
            for at in known {
                stats.count_block(&self.pool, Some((at, segment::bytes(self.log.lines))))?;
            }
        }
        let mut by_descent = Vec::new();
        self.inner.for_each_leaf(&mut |separated| by_descent.push(separated));
        let by_log = leaves::<M, K, T>(&self.pool, &replayed, self.root)?;
        if by_log.len() != by_descent.len() || by_log.len() as u64 != self.table.in_use() {
            let what = "inner nodes and logs have different numbers of leaves";
            return Err(self.wrong_count(what, by_log.len(), by_descent.len()).into());
        }
        let (mut live, mut ended) = (vec![0; T::LOGS], HashSet::new());
        for (linked, separated) in by_log.iter().zip(&by_descent) {
            let prefix = K::prefix(K::borrow(&linked.low));
            if (separated.prefix, separated.word) != (prefix, linked.range.low) {
                return Err(differs(linked, "inner nodes and logs name different leaves", 0).into());
            }
            self.check_leaf(linked, separated.leaf as usize, &mut live, &mut stats)?;
            if let Some(after) = linked.after.filter(|&after| ended.insert(after)) {
                live[T::log_of(after)] += 1;
            }
        }
        for (log, &expected) in live.iter().enumerate() {
            if expected != self.log.live(log) {
                let what = "wrong count of live lines in a log";
                return Err(self.wrong_count(what, expected, self.log.live(log)).into());
            }
        }
        Ok(stats)
    }

    fn check_leaf(
        &self,
        linked: &ReplayedLeaf<K>,
        index: usize,
        live: &mut [usize],
        stats: &mut TreeStats,
    ) -> Result<(), Corrupt> {
        let (pool, row) = (&*self.pool, self.table.row(index));
        let size = row.size::<M>();
        let mut newest = linked.deltas.iter().rev().chain([&linked.base]);
        let is_same = row.leaf::<M>() == linked.leaf
            && row.after::<M>() == linked.after
            && size.items == linked.items + linked.deltas.len()
            && row.recent::<M, T>().all(|at| newest.next() == Some(&at))
            && self.log.leaf(linked.leaf) == Some(index);
        if !is_same {
            return Err(differs(linked, "mapping table and logs differ", row.leaf::<M>()));
        }
        let FoldedChain { contents, .. } = FoldedChain::<K>::read(pool, linked.head())?;
        contents.check(linked.base, &linked.low, linked.high.as_ref())?;
        if contents.pairs.len() != size.live || size.items > Self::CAPACITY {
            return Err(differs(linked, "wrong number of keys in a leaf", size.live as u64));
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
        live[T::log_of(linked.leaf)] += size.lines;
        stats.leaves += 1;
        stats.keys += contents.pairs.len() as u64;
        stats.count_block(pool, K::block(pool, linked.range.low)?)
    }

    #[cold]
    fn wrong_count(&self, what: &'static str, expected: usize, found: usize) -> Corrupt {
        let (expected, found) = (expected as u64, found as u64);
        Corrupt { at: self.root.offset(), what, expected, found }
    }
}

#[cold]
fn differs<K: Key>(linked: &ReplayedLeaf<K>, what: &'static str, found: u64) -> Corrupt {
    Corrupt { at: linked.base.offset(), what, expected: linked.leaf, found }
}
