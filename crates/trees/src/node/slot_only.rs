//! Slots only: seven entries in two lines, and one word with their number, order, level and link.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | slots | commit | see below |
//! | 1 | 8 | latch | transient | version |
//! | 2.. | 16 each | entries | data | key word, value word |
//!
//! | bits of slots | field |
//! | --- | --- |
//! | 0..3 | number of entries |
//! | 3..24 | their indices in key order, 3 bits each |
//! | 24..29 | level |
//! | 29..64 | next leaf or leftmost child, in multiples of the node size |
//!
//! 1. An entry is durable before the slots word shows it. That word alone commits every change, so
//!    nothing relies on the order in which the words of a line persist.
//! 2. An index that is not among the slots is free. It is used again only after the store that
//!    dropped it is durable.

use super::{
    Atomic, Changes, Image, LEVEL_MAX, Layout, Ordered, SearchResult, Slot, SlotPos, View, bisect,
    encode, find_ordered,
};
use crate::key::Entry;
use bristlecone_pmem::{Corrupt, Fenced, Medium};
use core::cmp::Ordering;

/// The slot-only layout, in nodes of two lines (128 B).
#[derive(Debug)]
pub struct SlotOnly;

const COMMIT: usize = 0;
const LATCH: usize = 1;
const ENTRIES: usize = 2;
const BYTES: usize = 128;
const CAPACITY: usize = (BYTES / 8 - ENTRIES) / 2;
const INDEX_BITS: usize = 3;
const LEVEL_SHIFT: usize = 24;
const LINK_SHIFT: usize = 29;

const _: () = assert!(CAPACITY == 7 && CAPACITY < 1 << INDEX_BITS);
const _: () = assert!(INDEX_BITS * (CAPACITY + 1) <= LEVEL_SHIFT);
const _: () = assert!(LEVEL_MAX >> (LINK_SHIFT - LEVEL_SHIFT) == 0);

/// A copy of the slots word.
#[derive(Clone, Copy)]
struct Slots(u64);

impl Slots {
    #[inline(always)]
    fn load<M: Medium>(node: View<'_, M>) -> Self {
        Self(node.load(COMMIT))
    }

    /// Returns the slots word of a node with that content.
    ///
    /// # Panics
    /// If `link` is not the offset of a node: blocks of 128 B lie at multiples of 128.
    fn encode(level: u64, link: u64, indices: impl Iterator<Item = usize>) -> Self {
        let unit = BYTES as u64;
        let units = link / unit;
        assert!(link.is_multiple_of(unit) && units >> (64 - LINK_SHIFT) == 0 && level <= LEVEL_MAX);
        let (mut count, mut order) = (0, 0);
        for index in indices {
            count += 1;
            order |= (index as u64) << (INDEX_BITS * count);
        }
        assert!(count <= CAPACITY);
        Self(units << LINK_SHIFT | level << LEVEL_SHIFT | order | count as u64)
    }

    #[inline(always)]
    fn count(self) -> usize {
        (self.0 & 7) as usize
    }

    #[inline(always)]
    fn index(self, rank: usize) -> usize {
        (self.0 >> (INDEX_BITS * (rank + 1)) & 7) as usize
    }

    /// Returns the index of that rank, after a check that the node has such a slot.
    #[inline(always)]
    fn checked_index<M: Medium>(self, node: View<'_, M>, rank: usize) -> Result<usize, Corrupt> {
        let index = self.index(rank);
        if index >= CAPACITY {
            return Err(node.corrupt(
                COMMIT,
                "slot that names no valid entry",
                CAPACITY as u64,
                index as u64,
            ));
        }
        Ok(index)
    }

    fn indices(self) -> impl Iterator<Item = usize> + Clone {
        (0..self.count()).map(move |rank| self.index(rank))
    }

    fn level(self) -> u64 {
        self.0 >> LEVEL_SHIFT & ((1 << (LINK_SHIFT - LEVEL_SHIFT)) - 1)
    }

    fn link(self) -> u64 {
        (self.0 >> LINK_SHIFT) * BYTES as u64
    }

    fn from_image(image: &Image) -> Self {
        Self::encode(image.level, image.link, image.slots.iter().map(|slot| slot.index))
    }

    fn commit<M: Medium>(self, node: View<'_, M>, fenced: Fenced) -> Fenced {
        node.medium().commit(node.word(COMMIT), self.0, fenced);
        node.persist(COMMIT..=COMMIT)
    }
}

impl Layout for SlotOnly {
    const BYTES: usize = BYTES;
    const CAPACITY: usize = CAPACITY;
    const LATCH: usize = LATCH;
    const ENTRIES: usize = ENTRIES;

    fn encode(level: u64, link: u64, entries: &[Entry]) -> Vec<u8> {
        let slots = Slots::encode(level, link, 0..entries.len());
        encode(&[slots.0, 0], entries)
    }

    #[inline(always)]
    fn level<M: Medium>(node: View<'_, M>) -> Result<u64, Corrupt> {
        Ok(Slots::load(node).level())
    }

    #[inline(always)]
    fn link<M: Medium>(node: View<'_, M>) -> u64 {
        Slots::load(node).link()
    }

    #[inline(always)]
    fn count<M: Medium>(node: View<'_, M>) -> usize {
        Slots::load(node).count()
    }

    #[inline(always)]
    fn find<M: Medium>(
        node: View<'_, M>,
        order: impl FnMut(Entry) -> Result<Ordering, Corrupt>,
    ) -> Result<SearchResult, Corrupt> {
        find_ordered::<Self, M>(node, order)
    }

    fn slot_indices<M: Medium>(node: View<'_, M>) -> Result<Vec<usize>, Corrupt> {
        let slots = Slots::load(node);
        let mut seen = 0;
        for rank in 0..slots.count() {
            let index = slots.checked_index(node, rank)?;
            if seen >> index & 1 == 1 {
                return Err(node.corrupt(COMMIT, "entry in two slots", 1, index as u64));
            }
            seen |= 1 << index;
        }
        Ok(slots.indices().collect())
    }

    fn is_sorted<M: Medium>(_: View<'_, M>) -> bool {
        true
    }

    fn plan<'a, M: Medium>(node: View<'a, M>, image: &Image, changes: &mut Changes<'a>) {
        changes.push((node.word(COMMIT), Slots::from_image(image).0));
    }

    /// ```text
    /// W slots    the word that the log holds
    /// F slots
    /// ```
    fn apply<M: Medium>(node: View<'_, M>, image: &Image) {
        node.store(COMMIT, Slots::from_image(image).0);
        node.flush(COMMIT..=COMMIT);
    }
}

impl Atomic for SlotOnly {
    /// ```text
    /// W entry     1 line    crash before C: the entry is invisible (1)
    /// F entry |
    /// C slots     8 B
    /// F slots |   -> durable    budget: 2 lines, 2 fences
    /// ```
    fn insert<M: Medium>(node: View<'_, M>, rank: usize, entry: Entry) -> Fenced {
        let slots = Slots::load(node);
        let free = |index: &usize| slots.indices().all(|taken| taken != *index);
        let index = (0..CAPACITY).find(free).expect("the caller checked for a free slot");
        node.store_entry(ENTRIES, index, entry);
        let word = ENTRIES + 2 * index;
        let fenced = node.persist(word..=word);
        let indices = slots.indices();
        let indices = indices.clone().take(rank).chain([index]).chain(indices.skip(rank));
        Slots::encode(slots.level(), slots.link(), indices).commit(node, fenced)
    }

    /// ```text
    /// C slots     8 B
    /// F slots |   -> durable    budget: 1 line, 1 fence
    /// ```
    fn remove<M: Medium>(node: View<'_, M>, at: SlotPos) -> Fenced {
        let slots = Slots::load(node);
        let indices = slots.indices().filter(|&index| index != at.index);
        node.store(COMMIT, Slots::encode(slots.level(), slots.link(), indices).0);
        node.persist(COMMIT..=COMMIT)
    }
}

impl Ordered for SlotOnly {
    #[inline(always)]
    fn partition<M: Medium>(
        node: View<'_, M>,
        mut before: impl FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<usize, Corrupt> {
        let slots = Slots::load(node);
        bisect(slots.count(), |rank| before(node.entry(ENTRIES, slots.checked_index(node, rank)?)))
    }

    #[inline(always)]
    fn nth<M: Medium>(node: View<'_, M>, rank: usize) -> Result<Slot, Corrupt> {
        let slots = Slots::load(node);
        if rank >= slots.count() {
            let (expected, found) = (rank as u64 + 1, slots.count() as u64);
            return Err(node.corrupt(COMMIT, "number of slots", expected, found));
        }
        let index = slots.checked_index(node, rank)?;
        Ok(Slot { index, entry: node.entry(ENTRIES, index) })
    }
}
