//! Taking pairs out.

use super::descend::{Interrupted, Target};
use super::{AllPm, AllPmSpec, LeafUpdate};
use crate::index::TreeError;
use crate::key::Key;
use crate::node::{Layout, SearchResult};
use bristlecone_pmem::Medium;
use bristlecone_pmem::sync::Guard;

/// A node with at most this share of its places in use looks for a sibling to merge with.
pub(super) const SPARSE: usize = 4;

impl<M: Medium, K: Key, S: AllPmSpec> AllPm<M, K, S> {
    /// Takes `key` out and gives its value.
    pub(super) fn remove_entry(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        let removed = self.retry(|tree, guard| tree.try_remove_entry(key, guard))?;
        let Some((value, count)) = removed else { return Ok(None) };
        if count * SPARSE <= S::Leaf::CAPACITY {
            // The pair is gone for good, so this is done. Damage that is met while tidying up is
            // none of this key's: whoever reads there is told.
            let _ = self.shrink(key);
        }
        Ok(Some(value))
    }

    /// The value of `key`, now removed, and how many entries its leaf has left.
    ///
    /// The persist order is that of the design's leaves; the key's record goes after it.
    #[inline]
    fn try_remove_entry(
        &self,
        key: K::Ref<'_>,
        guard: &Guard,
    ) -> Result<Option<(u64, usize)>, Interrupted> {
        let path = self.leaf(Target::At(key))?;
        let leaf = path.node;
        let found = leaf.certify(self.search(&leaf, key))?;
        let SearchResult::Found(at, entry) = found else { return Ok(None) };
        let record = leaf.certify(K::entry_block(&self.pool, entry))?;
        let left = S::LeafUpdate::beside(self, &path)?;
        let held = leaf.upgrade()?;
        let count = S::LeafUpdate::remove(self, &path, left, held, at, guard)?;
        if let Some((block, bytes)) = record {
            // What is no such block is damage to that key alone, and it is gone.
            let _ = self.pool.try_retire(block, bytes, guard);
        }
        Ok(Some((entry.value, count)))
    }
}
