//! Checking: the survey of everything, with each block held against the pool's free map.

use super::FastFairTree;
use crate::index::TreeStats;
use crate::key::Key;
use bristlecone_pmem::{Corrupt, Medium};

impl<M: Medium, K: Key, const NODE: usize> FastFairTree<M, K, NODE> {
    /// Counts everything and checks it. Nobody may write meanwhile.
    pub(super) fn census(&self) -> Result<TreeStats, Corrupt> {
        let (mut blocks, mut pm_bytes) = (0, 0);
        let survey = self.survey(false, &mut |block, bytes| {
            if !self.pool.is_reserved(block) {
                let what = "block in use that the pool takes for free";
                return Err(Corrupt { at: block.offset(), what, expected: bytes, found: 0 });
            }
            blocks += 1;
            pm_bytes += self.pool.reserved_bytes(bytes);
            Ok(())
        })?;
        Ok(TreeStats {
            keys: survey.keys,
            leaves: survey.leaves,
            inner_nodes: survey.inner_nodes,
            height: survey.height,
            blocks,
            pm_bytes,
            dram_bytes: size_of::<Self>() as u64,
        })
    }
}
