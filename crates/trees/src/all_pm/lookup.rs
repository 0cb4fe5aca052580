//! Finding values: one key, or several with their memory accesses in flight together.

use super::descend::{Interrupted, NodeRef, Target};
use super::{AllPm, AllPmSpec};
use crate::index::TreeError;
use crate::key::Key;
use crate::node::{Layout, SearchResult};
use bristlecone_pmem::{Corrupt, Medium};

/// Keys that descend together: about as many misses as a processor has in flight.
const GROUP: usize = 16;

impl<M: Medium, K: Key, S: AllPmSpec> AllPm<M, K, S> {
    /// Searches a leaf for `key`. What comes of it has yet to be certified.
    #[inline(always)]
    pub(super) fn search(
        &self,
        leaf: &NodeRef<'_, M>,
        key: K::Ref<'_>,
    ) -> Result<SearchResult, Corrupt> {
        S::Leaf::find(leaf.view, |entry| K::order_entry(&self.pool, entry, key))
    }

    /// The value of `key`.
    pub(super) fn lookup(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        self.retry(|tree, _| {
            let leaf = tree.leaf(Target::At(key))?.node;
            tree.value(&leaf, key)
        })
    }

    #[inline(always)]
    fn value(&self, leaf: &NodeRef<'_, M>, key: K::Ref<'_>) -> Result<Option<u64>, Interrupted> {
        Ok(match leaf.certify(self.search(leaf, key))? {
            SearchResult::Found(_, entry) => Some(entry.value),
            SearchResult::Absent(_) => None,
        })
    }

    /// The values of `keys`, in groups.
    pub(super) fn lookup_many(
        &self,
        keys: &[K::Ref<'_>],
        values: &mut [Option<u64>],
    ) -> Result<(), TreeError> {
        assert_eq!(keys.len(), values.len(), "a place for the value of each key");
        for (keys, values) in keys.chunks(GROUP).zip(values.chunks_mut(GROUP)) {
            let disturbed = self.retry(|tree, _| tree.lookup_group(keys, values))?;
            for index in (0..keys.len()).filter(|index| disturbed >> index & 1 == 1) {
                values[index] = self.lookup(keys[index])?;
            }
        }
        Ok(())
    }

    /// The values of at most [`GROUP`] keys. All go down one level before any goes down the next,
    /// and the nodes of a level are all asked for before the first of them is read. Gives a bit for
    /// each key whose descent another thread disturbed, and whose value is still to be found.
    fn lookup_group(
        &self,
        keys: &[K::Ref<'_>],
        values: &mut [Option<u64>],
    ) -> Result<u64, Interrupted> {
        let root = self.root()?;
        let mut hops = [Some(root); GROUP];
        let hops = &mut hops[..keys.len()];
        for level in (0..root.level).rev() {
            let mut next = [None; GROUP];
            for ((key, hop), next) in keys.iter().zip(&*hops).zip(&mut next) {
                let Some(hop) = hop else { continue };
                let child = self.rank(hop.view, Target::At(*key));
                let child = child.and_then(|rank| Self::child(hop.view, rank));
                let Some((at, _)) = undisturbed(hop.certify(child))? else { continue };
                let view = self.node(at)?;
                self.medium().prefetch(view.words());
                *next = Some((at, view));
            }
            for (hop, next) in hops.iter_mut().zip(next) {
                let Some((parent, (at, view))) = hop.take().zip(next) else { continue };
                *hop = self.arrive(at, view, level)?.filter(|_| parent.holds());
            }
        }
        let mut disturbed = 0;
        for (index, (key, hop)) in keys.iter().zip(&*hops).enumerate() {
            let found = hop.as_ref().map(|leaf| undisturbed(self.value(leaf, *key))).transpose()?;
            match found.flatten() {
                Some(value) => values[index] = value,
                None => disturbed |= 1 << index,
            }
        }
        Ok(disturbed)
    }

    /// The root node.
    fn root(&self) -> Result<NodeRef<'_, M>, Interrupted> {
        self.descend(Target::First, |_| Ok(Some(()))).map(|(path, _)| path.node)
    }
}

/// What was read, or nothing if another thread changed it meanwhile.
fn undisturbed<T>(read: Result<T, Interrupted>) -> Result<Option<T>, Interrupted> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(Interrupted::Restart) => Ok(None),
        Err(failed) => Err(failed),
    }
}
