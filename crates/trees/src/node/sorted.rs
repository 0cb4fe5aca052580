//! Sorted in place: entries shift to make room, a word at a time.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | count | data | number of entries |
//! | 1 | 8 | link | data | next leaf, or leftmost child |
//! | 2 | 8 | latch | transient | version |
//! | 3 | 8 | mark | data | magic number, level |
//! | 4.. | 16 each | entries | data | key word, value word, in key order |
//!
//! 1. No word decides: a change is whole when all of its words are there. Who writes them sees to
//!    that, or to nothing, as in the volatile baseline.

use super::{
    Changes, Found, Image, Layout, Linked, Ordered, Place, Slot, View, Wordwise, Writer, bisect,
    encode, find_ordered, level_of, meta, plan_words, settle_words,
};
use crate::key::Entry;
use bristlecone_pmem::{Corrupt, Medium};
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
}

impl<const NODE: usize> Sorted<NODE> {
    /// The words of a node with that content, the count last.
    fn words_of(image: &Image) -> impl Iterator<Item = (usize, u64)> {
        let entry = |(rank, slot): (usize, &Slot)| {
            let at = ENTRIES + 2 * rank;
            [(at, slot.entry.key), (at + 1, slot.entry.value)]
        };
        let entries = image.slots.iter().enumerate().flat_map(entry);
        entries.chain([(LINK, image.link), (COUNT, image.slots.len() as u64)])
    }

    #[inline(always)]
    fn write<M: Medium>(node: View<'_, M>, index: usize, entry: Entry, writer: &mut impl Writer) {
        let at = ENTRIES + 2 * index;
        writer.used(node.word(at), entry.key);
        writer.used(node.word(at + 1), entry.value);
    }
}

impl<const NODE: usize> Layout for Sorted<NODE> {
    const BYTES: usize = NODE;
    const CAPACITY: usize = (NODE / 8 - ENTRIES) / 2;
    const LATCH: usize = LATCH;
    const ENTRIES: usize = ENTRIES;

    fn encode(level: u64, link: u64, entries: &[Entry]) -> Vec<u8> {
        const { Self::GEOMETRY };
        assert!(entries.len() <= Self::CAPACITY);
        encode(&[entries.len() as u64, link, 0, meta(MAGIC, level)], entries)
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

    /// Every word that differs: nothing else would bring it about.
    fn plan<'a, M: Medium>(node: View<'a, M>, image: &Image, changes: &mut Changes<'a>) {
        plan_words(node, Self::words_of(image), changes);
    }

    /// ```text
    /// W words that differ: none if the transaction has stored what was planned
    /// F their lines
    /// ```
    fn settle<M: Medium>(node: View<'_, M>, image: &Image) {
        settle_words(node, Self::words_of(image));
    }
}

impl<const NODE: usize> Linked for Sorted<NODE> {
    const LINK: usize = LINK;
}

impl<const NODE: usize> Wordwise for Sorted<NODE> {
    /// ```text
    /// W entries from the last one to the rank, one place on; entry; count    in use
    /// ```
    #[inline(always)]
    fn insert<M: Medium>(node: View<'_, M>, rank: usize, entry: Entry, writer: &mut impl Writer) {
        let count = Self::count(node);
        assert!(count < Self::CAPACITY && rank <= count, "the caller has seen room");
        for index in (rank..count).rev() {
            Self::write(node, index + 1, node.entry(ENTRIES, index), writer);
        }
        Self::write(node, rank, entry, writer);
        writer.used(node.word(COUNT), count as u64 + 1);
    }

    /// ```text
    /// W entries behind the rank, one place back; count    in use
    /// ```
    #[inline(always)]
    fn remove<M: Medium>(node: View<'_, M>, at: Place, writer: &mut impl Writer) {
        let count = Self::count(node);
        assert!(at.rank < count, "what is removed is there");
        for index in at.rank + 1..count {
            Self::write(node, index - 1, node.entry(ENTRIES, index), writer);
        }
        writer.used(node.word(COUNT), count as u64 - 1);
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
