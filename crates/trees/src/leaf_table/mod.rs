//! Trees with a leaf table: one row for each leaf, in DRAM, with the latch of the leaf and its
//! location (a mapping table, as in the Bw-tree). Inner nodes hold row indices.
//!
//! Each design decides what else a row holds. This module implements the operations that all of
//! them share: get, multi-get, scan, and latching a leaf for a write.
//!
//! 1. Rows come from an arena and return to it, and their versions only grow. Inner nodes hold row
//!    indices where those of a hybrid index hold leaf offsets. So a thread that follows a stale
//!    index reaches a row of some other leaf, never freed memory.
//! 2. A thread reads the version of the row first, then checks that the inner node is
//!    [current](InnerNodes::is_current), and only then reads the row. A reader validates the
//!    version after it has read; a writer upgrades it to the latch. Either fails if the row
//!    changed, so a stale row is never used.

mod bounds;
mod contents;
mod read;
mod scan;
mod write;

use crate::inner::{InnerNodes, LeafRoute};
use crate::key::{Key, Value};
use bristlecone_pmem::sync::{Latch, OnDram};
use bristlecone_pmem::{Corrupt, Medium, Pool};

pub(crate) use bounds::LeafBounds;
pub(crate) use contents::Contents;
pub(crate) use read::{get, get_value, multi_get, multi_get_values};
pub(crate) use scan::{
    KeyedEntries, RowCopy, check_range, misplaced, misplaced_key, no_progress, scan,
};
pub(crate) use write::{EntryChange, Operation, key_word, latch_leaf};

/// A borrowed key of the tree `T`.
pub(crate) type KeyRef<'k, T> = <<T as LeafTable>::Key as Key>::Ref<'k>;

/// A tree whose inner nodes lead to rows of a leaf table.
pub(crate) trait LeafTable: 'static {
    /// The medium of the pool.
    type Medium: Medium;
    /// The key layer of the tree.
    type Key: Key;
    /// The inner nodes, which lead to rows.
    type Inner: InnerNodes<Self::Medium>;
    /// A view of one row.
    type Row<'a>: Copy;

    /// Returns the pool that holds the leaves.
    fn pool(&self) -> &Pool<Self::Medium>;
    /// Returns the inner nodes, which lead to rows.
    fn inner(&self) -> &Self::Inner;
    /// Returns the row at `index` and the latch that protects the row and its leaf.
    fn row(&self, index: usize) -> (Self::Row<'_>, Latch<OnDram<'_, Self::Medium>>);

    /// Makes the row complete, if no operation has reached its leaf since the open.
    ///
    /// # Errors
    /// The leaf is damaged.
    #[inline(always)]
    fn visit(&self, _row: Self::Row<'_>) -> Result<(), Corrupt> {
        Ok(())
    }
    /// Returns the value of `key` in the leaf of `row`, or `None` if the key is absent. A writer
    /// may run concurrently, so the result counts only after the caller has validated the version.
    fn find(&self, row: Self::Row<'_>, key: KeyRef<'_, Self>) -> Result<Option<u64>, Corrupt>;
    /// As [`find`](Self::find), with the encoding of the entry.
    #[inline(always)]
    fn find_value(
        &self,
        row: Self::Row<'_>,
        key: KeyRef<'_, Self>,
    ) -> Result<Option<Value>, Corrupt> {
        Ok(self.find(row, key)?.map(Value::plain))
    }
    /// Notes that this thread relies on what it has read in the leaf of `row`, whose version it has
    /// validated. See [`Medium::note_read`].
    #[inline(always)]
    fn note_read(&self, _row: Self::Row<'_>) {}
    /// Prefetches what [`find`](Self::find) will read for `key` in the row at `index`, if that
    /// follows from the index.
    #[inline(always)]
    fn prefetch_row(&self, _index: usize, _key: KeyRef<'_, Self>) {}
    /// Prefetches all else that [`find`](Self::find) will read for each key in its row.
    fn prefetch<'a, 'k>(
        &'a self,
        places: impl Iterator<Item = (Self::Row<'a>, KeyRef<'k, Self>)> + Clone,
    );
    /// Returns a copy of the entries in the leaf of `row`. A writer may run concurrently: see
    /// [`find`](Self::find).
    fn copy(&self, row: Self::Row<'_>) -> Result<RowCopy<Self::Key>, Corrupt>;
}

/// Returns the row that `route` leads to, and its latch.
#[inline(always)]
fn row_of<'a, T: LeafTable>(
    tree: &'a T,
    route: &LeafRoute,
) -> (T::Row<'a>, Latch<OnDram<'a, T::Medium>>) {
    tree.row(route.leaf.offset() as usize)
}

#[cfg(test)]
pub(crate) mod testing;
