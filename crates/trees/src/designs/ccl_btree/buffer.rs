//! Buffer nodes: in DRAM, one a leaf, with the latest writes that the leaf does not hold yet.
//!
//! | word | field |
//! | --- | --- |
//! | 0 | latch, of the leaf and of this |
//! | 1 | offset of the leaf |
//! | 2 | bits 0..8: writes that are held; then 8 bits each, a bit a slot: removed, fresh, parity |
//! | 3 | stamp of the newest log entry; of no meaning while nothing is held |
//! | 4 | two slots: key word, value word |
//!
//! Slots from the third on have a block of their own. A slot that is *removed* says that the key is
//! gone, whatever its value word, which stays what it was last. One that is *fresh* has a key that the
//! leaf has not: room is kept for it there. *Parity* is that of the epoch of its latest log entry.
//!
//! 1. Nodes come from an arena and return to it; versions only ever grow. Who follows a stale index
//!    finds out from the inner node that led there.
//! 2. A key stands in one slot at most, and has one key word as long as buffer or leaf have it.
//! 3. A node that is free holds nothing.

use crate::inner::{Arena, load, store};
use crate::key::{Entry, Key};
use crate::leaf_table::EntryChange;
use bristlecone_pmem::sync::{Latch, OnDram};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool, PoolError};
use core::sync::atomic::AtomicU64;

/// The most writes that a buffer node holds.
pub(super) const BATCH_MAX: usize = 8;

const HEAD_WORDS: usize = 8;
const HEAD_SLOTS: usize = 2;
const REST_WORDS: usize = 16;

const LATCH: usize = 0;
const LEAF: usize = 1;
const META: usize = 2;
const STAMP: usize = 3;
const SLOTS: usize = 4;

const _: () = assert!(2 * (BATCH_MAX - HEAD_SLOTS) <= REST_WORDS);
const _: () = assert!(SLOTS + 2 * HEAD_SLOTS == HEAD_WORDS);

/// All buffer nodes.
#[derive(Debug)]
pub(super) struct Buffers {
    heads: Arena<HEAD_WORDS>,
    rest: Option<Arena<REST_WORDS>>,
}

impl Buffers {
    /// No nodes yet, of `batch` slots each.
    pub(super) fn new(batch: usize) -> Result<Self, PoolError> {
        assert!(batch <= BATCH_MAX, "a buffer node has 0 to 8 slots");
        let rest = if batch > HEAD_SLOTS { Some(Arena::new()?) } else { None };
        Ok(Self { heads: Arena::new()?, rest })
    }

    /// The node at `index`.
    #[inline(always)]
    pub(super) fn node(&self, index: usize) -> BufferNode<'_> {
        let rest = self.rest.as_ref().map(|rest| rest.get(index));
        BufferNode { head: self.heads.get(index), rest }
    }

    /// The index of a new node for the leaf at `leaf`, which holds nothing.
    pub(super) fn take<M: Medium>(&self, leaf: PmPtr) -> usize {
        let index = self.heads.take();
        if let Some(rest) = &self.rest {
            rest.extend(index);
        }
        store::<M>(&self.heads.get(index)[LEAF], leaf.offset());
        index
    }

    /// Gives a node back, which holds nothing and is not latched.
    pub(super) fn put_back(&self, index: usize) {
        self.heads.put_back(index);
    }

    /// One more than the greatest index that there ever was.
    pub(super) fn end(&self) -> usize {
        self.heads.end()
    }

    /// Nodes in use.
    pub(super) fn in_use(&self) -> u64 {
        self.heads.in_use()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.heads.bytes() + self.rest.as_ref().map_or(0, Arena::bytes)
    }
}

/// What a buffer node says of its slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Meta(u64);

impl Meta {
    const REMOVED: u32 = 8;
    const FRESH: u32 = 16;
    const PARITY: u32 = 24;

    /// Writes that are held.
    #[inline(always)]
    pub(super) fn count(self) -> usize {
        (self.0 as u8 as usize).min(BATCH_MAX)
    }

    fn bits(self, shift: u32) -> u8 {
        (self.0 >> shift) as u8
    }

    #[inline(always)]
    pub(super) fn is_removed(self, slot: usize) -> bool {
        self.bits(Self::REMOVED) & 1 << slot != 0
    }

    pub(super) fn is_fresh(self, slot: usize) -> bool {
        self.bits(Self::FRESH) & 1 << slot != 0
    }

    pub(super) fn parity(self, slot: usize) -> u64 {
        u64::from(self.bits(Self::PARITY) >> slot & 1)
    }

    /// Places that are kept in the leaf.
    pub(super) fn kept(self) -> usize {
        self.bits(Self::FRESH).count_ones() as usize
    }

    /// How many keys there are in a leaf of `valid` entries and its buffer.
    pub(super) fn live(self, valid: u64) -> usize {
        let (fresh, removed) = (self.bits(Self::FRESH), self.bits(Self::REMOVED));
        let more = (fresh & !removed).count_ones() as usize;
        let less = (removed & !fresh).count_ones() as usize;
        (valid.count_ones() as usize + more).saturating_sub(less)
    }

    fn with(self, shift: u32, slot: usize, is: bool) -> Self {
        let bit = 1 << (shift as usize + slot);
        Self(if is { self.0 | bit } else { self.0 & !bit })
    }

    /// The same with a write in `slot`, the first free one or one that is held. Where it is the first
    /// free one, `is_fresh` is noted.
    pub(super) fn write(self, slot: usize, is_removed: bool, is_fresh: bool, parity: u64) -> Self {
        let grown = if slot == self.count() {
            Self(self.0 + 1).with(Self::FRESH, slot, is_fresh)
        } else {
            self
        };
        grown.with(Self::REMOVED, slot, is_removed).logged(slot, parity)
    }

    /// The same with the slot's latest log entry in an epoch of that parity.
    pub(super) fn logged(self, slot: usize, parity: u64) -> Self {
        self.with(Self::PARITY, slot, parity == 1)
    }
}

/// A view of a buffer node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferNode<'a> {
    head: &'a [AtomicU64; HEAD_WORDS],
    rest: Option<&'a [AtomicU64; REST_WORDS]>,
}

impl<'a> BufferNode<'a> {
    #[inline(always)]
    pub(super) fn latch<M: Medium>(self) -> Latch<OnDram<'a, M>> {
        OnDram::latch(&self.head[LATCH])
    }

    #[inline(always)]
    pub(super) fn leaf<M: Medium>(self) -> PmPtr {
        PmPtr::new(load::<M>(&self.head[LEAF]))
    }

    #[inline(always)]
    pub(super) fn meta<M: Medium>(self) -> Meta {
        Meta(load::<M>(&self.head[META]))
    }

    pub(super) fn set_meta<M: Medium>(self, meta: Meta) {
        store::<M>(&self.head[META], meta.0);
    }

    pub(super) fn stamp<M: Medium>(self) -> u64 {
        load::<M>(&self.head[STAMP])
    }

    pub(super) fn set_stamp<M: Medium>(self, stamp: u64) {
        store::<M>(&self.head[STAMP], stamp);
    }

    #[inline(always)]
    fn slot_words(self, slot: usize) -> &'a [AtomicU64] {
        match self.rest {
            Some(rest) if slot >= HEAD_SLOTS => &rest[2 * (slot - HEAD_SLOTS)..],
            _ => &self.head[SLOTS + 2 * slot.min(HEAD_SLOTS - 1)..],
        }
    }

    #[inline(always)]
    pub(super) fn entry<M: Medium>(self, slot: usize) -> Entry {
        let words = self.slot_words(slot);
        Entry::plain(load::<M>(&words[0]), load::<M>(&words[1]))
    }

    pub(super) fn set_entry<M: Medium>(self, slot: usize, entry: Entry) {
        let words = self.slot_words(slot);
        store::<M>(&words[0], entry.key);
        store::<M>(&words[1], entry.value);
    }

    /// The slot of `key`, if its latest write is held. May run while a writer writes: the caller
    /// validates.
    #[inline(always)]
    pub(super) fn find<K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
    ) -> Result<Option<(usize, Meta)>, Corrupt> {
        let meta = self.meta::<M>();
        for slot in 0..meta.count() {
            if K::order_entry(pool, self.entry::<M>(slot), key)?.is_eq() {
                return Ok(Some((slot, meta)));
            }
        }
        Ok(None)
    }

    /// The write in `slot`.
    #[inline(always)]
    pub(super) fn change<M: Medium>(self, meta: Meta, slot: usize) -> EntryChange {
        EntryChange { entry: self.entry::<M>(slot), is_removed: meta.is_removed(slot) }
    }
}
