//! Buffer nodes: one for each leaf, in DRAM, with the newest writes that the leaf does not contain
//! yet, and a read cache of those that have settled.
//!
//! | word | field |
//! | --- | --- |
//! | 0 | latch of the leaf and of this node |
//! | 1 | offset of the leaf |
//! | 2 | 8 bits each: buffered writes; of each slot: removed, fresh, parity; filled slots |
//! | 3 | stamp of the newest log entry; undefined while the buffer is empty |
//! | 4 | two slots: key word, value word |
//!
//! Slots from the third on lie in a separate block. A *removed* slot records a remove; its value
//! word is the key's last one. A *fresh* slot has a key that the leaf does not contain, and the
//! leaf reserves space for it. *Parity* is that of the epoch of the slot's newest log entry. Slots
//! from the number of buffered writes up to *filled* are the read cache.
//!
//! 1. Nodes come from an arena and return to it, and their versions only grow. A thread that
//!    follows a stale index detects it when it validates the inner node that held the index.
//! 2. A key has at most one buffered write, and the same key word as long as buffer or leaf contain
//!    it.
//! 3. A cached slot holds an entry of the leaf, unless a write of its key is buffered. The buffered
//!    writes come first, so a search that takes the first match is right. Settling fills the cache
//!    anew, so no cached slot outlives its entry.
//! 4. A free node is empty.

use crate::inner::{Arena, load, store};
use crate::key::{Entry, Key};
use crate::leaf_table::EntryChange;
use bristlecone_pmem::sync::{Latch, OnDram};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool, PoolError};
use core::sync::atomic::AtomicU64;

/// The most writes in a buffer node.
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

/// The buffer nodes of all leaves.
#[derive(Debug)]
pub(super) struct Buffers {
    heads: Arena<HEAD_WORDS>,
    rest: Option<Arena<REST_WORDS>>,
}

impl Buffers {
    /// Returns an empty set of nodes with `batch` slots each.
    pub(super) fn new(batch: usize) -> Result<Self, PoolError> {
        assert!(batch <= BATCH_MAX, "a buffer node has 0 to 8 slots");
        let rest = if batch > HEAD_SLOTS { Some(Arena::new()?) } else { None };
        Ok(Self { heads: Arena::new()?, rest })
    }

    /// Returns the node at `index`.
    #[inline(always)]
    pub(super) fn node(&self, index: usize) -> BufferNode<'_> {
        let rest = self.rest.as_ref().map(|rest| rest.get(index));
        BufferNode { head: self.heads.get(index), rest }
    }

    /// Takes an empty node for the leaf at `leaf` and returns its index.
    pub(super) fn take<M: Medium>(&self, leaf: PmPtr) -> usize {
        let index = self.heads.take();
        if let Some(rest) = &self.rest {
            rest.extend(index);
        }
        store::<M>(&self.heads.get(index)[LEAF], leaf.offset());
        index
    }

    /// Returns an empty, unlatched node to the arena.
    pub(super) fn put_back(&self, index: usize) {
        self.heads.put_back(index);
    }

    /// Returns one more than the greatest index ever taken.
    pub(super) fn end(&self) -> usize {
        self.heads.end()
    }

    /// Returns the number of nodes in use.
    pub(super) fn in_use(&self) -> u64 {
        self.heads.in_use()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.heads.bytes() + self.rest.as_ref().map_or(0, Arena::bytes)
    }
}

/// The state of a node's slots: its word 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SlotStates(u64);

impl SlotStates {
    const REMOVED: u32 = 8;
    const FRESH: u32 = 16;
    const PARITY: u32 = 24;
    const FILLED: u32 = 32;

    /// Returns the state of an empty buffer with `cached` slots in the read cache.
    fn settled(cached: usize) -> Self {
        Self((cached as u64) << Self::FILLED)
    }

    /// Returns the number of buffered writes.
    #[inline(always)]
    pub(super) fn count(self) -> usize {
        (self.0 as u8 as usize).min(BATCH_MAX)
    }

    /// Returns the number of slots with a buffered or a cached write.
    #[inline(always)]
    pub(super) fn filled(self) -> usize {
        (self.bits(Self::FILLED) as usize).min(BATCH_MAX)
    }

    #[inline(always)]
    fn bits(self, shift: u32) -> u8 {
        (self.0 >> shift) as u8
    }

    #[inline(always)]
    pub(super) fn is_removed(self, slot: usize) -> bool {
        self.bits(Self::REMOVED) & 1 << slot != 0
    }

    /// Returns `true` if any slot records a remove.
    pub(super) fn has_removed(self) -> bool {
        self.bits(Self::REMOVED) != 0
    }

    pub(super) fn is_fresh(self, slot: usize) -> bool {
        self.bits(Self::FRESH) & 1 << slot != 0
    }

    pub(super) fn parity(self, slot: usize) -> u64 {
        u64::from(self.bits(Self::PARITY) >> slot & 1)
    }

    /// Returns the number of entries that the leaf reserves space for.
    pub(super) fn reserved(self) -> usize {
        self.bits(Self::FRESH).count_ones() as usize
    }

    /// Returns the number of keys in a leaf with the `valid` entries and its buffer.
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

    /// Returns the state after a write in `slot`, which is in use or the first free one. `is_fresh`
    /// applies only to a free slot.
    pub(super) fn write(self, slot: usize, is_removed: bool, is_fresh: bool, parity: u64) -> Self {
        let grown = if slot == self.count() {
            let filled = u64::from(slot == self.filled());
            Self(self.0 + 1 + (filled << Self::FILLED)).with(Self::FRESH, slot, is_fresh)
        } else {
            self
        };
        grown.with(Self::REMOVED, slot, is_removed).logged(slot, parity)
    }

    /// Returns the state after the slot was logged in an epoch of `parity`.
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
    pub(super) fn meta<M: Medium>(self) -> SlotStates {
        SlotStates(load::<M>(&self.head[META]))
    }

    pub(super) fn set_meta<M: Medium>(self, meta: SlotStates) {
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

    /// Empties the buffer and makes `settled` its read cache.
    pub(super) fn keep<M: Medium>(self, settled: impl Iterator<Item = Entry>) {
        let mut cached = 0;
        for entry in settled {
            self.set_entry::<M>(cached, entry);
            cached += 1;
        }
        self.set_meta::<M>(SlotStates::settled(cached));
    }

    /// Returns the slot of `key` if a write of it is buffered or cached. A writer may run at the
    /// same time; the caller validates.
    #[inline(always)]
    pub(super) fn find<K: Key, M: Medium>(
        self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
    ) -> Result<Option<(usize, SlotStates)>, Corrupt> {
        let meta = self.meta::<M>();
        for slot in 0..meta.filled() {
            if K::order_entry(pool, self.entry::<M>(slot), key)?.is_eq() {
                return Ok(Some((slot, meta)));
            }
        }
        Ok(None)
    }

    /// Returns the write in `slot`.
    #[inline(always)]
    pub(super) fn change<M: Medium>(self, meta: SlotStates, slot: usize) -> EntryChange {
        EntryChange { entry: self.entry::<M>(slot), is_removed: meta.is_removed(slot) }
    }
}
