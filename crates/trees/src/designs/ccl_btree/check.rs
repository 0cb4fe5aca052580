//! The check of the whole index.

use super::CclBTreeIndex;
use super::layout::{self, CAPACITY};
use super::recover::LinkedLeaf;
use super::techniques::Techniques;
use crate::index::{TreeError, TreeStats};
use crate::inner::InnerNodes;
use crate::key::Key;
use crate::leaf_table::check_range;
use bristlecone_pmem::{Corrupt, Medium, PmPtr};

impl<M: Medium, K: Key, const BATCH: usize, T: Techniques> CclBTreeIndex<M, K, BATCH, T> {
    /// Checks invariants 1 and 4 of the design, and that each buffered write has a stamp above its
    /// leaf's. Returns the counts.
    pub(super) fn collect_stats(&self) -> Result<TreeStats, TreeError> {
        let mut stats = TreeStats {
            height: self.inner.height() + 1,
            inner_nodes: self.inner.node_count(),
            dram_bytes: self.inner.dram_bytes() + self.buffers.bytes(),
            ..TreeStats::default()
        };
        stats.count_block(&self.pool, Some(self.root_block()))?;
        for block in self.log.blocks(&self.pool, self.root_words()?)? {
            stats.count_block(&self.pool, Some(block))?;
        }
        let mut by_descent = Vec::new();
        self.inner.for_each_leaf(&mut |separated| by_descent.push(separated));
        let by_chain = self.walk(false)?;
        if by_chain.len() != by_descent.len() || by_chain.len() as u64 != self.buffers.in_use() {
            let (expected, found) = (by_chain.len() as u64, by_descent.len() as u64);
            let what = "inner nodes and list have different numbers of leaves";
            return Err(Corrupt { at: self.root.offset(), what, expected, found }.into());
        }
        for (linked, separated) in by_chain.iter().zip(&by_descent) {
            let leaf = self.node(separated.leaf as usize).leaf::<M>();
            let prefix = K::prefix(K::borrow(&linked.low));
            if (leaf, separated.prefix, separated.word) != (linked.at, prefix, linked.word) {
                let (at, what) = (linked.at.offset(), "inner nodes and list name different leaves");
                return Err(Corrupt { at, what, expected: at, found: leaf.offset() }.into());
            }
            self.check_leaf(linked, separated.leaf as usize, &mut stats)?;
        }
        Ok(stats)
    }

    fn check_leaf(
        &self,
        linked: &LinkedLeaf<K>,
        index: usize,
        stats: &mut TreeStats,
    ) -> Result<(), Corrupt> {
        let (pool, medium) = (&*self.pool, self.pool.medium());
        let (leaf, node) = (self.leaf(linked.at)?, self.node(index));
        let meta = node.meta::<M>();
        for (key, entry) in leaf.sorted::<K, M>(pool)? {
            if leaf.find::<K, M>(pool, K::borrow(&key))?.is_none_or(|(_, found)| found != entry) {
                return Err(damaged(linked.at, "entry that a lookup does not find", entry.key));
            }
            stats.count_entry::<K, M>(pool, entry)?;
        }
        let valid = leaf.valid(medium);
        if valid.count_ones() as usize + meta.reserved() > CAPACITY {
            return Err(damaged(linked.at, "leaf has no space for its buffered writes", valid));
        }
        if meta.count() > 0 && node.stamp::<M>() <= leaf.stamp(medium) {
            return Err(damaged(
                linked.at,
                "stamp of a leaf not below its buffer's",
                node.stamp::<M>(),
            ));
        }
        for slot in 0..meta.count() {
            let entry = node.entry::<M>(slot);
            let key = K::read_entry(pool, entry)?;
            let is_fresh = leaf.find::<K, M>(pool, K::borrow(&key))?.is_none();
            if is_fresh != meta.is_fresh(slot) {
                return Err(damaged(linked.at, "buffer slot with a wrong fresh bit", entry.key));
            }
            if is_fresh {
                stats.count_entry::<K, M>(pool, entry)?;
            }
        }
        for slot in meta.count()..meta.filled() {
            let entry = node.entry::<M>(slot);
            let key = K::read_entry(pool, entry)?;
            let is_stale =
                node.find::<K, M>(pool, K::borrow(&key))?.is_some_and(|(at, _)| at < slot);
            let found = leaf.find::<K, M>(pool, K::borrow(&key))?;
            if !is_stale && found.is_none_or(|(_, found)| found != entry) {
                return Err(damaged(linked.at, "cached entry that the leaf lacks", entry.key));
            }
        }
        let pairs = self.contents(&node, &leaf)?;
        check_range::<K>(linked.at, &pairs, &linked.low, linked.high.as_ref())?;
        stats.leaves += 1;
        stats.keys += pairs.len() as u64;
        stats.count_block(pool, Some((linked.at, layout::BYTES)))?;
        stats.count_block(pool, K::block(pool, linked.word)?)
    }
}

#[cold]
fn damaged(at: PmPtr, what: &'static str, found: u64) -> Corrupt {
    Corrupt { at: at.offset(), what, expected: 0, found }
}
