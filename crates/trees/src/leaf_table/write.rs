//! The parts that insert, update, upsert and remove share: the operation, the change, latching a
//! leaf.

use super::{KeyRef, LeafTable, row_of};
use crate::index::WriteMode;
use crate::inner::{Direction, InnerNodes};
use crate::key::{Entry, Key};
use bristlecone_pmem::sync::{Exclusive, OnDram};
use bristlecone_pmem::{Corrupt, PoolError};

/// An operation that a caller requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Write(WriteMode, u64),
    Remove,
}

impl Operation {
    /// Returns the value word to write to the log when the key's value is `old`: the new value, or,
    /// for a remove, the old one. `None` if the operation changes nothing.
    #[inline(always)]
    pub(crate) fn value(self, old: Option<u64>) -> Option<u64> {
        match (self, old) {
            (Self::Write(WriteMode::Insert, _), Some(_))
            | (Self::Write(WriteMode::Update, _), None) => None,
            (Self::Write(_, value), _) => Some(value),
            (Self::Remove, old) => old,
        }
    }
}

/// A change of one key: its new entry, or the entry that is removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryChange {
    pub(crate) entry: Entry,
    pub(crate) is_removed: bool,
}

impl EntryChange {
    /// Returns the value of the key after the change; `None` if the key is removed.
    #[inline(always)]
    pub(crate) fn value(self) -> Option<u64> {
        (!self.is_removed).then_some(self.entry.value)
    }
}

/// A row and the guard of its latch.
type LatchedRow<'a, T> =
    (<T as LeafTable>::Row<'a>, Exclusive<OnDram<'a, <T as LeafTable>::Medium>>);

/// Latches the leaf that covers `key` and returns its row. Calls `prefetch` with the row before it
/// takes the latch, so that the reads that follow miss the cache less while the latch is held.
#[inline(always)]
pub(crate) fn latch_leaf<'a, T: LeafTable>(
    tree: &'a T,
    key: KeyRef<'_, T>,
    prefetch: impl Fn(T::Row<'a>),
) -> Result<LatchedRow<'a, T>, Corrupt> {
    loop {
        let route = tree.inner().seek::<T::Key>(tree.pool(), key, Direction::Key)?;
        let (row, latch) = row_of(tree, &route);
        tree.visit(row)?;
        let Some(version) = latch.read() else { continue };
        if !tree.inner().is_current(&route) {
            continue;
        }
        prefetch(row);
        if let Some(guard) = latch.upgrade(version) {
            return Ok((row, guard));
        }
    }
}

/// Returns the key word of an entry for `key`: that of `existing`, or a new one. The flag is `true`
/// if the new word owns a record in the pool, which the caller must free if the write fails.
#[inline]
pub(crate) fn key_word<T: LeafTable>(
    tree: &T,
    key: KeyRef<'_, T>,
    value: u64,
    existing: Option<Entry>,
) -> Result<(u64, bool), PoolError> {
    if let Some(existing) = existing {
        return Ok((existing.key, false));
    }
    let word = T::Key::store_entry_key(tree.pool(), key, value)?;
    Ok((word, T::Key::entry_block(tree.pool(), Entry::plain(word, value))?.is_some()))
}
