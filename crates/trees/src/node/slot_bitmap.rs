//! Slot array and bitmap: entries in any slot, their order in an array of one-byte indices, and a
//! bitmap whose lowest bit tells if the array is valid.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | bitmap | commit | bit 0: slots are valid; bit i + 1: entry i; [mark](super::header) |
//! | 1 | 8 | link, latch | data, transient | next leaf, or leftmost child; [latch](super::header) |
//! | (2) | 8 | bitmap, second word | commit | bit i: entry 58 + i; only above 58 entries |
//! | A.. | 1 each | slot array | hint | count; then the entries' indices in key order |
//! | E.. | 16 each | entries | data | key word, value word; E is even |
//!
//! A is 2, or 3 after a second word of the bitmap.
//!
//! 1. Bit 0 is set only while the slot array is the sorted permutation of the valid entries. A
//!    writer clears it before it changes the array, and sets it after; the [`SlotCommit`] keeps
//!    this true in every crash image.
//! 2. The array can be rebuilt from the bitmap and the entries. A search of a leaf does without an
//!    invalid array, and the first insert or remove rebuilds it; in inner nodes the first descent.
//! 3. An index is followed only if its bit is set, so a torn array never leads to an invalid entry.
//! 4. Both words of the bitmap lie in the first line. A writer stores the second word before it
//!    sets bit 0, and a line persists in the order of its stores: if bit 0 is set, both words are
//!    those of the slot array.

mod commit;

use super::header::{self, BITS_MAX, LINK, Mark};
use super::{
    Atomic, Changes, Entries, Image, Layout, Ordered, SearchResult, Slot, SlotPos, View, bisect,
    encode, find_ordered,
};
use crate::key::Entry;
use crate::spec::Cost;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::sync::LatchBits;
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium};
use commit::{FencedTwice, InOneLine, SlotChange, SlotCommit};
use core::cmp::Ordering;
use core::marker::PhantomData;

/// Slot array and bitmap in nodes of `NODE` bytes. `T` orders the stores to bitmap and array.
#[derive(Debug)]
pub struct SlotBitmapLayout<const NODE: usize, T>(PhantomData<T>);

/// The published layout, for a slot array of any length.
pub type SlotBitmap<const NODE: usize> = SlotBitmapLayout<NODE, FencedTwice<false>>;

/// The published layout with the printed loop, which flushes each word of the slot array.
pub type SlotWords<const NODE: usize> = SlotBitmapLayout<NODE, FencedTwice<true>>;

/// The layout for a slot array in the line of the bitmap.
pub type SlotLine<const NODE: usize> = SlotBitmapLayout<NODE, InOneLine>;

const COMMIT: usize = 0;
/// The index of the second word of the bitmap, in nodes of more than 58 entries.
const HIGH: usize = 2;
/// The magic number of the layout: "slo" in ASCII.
const MAGIC: u64 = 0x006f_6c73;
/// The bit of the bitmap that marks the slot array as valid.
const VALID: u64 = 1;

/// Returns the maximum number of entries of a node of `bytes` bytes, and the words at which slot
/// array and entries begin. The slot array takes one byte for each entry and one for their number.
const fn geometry(bytes: usize) -> (usize, usize, usize) {
    let words = bytes / 8;
    let mut capacity = BITS_MAX + u64::BITS as usize - 1; // Bits beside the valid bit.
    loop {
        let slots = if capacity < BITS_MAX { HIGH } else { HIGH + 1 };
        let entries = (slots + (capacity + 1usize).div_ceil(8)).next_multiple_of(2);
        if entries + 2 * capacity <= words {
            return (capacity, slots, entries);
        }
        capacity -= 1;
    }
}

/// The number of words of the largest slot array: 128 B.
const SLOT_WORDS_MAX: usize = 16;

type SlotBytes = [u8; 8 * SLOT_WORDS_MAX];

/// The bitmap: bit 0 is the valid bit, bit i + 1 that of entry i. Bits from [`BITS_MAX`] on lie in
/// the second word.
type Bits = u128;

/// Stores the words of the array, which begins at word `first`, that differ from `old`. Returns the
/// index of the last word stored.
#[inline(always)]
fn store_slots<M: Medium>(node: View<'_, M>, first: usize, old: &[u8], new: &[u8]) -> usize {
    let mut last = first;
    for (word, (old, new)) in old.chunks_exact(8).zip(new.chunks_exact(8)).enumerate() {
        if old != new {
            last = first + word;
            let value = new.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
            node.store(last, value);
        }
    }
    last
}

impl<const NODE: usize, T: SlotCommit> SlotBitmapLayout<NODE, T> {
    /// The maximum cost of an insert.
    pub const INSERT: Cost = Self::with_slots(T::INSERT);
    /// The maximum cost of a remove.
    pub const REMOVE: Cost = Self::with_slots(T::REMOVE);
    const SLOTS: usize = geometry(NODE).1;
    const SLOT_LINES: u32 = (Self::SLOTS + Self::SLOT_WORDS).div_ceil(LINE_WORDS) as u32;
    const SLOT_WORDS: usize = (Self::CAPACITY + 1).div_ceil(8);
    const BITS: Bits = Bits::MAX >> (Bits::BITS as usize - Self::CAPACITY) << 1;
    /// `true` if the bitmap has a second word.
    const HAS_HIGH: bool = Self::SLOTS > HIGH;
    const MARK: Mark = Mark::new(if Self::HAS_HIGH { BITS_MAX } else { Self::CAPACITY + 1 }, MAGIC);

    const fn with_slots(beside: Cost) -> Cost {
        let slots = if T::BY_WORD { Self::SLOT_WORDS as u32 } else { Self::SLOT_LINES };
        Cost::new(beside.lines + slots, beside.fences)
    }

    const GEOMETRY: () = assert!(
        NODE.is_multiple_of(64)
            && Self::CAPACITY >= 4
            && Self::SLOT_WORDS <= SLOT_WORDS_MAX
            && Self::SLOTS + Self::SLOT_WORDS <= Self::ENTRIES.word(0)
            && Self::SLOT_LINES <= T::SLOT_LINES_MAX
            && Self::CAPACITY <= Self::ENTRIES.capacity(NODE)
    );

    /// Returns the bitmap, without the bits of the mark.
    #[inline(always)]
    fn bitmap<M: Medium>(node: View<'_, M>) -> Bits {
        let low = Bits::from(node.load(COMMIT) & Self::MARK.own);
        if Self::HAS_HIGH { low | Bits::from(node.load(HIGH)) << BITS_MAX } else { low }
    }

    /// Returns the second word of `bitmap`, if there is one.
    #[inline(always)]
    fn high_word(bitmap: Bits) -> Option<u64> {
        Self::HAS_HIGH.then_some((bitmap >> BITS_MAX) as u64)
    }

    /// Returns `true` if the bit of entry `index` is set.
    #[inline(always)]
    fn is_valid(bitmap: Bits, index: usize) -> bool {
        if Self::HAS_HIGH {
            bitmap >> (index + 1) & 1 == 1
        } else {
            (bitmap as u64) >> (index + 1) & 1 == 1
        }
    }

    /// Returns byte `position` of the slot array: the count, or the index of the entry of rank
    /// `position - 1`.
    #[inline(always)]
    fn slot<M: Medium>(node: View<'_, M>, position: usize) -> usize {
        let word = node.load(Self::SLOTS + position / 8);
        (word >> (8 * (position % 8)) & 0xff) as usize
    }

    /// Returns the index of the entry of that rank, after a check of its bit.
    #[inline(always)]
    fn index<M: Medium>(node: View<'_, M>, bitmap: Bits, rank: usize) -> Result<usize, Corrupt> {
        Self::checked_index(node, bitmap, rank, Self::slot(node, rank + 1))
    }

    /// Returns `index`, which the slot of that rank holds, after a check of its bit.
    #[inline(always)]
    fn checked_index<M: Medium>(
        node: View<'_, M>,
        bitmap: Bits,
        rank: usize,
        index: usize,
    ) -> Result<usize, Corrupt> {
        if index >= Self::CAPACITY || !Self::is_valid(bitmap, index) {
            let (at, bits) = (Self::SLOTS + (rank + 1) / 8, bitmap as u64);
            return Err(node.corrupt(at, "slot that names no valid entry", bits, index as u64));
        }
        Ok(index)
    }

    /// Returns the bitmap and the number of slots, after a check that the array is valid.
    #[inline(always)]
    fn head<M: Medium>(node: View<'_, M>) -> Result<(Bits, usize), Corrupt> {
        let bitmap = Self::bitmap(node);
        let count = Self::slot(node, 0);
        if bitmap as u64 & VALID == 0 {
            return Err(node.corrupt(COMMIT, "valid bit of a slot array", VALID, bitmap as u64));
        }
        let entries = (bitmap & Self::BITS).count_ones() as usize;
        if count != entries {
            return Err(node.corrupt(Self::SLOTS, "number of slots", entries as u64, count as u64));
        }
        Ok((bitmap, count))
    }

    /// Searches all valid entries, because the slot array is invalid.
    #[cold]
    fn find_by_bitmap<M: Medium>(
        node: View<'_, M>,
        mut order: impl FnMut(Entry) -> Result<Ordering, Corrupt>,
    ) -> Result<SearchResult, Corrupt> {
        let (mut rank, mut equal) = (0, None);
        let mut left = Self::bitmap(node) & Self::BITS;
        while left != 0 {
            let index = left.trailing_zeros() as usize - 1;
            let entry = node.entry(Self::ENTRIES, index);
            match order(entry)? {
                Ordering::Less => rank += 1,
                Ordering::Equal => equal = Some((index, entry)),
                Ordering::Greater => {}
            }
            left &= left - 1;
        }
        Ok(equal.map_or(SearchResult::Absent(rank), |(index, entry)| {
            SearchResult::Found(SlotPos { index, rank }, entry)
        }))
    }

    /// Returns the change of the node to `bitmap` and to the slot array `new`.
    #[inline(always)]
    fn change<M: Medium>(
        node: View<'_, M>,
        bitmap: Bits,
        old: SlotBytes,
        new: SlotBytes,
    ) -> SlotChange {
        let word = node.load(COMMIT);
        let next = word & !Self::MARK.own | bitmap as u64 & Self::MARK.own;
        let high = Self::high_word(bitmap).filter(|&high| high != node.load(HIGH));
        let (slots, slot_words) = (Self::SLOTS, Self::SLOT_WORDS);
        SlotChange { bitmap: word, next, high, slots, slot_words, old, new }
    }

    #[inline(always)]
    fn load_slots<M: Medium>(node: View<'_, M>) -> SlotBytes {
        let mut slots = [0; 8 * SLOT_WORDS_MAX];
        for (word, bytes) in slots.chunks_exact_mut(8).take(Self::SLOT_WORDS).enumerate() {
            bytes.copy_from_slice(&node.load(Self::SLOTS + word).to_le_bytes());
        }
        slots
    }

    /// Stores the slot array of `image`. Returns the index of the last word stored.
    fn write_slots<M: Medium>(node: View<'_, M>, image: &Image) -> usize {
        let old = Self::load_slots(node);
        let mut new = old;
        new[0] = image.slots.len() as u8;
        for (byte, slot) in new[1..].iter_mut().zip(&image.slots) {
            *byte = slot.index as u8;
        }
        store_slots(node, Self::SLOTS, &old[..8 * Self::SLOT_WORDS], &new)
    }

    /// Returns the bitmap of `image`, with a clear valid bit.
    fn bits(image: &Image) -> Bits {
        image.slots.iter().fold(0, |bits, slot| bits | 2 << slot.index)
    }

    /// Returns the first word of `bitmap`, with the mark of a node at `level`.
    fn commit_word(bitmap: Bits, level: u64) -> u64 {
        Self::MARK.at(level) | bitmap as u64 & Self::MARK.own
    }
}

impl<const NODE: usize, T: SlotCommit> Layout for SlotBitmapLayout<NODE, T> {
    const BYTES: usize = NODE;
    const CAPACITY: usize = geometry(NODE).0;
    const LATCH: usize = LINK;
    const LATCH_BITS: LatchBits = LatchBits::BesideLink;
    const OFFSET_MAX: u64 = header::offset_max(NODE);
    const COMMIT_WORDS: usize = if Self::HAS_HIGH { 2 } else { 1 };
    const ENTRIES: Entries = Entries::pairs(geometry(NODE).2);

    fn encode(level: u64, link: u64, entries: &[Entry]) -> Vec<u8> {
        const { Self::GEOMETRY };
        assert!(entries.len() <= Self::CAPACITY);
        let bitmap = ((1 << entries.len()) - 1) << 1 | Bits::from(VALID);
        let mut header = vec![Self::commit_word(bitmap, level), header::link_bits(link, NODE)];
        header.extend(Self::high_word(bitmap));
        let slots = core::iter::once(entries.len() as u8).chain(0..entries.len() as u8);
        let slots: Vec<u8> = slots.collect();
        header.extend(
            slots.chunks(8).map(|bytes| {
                bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
            }),
        );
        header.resize(Self::ENTRIES.word(0), 0);
        encode(&header, Self::ENTRIES, entries)
    }

    #[inline(always)]
    fn level<M: Medium>(node: View<'_, M>) -> Result<u64, Corrupt> {
        Self::MARK.level_of(node, NODE)
    }

    #[inline(always)]
    fn link<M: Medium>(node: View<'_, M>) -> u64 {
        header::link_of(node, NODE)
    }

    #[inline(always)]
    fn count<M: Medium>(node: View<'_, M>) -> usize {
        (Self::bitmap(node) & Self::BITS).count_ones() as usize
    }

    #[inline(always)]
    fn find<M: Medium>(
        node: View<'_, M>,
        order: impl FnMut(Entry) -> Result<Ordering, Corrupt>,
    ) -> Result<SearchResult, Corrupt> {
        let trusts = M::INJECTS_DEFECTS && node.medium().injects(Defect::SlotsUnrepaired);
        if Self::needs_repair(node) && !trusts {
            return Self::find_by_bitmap(node, order);
        }
        find_ordered::<Self, M>(node, order)
    }

    fn slot_indices<M: Medium>(node: View<'_, M>) -> Result<Vec<usize>, Corrupt> {
        let bitmap = Self::bitmap(node);
        let bits = bitmap & !Bits::from(VALID);
        if bits & !Self::BITS != 0 {
            return Err(node.corrupt(
                COMMIT,
                "bitmap of a node with bits beyond the last entry",
                Self::BITS as u64,
                bits as u64,
            ));
        }
        if bitmap as u64 & VALID == 0 {
            return Ok((0..Self::CAPACITY).filter(|&index| Self::is_valid(bits, index)).collect());
        }
        let (_, count) = Self::head(node)?;
        let mut left = bits;
        let mut places = Vec::with_capacity(count);
        for rank in 0..count {
            let index = Self::index(node, left, rank)?;
            left &= !(2 << index);
            places.push(index);
        }
        if left != 0 {
            let what = "valid entries that no slot names";
            return Err(node.corrupt(Self::SLOTS, what, 0, left as u64));
        }
        Ok(places)
    }

    fn is_sorted<M: Medium>(node: View<'_, M>) -> bool {
        node.load(COMMIT) & VALID == VALID
    }

    /// Logs the bitmap with a clear valid bit: a replay does not restore the slots, so they must be
    /// rebuilt.
    fn plan<'a, M: Medium>(node: View<'a, M>, image: &Image, changes: &mut Changes<'a>) {
        let keeps_valid = M::INJECTS_DEFECTS && node.medium().injects(Defect::ReplayValid);
        let bitmap = Self::bits(image) | Bits::from(keeps_valid);
        changes.push((node.word(COMMIT), Self::commit_word(bitmap, image.level)));
        changes.extend(Self::high_word(bitmap).map(|high| (node.word(HIGH), high)));
        if image.link != Self::link(node) {
            changes.push((node.word(LINK), header::link_word(node, image.link, NODE)));
        }
    }

    /// ```text
    /// W link, slots, bitmaps   in any order: while the log exists, a replay clears the valid
    /// F their lines            bit, so that the array is rebuilt
    /// ```
    fn apply<M: Medium>(node: View<'_, M>, image: &Image) {
        if image.link != Self::link(node) {
            node.store(LINK, header::link_word(node, image.link, NODE));
        }
        let last = Self::write_slots(node, image);
        let bitmap = Self::bits(image) | Bits::from(VALID);
        if let Some(high) = Self::high_word(bitmap) {
            node.store(HIGH, high);
        }
        node.store(COMMIT, Self::commit_word(bitmap, image.level));
        let is_half = M::INJECTS_DEFECTS && node.medium().injects(Defect::AppliedLineUnflushed);
        node.flush(COMMIT..=if is_half { last.min(LINE_WORDS - 1) } else { last });
    }

    const REPAIRS_ON_USE: bool = true;

    #[inline(always)]
    fn needs_repair<M: Medium>(node: View<'_, M>) -> bool {
        node.load(COMMIT) & VALID == 0
    }

    /// ```text
    /// W slots                  the valid bit is clear: no reader relies on the slots
    /// F slots |
    /// C bitmap with valid bit  8 B
    /// F bitmap |               -> durable    budget: lines of the slots and 1, 2 fences
    /// ```
    fn repair<M: Medium>(node: View<'_, M>, image: &Image) {
        let last = Self::write_slots(node, image);
        let valid = Self::commit_word(Self::bits(image) | Bits::from(VALID), image.level);
        if M::INJECTS_DEFECTS && node.medium().injects(Defect::ValidUnordered) {
            node.store(COMMIT, valid);
            let _ = node.persist(COMMIT..=last);
            return;
        }
        let fenced = node.persist(Self::SLOTS..=last);
        node.medium().commit(node.word(COMMIT), valid, fenced);
        let _ = node.persist(COMMIT..=COMMIT);
    }
}

impl<const NODE: usize, T: SlotCommit> Atomic for SlotBitmapLayout<NODE, T> {
    /// Persist order: that of [`SlotCommit::insert`].
    fn insert<M: Medium>(node: View<'_, M>, rank: usize, entry: Entry) -> Fenced {
        let bitmap = Self::bitmap(node);
        let index = (bitmap >> 1).trailing_ones() as usize;
        let old = Self::load_slots(node);
        let count = usize::from(old[0]);
        assert!(bitmap as u64 & VALID == VALID && index < Self::CAPACITY && rank <= count);
        let mut new = old;
        new.copy_within(rank + 1..=count, rank + 2);
        new[rank + 1] = index as u8;
        new[0] += 1;
        let change = Self::change(node, bitmap | 2 << index, old, new);
        T::insert(node, &change, Self::ENTRIES.word(index), entry)
    }

    /// Persist order: that of [`SlotCommit::remove`].
    fn remove<M: Medium>(node: View<'_, M>, at: SlotPos) -> Fenced {
        let bitmap = Self::bitmap(node);
        let old = Self::load_slots(node);
        let count = usize::from(old[0]);
        assert!(bitmap as u64 & VALID == VALID && at.rank < count);
        assert!(Self::is_valid(bitmap, at.index));
        let mut new = old;
        new.copy_within(at.rank + 2..=count, at.rank + 1);
        new[0] -= 1;
        T::remove(node, &Self::change(node, bitmap & !(2 << at.index), old, new))
    }
}

impl<const NODE: usize, T: SlotCommit> Ordered for SlotBitmapLayout<NODE, T> {
    /// Halves the array until fewer than eight slots are left, then loads these as one word and
    /// takes them from there. The halves begin where a word of the array does, so that the last
    /// slots lie in one word.
    #[inline(always)]
    fn partition<M: Medium>(
        node: View<'_, M>,
        mut before: impl FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<usize, Corrupt> {
        let (bitmap, count) = Self::head(node)?;
        let word = bisect(count / 8, |word| {
            let index = Self::index(node, bitmap, 8 * word + 7)?;
            before(node.entry(Self::ENTRIES, index))
        })?;
        let slots = node.load(Self::SLOTS + word);
        let below = 8 * word; // Byte 0 of the word is the count, or the last slot that is before.
        let within = bisect((count - below).min(7), |number| {
            let index = (slots >> (8 * (number + 1)) & 0xff) as usize;
            let index = Self::checked_index(node, bitmap, below + number, index)?;
            before(node.entry(Self::ENTRIES, index))
        })?;
        Ok(below + within)
    }

    #[inline(always)]
    fn nth<M: Medium>(node: View<'_, M>, rank: usize) -> Result<Slot, Corrupt> {
        let (bitmap, count) = Self::head(node)?;
        if rank >= count {
            let expected = rank as u64 + 1;
            return Err(node.corrupt(Self::SLOTS, "number of slots", expected, count as u64));
        }
        let index = Self::index(node, bitmap, rank)?;
        Ok(Slot { index, entry: node.entry(Self::ENTRIES, index) })
    }
}
