//! Trees whose latches are in DRAM: inner nodes lead to rows, one a leaf, and a row to what there is of
//! its leaf.
//!
//! What a row holds is the design's own. How an operation comes by one is the same for all.
//!
//! 1. Rows come from an arena and return to it, and versions only ever grow. Inner nodes take a row's
//!    index for a leaf's offset, so who follows a stale one comes to a row of some leaf.
//! 2. So everybody reads the row's version first, then asks whether the inner node is
//!    [current](Inner::is_current), and only then looks at the row. What a reader saw there counts if the
//!    version is valid still; a writer upgrades it.

mod read;
mod scan;
mod write;

use crate::inner::{Inner, LeafRoute};
use crate::key::Key;
use bristlecone_pmem::sync::{Latch, OnDram};
use bristlecone_pmem::{Corrupt, Medium, Pool};

pub(crate) use read::{get, multi_get};
pub(crate) use scan::{KeyedEntries, RowCopy, misplaced, scan};
pub(crate) use write::{EntryChange, Operation, key_word, latch_leaf};

/// A key, as operations of `T` take it.
pub(crate) type KeyRef<'k, T> = <<T as LeafTable>::Key as Key>::Ref<'k>;

/// A tree of rows.
pub(crate) trait LeafTable: 'static {
    /// The medium of its pool.
    type Medium: Medium;
    /// Its keys.
    type Key: Key;
    /// A view of a row.
    type Row<'a>: Copy;

    /// Its pool.
    fn pool(&self) -> &Pool<Self::Medium>;
    /// What leads to its rows.
    fn inner(&self) -> &Inner<Self::Medium>;
    /// The row at `index`, and the latch of it and its leaf.
    fn row(&self, index: usize) -> (Self::Row<'_>, Latch<OnDram<'_, Self::Medium>>);

    /// The value of `key` in the leaf of a row. May run while a writer writes: the caller validates.
    fn find(&self, row: Self::Row<'_>, key: KeyRef<'_, Self>) -> Result<Option<u64>, Corrupt>;
    /// Asks for what [`find`](Self::find) will read, of each key in its row, to be brought near.
    fn prefetch<'a, 'k>(
        &'a self,
        places: impl Iterator<Item = (Self::Row<'a>, KeyRef<'k, Self>)> + Clone,
    );
    /// What the leaf of a row holds. As [`find`](Self::find).
    fn copy(&self, row: Self::Row<'_>) -> Result<RowCopy<Self::Key>, Corrupt>;
}

/// The row that `found` leads to, and its latch.
#[inline(always)]
fn row_of<'a, T: LeafTable>(
    tree: &'a T,
    found: &LeafRoute,
) -> (T::Row<'a>, Latch<OnDram<'a, T::Medium>>) {
    tree.row(found.leaf.offset() as usize)
}

#[cfg(test)]
pub(crate) mod testing;
