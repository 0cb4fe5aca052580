//! The check of all of it.

use super::CclBTreeIndex;
use super::layout::{self, CAPACITY};
use super::leaf_table::check_range;
use super::recover::LinkedLeaf;
use crate::index::{TreeError, TreeStats};
use crate::key::Key;
use bristlecone_pmem::{Corrupt, Medium, PmPtr};

impl<M: Medium, K: Key, const BATCH: usize> CclBTreeIndex<M, K, BATCH> {
    /// Checks invariants 1 and 4 of the design, and that what buffers hold is logged, and counts what there
    /// is.
    pub(super) fn census(&self) -> Result<TreeStats, TreeError> {
        let mut census = TreeStats {
            height: self.inner.height() + 1,
            inner_nodes: self.inner.node_count(),
            dram_bytes: self.inner.dram_bytes() + self.buffers.bytes(),
            ..TreeStats::default()
        };
        census.count_block(&self.pool, Some(self.root_block()))?;
        for block in self.log.blocks(&self.pool, self.root_words()?)? {
            census.count_block(&self.pool, Some(block))?;
        }
        let mut by_descent = Vec::new();
        self.inner.for_each_leaf(&mut |separated| by_descent.push(separated));
        let by_chain = self.walk(false)?;
        if by_chain.len() != by_descent.len() || by_chain.len() as u64 != self.buffers.in_use() {
            let (expected, found) = (by_chain.len() as u64, by_descent.len() as u64);
            let what = "descent and chain reach different numbers of leaves";
            return Err(Corrupt { at: self.root.offset(), what, expected, found }.into());
        }
        for (linked, separated) in by_chain.iter().zip(&by_descent) {
            let leaf = self.node(separated.leaf as usize).leaf::<M>();
            let prefix = K::prefix(K::borrow(&linked.low));
            if (leaf, separated.prefix, separated.word) != (linked.at, prefix, linked.word) {
                let (at, what) = (linked.at.offset(), "descent and chain reach different leaves");
                return Err(Corrupt { at, what, expected: at, found: leaf.offset() }.into());
            }
            self.check_leaf(linked, separated.leaf as usize, &mut census)?;
        }
        Ok(census)
    }

    fn check_leaf(
        &self,
        linked: &LinkedLeaf<K>,
        index: usize,
        census: &mut TreeStats,
    ) -> Result<(), Corrupt> {
        let (pool, medium) = (&*self.pool, self.pool.medium());
        let (leaf, node) = (self.leaf(linked.at)?, self.node(index));
        let meta = node.meta::<M>();
        for (key, entry) in leaf.sorted::<K, M>(pool)? {
            if leaf.find::<K, M>(pool, K::borrow(&key))?.is_none_or(|(_, found)| found != entry) {
                return Err(damaged(linked.at, "an entry that a lookup does not find", entry.key));
            }
            census.count_entry::<K, M>(pool, entry)?;
        }
        let valid = leaf.valid(medium);
        if valid.count_ones() as usize + meta.kept() > CAPACITY {
            return Err(damaged(linked.at, "no room is kept for what the buffer holds", valid));
        }
        if meta.count() > 0 && node.stamp::<M>() <= leaf.stamp(medium) {
            return Err(damaged(linked.at, "a stamp above what is logged", node.stamp::<M>()));
        }
        for slot in 0..meta.count() {
            let entry = node.entry::<M>(slot);
            let key = K::read_entry(pool, entry)?;
            let is_fresh = leaf.find::<K, M>(pool, K::borrow(&key))?.is_none();
            if is_fresh != meta.is_fresh(slot) {
                return Err(damaged(linked.at, "a buffer that is wrong about its leaf", entry.key));
            }
            if is_fresh {
                census.count_entry::<K, M>(pool, entry)?;
            }
        }
        let pairs = self.contents(&node, &leaf)?;
        check_range::<K>(linked.at, &pairs, &linked.low, linked.high.as_ref())?;
        census.leaves += 1;
        census.keys += pairs.len() as u64;
        census.count_block(pool, Some((linked.at, layout::BYTES)))?;
        census.count_block(pool, K::block(pool, linked.word)?)
    }
}

#[cold]
fn damaged(at: PmPtr, what: &'static str, found: u64) -> Corrupt {
    Corrupt { at: at.offset(), what, expected: 0, found }
}
