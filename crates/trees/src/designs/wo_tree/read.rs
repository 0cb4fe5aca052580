//! Lookups: no latch and no version on the way, the shared latch in the leaf.

use super::WoTreeIndex;
use crate::key::Key;
use crate::linked_leaves::SearchTarget;
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Medium};

impl<M: Medium, K: Key, const NODE: usize> WoTreeIndex<M, K, NODE> {
    /// Returns the value of `key`. No writer is in the leaf meanwhile, so the value is durable.
    #[inline]
    pub(super) fn lookup(&self, key: K::Ref<'_>, _pinned: &Guard) -> Result<Option<u64>, Corrupt> {
        let (leaf, _held) = self.share_leaf(SearchTarget::At(key))?;
        Ok(leaf.search::<K>(&self.pool, key)?.entry.map(|(_, value)| value))
    }
}
