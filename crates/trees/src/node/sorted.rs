//! Sorted in place: entries shift to make room. Volatile: nothing is flushed, nothing survives.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | count | transient | number of entries |
//! | 1 | 8 | link | transient | next leaf, or leftmost child |
//! | 2 | 8 | latch | transient | version |
//! | 3 | 8 | mark | transient | magic number, level |
//! | 4.. | 16 each | entries | transient | key word, value word, in key order |
//!
//! The baseline against which the price of durability is measured.

use super::{
    Changes, Found, Image, Layout, Ordered, Place, Slot, View, bisect, find_ordered, level_of, meta,
};
use crate::key::Entry;
use bristlecone_pmem::{Corrupt, Fenced, Medium};
use core::cmp::Ordering;

/// Sorted in place in nodes of `NODE` bytes.
#[derive(Debug)]
pub struct Sorted<const NODE: usize>;

const COUNT: usize = 0;
const LINK: usize = 1;
const LATCH: usize = 2;
const META: usize = 3;
const ENTRIES: usize = 4;
/// "sorted" in ASCII.
const MAGIC: u64 = 0x6465_7472_6f73;

impl<const NODE: usize> Sorted<NODE> {
    const GEOMETRY: () =
        assert!(NODE.is_multiple_of(64) && (ENTRIES + 2 * Self::CAPACITY) * 8 <= NODE);

    #[inline(always)]
    fn checked_count<M: Medium>(node: View<'_, M>) -> Result<usize, Corrupt> {
        let count = node.load(COUNT);
        if count > Self::CAPACITY as u64 {
            return Err(node.corrupt(COUNT, "number of entries", Self::CAPACITY as u64, count));
        }
        Ok(count as usize)
    }

    /// Nothing is promised, so there is nothing to wait for.
    #[inline(always)]
    fn unfenced() -> Fenced {
        Fenced::witness()
    }
}

impl<const NODE: usize> Layout for Sorted<NODE> {
    const BYTES: usize = NODE;
    const CAPACITY: usize = (NODE / 8 - ENTRIES) / 2;
    const LATCH: usize = LATCH;
    const ENTRIES: usize = ENTRIES;

    fn init<M: Medium>(node: View<'_, M>, level: u64, link: u64, entries: &[Entry]) {
        const { Self::GEOMETRY };
        assert!(entries.len() <= Self::CAPACITY);
        node.store(COUNT, entries.len() as u64);
        node.store(LINK, link);
        node.medium().store_transient(node.word(LATCH), 0);
        node.store(META, meta(MAGIC, level));
        for (index, &entry) in entries.iter().enumerate() {
            node.store_entry(ENTRIES, index, entry);
        }
    }

    #[inline(always)]
    fn level<M: Medium>(node: View<'_, M>) -> Result<u64, Corrupt> {
        level_of(node, META, MAGIC)
    }

    #[inline(always)]
    fn link<M: Medium>(node: View<'_, M>) -> u64 {
        node.load(LINK)
    }

    #[inline(always)]
    fn count<M: Medium>(node: View<'_, M>) -> usize {
        (node.load(COUNT) as usize).min(Self::CAPACITY)
    }

    #[inline(always)]
    fn find<M: Medium>(
        node: View<'_, M>,
        order: impl FnMut(Entry) -> Result<Ordering, Corrupt>,
    ) -> Result<Found, Corrupt> {
        find_ordered::<Self, M>(node, order)
    }

    fn places<M: Medium>(node: View<'_, M>) -> Result<Vec<usize>, Corrupt> {
        Ok((0..Self::checked_count(node)?).collect())
    }

    fn is_sorted<M: Medium>(_: View<'_, M>) -> bool {
        true
    }

    /// ```text
    /// W entries from the rank on, count    never durable    budget: 0 lines, 0 fences
    /// ```
    fn insert<M: Medium>(node: View<'_, M>, rank: usize, entry: Entry) -> Fenced {
        let count = Self::count(node);
        assert!(count < Self::CAPACITY && rank <= count, "the caller has seen room");
        for index in (rank..count).rev() {
            node.store_entry(ENTRIES, index + 1, node.entry(ENTRIES, index));
        }
        node.store_entry(ENTRIES, rank, entry);
        node.store(COUNT, count as u64 + 1);
        Self::unfenced()
    }

    /// ```text
    /// W entries from the rank on, count    never durable    budget: 0 lines, 0 fences
    /// ```
    fn remove<M: Medium>(node: View<'_, M>, at: Place) -> Fenced {
        let count = Self::count(node);
        assert!(at.rank < count, "what is removed is there");
        for index in at.rank + 1..count {
            node.store_entry(ENTRIES, index - 1, node.entry(ENTRIES, index));
        }
        node.store(COUNT, count as u64 - 1);
        Self::unfenced()
    }

    /// ```text
    /// W value    never durable    budget: 0 lines, 0 fences
    /// ```
    fn update<M: Medium>(node: View<'_, M>, at: Place, value: u64) -> Fenced {
        node.store(ENTRIES + 2 * at.index + 1, value);
        Self::unfenced()
    }

    /// Nothing: [`settle`](Self::settle) writes every entry.
    fn place<M: Medium>(_: View<'_, M>, _: &[Slot]) {}

    /// Nothing: no transaction could make this durable.
    fn plan<'a, M: Medium>(_: View<'a, M>, _: &Image, _: &mut Changes<'a>) {}

    /// ```text
    /// W entries, link, count    never durable
    /// ```
    fn settle<M: Medium>(node: View<'_, M>, image: &Image) {
        for (index, slot) in image.slots.iter().enumerate() {
            node.store_entry(ENTRIES, index, slot.entry);
        }
        node.store(LINK, image.link);
        node.store(COUNT, image.slots.len() as u64);
    }

    /// ```text
    /// W key    never durable
    /// ```
    fn settle_key<M: Medium>(node: View<'_, M>, index: usize, key: u64) {
        node.store(ENTRIES + 2 * index, key);
    }
}

impl<const NODE: usize> Ordered for Sorted<NODE> {
    #[inline(always)]
    fn partition<M: Medium>(
        node: View<'_, M>,
        mut before: impl FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<usize, Corrupt> {
        let count = Self::checked_count(node)?;
        bisect(count, |rank| before(node.entry(ENTRIES, rank)))
    }

    #[inline(always)]
    fn nth<M: Medium>(node: View<'_, M>, rank: usize) -> Result<Slot, Corrupt> {
        let count = Self::checked_count(node)?;
        if rank >= count {
            let (expected, found) = (rank as u64 + 1, count as u64);
            return Err(node.corrupt(COUNT, "number of entries", expected, found));
        }
        Ok(Slot { index: rank, entry: node.entry(ENTRIES, rank) })
    }
}
