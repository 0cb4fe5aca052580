//! What insert, update, upsert and remove have in common.

use super::{KeyRef, LeafTable, row_of};
use crate::index::WriteMode;
use crate::inner::Direction;
use crate::key::{Entry, Key};
use bristlecone_pmem::sync::{Exclusive, OnDram};
use bristlecone_pmem::{Corrupt, PoolError};

/// A change that an operation asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Write(WriteMode, u64),
    Remove,
}

impl Operation {
    /// Returns the value word that goes into the log when the key's value is `old`: the new value, or
    /// for a remove the old one. `None` if the operation changes nothing.
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

/// A change of a leaf: the entry that a key has from now on, or the one that goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryChange {
    pub(crate) entry: Entry,
    pub(crate) is_removed: bool,
}

impl EntryChange {
    /// The value that the key has from now on.
    #[inline(always)]
    pub(crate) fn value(self) -> Option<u64> {
        (!self.is_removed).then_some(self.entry.value)
    }
}

/// A row, and the hold on its latch.
type LatchedRow<'a, T> =
    (<T as LeafTable>::Row<'a>, Exclusive<OnDram<'a, <T as LeafTable>::Medium>>);

/// The row of the leaf that covers `key`, latched. `ahead` is shown it before, to ask for what is read
/// next.
#[inline(always)]
pub(crate) fn latch_leaf<'a, T: LeafTable>(
    tree: &'a T,
    key: KeyRef<'_, T>,
    ahead: impl Fn(T::Row<'a>),
) -> Result<LatchedRow<'a, T>, Corrupt> {
    loop {
        let found = tree.inner().seek::<T::Key>(tree.pool(), key, Direction::Key)?;
        let (row, latch) = row_of(tree, &found);
        let Some(seen) = latch.read() else { continue };
        if !tree.inner().is_current(&found) {
            continue;
        }
        ahead(row);
        if let Some(held) = latch.upgrade(seen) {
            return Ok((row, held));
        }
    }
}

/// The key word of an entry for `key`, that of the entry that is `there` or a new one; and whether a
/// record was planted for it.
#[inline]
pub(crate) fn key_word<T: LeafTable>(
    tree: &T,
    key: KeyRef<'_, T>,
    value: u64,
    there: Option<Entry>,
) -> Result<(u64, bool), PoolError> {
    if let Some(there) = there {
        return Ok((there.key, false));
    }
    let word = T::Key::store_entry_key(tree.pool(), key, value)?;
    Ok((word, T::Key::entry_block(tree.pool(), Entry::plain(word, value))?.is_some()))
}
