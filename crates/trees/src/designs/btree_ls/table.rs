//! The mapping table: one row for each leaf, in DRAM, with pointers to the newest records of the
//! leaf's chain.
//!
//! | word | field |
//! | --- | --- |
//! | 0 | latch of the leaf and of this row |
//! | 1 | bits 0..48: number of the leaf; 48..56: items on the chain; 56..64: live keys |
//! | 2 | bits 0..48: one more than the leaf whose end the base waits for, or 0; 48..56: lines |
//! | 3 | head: the newest record of the chain |
//! | 4 | the records before it, the newest first; 0 behind the base |
//!
//! 1. Rows come from an arena and return to it, and their versions only grow. A thread that follows
//!    a stale index detects it when it validates the inner node that held the index. Leaf numbers
//!    are never reused.
//! 2. A row changes only under its latch, and only to point to durable records.

use super::record::{LEAF_MAX, base_lines};
use super::tuning::{LsOptions, RECENT_MAX};
use crate::inner::{Arena, load, store};
use bristlecone_pmem::sync::{Latch, OnDram};
use bristlecone_pmem::{Medium, PmPtr, PoolError};
use core::sync::atomic::AtomicU64;

/// The most items of a chain.
pub(super) const ITEMS_MAX: usize = 64;

const WORDS: usize = 12;
const LATCH: usize = 0;
const LEAF: usize = 1;
const SIZES: usize = 2;
const RECENT: usize = 3;

const ITEMS_SHIFT: u32 = 48;
const LIVE_SHIFT: u32 = 56;
const LINES_SHIFT: u32 = 48;

const _: () = assert!(RECENT + RECENT_MAX <= WORDS);
const _: () = assert!(base_lines(ITEMS_MAX) + ITEMS_MAX < 256);

/// The rows of all leaves.
#[derive(Debug)]
pub(super) struct ChainTable {
    rows: Arena<WORDS>,
}

/// The sizes of a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChainSizes {
    /// The items of the base, and one for each delta.
    pub(super) items: usize,
    /// The keys that are present.
    pub(super) live: usize,
    /// The lines of all records.
    pub(super) lines: usize,
}

impl ChainTable {
    pub(super) fn new() -> Result<Self, PoolError> {
        Ok(Self { rows: Arena::new()? })
    }

    /// Returns the row at `index`.
    #[inline(always)]
    pub(super) fn row(&self, index: usize) -> ChainRow<'_> {
        ChainRow { words: self.rows.get(index) }
    }

    /// Takes a row and returns its index.
    pub(super) fn take(&self) -> usize {
        self.rows.take()
    }

    /// Returns a row to the arena. It is not latched, and its [leaf](ChainRow::clear_leaf) is
    /// cleared.
    pub(super) fn put_back(&self, index: usize) {
        self.rows.put_back(index);
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
pub(crate) struct ChainRow<'a> {
    words: &'a [AtomicU64; WORDS],
}

impl<'a> ChainRow<'a> {
    #[inline(always)]
    pub(super) fn latch<M: Medium>(self) -> Latch<OnDram<'a, M>> {
        OnDram::latch(&self.words[LATCH])
    }

    pub(super) fn leaf<M: Medium>(self) -> u64 {
        load::<M>(&self.words[LEAF]) & LEAF_MAX
    }

    /// Clears the leaf number, because the leaf was merged. A thread with a stale index then sees
    /// another leaf's row.
    pub(super) fn clear_leaf<M: Medium>(self) {
        store::<M>(&self.words[LEAF], LEAF_MAX);
    }

    #[inline(always)]
    pub(super) fn size<M: Medium>(self) -> ChainSizes {
        let [leaf, sizes] = [LEAF, SIZES].map(|at| load::<M>(&self.words[at]));
        let byte = |word: u64, shift| usize::from((word >> shift) as u8);
        ChainSizes {
            items: byte(leaf, ITEMS_SHIFT),
            live: byte(leaf, LIVE_SHIFT),
            lines: byte(sizes, LINES_SHIFT),
        }
    }

    /// Returns the leaf whose end the base of the chain waits for: the base is the only record.
    pub(super) fn after<M: Medium>(self) -> Option<u64> {
        (load::<M>(&self.words[SIZES]) & LEAF_MAX).checked_sub(1)
    }

    /// Returns the newest record of the chain.
    #[inline(always)]
    pub(super) fn head<M: Medium>(self) -> PmPtr {
        PmPtr::new(load::<M>(&self.words[RECENT]))
    }

    /// Returns the records that the row points to, the newest first.
    #[inline(always)]
    pub(super) fn recent<M: Medium, T: LsOptions>(self) -> impl Iterator<Item = PmPtr> {
        let recent = self.words[RECENT..][..T::RECENT].iter();
        recent.map(|word| PmPtr::new(load::<M>(word))).take_while(|at| !at.is_null())
    }

    fn set_sizes<M: Medium>(self, leaf: u64, size: ChainSizes, after: Option<u64>) {
        debug_assert!(size.items < 256 && size.live < 256 && size.lines < 256);
        let items = (size.items as u64) << ITEMS_SHIFT | (size.live as u64) << LIVE_SHIFT;
        store::<M>(&self.words[LEAF], leaf | items);
        let after = after.map_or(0, |leaf| leaf + 1);
        store::<M>(&self.words[SIZES], after | (size.lines as u64) << LINES_SHIFT);
    }

    /// Sets the leaf number of a row without a chain.
    pub(super) fn begin<M: Medium>(self, leaf: u64) {
        self.set_sizes::<M>(leaf, ChainSizes::default(), None);
        for word in &self.words[RECENT..] {
            store::<M>(word, 0);
        }
    }

    /// Sets the chain of leaf `leaf` to a single base of `items` items at `at`.
    pub(super) fn set_base<M: Medium>(
        self,
        leaf: u64,
        at: PmPtr,
        items: usize,
        after: Option<u64>,
    ) {
        self.begin::<M>(leaf);
        store::<M>(&self.words[RECENT], at.offset());
        let lines = base_lines(items);
        self.set_sizes::<M>(leaf, ChainSizes { items, live: items, lines }, after);
    }

    /// Adds a delta to the chain, after which `live` keys are present.
    pub(super) fn push_delta<M: Medium, T: LsOptions>(self, at: PmPtr, live: usize) {
        let ChainSizes { items, lines, .. } = self.size::<M>();
        for to in (RECENT + 1..RECENT + T::RECENT).rev() {
            store::<M>(&self.words[to], load::<M>(&self.words[to - 1]));
        }
        store::<M>(&self.words[RECENT], at.offset());
        let size = ChainSizes { items: items + 1, live, lines: lines + 1 };
        self.set_sizes::<M>(self.leaf::<M>(), size, None);
    }
}
