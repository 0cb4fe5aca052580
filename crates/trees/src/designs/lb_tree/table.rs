//! The rows of the leaf table: one for each leaf, in DRAM, with what the published leaf has no
//! space for.
//!
//! | word | field |
//! | --- | --- |
//! | 0 | latch of the leaf and of this row |
//! | 1 | offset of the leaf; [`NO_LEAF`] once the leaf is unlinked |
//! | 2 | separator word of the low key; 0 in the first leaf |
//! | 3 | index of the right neighbour's row, plus one; 0 in the last leaf |
//!
//! 1. Rows come from an arena and return to it, and their versions only grow. A thread that follows
//!    a stale index detects it when it validates the inner node that held the index.
//! 2. A low key changes only when its leaf becomes the first one. The low key of the right
//!    neighbour is the high key.
//! 3. A low key word is the key word of an entry that the leaf has or had. Its record belongs to
//!    that entry, and to the row once the entry is removed. It is retired with the row.

use crate::inner::{Arena, load, store};
use bristlecone_pmem::sync::{Latch, OnDram};
use bristlecone_pmem::{Medium, PmPtr, PoolError};
use core::sync::atomic::AtomicU64;

const WORDS: usize = 4;
const LATCH: usize = 0;
const LEAF: usize = 1;
const LOW: usize = 2;
const NEXT: usize = 3;

/// The offset in the row of an unlinked leaf: no block of a pool lies there.
const NO_LEAF: u64 = u64::MAX;

/// The rows of all leaves.
#[derive(Debug)]
pub(super) struct LeafRows {
    rows: Arena<WORDS>,
}

impl LeafRows {
    pub(super) fn new() -> Result<Self, PoolError> {
        Ok(Self { rows: Arena::new()? })
    }

    /// Returns the row at `index`.
    #[inline(always)]
    pub(super) fn row(&self, index: usize) -> LeafRow<'_> {
        LeafRow { index, words: self.rows.get(index) }
    }

    /// Takes a row for the leaf at `leaf`, which has no right neighbour yet.
    pub(super) fn take<M: Medium>(&self, leaf: PmPtr, low: u64) -> LeafRow<'_> {
        let row = self.row(self.rows.take());
        store::<M>(&row.words[LEAF], leaf.offset());
        row.set_low::<M>(low);
        store::<M>(&row.words[NEXT], 0);
        row
    }

    /// Returns the unlatched row at `index` to the arena.
    pub(super) fn put_back(&self, index: usize) {
        self.rows.put_back(index);
    }

    /// Returns the row of the right neighbour; `None` for the last leaf.
    #[inline(always)]
    pub(super) fn next<M: Medium>(&self, row: LeafRow<'_>) -> Option<LeafRow<'_>> {
        let next = load::<M>(&row.words[NEXT]) as usize;
        next.checked_sub(1).map(|index| self.row(index))
    }

    /// Returns the number of rows in use.
    pub(super) fn in_use(&self) -> u64 {
        self.rows.in_use()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.rows.bytes()
    }
}

/// A view of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafRow<'a> {
    pub(super) index: usize,
    words: &'a [AtomicU64; WORDS],
}

impl<'a> LeafRow<'a> {
    #[inline(always)]
    pub(super) fn latch<M: Medium>(self) -> Latch<OnDram<'a, M>> {
        OnDram::latch(&self.words[LATCH])
    }

    #[inline(always)]
    pub(super) fn leaf<M: Medium>(self) -> PmPtr {
        PmPtr::new(load::<M>(&self.words[LEAF]))
    }

    /// Clears the leaf, because it is unlinked. If damage keeps the row in the inner nodes, every
    /// operation that reaches it fails.
    pub(super) fn clear_leaf<M: Medium>(self) {
        store::<M>(&self.words[LEAF], NO_LEAF);
    }

    #[inline(always)]
    pub(super) fn low<M: Medium>(self) -> u64 {
        load::<M>(&self.words[LOW])
    }

    pub(super) fn set_low<M: Medium>(self, low: u64) {
        store::<M>(&self.words[LOW], low);
    }

    /// Sets the right neighbour.
    pub(super) fn set_next<M: Medium>(self, next: Option<LeafRow<'_>>) {
        store::<M>(&self.words[NEXT], next.map_or(0, |next| next.index as u64 + 1));
    }
}
