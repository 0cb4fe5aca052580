//! Removal of single pairs.

use super::descend::Interrupted;
use super::{AllPm, AllPmSpec, LeafUpdate};
use crate::index::TreeError;
use crate::key::Key;
use crate::node::SearchResult;
use bristlecone_pmem::Medium;
use bristlecone_pmem::sync::Guard;

impl<M: Medium, K: Key, S: AllPmSpec> AllPm<M, K, S> {
    /// Removes `key` and returns its value.
    pub(super) fn remove_entry(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        let removed = self.retry(|tree, guard| tree.try_remove_entry(key, guard))?;
        let Some((value, count)) = removed else { return Ok(None) };
        if S::LeafUpdate::is_sparse(count) {
            // The remove is durable. An error of the merge is dropped: the damage is in another
            // node, and the next operation that reads that node reports it.
            let _ = self.structure().shrink(key);
        }
        Ok(Some(value))
    }

    /// Removes `key`, and returns its value and the number of entries left in its leaf.
    ///
    /// The persist order is that of the design's leaves. The key's record is retired afterwards.
    #[inline]
    fn try_remove_entry(
        &self,
        key: K::Ref<'_>,
        guard: &Guard,
    ) -> Result<Option<(u64, usize)>, Interrupted> {
        let (path, fork) = S::LeafUpdate::leaf(self, key)?;
        let leaf = path.node;
        let found = leaf.certify(self.search(&leaf, key))?;
        let SearchResult::Found(at, entry) = found else { return Ok(None) };
        let record = leaf.certify(K::entry_block(&self.pool, entry))?;
        let left = fork.map(|fork| self.last_leaf_before(&fork, &path)).transpose()?;
        let held = leaf.upgrade()?;
        let count = S::LeafUpdate::remove(self, &path, left, held, at, guard)?;
        if let Some((block, bytes)) = record {
            // An invalid record pointer is dropped: it damages only this key, and the key is gone.
            let _ = self.pool.try_retire(block, bytes, guard);
        }
        Ok(Some((entry.value, count)))
    }
}
