//! The mapping table: one row for each leaf, in DRAM, with the offsets of the leaf's records.
//!
//! | word | field |
//! | --- | --- |
//! | 0 | latch of the leaf and of this row |
//! | 1 | number of the leaf |
//! | 2 | sequence number of the newest change |
//! | 3 | bits 0..8: items of the base; bits 8..16: live keys; bits 16..24: deltas |
//! | 4 | offset of the base |
//! | 5 | one fingerprint for each delta |
//! | 8 | one fingerprint for each item of the base |
//! | 16 | offsets of the deltas, the oldest first |
//!
//! 1. Rows come from an arena and return to it, and their versions only grow. A thread that follows
//!    a stale index detects it when it validates the inner node that held the index. Leaf numbers
//!    are never reused.
//! 2. A row changes only under its latch, and only to point to durable records. The exception is a
//!    copy made by log GC, which becomes durable before its original is freed.

use super::record::{LEAF_MAX, base_lines};
use crate::inner::{Arena, load, store};
use bristlecone_pmem::sync::{Latch, OnDram};
use bristlecone_pmem::{Medium, PmPtr, PoolError};
use core::sync::atomic::AtomicU64;

/// The most deltas of a chain.
pub(super) const DELTAS_MAX: usize = 8;

/// The most items of a base.
pub(super) const ITEMS_MAX: usize = 64;

const WORDS: usize = 24;
const LATCH: usize = 0;
const LEAF: usize = 1;
const SEQUENCE: usize = 2;
const SIZES: usize = 3;
const BASE: usize = 4;
const FINGERPRINTS: usize = 5;
const ITEM_FINGERPRINTS: usize = 8;
const DELTAS: usize = 16;

const _: () = assert!(DELTAS + DELTAS_MAX <= WORDS && DELTAS_MAX <= 8);
const _: () = assert!(ITEM_FINGERPRINTS + ITEMS_MAX / 8 <= DELTAS);

/// The rows of all leaves.
#[derive(Debug)]
pub(super) struct Table {
    rows: Arena<WORDS>,
}

/// The sizes of a chain: items of the base, live keys and deltas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChainSize(u64);

impl ChainSize {
    pub(super) fn new(items: usize, live: usize, deltas: usize) -> Self {
        debug_assert!(items < 256 && live < 256 && deltas <= DELTAS_MAX);
        Self(items as u64 | (live as u64) << 8 | (deltas as u64) << 16)
    }

    /// Returns the number of items in the base.
    #[inline(always)]
    pub(super) fn items(self) -> usize {
        usize::from(self.0 as u8)
    }

    /// Returns the number of live keys.
    #[inline(always)]
    pub(super) fn live(self) -> usize {
        usize::from((self.0 >> 8) as u8)
    }

    #[inline(always)]
    pub(super) fn deltas(self) -> usize {
        usize::from((self.0 >> 16) as u8).min(DELTAS_MAX)
    }

    /// Returns the number of lines of the whole chain.
    pub(super) fn lines(self) -> usize {
        base_lines(self.items()) + self.deltas()
    }
}

/// One record of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Base,
    Delta(usize),
}

impl Table {
    pub(super) fn new() -> Result<Self, PoolError> {
        Ok(Self { rows: Arena::new()? })
    }

    /// Returns the row at `index`.
    #[inline(always)]
    pub(super) fn row(&self, index: usize) -> Row<'_> {
        Row { words: self.rows.get(index) }
    }

    /// Takes a row for leaf `leaf` and returns its index.
    pub(super) fn take<M: Medium>(&self, leaf: u64) -> usize {
        let index = self.rows.take();
        store::<M>(&self.rows.get(index)[LEAF], leaf);
        index
    }

    /// Returns a row to the arena. It is not latched, and [`Row::clear_leaf`] was called on it.
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
pub(crate) struct Row<'a> {
    words: &'a [AtomicU64; WORDS],
}

impl<'a> Row<'a> {
    #[inline(always)]
    pub(super) fn latch<M: Medium>(self) -> Latch<OnDram<'a, M>> {
        OnDram::latch(&self.words[LATCH])
    }

    pub(super) fn leaf<M: Medium>(self) -> u64 {
        load::<M>(&self.words[LEAF])
    }

    /// Clears the leaf number, because the leaf was merged. A thread with a stale index then sees
    /// another leaf's row.
    pub(super) fn clear_leaf<M: Medium>(self) {
        store::<M>(&self.words[LEAF], LEAF_MAX + 1);
    }

    pub(super) fn sequence<M: Medium>(self) -> u64 {
        load::<M>(&self.words[SEQUENCE])
    }

    #[inline(always)]
    pub(super) fn size<M: Medium>(self) -> ChainSize {
        ChainSize(load::<M>(&self.words[SIZES]))
    }

    #[inline(always)]
    pub(super) fn base<M: Medium>(self) -> PmPtr {
        PmPtr::new(load::<M>(&self.words[BASE]))
    }

    #[inline(always)]
    pub(super) fn fingerprints<M: Medium>(self) -> u64 {
        load::<M>(&self.words[FINGERPRINTS])
    }

    /// Returns the fingerprints of the eight items from `from` on, a multiple of eight.
    #[inline(always)]
    pub(super) fn item_fingerprints<M: Medium>(self, from: usize) -> u64 {
        load::<M>(&self.words[ITEM_FINGERPRINTS + from / 8 % (ITEMS_MAX / 8)])
    }

    #[inline(always)]
    pub(super) fn delta<M: Medium>(self, at: usize) -> PmPtr {
        PmPtr::new(load::<M>(&self.words[DELTAS + at]))
    }

    /// Returns the offsets of the deltas, the oldest first.
    pub(super) fn deltas<M: Medium>(self) -> impl Iterator<Item = PmPtr> {
        (0..self.size::<M>().deltas()).map(move |at| self.delta::<M>(at))
    }

    /// Returns the record of the chain that lies at `at`, if any.
    pub(super) fn part_at<M: Medium>(self, at: PmPtr) -> Option<Part> {
        if self.base::<M>() == at {
            return Some(Part::Base);
        }
        self.deltas::<M>().position(|delta| delta == at).map(Part::Delta)
    }

    /// Makes the row point to the copy at `at` instead of the original record.
    pub(super) fn relocate<M: Medium>(self, part: Part, at: PmPtr) {
        let word = match part {
            Part::Base => BASE,
            Part::Delta(delta) => DELTAS + delta,
        };
        store::<M>(&self.words[word], at.offset());
    }

    /// Sets the chain to a single base at `at`, whose items have these fingerprints.
    pub(super) fn set_base<M: Medium>(
        self,
        at: PmPtr,
        fingerprints: impl Iterator<Item = u8>,
        sequence: u64,
    ) {
        let mut words = [[0; 8]; ITEMS_MAX / 8];
        let mut items = 0_usize;
        for (place, fingerprint) in words.as_flattened_mut().iter_mut().zip(fingerprints) {
            *place = fingerprint;
            items += 1;
        }
        for (word, fingerprints) in
            self.words[ITEM_FINGERPRINTS..].iter().zip(&words[..items.div_ceil(8)])
        {
            store::<M>(word, u64::from_le_bytes(*fingerprints));
        }
        store::<M>(&self.words[BASE], at.offset());
        store::<M>(&self.words[SEQUENCE], sequence);
        store::<M>(&self.words[SIZES], ChainSize::new(items, items, 0).0);
    }

    /// Adds a delta to the chain, after which `live` keys are present.
    pub(super) fn push_delta<M: Medium>(self, at: PmPtr, fingerprint: u8, live: usize) {
        let size = self.size::<M>();
        let delta = size.deltas();
        store::<M>(&self.words[DELTAS + delta], at.offset());
        let (shift, fingerprints) = (8 * delta, self.fingerprints::<M>());
        store::<M>(
            &self.words[FINGERPRINTS],
            fingerprints & !(0xff << shift) | u64::from(fingerprint) << shift,
        );
        store::<M>(&self.words[SEQUENCE], self.sequence::<M>() + 1);
        store::<M>(&self.words[SIZES], ChainSize::new(size.items(), live, delta + 1).0);
    }
}
