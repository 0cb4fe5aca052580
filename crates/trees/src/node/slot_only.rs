//! Slots only: seven entries in two lines, and one word that holds their number, their order, the
//! level and the link.
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
//! | 29..64 | next leaf or leftmost child, in units of the node's size |
//!
//! 1. An entry is shown only after it is durable. All else that decides is in one word, so nothing
//!    here relies on the order in which the words of a line persist.
//! 2. An index that is not among the slots is free; it is used again only after the store that
//!    dropped it is durable.

use super::{
    Atomic, Changes, Image, LEVEL_MAX, Layout, Ordered, SearchResult, Slot, SlotPos, View, bisect,
    encode, find_ordered, prefetch_words,
};
use crate::key::Entry;
use bristlecone_pmem::{Corrupt, Fenced, Medium};
use core::cmp::Ordering;

/// Slots only, in nodes of two lines.
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

/// The word that decides, in a register.
#[derive(Clone, Copy)]
struct Slots(u64);

impl Slots {
    #[inline(always)]
    fn load<M: Medium>(node: View<'_, M>) -> Self {
        Self(node.load(COMMIT))
    }

    /// The word of a node of that content.
    ///
    /// # Panics
    /// `link` is no node's offset: blocks of 128 B lie at multiples of 128.
    fn encode(level: u64, link: u64, places: impl Iterator<Item = usize>) -> Self {
        let unit = BYTES as u64;
        let units = link / unit;
        assert!(link.is_multiple_of(unit) && units >> (64 - LINK_SHIFT) == 0 && level <= LEVEL_MAX);
        let (mut count, mut order) = (0, 0);
        for index in places {
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

    /// The index of that rank, if there can be such an entry.
    #[inline(always)]
    fn checked<M: Medium>(self, node: View<'_, M>, rank: usize) -> Result<usize, Corrupt> {
        let index = self.index(rank);
        if index >= CAPACITY {
            return Err(node.corrupt(COMMIT, "slot without entry", CAPACITY as u64, index as u64));
        }
        Ok(index)
    }

    fn places(self) -> impl Iterator<Item = usize> + Clone {
        (0..self.count()).map(move |rank| self.index(rank))
    }

    fn level(self) -> u64 {
        self.0 >> LEVEL_SHIFT & ((1 << (LINK_SHIFT - LEVEL_SHIFT)) - 1)
    }

    fn link(self) -> u64 {
        (self.0 >> LINK_SHIFT) * BYTES as u64
    }

    fn of(image: &Image) -> Self {
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
    const PREFETCH_WORDS: usize = prefetch_words(BYTES / 8);

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
            let index = slots.checked(node, rank)?;
            if seen >> index & 1 == 1 {
                return Err(node.corrupt(COMMIT, "entry in two slots", 1, index as u64));
            }
            seen |= 1 << index;
        }
        Ok(slots.places().collect())
    }

    fn is_sorted<M: Medium>(_: View<'_, M>) -> bool {
        true
    }

    fn plan<'a, M: Medium>(node: View<'a, M>, image: &Image, changes: &mut Changes<'a>) {
        changes.push((node.word(COMMIT), Slots::of(image).0));
    }

    /// ```text
    /// W slots    as in the log
    /// F slots
    /// ```
    fn apply<M: Medium>(node: View<'_, M>, image: &Image) {
        node.store(COMMIT, Slots::of(image).0);
        node.flush(COMMIT..=COMMIT);
    }
}

impl Atomic for SlotOnly {
    /// ```text
    /// W entry     1 line    crash before C: the entry is not there (1)
    /// F entry |
    /// C slots     8 B
    /// F slots |   -> durable    budget: 2 lines, 2 fences
    /// ```
    fn insert<M: Medium>(node: View<'_, M>, rank: usize, entry: Entry) -> Fenced {
        let slots = Slots::load(node);
        let free = |index: &usize| slots.places().all(|taken| taken != *index);
        let index = (0..CAPACITY).find(free).expect("the caller has seen room");
        node.store_entry(ENTRIES, index, entry);
        let word = ENTRIES + 2 * index;
        let fenced = node.persist(word..=word);
        let places = slots.places();
        let places = places.clone().take(rank).chain([index]).chain(places.skip(rank));
        Slots::encode(slots.level(), slots.link(), places).commit(node, fenced)
    }

    /// ```text
    /// C slots     8 B
    /// F slots |   -> durable    budget: 1 line, 1 fence
    /// ```
    fn remove<M: Medium>(node: View<'_, M>, at: SlotPos) -> Fenced {
        let slots = Slots::load(node);
        let places = slots.places().filter(|&index| index != at.index);
        node.store(COMMIT, Slots::encode(slots.level(), slots.link(), places).0);
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
        bisect(slots.count(), |rank| before(node.entry(ENTRIES, slots.checked(node, rank)?)))
    }

    #[inline(always)]
    fn nth<M: Medium>(node: View<'_, M>, rank: usize) -> Result<Slot, Corrupt> {
        let slots = Slots::load(node);
        if rank >= slots.count() {
            let (expected, found) = (rank as u64 + 1, slots.count() as u64);
            return Err(node.corrupt(COMMIT, "number of slots", expected, found));
        }
        let index = slots.checked(node, rank)?;
        Ok(Slot { index, entry: node.entry(ENTRIES, index) })
    }
}
