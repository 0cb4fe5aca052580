//! Packed: entries in the order of their insertion, without gaps.
//!
//! The fields are those of `counted`; the layout is for leaves.
//!
//! 1. An entry at or after the count is free. So an insert moves no entry, and the new count makes
//!    it visible.
//! 2. A remove moves the last entry into the gap.

use super::counted::{COUNT, Counted, checked_count, words};
use super::{Image, Layout, SearchResult, Slot, SlotPos, View, Wordwise, Writer};
use crate::key::Entry;
use bristlecone_pmem::{Corrupt, Medium, PmWord};
use core::cmp::Ordering;

/// The packed layout in nodes of `NODE` bytes; for leaves.
#[derive(Debug)]
pub struct Packed<const NODE: usize>;

impl<const NODE: usize> Counted for Packed<NODE> {
    const NODE: usize = NODE;
    const MAGIC: u64 = 0x0063_6170; // "pac"
    const IS_SORTED: bool = false;

    #[inline(always)]
    fn search<M: Medium>(
        node: View<'_, M>,
        mut order: impl FnMut(Entry) -> Result<Ordering, Corrupt>,
    ) -> Result<SearchResult, Corrupt> {
        let count = checked_count::<Self, M>(node)?;
        for index in 0..count {
            let entry = node.entry(Self::ENTRIES, index);
            if order(entry)? == Ordering::Equal {
                return Ok(SearchResult::Found(SlotPos { index, rank: 0 }, entry));
            }
        }
        Ok(SearchResult::Absent(0))
    }

    /// Yields the words. An entry keeps its place, unless that is behind the count: a split has
    /// left gaps, into which such entries move.
    fn words_of(image: &Image) -> impl IntoIterator<Item = (usize, u64)> {
        let count = image.slots.len();
        let is_gap = |&place: &usize| image.slots.iter().all(|slot| slot.index != place);
        let mut gaps = (0..count).filter(is_gap);
        let place = move |slot: &Slot| {
            let stays = slot.index < count;
            let gap = if stays { None } else { gaps.next() };
            (gap.unwrap_or(slot.index), slot.entry)
        };
        words::<Self>(image.slots.iter().map(place), image)
    }
}

impl<const NODE: usize> Wordwise for Packed<NODE> {
    /// ```text
    /// W entry after the last one    hidden
    /// W count                       last
    /// ```
    #[inline(always)]
    fn insert<'a, M: Medium>(
        node: View<'a, M>,
        _rank: usize,
        entry: Entry,
        writer: &mut impl Writer,
    ) -> (&'a PmWord, u64) {
        let count = Self::count(node);
        assert!(count < Self::CAPACITY, "the caller checked for a free slot");
        writer.write_hidden(node.word(Self::ENTRIES.word(count)), entry.key);
        writer.write_hidden(node.word(Self::ENTRIES.word(count) + 1), entry.value);
        (node.word(COUNT), node.load(COUNT) + 1)
    }

    /// ```text
    /// W last entry, into the gap    visible; nothing if the last entry goes
    /// W count                       last
    /// ```
    #[inline(always)]
    fn remove<'a, M: Medium>(
        node: View<'a, M>,
        at: SlotPos,
        writer: &mut impl Writer,
    ) -> (&'a PmWord, u64) {
        let count = Self::count(node);
        assert!(at.index < count, "the entry to remove exists");
        if at.index + 1 < count {
            let last = node.entry(Self::ENTRIES, count - 1);
            writer.write_visible(node.word(Self::ENTRIES.word(at.index)), last.key);
            writer.write_visible(node.word(Self::ENTRIES.word(at.index) + 1), last.value);
        }
        (node.word(COUNT), node.load(COUNT) - 1)
    }
}
