//! Adding pairs and changing values.

use super::descend::{Aim, Stop};
use super::{Leaves, Uniform, UniformSpec};
use crate::index::TreeError;
use crate::key::{self, Entry, Key};
use crate::node::{Found, Layout};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Defect, Medium};

/// What to do about a key that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Present {
    /// Leave its value.
    Keep,
    /// Change its value.
    Replace,
}

/// How often room is made for one key: once for each level of a sound tree, and again when other
/// threads fill it. Where separators are damaged a descent may miss it for ever.
const ROUNDS_MAX: usize = 256;

/// How an attempt to add a pair ended.
enum Put {
    Done(Option<u64>),
    /// The leaf is full: make room and try again.
    Full,
}

impl<M: Medium, K: Key, S: UniformSpec> Uniform<M, K, S> {
    /// Adds `key`, or does to its value what `present` says; gives the value that was there.
    pub(super) fn put(
        &self,
        key: K::Ref<'_>,
        value: u64,
        present: Present,
    ) -> Result<Option<u64>, TreeError> {
        let mut refusals = 0;
        for _ in 0..ROUNDS_MAX {
            let put = self.retry(|tree, guard| tree.try_put(key, value, present, guard));
            let put = put.and_then(|put| match put {
                Put::Done(former) => Ok(Some(former)),
                Put::Full => self.make_room(key).map(|()| None),
            });
            match put {
                Ok(Some(former)) => return Ok(former),
                Ok(None) => {}
                Err(refused) => {
                    refusals += 1;
                    if !S::Leaves::may_try_again(&self.pool, &refused, refusals) {
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
        present: Present,
        guard: &Guard,
    ) -> Result<Put, Stop> {
        let path = self.leaf(Aim::At(key))?;
        let leaf = path.node;
        match leaf.certify(self.search(&leaf, key))? {
            Found::Here(_, entry) if present == Present::Keep => Ok(Put::Done(Some(entry.value))),
            Found::Here(at, entry) => {
                let _held = leaf.upgrade()?;
                S::Leaves::update(&path, at, value);
                Ok(Put::Done(Some(entry.value)))
            }
            Found::Absent(_) if S::Leaf::count(leaf.view) >= S::Leaf::CAPACITY => Ok(Put::Full),
            Found::Absent(rank) => {
                let left = S::Leaves::beside(self, &path)?;
                let is_blind = M::SEEDED && self.pool.medium().seeded(Defect::SlotStale);
                let held = if is_blind { leaf.lock()? } else { leaf.upgrade()? };
                let key = K::plant_entry(&self.pool, key, value)?;
                let entry = Entry::plain(key, value);
                S::Leaves::insert(self, &path, left, held, rank, entry, guard)
                    .inspect_err(|_| key::unplant_entry::<K, M>(&self.pool, entry))?;
                Ok(Put::Done(None))
            }
        }
    }

    /// Changes the value of `key`, if it is there.
    pub(super) fn replace(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.retry(|tree, _| {
            let path = tree.leaf(Aim::At(key))?;
            let leaf = path.node;
            let found = leaf.certify(tree.search(&leaf, key))?;
            let Found::Here(at, entry) = found else { return Ok(None) };
            let _held = leaf.upgrade()?;
            S::Leaves::update(&path, at, value);
            Ok(Some(entry.value))
        })
    }
}
