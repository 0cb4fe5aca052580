//! Finding values: one key, or several with their memory accesses in flight together.

use super::descend::{Aim, Hop, Stop};
use super::{Uniform, UniformSpec};
use crate::index::TreeError;
use crate::key::Key;
use crate::node::{Found, Layout};
use bristlecone_pmem::{Corrupt, Medium};

/// Keys that descend together: about as many misses as a processor has in flight.
const GROUP: usize = 16;

impl<M: Medium, K: Key, S: UniformSpec> Uniform<M, K, S> {
    /// Searches a leaf for `key`. What comes of it has yet to be certified.
    #[inline(always)]
    pub(super) fn search(&self, leaf: &Hop<'_, M>, key: K::Ref<'_>) -> Result<Found, Corrupt> {
        S::Leaf::find(leaf.view, |entry| K::order_entry(&self.pool, entry, key))
    }

    /// The value of `key`.
    pub(super) fn lookup(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        self.retry(|tree, _| {
            let leaf = tree.leaf(Aim::At(key))?.node;
            tree.value(&leaf, key)
        })
    }

    #[inline(always)]
    fn value(&self, leaf: &Hop<'_, M>, key: K::Ref<'_>) -> Result<Option<u64>, Stop> {
        Ok(match leaf.certify(self.search(leaf, key))? {
            Found::Here(_, entry) => Some(entry.value),
            Found::Absent(_) => None,
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
            // Whatever another thread disturbs is looked up by itself.
            let found = self.retry(|tree, _| tree.group(keys))?;
            for ((key, value), found) in keys.iter().zip(values).zip(found) {
                *value = match found {
                    Some(found) => found,
                    None => self.lookup(*key)?,
                };
            }
        }
        Ok(())
    }

    /// The values of at most [`GROUP`] keys; `None` for a key whose descent was disturbed. All keys
    /// go down one level before any goes down the next, and a node is asked for before any of the
    /// group is read.
    fn group(&self, keys: &[K::Ref<'_>]) -> Result<[Option<Option<u64>>; GROUP], Stop> {
        let root = self.leaf_or_root()?;
        let mut hops = [Some(root); GROUP];
        for _ in 0..root.level {
            let mut next = [None; GROUP];
            for ((key, hop), next) in keys.iter().zip(&hops).zip(&mut next) {
                let Some(hop) = hop else { continue };
                let child = self.rank(hop.view, Aim::At(*key));
                let child = child.and_then(|rank| Self::child(hop.view, rank));
                *next = match hop.certify(child) {
                    Ok((at, _)) => {
                        let view = self.node(at)?;
                        self.medium().prefetch(view.words());
                        Some((at, view))
                    }
                    Err(Stop::Restart) => None,
                    Err(failed) => return Err(failed),
                };
            }
            for (hop, next) in hops.iter_mut().zip(&next) {
                *hop = match (*hop, next) {
                    (Some(parent), Some((at, view))) => {
                        match self.arrive(*at, *view, parent.level - 1) {
                            Ok(child) if parent.holds() => Some(child),
                            Ok(_) | Err(Stop::Restart) => None,
                            Err(failed) => return Err(failed),
                        }
                    }
                    _ => None,
                };
            }
        }
        let mut values = [None; GROUP];
        for ((key, hop), value) in keys.iter().zip(&hops).zip(&mut values) {
            let Some(leaf) = hop else { continue };
            *value = match self.value(leaf, *key) {
                Ok(found) => Some(found),
                Err(Stop::Restart) => None,
                Err(failed) => return Err(failed),
            };
        }
        Ok(values)
    }

    /// The root node.
    fn leaf_or_root(&self) -> Result<Hop<'_, M>, Stop> {
        self.descend(Aim::First, |_| Ok(Some(()))).map(|(path, _)| path.node)
    }
}
