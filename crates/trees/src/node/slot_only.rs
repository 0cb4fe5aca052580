//! Slots only: up to seven entries in one or two lines, and one word with their number and order.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | slots | commit | see below |
//! | 1 | 8 | link, latch | data, transient | next leaf, or leftmost child; [latch](super::header) |
//! | 2.. | 16 each | entries | data | key word, value word |
//!
//! | byte of slots | field |
//! | --- | --- |
//! | 0 | number of entries in bits 0 to 2, level in bits 3 to 7 |
//! | 1 to 7 | index of the entry of that rank, from 1; bytes behind the last one are 0 |
//!
//! 1. An entry is durable before the slots word shows it. That word alone commits an insert or a
//!    remove, so nothing relies on the order in which the words of a line persist.
//! 2. An index that is not among the slots is free. It is used again only after the store that
//!    dropped it is durable.

use super::header::{self, LINK};
use super::{
    Atomic, Changes, Entries, Image, LEVEL_MAX, Layout, Ordered, SearchResult, Slot, SlotPos, View,
    bisect, encode, find_ordered,
};
use crate::key::Entry;
use bristlecone_pmem::sync::LatchBits;
use bristlecone_pmem::{Corrupt, Fenced, Medium};
use core::cmp::Ordering;

/// The slot-only layout, in nodes of one line or two.
#[derive(Debug)]
pub struct SlotOnly<const NODE: usize>;

const COMMIT: usize = 0;
const ENTRIES: Entries = Entries::pairs(2);
const SLOT_BITS: usize = 8;
/// The bits of byte 0 that hold the number of entries; the level lies above them.
const COUNT_BITS: usize = 3;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

const _: () = assert!(LEVEL_MAX >> (SLOT_BITS - COUNT_BITS) == 0);

/// Returns the number of entries that fit into a node.
const fn capacity(node_bytes: usize) -> usize {
    let capacity = ENTRIES.capacity(node_bytes);
    assert!(capacity >= 3 && capacity < 1 << COUNT_BITS && node_bytes.is_multiple_of(64));
    capacity
}

/// A copy of the slots word.
#[derive(Clone, Copy)]
struct Slots(u64);

impl Slots {
    #[inline(always)]
    fn load<M: Medium>(node: View<'_, M>) -> Self {
        Self(node.load(COMMIT))
    }

    /// Returns the slots word of a node with that content.
    fn encode(level: u64, indices: impl Iterator<Item = usize>) -> Self {
        assert!(level <= LEVEL_MAX);
        let (mut count, mut order) = (0, 0);
        for index in indices {
            count += 1;
            order |= (index as u64) << (SLOT_BITS * count);
        }
        assert!(count as u64 <= COUNT_MASK);
        Self(order | level << COUNT_BITS | count as u64)
    }

    #[inline(always)]
    fn count(self) -> usize {
        (self.0 & COUNT_MASK) as usize
    }

    #[inline(always)]
    fn index(self, rank: usize) -> usize {
        (self.0 >> (SLOT_BITS * (rank + 1)) & 0xff) as usize
    }

    /// Returns the index of that rank, after a check that the node has such a slot.
    #[inline(always)]
    fn checked_index<const NODE: usize, M: Medium>(
        self,
        node: View<'_, M>,
        rank: usize,
    ) -> Result<usize, Corrupt> {
        let (index, capacity) = (self.index(rank), capacity(NODE));
        if index >= capacity {
            let what = "slot that names no valid entry";
            return Err(node.corrupt(COMMIT, what, capacity as u64, index as u64));
        }
        Ok(index)
    }

    fn indices(self) -> impl Iterator<Item = usize> + Clone {
        (0..self.count()).map(move |rank| self.index(rank))
    }

    fn level(self) -> u64 {
        (self.0 & 0xff) >> COUNT_BITS
    }

    fn from_image(image: &Image) -> Self {
        Self::encode(image.level, image.slots.iter().map(|slot| slot.index))
    }

    fn commit<M: Medium>(self, node: View<'_, M>, fenced: Fenced) -> Fenced {
        node.medium().commit(node.word(COMMIT), self.0, fenced);
        node.persist(COMMIT..=COMMIT)
    }
}

impl<const NODE: usize> Layout for SlotOnly<NODE> {
    const BYTES: usize = NODE;
    const CAPACITY: usize = capacity(NODE);
    const LATCH: usize = LINK;
    const LATCH_BITS: LatchBits = LatchBits::BesideLink;
    const ENTRIES: Entries = ENTRIES;
    const OFFSET_MAX: u64 = header::offset_max(NODE);

    fn encode(level: u64, link: u64, entries: &[Entry]) -> Vec<u8> {
        let slots = Slots::encode(level, 0..entries.len());
        encode(&[slots.0, header::link_bits(link, NODE)], ENTRIES, entries)
    }

    #[inline(always)]
    fn level<M: Medium>(node: View<'_, M>) -> Result<u64, Corrupt> {
        header::check_link(node, NODE)?;
        Ok(Slots::load(node).level())
    }

    #[inline(always)]
    fn link<M: Medium>(node: View<'_, M>) -> u64 {
        header::link_of(node, NODE)
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
            let index = slots.checked_index::<NODE, M>(node, rank)?;
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
        if image.link != Self::link(node) {
            changes.push((node.word(LINK), header::link_word(node, image.link, NODE)));
        }
    }

    /// ```text
    /// W slots, link    as in the log
    /// F line 0
    /// ```
    fn apply<M: Medium>(node: View<'_, M>, image: &Image) {
        node.store(COMMIT, Slots::from_image(image).0);
        if image.link != Self::link(node) {
            node.store(LINK, header::link_word(node, image.link, NODE));
        }
        node.flush(COMMIT..=LINK);
    }
}

impl<const NODE: usize> Atomic for SlotOnly<NODE> {
    /// ```text
    /// W entry     1 line    crash before C: the entry is invisible (1)
    /// F entry |
    /// C slots     8 B
    /// F slots |   -> durable    budget: 2 lines, 2 fences
    /// ```
    fn insert<M: Medium>(node: View<'_, M>, rank: usize, entry: Entry) -> Fenced {
        let slots = Slots::load(node);
        let free = |index: &usize| slots.indices().all(|taken| taken != *index);
        let index = (0..Self::CAPACITY).find(free).expect("the caller checked for a free slot");
        node.store_entry(ENTRIES, index, entry);
        let word = ENTRIES.word(index);
        let fenced = node.persist(word..=word);
        let indices = slots.indices();
        let indices = indices.clone().take(rank).chain([index]).chain(indices.skip(rank));
        Slots::encode(slots.level(), indices).commit(node, fenced)
    }

    /// ```text
    /// C slots     8 B
    /// F slots |   -> durable    budget: 1 line, 1 fence
    /// ```
    fn remove<M: Medium>(node: View<'_, M>, at: SlotPos) -> Fenced {
        let slots = Slots::load(node);
        let indices = slots.indices().filter(|&index| index != at.index);
        node.store(COMMIT, Slots::encode(slots.level(), indices).0);
        node.persist(COMMIT..=COMMIT)
    }
}

impl<const NODE: usize> Ordered for SlotOnly<NODE> {
    #[inline(always)]
    fn partition<M: Medium>(
        node: View<'_, M>,
        mut before: impl FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<usize, Corrupt> {
        let slots = Slots::load(node);
        bisect(slots.count(), |rank| {
            before(node.entry(ENTRIES, slots.checked_index::<NODE, M>(node, rank)?))
        })
    }

    #[inline(always)]
    fn nth<M: Medium>(node: View<'_, M>, rank: usize) -> Result<Slot, Corrupt> {
        let slots = Slots::load(node);
        if rank >= slots.count() {
            let (expected, found) = (rank as u64 + 1, slots.count() as u64);
            return Err(node.corrupt(COMMIT, "number of slots", expected, found));
        }
        let index = slots.checked_index::<NODE, M>(node, rank)?;
        Ok(Slot { index, entry: node.entry(ENTRIES, index) })
    }
}
