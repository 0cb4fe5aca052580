//! Copies of leaves for scans, each under the leaf's shared latch.
//!
//! A copy has the separators on the way as the bounds of its leaf, so a scan continues behind it
//! whatever became of the next leaf meanwhile.

use super::BTreeNativeIndex;
use crate::key::Key;
use crate::linked_leaves::{CopiedLeaf, LinkedLeaves, SearchTarget};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool};

impl<M: Medium, K: Key, const NODE: usize> LinkedLeaves<M, K> for BTreeNativeIndex<M, K, NODE> {
    fn pool_ref(&self) -> &Pool<M> {
        &self.pool
    }

    /// Descends for each leaf: a leaf may be unlinked while no latch is held.
    fn copy_leaf(
        &self,
        _near: Option<PmPtr>,
        target: SearchTarget<'_, K>,
        copy: &mut CopiedLeaf,
    ) -> Result<(), Corrupt> {
        let leaf = self.latch_leaf(target, false)?;
        copy.entries.clear();
        copy.entries.extend(leaf.node.entries(leaf.node.state()?.count));
        copy.low = leaf.low;
        copy.next = leaf.high.map(|high| (leaf.node.link(), high));
        Ok(())
    }
}
