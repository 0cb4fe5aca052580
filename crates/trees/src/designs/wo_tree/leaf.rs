//! Leaves: unsorted entries, a bitmap of those that count, and a slot array with their order.
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | bitmap | commit | bit i: entry i counts |
//! | 8 | 8 | next | commit | next leaf; 0: none |
//! | 16 | 8 | low | data | least key that belongs here; never changes |
//! | 24 | 8 | latch | transient | shared by readers, held by a writer |
//! | 32 | 8 | seq | commit | number of the last record that changed the leaf |
//! | 40 | 8 | bitmap, second word | commit | bit i: entry 64 + i counts; at 2048 B alone |
//! | 48 | 8 | spare | data | zero |
//! | 56 | 8 | tag | data | magic number, bytes, level 0 |
//! | 64 | 1 + n | slots | hint | their number, then indices of entries in key order |
//! | E | 16 each | entries | data | key word, value word |
//!
//! A leaf of 256, 512, 1024 or 2048 B has 12, 26, 56 or 116 entries, and E is 64, 96, 128 or 192.
//! At 256 B the slots begin at 40.
//!
//! 1. Bitmap, seq and slots change only under a record of the log that names the leaf. Recovery
//!    replays the record or finds it done, and then makes the slots again.
//! 2. While the latch is free the slots are the sorted permutation of the entries that count.

use super::WoTreeIndex;
use super::node::{LOW, NEXT, Node, line};
use crate::key::{Entry, Key};
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::sync::{OnMedium, SharedLatch};
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmPtr, Pool};
use core::cmp::Ordering;

const BITMAP: usize = 0;
const LATCH: usize = 3;
const SEQ: usize = 4;
const BITMAP_HIGH: usize = 5;
const BITS_MAX: usize = 128;

/// The bytes of a slot array, large enough for every leaf size: the number, then the indices.
pub(super) type Slots = [u8; BITS_MAX + 8];

/// Returns the number of entries, the first word of the slots and the first word of the entries, in
/// a leaf of `bytes` bytes.
const fn geometry(bytes: usize) -> (usize, usize, usize) {
    let slots = if bytes == 256 { 5 } else { LINE_WORDS };
    let mut capacity = BITS_MAX;
    loop {
        let end = slots + (1 + capacity).div_ceil(8);
        let entries = if end <= LINE_WORDS { LINE_WORDS } else { end.next_multiple_of(2) };
        if entries + 2 * capacity <= bytes / 8 {
            return (capacity, slots, entries);
        }
        capacity -= 1;
    }
}

/// The entries of a leaf that count, as bits.
pub(super) type LeafBitmap = u128;

/// Yields the indices of the set bits, from the lowest.
pub(super) fn indices(mut bits: LeafBitmap) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let index = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (index < BITS_MAX).then_some(index)
    })
}

/// The result of a search in a leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// The number of entries with a smaller key.
    pub(super) rank: usize,
    /// The index and the value of the key's entry; `None` if the key is absent.
    pub(super) entry: Option<(usize, u64)>,
}

impl<'t, M: Medium, const NODE: usize> Node<'t, M, NODE> {
    const GEOMETRY: (usize, usize, usize) = geometry(NODE);
    /// The maximum number of entries of a leaf.
    pub(super) const CAPACITY: usize = Self::GEOMETRY.0;
    const SLOTS: usize = Self::GEOMETRY.1;
    const ENTRIES: usize = Self::GEOMETRY.2;
    const SLOT_WORDS: usize = (1 + Self::CAPACITY).div_ceil(8);
    /// The number of lines that the slots take.
    pub(super) const SLOT_LINES: usize =
        line(Self::SLOTS + Self::SLOT_WORDS - 1) - line(Self::SLOTS) + 1;
    const ALL: LeafBitmap = LeafBitmap::MAX >> (BITS_MAX - Self::CAPACITY);

    #[inline(always)]
    pub(super) fn leaf_latch(&self, nonce: u64) -> SharedLatch<OnMedium<'t, M>> {
        OnMedium::shared(self.medium, &self.words[LATCH], nonce)
    }

    #[inline(always)]
    pub(super) fn seq(&self) -> u64 {
        self.load(SEQ)
    }

    /// Returns the bitmap, without bits beyond the last entry.
    #[inline(always)]
    pub(super) fn bitmap(&self) -> LeafBitmap {
        self.raw_bitmap() & Self::ALL
    }

    fn raw_bitmap(&self) -> LeafBitmap {
        let low = LeafBitmap::from(self.load(BITMAP));
        if Self::CAPACITY <= 64 {
            return low;
        }
        low | LeafBitmap::from(self.load(BITMAP_HIGH)) << 64
    }

    /// Checks that no bit beyond the last entry is set.
    pub(super) fn check_bitmap(&self) -> Result<(), Corrupt> {
        let found = self.raw_bitmap();
        if found & !Self::ALL == 0 {
            return Ok(());
        }
        let what = "bitmap of a leaf with bits beyond the last entry";
        Err(self.damage(what, Self::ALL as u64, found as u64))
    }

    /// Returns the word of `bitmap` that holds the bit of entry `index`, as a record keeps it.
    pub(super) fn bitmap_part(bitmap: LeafBitmap, index: usize) -> u64 {
        (bitmap >> (index / 64 * 64)) as u64
    }

    /// Returns the stored bitmap with the word that holds the bit of entry `index` replaced.
    pub(super) fn with_bitmap_part(&self, index: usize, part: u64) -> LeafBitmap {
        let shift = index / 64 * 64;
        let others = self.bitmap() & !(LeafBitmap::from(u64::MAX) << shift);
        (others | LeafBitmap::from(part) << shift) & Self::ALL
    }

    /// Returns the lowest free place; `None` if the leaf is full.
    pub(super) fn first_free(bitmap: LeafBitmap) -> Option<usize> {
        let index = bitmap.trailing_ones() as usize;
        (index < Self::CAPACITY).then_some(index)
    }

    #[inline(always)]
    pub(super) fn entry(&self, index: usize) -> Entry {
        let word = Self::ENTRIES + 2 * index;
        Entry::plain(self.load(word), self.load(word + 1))
    }

    /// Returns the slot array as stored.
    pub(super) fn slots(&self) -> Slots {
        let mut slots = [0; BITS_MAX + 8];
        for (at, bytes) in slots.chunks_exact_mut(8).take(Self::SLOT_WORDS).enumerate() {
            bytes.copy_from_slice(&self.load(Self::SLOTS + at).to_le_bytes());
        }
        slots
    }

    #[inline(always)]
    fn slot(&self, at: usize) -> usize {
        usize::from((self.load(Self::SLOTS + at / 8) >> (8 * (at % 8))) as u8)
    }

    /// Returns the number of slots, after checking it against the bitmap.
    #[inline(always)]
    fn slot_count(&self, bitmap: LeafBitmap) -> Result<usize, Corrupt> {
        let (expected, found) = (bitmap.count_ones() as usize, self.slot(0));
        if expected == found || self.hides_slots() && found <= Self::CAPACITY {
            return Ok(found);
        }
        Err(self.damage("number of slots of a leaf", expected as u64, found as u64))
    }

    fn hides_slots(&self) -> bool {
        M::INJECTS_DEFECTS && self.medium.injects(Defect::SlotsApart)
    }

    /// Returns the index of the entry of that rank.
    #[inline(always)]
    fn index_of_rank(&self, bitmap: LeafBitmap, rank: usize) -> Result<usize, Corrupt> {
        let index = self.slot(1 + rank);
        if index < Self::CAPACITY && bitmap >> index & 1 == 1 {
            return Ok(index);
        }
        Err(self.damage("slot that names no entry", bitmap as u64, index as u64))
    }

    /// Returns the entries in the order of the slots, with their indices.
    pub(super) fn ordered(&self) -> Result<Vec<(usize, Entry)>, Corrupt> {
        let bitmap = self.bitmap();
        let entry = |rank| {
            let index = self.index_of_rank(bitmap, rank)?;
            Ok((index, self.entry(index)))
        };
        (0..self.slot_count(bitmap)?).map(entry).collect()
    }

    /// Searches for `key` by bisection of the slots.
    #[inline]
    pub(super) fn search<K: Key>(&self, pool: &Pool<M>, key: K::Ref<'_>) -> Result<Found, Corrupt> {
        let bitmap = self.bitmap();
        let (mut low, mut high) = (0, self.slot_count(bitmap)?);
        while low < high {
            let middle = low.midpoint(high);
            let index = self.index_of_rank(bitmap, middle)?;
            let entry = self.entry(index);
            match K::order_entry(pool, entry, key)? {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => {
                    return Ok(Found { rank: middle, entry: Some((index, entry.value)) });
                }
            }
        }
        Ok(Found { rank: low, entry: None })
    }

    /// Stores the words of `slots` that differ from `old` and returns the last word of the lines to
    /// flush.
    fn store_slots(&self, old: &Slots, slots: &Slots) -> usize {
        let mut last = Self::SLOTS;
        let pairs = old.chunks_exact(8).zip(slots.chunks_exact(8));
        for (at, (old, new)) in pairs.take(Self::SLOT_WORDS).enumerate() {
            if old != new {
                last = Self::SLOTS + at;
                self.store(last, new.iter().rev().fold(0, |word, &b| word << 8 | u64::from(b)));
            }
        }
        last
    }

    /// Replaces the slots. Durable on return.
    ///
    /// # Persist order
    /// ```text
    /// W slots
    /// F their changed lines |   -> durable   budget: 1 line, or 2 at 2048 B, 1 fence
    /// ```
    pub(super) fn set_slots(&self, old: &Slots, slots: &Slots) -> Fenced {
        let last = self.store_slots(old, slots);
        self.medium.persist(&self.words[Self::SLOTS..=last])
    }

    /// Stores an entry. Durable on return: 1 line, 1 fence.
    pub(super) fn set_entry(&self, index: usize, entry: Entry) -> Fenced {
        let word = Self::ENTRIES + 2 * index;
        self.store(word, entry.key);
        self.store(word + 1, entry.value);
        self.medium.persist(&self.words[word..word + 2])
    }

    /// Replaces the value of an entry: one word, which needs no record.
    ///
    /// # Persist order
    /// ```text
    /// C value[i]       8 B
    /// F its line |     -> durable   budget: 1 line, 1 fence
    /// ```
    pub(super) fn set_value(&self, index: usize, value: u64) -> Fenced {
        let word = Self::ENTRIES + 2 * index + 1;
        self.store(word, value);
        self.medium.persist(&self.words[word..=word])
    }

    /// Stores the words of `bitmap` that differ from the stored ones, then the sequence number.
    /// Lines persist in order, so a crash that keeps the number keeps the bitmap.
    pub(super) fn store_bitmap(&self, bitmap: LeafBitmap, seq: u64) {
        let changed = self.raw_bitmap() ^ bitmap;
        if changed as u64 != 0 {
            self.store(BITMAP, bitmap as u64);
        }
        if changed >> 64 != 0 && Self::CAPACITY > 64 {
            self.store(BITMAP_HIGH, (bitmap >> 64) as u64);
        }
        self.store(SEQ, seq);
    }

    /// Replaces bitmap and sequence number. Durable on return: 1 line, 1 fence.
    pub(super) fn set_bitmap(&self, bitmap: LeafBitmap, seq: u64) -> Fenced {
        self.store_bitmap(bitmap, seq);
        self.persist_line(0)
    }

    /// Links the next leaf and sets the sequence number. Durable on return: 1 line, 1 fence.
    pub(super) fn set_next(&self, next: PmPtr, seq: u64) -> Fenced {
        self.store(NEXT, next.offset());
        self.store(SEQ, seq);
        self.persist_line(0)
    }

    /// Stores what is left of a leaf after a split: the next leaf, bitmap and sequence number in
    /// this order, and the slots.
    ///
    /// # Persist order
    /// ```text
    /// C next, W bitmap, W seq   in line 0, in this order: no crash keeps the cut without the link
    /// W number of slots
    /// F all lines |             -> durable   budget: lines of the node, 1 fence
    /// ```
    pub(super) fn cut_leaf(
        &self,
        next: PmPtr,
        kept: (LeafBitmap, &Slots, &Slots),
        seq: u64,
    ) -> Fenced {
        let (bitmap, old, slots) = kept;
        if M::INJECTS_DEFECTS && self.medium.injects(Defect::CutBeforeLink) {
            self.store_bitmap(bitmap, seq);
            let _ = self.medium.persist(self.words);
        }
        self.store(NEXT, next.offset());
        self.store_bitmap(bitmap, seq);
        let _ = self.store_slots(old, slots);
        self.medium.persist(self.words)
    }

    /// Fills a fresh block with a leaf of `entries`, which are in key order. Durable after the next
    /// fence.
    pub(super) fn create_leaf(
        pool: &'t Pool<M>,
        at: PmPtr,
        (low, next, seq): (u64, PmPtr, u64),
        entries: &[Entry],
    ) -> Result<Self, Corrupt> {
        let count = entries.len();
        assert!(count <= Self::CAPACITY);
        let bitmap = LeafBitmap::MAX.checked_shr((BITS_MAX - count) as u32).unwrap_or(0);
        let mut image = vec![0; Self::WORDS];
        image[BITMAP] = bitmap as u64;
        image[NEXT] = next.offset();
        image[LOW] = low;
        image[SEQ] = seq;
        if Self::CAPACITY > 64 {
            image[BITMAP_HIGH] = (bitmap >> 64) as u64;
        }
        for (at, byte) in core::iter::once(count as u8).chain(0..count as u8).enumerate() {
            image[Self::SLOTS + at / 8] |= u64::from(byte) << (8 * (at % 8));
        }
        Self::set_tag(&mut image, 0);
        for (pair, entry) in image[Self::ENTRIES..].chunks_exact_mut(2).zip(entries) {
            pair.copy_from_slice(&[entry.key, entry.value]);
        }
        Self::fill(pool, at, 0, &image)
    }
}

/// Returns `slots` with the entry `index` inserted at `rank`.
pub(super) fn with_slot(slots: &Slots, rank: usize, index: usize) -> Slots {
    let mut grown = *slots;
    let count = usize::from(slots[0]);
    grown[1 + rank] = index as u8;
    grown[2 + rank..2 + count].copy_from_slice(&slots[1 + rank..=count]);
    grown[0] += 1;
    grown
}

/// Returns `slots` without the one of `rank`.
pub(super) fn without_slot(slots: &Slots, rank: usize) -> Slots {
    let mut shrunk = *slots;
    let count = usize::from(slots[0]);
    shrunk[1 + rank..count].copy_from_slice(&slots[2 + rank..=count]);
    shrunk[0] -= 1;
    shrunk
}

impl<M: Medium, K: Key, const NODE: usize> WoTreeIndex<M, K, NODE> {
    /// Makes the slots of a leaf again from its bitmap and entries. Stores and flushes nothing if
    /// they are right.
    ///
    /// # Persist order
    /// ```text
    /// W slots
    /// F their changed lines |   -> durable
    /// ```
    pub(super) fn remake_slots(&self, leaf: &Node<'_, M, NODE>) -> Result<(), Corrupt> {
        let mut keyed = Vec::new();
        for index in indices(leaf.bitmap()) {
            keyed.push((K::read_entry(&self.pool, leaf.entry(index))?, index));
        }
        keyed.sort();
        let old = leaf.slots();
        let mut slots = old;
        slots[0] = keyed.len() as u8;
        for (slot, (_, index)) in slots[1..].iter_mut().zip(&keyed) {
            *slot = *index as u8;
        }
        if slots != old {
            let _ = leaf.set_slots(&old, &slots);
        }
        Ok(())
    }
}
