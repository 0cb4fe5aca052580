//! Lookups: of one key, or of a batch whose cache misses overlap.

use super::descend::{DescentTarget, Interrupted, NodeRef, start};
use super::{AllPm, AllPmSpec, read_root};
use crate::index::TreeError;
use crate::key::Key;
use crate::node::{Layout, SearchResult};
use bristlecone_pmem::{Corrupt, Medium};

/// The number of keys in one batch: about as many cache misses as a core keeps in flight.
const BATCH: usize = 16;

impl<M: Medium, K: Key, S: AllPmSpec> AllPm<M, K, S> {
    /// Searches a leaf for `key`. The caller must validate the leaf's version before it uses the
    /// result.
    #[inline(always)]
    pub(super) fn search(
        &self,
        leaf: &NodeRef<'_, M>,
        key: K::Ref<'_>,
    ) -> Result<SearchResult, Corrupt> {
        S::Leaf::find(leaf.view, |entry| K::order_entry(&self.pool, entry, key))
    }

    /// Returns the value of `key`.
    pub(super) fn lookup(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        self.retry(|tree, _| {
            let leaf = tree.leaf(DescentTarget::At(key))?.node;
            tree.value(&leaf, key)
        })
    }

    #[inline(always)]
    fn value(&self, leaf: &NodeRef<'_, M>, key: K::Ref<'_>) -> Result<Option<u64>, Interrupted> {
        let found = Self::reading(leaf, || self.search(leaf, key));
        Ok(match leaf.certify(found)? {
            SearchResult::Found(_, entry) => Some(entry.value),
            SearchResult::Absent(_) => None,
        })
    }

    /// Looks up `keys` in batches and stores each result in `values`.
    pub(super) fn lookup_many(
        &self,
        keys: &[K::Ref<'_>],
        values: &mut [Option<u64>],
    ) -> Result<(), TreeError> {
        assert_eq!(keys.len(), values.len(), "multi_get needs one value slot for each key");
        for (keys, values) in keys.chunks(BATCH).zip(values.chunks_mut(BATCH)) {
            let disturbed = self.retry(|tree, _| tree.lookup_batch(keys, values))?;
            for index in (0..keys.len()).filter(|index| disturbed >> index & 1 == 1) {
                values[index] = self.lookup(keys[index])?;
            }
        }
        Ok(())
    }

    /// Looks up at most [`BATCH`] keys. All descend one level before any descends the next, and the
    /// nodes of a level are prefetched before the first of them is read. Returns a mask of the keys
    /// whose descent another thread disturbed; the caller must look these up again.
    fn lookup_batch(
        &self,
        keys: &[K::Ref<'_>],
        values: &mut [Option<u64>],
    ) -> Result<u64, Interrupted> {
        let root = self.root()?;
        let mut nodes = [Some(root); BATCH];
        let nodes = &mut nodes[..keys.len()];
        for level in (0..root.level).rev() {
            let mut next = [None; BATCH];
            for ((key, node), next) in keys.iter().zip(&*nodes).zip(&mut next) {
                let Some(node) = node else { continue };
                let child = Self::reading(node, || {
                    Self::child(node.view, self.rank(node.view, DescentTarget::At(*key))?)
                });
                let child = undisturbed(self.step_or_repair(node, child))?;
                let Some((at, _)) = child else { continue };
                let view = self.node(at)?;
                self.medium().prefetch(view.words());
                *next = Some((at, view));
            }
            for (node, next) in nodes.iter_mut().zip(next) {
                let Some((parent, (at, view))) = node.take().zip(next) else { continue };
                *node = self.arrive(at, view, level, &parent)?.filter(|_| parent.holds());
            }
        }
        let mut disturbed = 0;
        for (index, (key, node)) in keys.iter().zip(&*nodes).enumerate() {
            let found =
                node.as_ref().map(|leaf| undisturbed(self.value(leaf, *key))).transpose()?;
            match found.flatten() {
                Some(value) => values[index] = value,
                None => disturbed |= 1 << index,
            }
        }
        Ok(disturbed)
    }

    /// Returns the root node.
    fn root(&self) -> Result<NodeRef<'_, M>, Interrupted> {
        let parent = start(&self.pool, self.anchor, self.reader_counts())?;
        let (at, level) = parent.certify(Self::reading(&parent, || read_root(parent.view)))?;
        self.enter(at, level, &parent)
    }
}

/// Turns a restart into `None`, so that it does not end the descents of the other keys.
fn undisturbed<T>(read: Result<T, Interrupted>) -> Result<Option<T>, Interrupted> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(Interrupted::Restart) => Ok(None),
        Err(failed) => Err(failed),
    }
}
