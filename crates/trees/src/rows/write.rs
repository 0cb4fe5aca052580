//! What insert, update, upsert and remove have in common.

use super::{KeyRef, RowTree, row_of};
use crate::inner::Toward;
use crate::key::{Entry, Key};
use bristlecone_pmem::sync::{Exclusive, OnDram};
use bristlecone_pmem::{Corrupt, PoolError};

/// What an operation wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Insert(u64),
    Update(u64),
    Upsert(u64),
    Remove,
}

impl Wish {
    /// The value that is written where `there` is the value so far: that one, if the key goes. `None` if
    /// there is nothing to do.
    #[inline(always)]
    pub(crate) fn value(self, there: Option<u64>) -> Option<u64> {
        match (self, there) {
            (Self::Insert(_), Some(_)) | (Self::Update(_), None) => None,
            (Self::Insert(value) | Self::Update(value) | Self::Upsert(value), _) => Some(value),
            (Self::Remove, there) => there,
        }
    }
}

/// A change of a leaf: the entry that a key has from now on, or the one that goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) entry: Entry,
    pub(crate) is_removed: bool,
}

impl Change {
    /// The value that the key has from now on.
    #[inline(always)]
    pub(crate) fn value(self) -> Option<u64> {
        (!self.is_removed).then_some(self.entry.value)
    }
}

/// A row, and the hold on its latch.
type Held<'a, T> = (<T as RowTree>::Row<'a>, Exclusive<OnDram<'a, <T as RowTree>::Medium>>);

/// The row of the leaf that covers `key`, latched. `ahead` is shown it before, to ask for what is read
/// next.
#[inline(always)]
pub(crate) fn hold<'a, T: RowTree>(
    tree: &'a T,
    key: KeyRef<'_, T>,
    ahead: impl Fn(T::Row<'a>),
) -> Result<Held<'a, T>, Corrupt> {
    loop {
        let found = tree.inner().seek::<T::Key>(tree.pool(), key, Toward::Key)?;
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
pub(crate) fn key_word<T: RowTree>(
    tree: &T,
    key: KeyRef<'_, T>,
    value: u64,
    there: Option<Entry>,
) -> Result<(u64, bool), PoolError> {
    if let Some(there) = there {
        return Ok((there.key, false));
    }
    let word = T::Key::plant_entry(tree.pool(), key, value)?;
    Ok((word, T::Key::entry_block(tree.pool(), Entry::plain(word, value))?.is_some()))
}
