//! The check: a walk that also checks each block against the pool's free map.

use super::{FastFairSpec, FastFairTree};
use crate::index::TreeStats;
use crate::key::Key;
use bristlecone_pmem::{Corrupt, Medium};

impl<M: Medium, K: Key, S: FastFairSpec, const NODE: usize> FastFairTree<M, K, S, NODE> {
    /// Checks every invariant and returns the counts. No thread may write meanwhile.
    pub(super) fn collect_stats(&self) -> Result<TreeStats, Corrupt> {
        let (mut blocks, mut pm_bytes) = (0, 0);
        let walk = self.walk(false, &mut |block, bytes| {
            if !self.pool.is_reserved(block) {
                let what = "block of the tree is free in the pool";
                return Err(Corrupt { at: block.offset(), what, expected: bytes, found: 0 });
            }
            blocks += 1;
            pm_bytes += self.pool.reserved_bytes(bytes);
            Ok(())
        })?;
        Ok(TreeStats {
            keys: walk.keys,
            leaves: walk.leaves,
            inner_nodes: walk.inner_nodes,
            height: walk.height,
            blocks,
            pm_bytes,
            dram_bytes: size_of::<Self>() as u64,
        })
    }
}
