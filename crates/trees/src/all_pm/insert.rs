//! Inserts and updates of single pairs.

use super::descend::{DescentTarget, Interrupted, NodeRef};
use super::{AllPm, AllPmSpec, LeafUpdate};
use crate::index::{TreeError, WriteMode};
use crate::key::{self, Entry, Key};
use crate::node::{Layout, SearchResult};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Defect, Medium};

/// The most calls of `ensure_space` for one insert. A sound tree needs one for each level, and more
/// only if other threads fill the leaf again. With damaged separators, a descent could miss the new
/// space for ever.
const ROUNDS_MAX: usize = 256;

/// The result of one attempt to write a pair.
enum Put {
    Done(Option<u64>),
    /// The leaf is full: split a node, then try again.
    Full,
}

impl<M: Medium, K: Key, S: AllPmSpec> AllPm<M, K, S> {
    /// Inserts or updates `key`, as `mode` says. Returns the old value, if any.
    pub(super) fn put(
        &self,
        key: K::Ref<'_>,
        value: u64,
        mode: WriteMode,
    ) -> Result<Option<u64>, TreeError> {
        let mut refusals = 0;
        for _ in 0..ROUNDS_MAX {
            let put = self.retry(|tree, guard| tree.try_put(key, value, mode, guard));
            let put = put.and_then(|put| match put {
                Put::Done(former) => Ok(Some(former)),
                Put::Full if S::INSERTS_WITH_SPLITS => {
                    let inserted = S::LeafUpdate::insert_and_split(self, key, value)?;
                    Ok(inserted.then_some(None))
                }
                Put::Full => self.structure().ensure_space(key).map(|()| None),
            });
            match put {
                Ok(Some(former)) => return Ok(former),
                Ok(None) => {}
                Err(refused) => {
                    refusals += 1;
                    if !S::LeafUpdate::may_retry(&self.pool, &refused, refusals) {
                        return Err(refused);
                    }
                }
            }
        }
        let (anchor, found) = (self.anchor()?, K::prefix(key));
        Err(anchor.corrupt(0, "a split does not make space for the key", 0, found).into())
    }

    /// Tries once to write the pair.
    ///
    /// The persist order is that of the design's leaves. A fence precedes the store that makes the
    /// entry visible, so the key record is durable before any entry names it.
    #[inline]
    fn try_put(
        &self,
        key: K::Ref<'_>,
        value: u64,
        mode: WriteMode,
        guard: &Guard,
    ) -> Result<Put, Interrupted> {
        let (path, fork) = S::LeafUpdate::leaf(self, key)?;
        let leaf = path.node;
        match leaf.certify(self.search(&leaf, key))? {
            SearchResult::Found(_, entry) if mode == WriteMode::Insert => {
                Ok(Put::Done(Some(entry.value)))
            }
            SearchResult::Found(at, entry) => {
                let _held = leaf.upgrade()?;
                S::LeafUpdate::update(&path, at, value);
                Ok(Put::Done(Some(entry.value)))
            }
            SearchResult::Absent(_) if S::Leaf::count(leaf.view) >= S::Leaf::CAPACITY => {
                Ok(Put::Full)
            }
            SearchResult::Absent(rank) => {
                let left = fork.map(|fork| self.last_leaf_before(&fork, &path)).transpose()?;
                let is_blind = M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::SlotStale);
                let held = if is_blind { leaf.lock()? } else { leaf.upgrade()? };
                let key = K::store_entry_key(&self.pool, key, value)?;
                let entry = Entry::plain(key, value);
                self.check_apart(entry, &leaf)?;
                S::LeafUpdate::insert(self, &path, left, held, rank, entry, guard)
                    .inspect_err(|_| key::free_entry_key::<K, M>(&self.pool, entry))?;
                Ok(Put::Done(None))
            }
        }
    }

    /// Checks that a fresh record of a key does not lie in the leaf that it is for. A damaged
    /// pointer may have led to a free block, which the record then got.
    #[inline(always)]
    fn check_apart(&self, entry: Entry, leaf: &NodeRef<'_, M>) -> Result<(), Corrupt> {
        let Some((record, bytes)) = K::entry_block(&self.pool, entry)? else { return Ok(()) };
        let (record, leaf_at) = (record.offset(), leaf.at.offset());
        if record < leaf_at + Self::NODE_BYTES && leaf_at < record + bytes {
            return Err(leaf.view.corrupt(0, "block of the tree is free in the pool", 1, 0));
        }
        Ok(())
    }

    /// Updates the value of `key` if it is present. Returns the old value.
    pub(super) fn replace(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.retry(|tree, _| {
            let path = tree.leaf(DescentTarget::At(key))?;
            let leaf = path.node;
            let found = leaf.certify(tree.search(&leaf, key))?;
            let SearchResult::Found(at, entry) = found else { return Ok(None) };
            let _held = leaf.upgrade()?;
            S::LeafUpdate::update(&path, at, value);
            Ok(Some(entry.value))
        })
    }
}
