//! The mapping table: in DRAM, an entry a leaf, with where its records are.
//!
//! | word | field |
//! | --- | --- |
//! | 0 | latch, of the leaf and of this |
//! | 1 | number of the leaf |
//! | 2 | sequence number of its newest change |
//! | 3 | bits 0..8: items of the base; bits 8..16: keys that are there; bits 16..24: deltas |
//! | 4 | offset of the base |
//! | 5 | a fingerprint a delta |
//! | 8 | a fingerprint an item of the base |
//! | 16 | offsets of the deltas, the oldest first |
//!
//! 1. Entries come from an arena and return to it; versions only ever grow. Who follows a stale index
//!    finds out from the inner node that led there. Numbers of leaves are never used again.
//! 2. An entry changes only while its latch is held, and only to what is durable; or to a copy of what
//!    is, which its maker makes durable before the original goes.

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
const SHAPE: usize = 3;
const BASE: usize = 4;
const PRINTS: usize = 5;
const ITEM_PRINTS: usize = 8;
const DELTAS: usize = 16;

const _: () = assert!(DELTAS + DELTAS_MAX <= WORDS && DELTAS_MAX <= 8);
const _: () = assert!(ITEM_PRINTS + ITEMS_MAX / 8 <= DELTAS);

/// All entries.
#[derive(Debug)]
pub(super) struct Table {
    rows: Arena<WORDS>,
}

/// How much there is of a leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape(u64);

impl Shape {
    pub(super) fn new(items: usize, live: usize, deltas: usize) -> Self {
        debug_assert!(items < 256 && live < 256 && deltas <= DELTAS_MAX);
        Self(items as u64 | (live as u64) << 8 | (deltas as u64) << 16)
    }

    /// Items of the base.
    #[inline(always)]
    pub(super) fn items(self) -> usize {
        usize::from(self.0 as u8)
    }

    /// Keys that are there.
    #[inline(always)]
    pub(super) fn live(self) -> usize {
        usize::from((self.0 >> 8) as u8)
    }

    #[inline(always)]
    pub(super) fn deltas(self) -> usize {
        usize::from((self.0 >> 16) as u8).min(DELTAS_MAX)
    }

    /// Lines of the whole chain.
    pub(super) fn lines(self) -> usize {
        base_lines(self.items()) + self.deltas()
    }
}

/// Which record of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Base,
    Delta(usize),
}

impl Table {
    pub(super) fn new() -> Result<Self, PoolError> {
        Ok(Self { rows: Arena::new()? })
    }

    /// The entry at `index`.
    #[inline(always)]
    pub(super) fn row(&self, index: usize) -> Row<'_> {
        Row { words: self.rows.get(index) }
    }

    /// The index of a new entry, for the leaf of that number.
    pub(super) fn take<M: Medium>(&self, leaf: u64) -> usize {
        let index = self.rows.take();
        store::<M>(&self.rows.get(index)[LEAF], leaf);
        index
    }

    /// Gives an entry back that is not latched, and that [`Row::leave`] was called of.
    pub(super) fn put_back(&self, index: usize) {
        self.rows.put_back(index);
    }

    /// Entries in use.
    pub(super) fn in_use(&self) -> u64 {
        self.rows.in_use()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.rows.bytes()
    }
}

/// A view of an entry.
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

    /// The leaf is no more: whoever comes for it finds that this is not its entry.
    pub(super) fn leave<M: Medium>(self) {
        store::<M>(&self.words[LEAF], LEAF_MAX + 1);
    }

    pub(super) fn sequence<M: Medium>(self) -> u64 {
        load::<M>(&self.words[SEQUENCE])
    }

    #[inline(always)]
    pub(super) fn shape<M: Medium>(self) -> Shape {
        Shape(load::<M>(&self.words[SHAPE]))
    }

    #[inline(always)]
    pub(super) fn base<M: Medium>(self) -> PmPtr {
        PmPtr::new(load::<M>(&self.words[BASE]))
    }

    #[inline(always)]
    pub(super) fn prints<M: Medium>(self) -> u64 {
        load::<M>(&self.words[PRINTS])
    }

    /// The fingerprints of eight items of the base, from that multiple of eight on.
    #[inline(always)]
    pub(super) fn item_prints<M: Medium>(self, from: usize) -> u64 {
        load::<M>(&self.words[ITEM_PRINTS + from / 8 % (ITEMS_MAX / 8)])
    }

    #[inline(always)]
    pub(super) fn delta<M: Medium>(self, at: usize) -> PmPtr {
        PmPtr::new(load::<M>(&self.words[DELTAS + at]))
    }

    /// The deltas, the oldest first.
    pub(super) fn deltas<M: Medium>(self) -> impl Iterator<Item = PmPtr> {
        (0..self.shape::<M>().deltas()).map(move |at| self.delta::<M>(at))
    }

    /// Which record of the chain lies at `at`, if one does.
    pub(super) fn part_at<M: Medium>(self, at: PmPtr) -> Option<Part> {
        if self.base::<M>() == at {
            return Some(Part::Base);
        }
        self.deltas::<M>().position(|delta| delta == at).map(Part::Delta)
    }

    /// A record of the chain has a copy at `at`, which takes its place.
    pub(super) fn moved<M: Medium>(self, part: Part, at: PmPtr) {
        let word = match part {
            Part::Base => BASE,
            Part::Delta(delta) => DELTAS + delta,
        };
        store::<M>(&self.words[word], at.offset());
    }

    /// All there is of the leaf is a base at `at`, whose items have these fingerprints.
    pub(super) fn set_base<M: Medium>(
        self,
        at: PmPtr,
        prints: impl Iterator<Item = u8>,
        sequence: u64,
    ) {
        let mut words = [[0; 8]; ITEMS_MAX / 8];
        let mut items = 0_usize;
        for (place, print) in words.as_flattened_mut().iter_mut().zip(prints) {
            *place = print;
            items += 1;
        }
        for (word, prints) in self.words[ITEM_PRINTS..].iter().zip(&words[..items.div_ceil(8)]) {
            store::<M>(word, u64::from_le_bytes(*prints));
        }
        store::<M>(&self.words[BASE], at.offset());
        store::<M>(&self.words[SEQUENCE], sequence);
        store::<M>(&self.words[SHAPE], Shape::new(items, items, 0).0);
    }

    /// The chain has one delta more, after which there are `live` keys.
    pub(super) fn push_delta<M: Medium>(self, at: PmPtr, print: u8, live: usize) {
        let shape = self.shape::<M>();
        let delta = shape.deltas();
        store::<M>(&self.words[DELTAS + delta], at.offset());
        let (shift, prints) = (8 * delta, self.prints::<M>());
        store::<M>(&self.words[PRINTS], prints & !(0xff << shift) | u64::from(print) << shift);
        store::<M>(&self.words[SEQUENCE], self.sequence::<M>() + 1);
        store::<M>(&self.words[SHAPE], Shape::new(shape.items(), live, delta + 1).0);
    }
}
