//! Recovery: a walk that marks the blocks of the tree, then the merges of empty leaves.

use super::merge::Unlinked;
use super::{FastFairSpec, FastFairTree};
use crate::index::TreeError;
use crate::key::Key;
use bristlecone_pmem::Medium;

impl<M: Medium, K: Key, S: FastFairSpec, const NODE: usize> FastFairTree<M, K, S, NODE> {
    /// Recovers after a crash: marks all blocks of the tree, and completes the merges that were
    /// interrupted. All else is left to writers (`mend.rs`). A crash may interrupt any step; the
    /// next recovery completes the rest.
    ///
    /// ```text
    /// merge, collapse           empty leaves, a root with a single child
    /// ```
    pub(super) fn recover(&self) -> Result<(), TreeError> {
        let walk = self.walk(true, &mut |block, bytes| self.pool.mark(block, bytes))?;
        self.pool.finish_recovery();
        let mut unlinked = Unlinked::new();
        for low in walk.empty {
            self.merge(0, low, &mut unlinked)?;
        }
        self.collapse(&mut unlinked)?;
        for (block, bytes) in unlinked {
            self.pool.release(block, bytes); // No reader exists yet.
        }
        Ok(())
    }
}
