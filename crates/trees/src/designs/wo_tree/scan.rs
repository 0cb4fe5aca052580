//! Copies of leaves for scans, each under the leaf's shared latch.

use super::WoTreeIndex;
use super::node::Node;
use crate::key::Key;
use crate::linked_leaves::{CopiedLeaf, LinkedLeaves, SearchTarget};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool};

impl<M: Medium, K: Key, const NODE: usize> LinkedLeaves<M, K> for WoTreeIndex<M, K, NODE> {
    fn pool_ref(&self) -> &Pool<M> {
        &self.pool
    }

    fn copy_leaf(
        &self,
        near: Option<PmPtr>,
        target: SearchTarget<'_, K>,
        copy: &mut CopiedLeaf,
    ) -> Result<(), Corrupt> {
        if let Some(near) = near {
            let leaf = self.node(near, 0)?;
            // The target is the low key of this leaf, so the leaf covers it while it is linked.
            if let Some(_held) = leaf.leaf_latch(self.pool.nonce()).share() {
                return self.copy_latched(&leaf, copy);
            }
        }
        let (leaf, _held) = self.share_leaf(target)?;
        self.copy_latched(&leaf, copy)
    }
}

impl<M: Medium, K: Key, const NODE: usize> WoTreeIndex<M, K, NODE> {
    fn copy_latched(&self, leaf: &Node<'_, M, NODE>, copy: &mut CopiedLeaf) -> Result<(), Corrupt> {
        copy.entries.clear();
        copy.entries.extend(leaf.ordered()?.iter().map(|(_, entry)| *entry));
        copy.low = leaf.low();
        let next = leaf.next();
        copy.next = if next.is_null() { None } else { Some((next, self.node(next, 0)?.low())) };
        Ok(())
    }
}
