//! Shifted: entries in key order, for inner nodes; inserts and removes shift them in place, and a
//! crash leaves each entry either whole or hidden.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | link | commit | leftmost child |
//! | 1 | 8 | spare | data | zero |
//! | 2 | 8 | latch | transient | unused: the parent has the lock |
//! | 3 | 8 | mark | data | magic number, level |
//! | 4.. | 16 each | entries | commit | separator word, child |
//!
//! The rules of [`ShiftedEntries`] say which entries count. While the latch is free all entries
//! before the null child do.

use super::{
    Changes, Entries, Image, InPlace, Layout, Linked, Ordered, SearchResult, ShiftedEntries, Slot,
    View, apply_words, find_ordered, level_of, mark, plan_words,
};
use crate::key::Entry;
use bristlecone_pmem::{Corrupt, Medium};
use core::cmp::Ordering;

const LINK: usize = 0;
const LATCH: usize = 2;
const MARK: usize = 3;
const ENTRIES: Entries = Entries::pairs(4);
/// The magic number of the layout: "shif" in ASCII.
const MAGIC: u64 = 0x6669_6873;

/// The shifted layout in nodes of `NODE` bytes.
#[derive(Debug)]
pub struct Shifted<const NODE: usize>;

impl<const NODE: usize> Shifted<NODE> {
    /// Yields the words of a node with the content `image`, with their indices.
    fn words_of(image: &Image) -> impl Iterator<Item = (usize, u64)> {
        let count = image.slots.len();
        let entries = image.slots.iter().enumerate();
        let entries = entries.flat_map(|(index, slot)| ENTRIES.words(index, slot.entry));
        let end = (count < Self::CAPACITY).then_some((ENTRIES.word(count) + 1, 0));
        entries.chain([(LINK, image.link)]).chain(end)
    }
}

impl<const NODE: usize> Layout for Shifted<NODE> {
    const BYTES: usize = NODE;
    const CAPACITY: usize = ENTRIES.capacity(NODE);
    const LATCH: usize = LATCH;
    const ENTRIES: Entries = ENTRIES;

    /// Returns the bytes of the whole node, because a null child ends the entries.
    fn encode(level: u64, link: u64, entries: &[Entry]) -> Vec<u8> {
        assert!(entries.len() <= Self::CAPACITY);
        let mut image = vec![0; NODE / 8];
        image[LINK] = link;
        image[MARK] = mark(MAGIC, level);
        for (pair, entry) in image[ENTRIES.word(0)..].chunks_exact_mut(2).zip(entries) {
            pair.copy_from_slice(&[entry.key, entry.value]);
        }
        image.into_iter().flat_map(u64::to_le_bytes).collect()
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
        Self::entries(node).count()
    }

    #[inline(always)]
    fn find<M: Medium>(
        node: View<'_, M>,
        order: impl FnMut(Entry) -> Result<Ordering, Corrupt>,
    ) -> Result<SearchResult, Corrupt> {
        find_ordered::<Self, M>(node, order)
    }

    fn slot_indices<M: Medium>(node: View<'_, M>) -> Result<Vec<usize>, Corrupt> {
        let (entries, count) = (Self::entries(node), Self::count(node));
        for index in 0..count {
            let child = entries.child(index);
            if child == entries.child_before(index) {
                let word = ENTRIES.word(index) + 1;
                return Err(node.corrupt(word, "child of two entries of a node", 0, child));
            }
        }
        Ok((0..count).collect())
    }

    fn is_sorted<M: Medium>(_: View<'_, M>) -> bool {
        true
    }

    /// Does nothing: behind the entries every child shows, so the transaction carries all words
    /// that differ.
    fn write_free_slots<M: Medium>(_: View<'_, M>, _: &[Slot]) {}

    fn plan<'a, M: Medium>(node: View<'a, M>, image: &Image, changes: &mut Changes<'a>) {
        plan_words(node, Self::words_of(image), changes);
    }

    /// ```text
    /// W words that differ: none if the transaction stored the planned words
    /// F their lines
    /// ```
    fn apply<M: Medium>(node: View<'_, M>, image: &Image) {
        apply_words(node, Self::words_of(image));
    }
}

impl<const NODE: usize> Linked for Shifted<NODE> {
    const LINK: usize = LINK;
}

impl<const NODE: usize> Ordered for Shifted<NODE> {
    /// Searches from the left, as published.
    #[inline(always)]
    fn partition<M: Medium>(
        node: View<'_, M>,
        mut before: impl FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<usize, Corrupt> {
        for index in 0..Self::CAPACITY {
            let entry = node.entry(ENTRIES, index);
            if entry.value == 0 || !before(entry)? {
                return Ok(index);
            }
        }
        Ok(Self::CAPACITY)
    }

    #[inline(always)]
    fn nth<M: Medium>(node: View<'_, M>, rank: usize) -> Result<Slot, Corrupt> {
        if rank < Self::CAPACITY {
            let entry = node.entry(ENTRIES, rank);
            if entry.value != 0 {
                return Ok(Slot { index: rank, entry });
            }
        }
        Err(node.corrupt(LINK, "number of entries of a node", rank as u64 + 1, 0))
    }
}

impl<const NODE: usize> InPlace for Shifted<NODE> {
    #[inline(always)]
    fn entries<M: Medium>(node: View<'_, M>) -> ShiftedEntries<'_, M> {
        ShiftedEntries::new(node.medium(), node.words(), ENTRIES.word(0))
    }
}
