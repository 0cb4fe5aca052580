//! Adding pairs and changing values.

use super::descend::{Interrupted, Target};
use super::{AllPm, AllPmSpec, LeafUpdate};
use crate::index::{TreeError, WriteMode};
use crate::key::{self, Entry, Key};
use crate::node::{Layout, SearchResult};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Defect, Medium};

/// How often room is made for one key: once for each level of a sound tree, and again when other
/// threads fill it. Where separators are damaged a descent may miss it for ever.
const ROUNDS_MAX: usize = 256;

/// How an attempt to add a pair ended.
enum Put {
    Done(Option<u64>),
    /// The leaf is full: make room and try again.
    Full,
}

impl<M: Medium, K: Key, S: AllPmSpec> AllPm<M, K, S> {
    /// Adds `key`, or does to its value what `mode` says; gives the value that was there.
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
                Put::Full => self.ensure_space(key).map(|()| None),
            });
            match put {
                Ok(Some(former)) => return Ok(former),
                Ok(None) => {}
                Err(refused) => {
                    refusals += 1;
                    if !S::LeafUpdate::may_try_again(&self.pool, &refused, refusals) {
                        return Err(refused);
                    }
                }
            }
        }
        let (anchor, found) = (self.anchor()?, K::prefix(key));
        Err(anchor.corrupt(0, "room that is made for a key is not found", 0, found).into())
    }

    /// The persist order is that of the design's leaves. A key record is durable
    /// before the entry that names it can be, for a fence comes before whatever shows it.
    #[inline]
    fn try_put(
        &self,
        key: K::Ref<'_>,
        value: u64,
        mode: WriteMode,
        guard: &Guard,
    ) -> Result<Put, Interrupted> {
        let path = self.leaf(Target::At(key))?;
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
                let left = S::LeafUpdate::beside(self, &path)?;
                let is_blind = M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::SlotStale);
                let held = if is_blind { leaf.lock()? } else { leaf.upgrade()? };
                let key = K::store_entry_key(&self.pool, key, value)?;
                let entry = Entry::plain(key, value);
                S::LeafUpdate::insert(self, &path, left, held, rank, entry, guard)
                    .inspect_err(|_| key::free_entry_key::<K, M>(&self.pool, entry))?;
                Ok(Put::Done(None))
            }
        }
    }

    /// Changes the value of `key`, if it is there.
    pub(super) fn replace(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.retry(|tree, _| {
            let path = tree.leaf(Target::At(key))?;
            let leaf = path.node;
            let found = leaf.certify(tree.search(&leaf, key))?;
            let SearchResult::Found(at, entry) = found else { return Ok(None) };
            let _held = leaf.upgrade()?;
            S::LeafUpdate::update(&path, at, value);
            Ok(Some(entry.value))
        })
    }
}
