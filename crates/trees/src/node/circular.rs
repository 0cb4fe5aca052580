//! Circular: entries in key order in a ring, of which an insert or a remove shifts the shorter
//! side. Leaves change failure-atomically; inner nodes change in transactions.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | head | commit | slot of the first entry (8 bits), number of entries (8), side (8) |
//! | 1 | 8 | link | commit | next leaf, or leftmost child |
//! | 2 | 8 | latch | transient | version |
//! | 3 | 8 | mark | data | magic number, level |
//! | 4.. | 16 each | slots | commit, data | key word; value word or child |
//!
//! The rules of the [circular leaf](crate::leaf::circular) say which entries are valid. While the
//! latch is free all entries are.

use super::{
    Atomic, Changes, Entries, Image, Layout, Linked, Ordered, SearchResult, Slot, SlotPos, View,
    apply_words, encode, find_ordered, level_of, mark, plan_words,
};
use crate::key::Entry;
use crate::leaf::circular::ring::{Ring, RingHead, Side};
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium};
use core::cmp::Ordering;

const HEAD: usize = 0;
const LINK: usize = 1;
const LATCH: usize = 2;
const MARK: usize = 3;
const SLOTS: usize = 4;
/// The magic number of the layout: "circ" in ASCII.
const MAGIC: u64 = 0x6372_6963;

/// The circular layout in nodes of `NODE` bytes.
#[derive(Debug)]
pub struct CircularNode<const NODE: usize>;

impl<const NODE: usize> CircularNode<NODE> {
    #[inline(always)]
    fn ring<M: Medium>(node: View<'_, M>) -> Ring<'_, M, NODE> {
        Ring { medium: node.medium(), words: node.words() }
    }

    #[inline(always)]
    fn checked_head<M: Medium>(node: View<'_, M>) -> Result<RingHead, Corrupt> {
        Self::ring(node).checked_head().ok_or_else(|| {
            let what = "head word of a circular node";
            node.corrupt(HEAD, what, Self::CAPACITY as u64, node.load(HEAD))
        })
    }

    /// Returns the words of a node with the content `image` whose first entry is in slot `base`,
    /// with their indices; the head comes last.
    fn words_from(base: usize, side: Side, image: &Image) -> Vec<(usize, u64)> {
        let head = RingHead { base, count: image.slots.len(), side };
        let mut words = Vec::with_capacity(2 * image.slots.len() + 2);
        for (index, Slot { entry, .. }) in image.slots.iter().enumerate() {
            let word = SLOTS + 2 * ((base + index) % Self::CAPACITY);
            words.extend([(word, entry.key), (word + 1, entry.value)]);
        }
        words.extend([(LINK, image.link), (HEAD, head.encode())]);
        words
    }

    /// Returns the words of a node with the content `image`, with their indices. The first entry
    /// stays where it is, or moves by one slot if fewer words differ then: the shorter side shifts.
    fn words_of<M: Medium>(node: View<'_, M>, image: &Image) -> Vec<(usize, u64)> {
        let RingHead { base, side, .. } = Self::ring(node).head();
        let last = Self::CAPACITY - 1;
        let bases = [base, (base + last) % Self::CAPACITY, (base + 1) % Self::CAPACITY];
        let words = bases.map(|base| Self::words_from(base, side, image));
        let different = |words: &Vec<(usize, u64)>| {
            words.iter().filter(|&&(word, value)| node.load(word) != value).count()
        };
        words.into_iter().min_by_key(different).expect("there are three")
    }
}

impl<const NODE: usize> Layout for CircularNode<NODE> {
    const BYTES: usize = NODE;
    const CAPACITY: usize = (NODE / 8 - SLOTS) / 2;
    const LATCH: usize = LATCH;
    const ENTRIES: Entries = Entries::pairs(SLOTS);

    fn encode(level: u64, link: u64, entries: &[Entry]) -> Vec<u8> {
        assert!(entries.len() <= Self::CAPACITY);
        let head = RingHead { base: 0, count: entries.len(), side: Side::Right };
        encode(&[head.encode(), link, 0, mark(MAGIC, level)], Self::ENTRIES, entries)
    }

    #[inline(always)]
    fn level<M: Medium>(node: View<'_, M>) -> Result<u64, Corrupt> {
        level_of(node, MARK, MAGIC)
    }

    #[inline(always)]
    fn link<M: Medium>(node: View<'_, M>) -> u64 {
        node.load(LINK)
    }

    #[inline(always)]
    fn count<M: Medium>(node: View<'_, M>) -> usize {
        Self::ring(node).head().count
    }

    #[inline(always)]
    fn find<M: Medium>(
        node: View<'_, M>,
        order: impl FnMut(Entry) -> Result<Ordering, Corrupt>,
    ) -> Result<SearchResult, Corrupt> {
        find_ordered::<Self, M>(node, order)
    }

    /// Returns the slots of the valid entries: a crash may have left a neighbour with the same key
    /// word.
    fn slot_indices<M: Medium>(node: View<'_, M>) -> Result<Vec<usize>, Corrupt> {
        let (ring, head) = (Self::ring(node), Self::checked_head(node)?);
        let invalid = ring.invalid_entry(head);
        let valid = (0..head.count).filter(|&index| Some(index) != invalid);
        Ok(valid.map(|index| Ring::<M, NODE>::slot(head, index)).collect())
    }

    fn is_sorted<M: Medium>(_: View<'_, M>) -> bool {
        true
    }

    /// Does nothing: which slots are free depends on the image, so the transaction carries all
    /// words that differ.
    fn write_free_slots<M: Medium>(_: View<'_, M>, _: &[Slot]) {}

    fn plan<'a, M: Medium>(node: View<'a, M>, image: &Image, changes: &mut Changes<'a>) {
        plan_words(node, Self::words_of(node, image), changes);
    }

    /// Adds nothing: [`plan`](Layout::plan) adds every word.
    fn plan_entry<'a, M: Medium>(_: View<'a, M>, _: Slot, _: &mut Changes<'a>) {}

    /// ```text
    /// W words that differ: none if the transaction stored the planned words
    /// F their lines
    /// ```
    fn apply<M: Medium>(node: View<'_, M>, image: &Image) {
        apply_words(node, Self::words_of(node, image));
    }

    fn needs_repair<M: Medium>(node: View<'_, M>) -> bool {
        if M::INJECTS_DEFECTS && node.medium().injects(Defect::RingTwinsKept) {
            return false;
        }
        let ring = Self::ring(node);
        ring.invalid_entry(ring.head()).is_some()
    }

    /// Completes the interrupted shift.
    ///
    /// Persist order: that of `Ring::remove`.
    fn repair<M: Medium>(node: View<'_, M>, _: &Image) {
        Self::ring(node).drop_duplicates();
    }
}

impl<const NODE: usize> Atomic for CircularNode<NODE> {
    /// Persist order: that of `Ring::insert`.
    #[inline(always)]
    fn insert<M: Medium>(node: View<'_, M>, rank: usize, entry: Entry) -> Fenced {
        Self::ring(node).insert(rank, entry)
    }

    /// Persist order: that of `Ring::remove`.
    #[inline(always)]
    fn remove<M: Medium>(node: View<'_, M>, at: SlotPos) -> Fenced {
        Self::ring(node).remove(at.rank)
    }
}

impl<const NODE: usize> Linked for CircularNode<NODE> {
    const LINK: usize = LINK;
}

impl<const NODE: usize> Ordered for CircularNode<NODE> {
    /// Searches from the first entry, as published.
    #[inline(always)]
    fn partition<M: Medium>(
        node: View<'_, M>,
        mut before: impl FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<usize, Corrupt> {
        let (ring, head) = (Self::ring(node), Self::checked_head(node)?);
        for rank in 0..head.count {
            if !before(ring.entry(Ring::<M, NODE>::slot(head, rank)))? {
                return Ok(rank);
            }
        }
        Ok(head.count)
    }

    #[inline(always)]
    fn nth<M: Medium>(node: View<'_, M>, rank: usize) -> Result<Slot, Corrupt> {
        let (ring, head) = (Self::ring(node), Self::checked_head(node)?);
        if rank >= head.count {
            let (expected, found) = (rank as u64 + 1, head.count as u64);
            return Err(node.corrupt(HEAD, "number of entries of a node", expected, found));
        }
        let index = Ring::<M, NODE>::slot(head, rank);
        Ok(Slot { index, entry: ring.entry(index) })
    }
}
