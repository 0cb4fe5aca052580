//! Recovery: one eager pass, then the pool may give out blocks, then what needs some.

use super::FastFairTree;
use super::merge::Unlinked;
use crate::index::TreeError;
use crate::key::Key;
use crate::leaf::sorted_shift::ShiftNode;
use bristlecone_pmem::sync::pin;
use bristlecone_pmem::{Defect, Medium};

impl<M: Medium, K: Key, const NODE: usize> FastFairTree<M, K, NODE> {
    /// After a crash: marks all that is reached, takes away what does not count, and ends the
    /// splits and merges that were under way. Each step is one that a crash may interrupt; the next
    /// recovery does the rest.
    ///
    /// ```text
    /// repair each node          [`ShiftNode::repair`](crate::leaf::sorted_shift::ShiftNode::repair)
    /// post, grow                separators that a split or a merge has left out
    /// merge, collapse           leaves that have emptied, a root that has a single child
    /// ```
    pub(super) fn recover(&self) -> Result<(), TreeError> {
        let survey = self.survey(true, &mut |block, bytes| self.pool.mark(block, bytes))?;
        self.pool.finish_recovery();
        let guard = pin();
        let mut unposted = survey.unposted;
        if M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::RootSibling) {
            let root = self.root_node()?.level();
            unposted.retain(|&at| {
                ShiftNode::<M, NODE>::view(&self.pool, at).is_ok_and(|node| node.level() < root)
            });
        }
        self.post_all(&unposted, &guard)?;
        let mut unlinked = Unlinked::new();
        for low in survey.empty {
            self.merge(0, low, &mut unlinked)?;
        }
        self.collapse(&mut unlinked)?;
        for (block, bytes) in unlinked {
            self.pool.release(block, bytes); // Nobody else has ever come here.
        }
        Ok(())
    }
}
