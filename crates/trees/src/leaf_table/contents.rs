//! The contents of a leaf whose records are a base and later changes.

use super::{EntryChange, KeyedEntries, misplaced};
use crate::key::{Entry, Key};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool};

/// The contents of a chain: the base with all deltas applied.
#[derive(Debug)]
pub(crate) struct Contents<K: Key> {
    /// The present keys, in order.
    pub(crate) pairs: KeyedEntries<K>,
    /// The last entry of each removed key that the chain still names.
    pub(crate) removed: Vec<Entry>,
}

impl<K: Key> Contents<K> {
    /// Returns the contents of a base with these items.
    pub(crate) fn of_items<M: Medium>(
        pool: &Pool<M>,
        items: impl ExactSizeIterator<Item = Entry>,
    ) -> Result<Self, Corrupt> {
        let mut pairs = Vec::with_capacity(items.len() + 2);
        for entry in items {
            pairs.push((K::read_entry(pool, entry)?, entry));
        }
        Ok(Self { pairs, removed: Vec::new() })
    }

    /// Applies one change to the contents.
    pub(crate) fn apply(&mut self, key: K::Owned, change: EntryChange) {
        match (self.pairs.binary_search_by(|(other, _)| other.cmp(&key)), change.is_removed) {
            (Ok(at), false) => self.pairs[at].1 = change.entry,
            (Err(at), false) => {
                self.removed.retain(|removed| removed.key != change.entry.key);
                self.pairs.insert(at, (key, change.entry));
            }
            (Ok(at), true) => {
                self.pairs.remove(at);
                self.removed.push(change.entry);
            }
            (Err(_), true) => {}
        }
    }

    /// Returns all entries whose key records the chain still needs.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.pairs.iter().map(|(_, entry)| *entry).chain(self.removed.iter().copied())
    }

    /// Checks that the pairs are in strictly ascending order and within the leaf's range.
    pub(crate) fn check(
        &self,
        at: PmPtr,
        low: &K::Owned,
        high: Option<&K::Owned>,
    ) -> Result<(), Corrupt> {
        let Some(entry) = misplaced::<K>(&self.pairs, low, high) else { return Ok(()) };
        let what = "entry of a leaf out of range or out of order";
        Err(Corrupt { at: at.offset(), what, expected: 0, found: entry.key })
    }
}
