//! Adding pairs and changing values.

use super::descend::{Aim, Stop};
use super::{Uniform, UniformSpec};
use crate::index::TreeError;
use crate::key::{Entry, Key};
use crate::node::{Found, Layout};
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
        for _ in 0..ROUNDS_MAX {
            match self.retry(|tree, _| tree.try_put(key, value, present))? {
                Put::Done(former) => return Ok(former),
                Put::Full => self.make_room(key)?,
            }
        }
        let (anchor, found) = (self.anchor()?, K::prefix(key));
        Err(anchor.corrupt(0, "room that is made for a key is not found", 0, found).into())
    }

    /// The persist order is that of the leaf layout's insert or update. A key record is durable
    /// before the entry that names it can be, for a fence comes before the commit word.
    #[inline]
    fn try_put(&self, key: K::Ref<'_>, value: u64, present: Present) -> Result<Put, Stop> {
        let leaf = self.leaf(Aim::At(key))?.node;
        match leaf.certify(self.search(&leaf, key))? {
            Found::Here(_, entry) if present == Present::Keep => Ok(Put::Done(Some(entry.value))),
            Found::Here(at, entry) => {
                let _held = leaf.upgrade()?;
                let _ = S::Leaf::update(leaf.view, at, value);
                Ok(Put::Done(Some(entry.value)))
            }
            Found::Absent(_) if S::Leaf::count(leaf.view) >= S::Leaf::CAPACITY => Ok(Put::Full),
            Found::Absent(rank) => {
                let is_blind = M::SEEDED && self.pool.medium().seeded(Defect::SlotStale);
                let _held = if is_blind { leaf.lock()? } else { leaf.upgrade()? };
                let key = K::plant_entry(&self.pool, key, value)?;
                let _ = S::Leaf::insert(leaf.view, rank, Entry::plain(key, value));
                Ok(Put::Done(None))
            }
        }
    }

    /// Changes the value of `key`, if it is there.
    pub(super) fn replace(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.retry(|tree, _| {
            let leaf = tree.leaf(Aim::At(key))?.node;
            let found = leaf.certify(tree.search(&leaf, key))?;
            let Found::Here(at, entry) = found else { return Ok(None) };
            let _held = leaf.upgrade()?;
            let _ = S::Leaf::update(leaf.view, at, value);
            Ok(Some(entry.value))
        })
    }
}
