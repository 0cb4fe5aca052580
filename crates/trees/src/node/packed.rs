//! Packed: entries in the order in which they came, without gaps, so that their number says all.
//!
//! The block is that of `counted`, for leaves.
//!
//! 1. An entry from the count on is nobody's. So an insert moves nothing, and its count shows it.
//! 2. A remove moves the last entry into the gap.

use super::counted::{COUNT, Counted, ENTRIES, checked_count, words};
use super::{Image, Layout, SearchResult, Slot, SlotPos, View, Wordwise, Writer};
use crate::key::Entry;
use bristlecone_pmem::{Corrupt, Medium};
use core::cmp::Ordering;

/// Packed in nodes of `NODE` bytes; for leaves.
#[derive(Debug)]
pub struct Packed<const NODE: usize>;

impl<const NODE: usize> Counted for Packed<NODE> {
    const NODE: usize = NODE;
    const MAGIC: u64 = 0x6465_6b63_6170; // "packed"
    const IS_SORTED: bool = false;

    #[inline(always)]
    fn search<M: Medium>(
        node: View<'_, M>,
        mut order: impl FnMut(Entry) -> Result<Ordering, Corrupt>,
    ) -> Result<SearchResult, Corrupt> {
        let count = checked_count::<Self, M>(node)?;
        for index in 0..count {
            let entry = node.entry(ENTRIES, index);
            if order(entry)? == Ordering::Equal {
                return Ok(SearchResult::Found(SlotPos { index, rank: 0 }, entry));
            }
        }
        Ok(SearchResult::Absent(0))
    }

    /// Entries stay where they are, but those past the new count move into the gaps before it.
    fn words_of(image: &Image) -> impl IntoIterator<Item = (usize, u64)> {
        let count = image.slots.len();
        let stays = |index| image.slots.iter().any(|slot| slot.index == index);
        let mut gaps = (0..count).filter(move |&index| !stays(index));
        let place = move |slot: &Slot| {
            let mut moved =
                || gaps.next().expect("as many gaps before the count as entries past it");
            (if slot.index < count { slot.index } else { moved() }, slot.entry)
        };
        words(image.slots.iter().map(place), image)
    }
}

impl<const NODE: usize> Wordwise for Packed<NODE> {
    /// ```text
    /// W entry behind the last one    fresh
    /// W count                        in use
    /// ```
    #[inline(always)]
    fn insert<M: Medium>(node: View<'_, M>, _rank: usize, entry: Entry, writer: &mut impl Writer) {
        let count = Self::count(node);
        assert!(count < Self::CAPACITY, "the caller has seen room");
        writer.write_hidden(node.word(ENTRIES + 2 * count), entry.key);
        writer.write_hidden(node.word(ENTRIES + 2 * count + 1), entry.value);
        writer.write_visible(node.word(COUNT), count as u64 + 1);
    }

    /// ```text
    /// W last entry, into the gap     in use; nothing if the last one goes
    /// W count                        in use
    /// ```
    #[inline(always)]
    fn remove<M: Medium>(node: View<'_, M>, at: SlotPos, writer: &mut impl Writer) {
        let count = Self::count(node);
        assert!(at.index < count, "what is removed is there");
        if at.index + 1 < count {
            let last = node.entry(ENTRIES, count - 1);
            writer.write_visible(node.word(ENTRIES + 2 * at.index), last.key);
            writer.write_visible(node.word(ENTRIES + 2 * at.index + 1), last.value);
        }
        writer.write_visible(node.word(COUNT), count as u64 - 1);
    }
}
