//! Recovery: one walk that needs no new block, then the steps that may need some.

use super::merge::Unlinked;
use super::{FastFairSpec, FastFairTree};
use crate::index::TreeError;
use crate::key::Key;
use crate::leaf::sorted_shift::ShiftNode;
use bristlecone_pmem::{Defect, Medium};

impl<M: Medium, K: Key, S: FastFairSpec, const NODE: usize> FastFairTree<M, K, S, NODE> {
    /// Recovers after a crash: marks all blocks of the tree, removes entries that do not count, and
    /// completes the splits and merges that were interrupted. A crash may interrupt any step; the
    /// next recovery completes the rest.
    ///
    /// ```text
    /// repair each node          as `ShiftNode::repair`
    /// post, grow                separators that a split or a merge left out
    /// merge, collapse           empty leaves, a root with a single child
    /// ```
    pub(super) fn recover(&self) -> Result<(), TreeError> {
        let walk = self.walk(true, &mut |block, bytes| self.pool.mark(block, bytes))?;
        self.pool.finish_recovery();
        let guard = self.pool.pin();
        let mut unposted = walk.unposted;
        if M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::RootSibling) {
            let root = self.root_node()?.level();
            unposted.retain(|&at| {
                ShiftNode::<M, S::Form, NODE>::view(&self.pool, at)
                    .is_ok_and(|node| node.level() < root)
            });
        }
        self.post_all(&unposted, &guard)?;
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
