//! Sorted: entries in key order without gaps; inserts and removes shift them, a word at a time.
//!
//! The fields are those of `counted`.

use super::counted::{COUNT, Counted, ENTRIES, checked_count, words};
use super::{
    Image, Layout, Ordered, SearchResult, Slot, SlotPos, View, Wordwise, Writer, bisect,
    find_ordered,
};
use crate::key::Entry;
use bristlecone_pmem::{Corrupt, Medium, PmWord};
use core::cmp::Ordering;

/// The sorted layout in nodes of `NODE` bytes.
#[derive(Debug)]
pub struct Sorted<const NODE: usize>;

impl<const NODE: usize> Sorted<NODE> {
    #[inline(always)]
    fn write<M: Medium>(node: View<'_, M>, index: usize, entry: Entry, writer: &mut impl Writer) {
        let at = ENTRIES + 2 * index;
        writer.write_visible(node.word(at), entry.key);
        writer.write_visible(node.word(at + 1), entry.value);
    }
}

impl<const NODE: usize> Counted for Sorted<NODE> {
    const NODE: usize = NODE;
    const MAGIC: u64 = 0x6465_7472_6f73; // "sorted"
    const IS_SORTED: bool = true;

    #[inline(always)]
    fn search<M: Medium>(
        node: View<'_, M>,
        order: impl FnMut(Entry) -> Result<Ordering, Corrupt>,
    ) -> Result<SearchResult, Corrupt> {
        find_ordered::<Self, M>(node, order)
    }

    fn words_of(image: &Image) -> impl IntoIterator<Item = (usize, u64)> {
        words(image.slots.iter().map(|slot| slot.entry).enumerate(), image)
    }
}

impl<const NODE: usize> Wordwise for Sorted<NODE> {
    /// ```text
    /// W entries from the last one to the rank, each one slot up; entry    visible; count    last
    /// ```
    #[inline(always)]
    fn insert<'a, M: Medium>(
        node: View<'a, M>,
        rank: usize,
        entry: Entry,
        writer: &mut impl Writer,
    ) -> (&'a PmWord, u64) {
        let count = Self::count(node);
        assert!(count < Self::CAPACITY && rank <= count, "the caller checked for a free slot");
        for index in (rank..count).rev() {
            Self::write(node, index + 1, node.entry(ENTRIES, index), writer);
        }
        Self::write(node, rank, entry, writer);
        (node.word(COUNT), count as u64 + 1)
    }

    /// ```text
    /// W entries after the rank, each one slot down    visible; count    last
    /// ```
    #[inline(always)]
    fn remove<'a, M: Medium>(
        node: View<'a, M>,
        at: SlotPos,
        writer: &mut impl Writer,
    ) -> (&'a PmWord, u64) {
        let count = Self::count(node);
        assert!(at.rank < count, "the entry to remove exists");
        for index in at.rank + 1..count {
            Self::write(node, index - 1, node.entry(ENTRIES, index), writer);
        }
        (node.word(COUNT), count as u64 - 1)
    }
}

impl<const NODE: usize> Ordered for Sorted<NODE> {
    #[inline(always)]
    fn partition<M: Medium>(
        node: View<'_, M>,
        mut before: impl FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<usize, Corrupt> {
        let count = checked_count::<Self, M>(node)?;
        bisect(count, |rank| before(node.entry(ENTRIES, rank)))
    }

    #[inline(always)]
    fn nth<M: Medium>(node: View<'_, M>, rank: usize) -> Result<Slot, Corrupt> {
        let count = checked_count::<Self, M>(node)?;
        if rank >= count {
            let (expected, found) = (rank as u64 + 1, count as u64);
            return Err(node.corrupt(COUNT, "number of entries of a node", expected, found));
        }
        Ok(Slot { index: rank, entry: node.entry(ENTRIES, rank) })
    }
}
