//! Sorted: entries in key order without gaps; inserts and removes shift them, a word at a time.
//!
//! The fields are those of `counted`. A search goes by halves ([`Sorted`]) or from the front
//! ([`LinearSorted`]).

use super::counted::{COUNT, Counted, checked_count, words};
use super::{
    Image, Layout, Ordered, SearchResult, Slot, SlotPos, View, Wordwise, Writer, bisect,
    find_ordered, sized_magic,
};
use crate::key::Entry;
use bristlecone_pmem::{Corrupt, Medium, PmWord};
use core::cmp::Ordering;
use core::marker::PhantomData;

/// The sorted layout in nodes of `NODE` bytes, searched by halves.
pub type Sorted<const NODE: usize> = SortedLayout<NODE, Halves, { Entry::WORDS }>;
/// The sorted layout in nodes of `NODE` bytes, with entries of 32 B, searched from the front.
pub type LinearSorted<const NODE: usize> = SortedLayout<NODE, FromFront, { Entry::WIDE_WORDS }>;

/// The sorted layout in nodes of `NODE` bytes, with the search `S` and entries of `ENTRY_WORDS`
/// words.
#[derive(Debug)]
pub struct SortedLayout<const NODE: usize, S, const ENTRY_WORDS: usize>(PhantomData<S>);

/// The search of a sorted node.
pub trait SortedSearch: Send + Sync + 'static {
    /// Returns the first number in `0..count` for which `before` is `false`, or `count`.
    ///
    /// # Errors
    /// `before` fails.
    fn first_not(
        count: usize,
        before: impl FnMut(usize) -> Result<bool, Corrupt>,
    ) -> Result<usize, Corrupt>;
}

/// The search by halves.
#[derive(Debug)]
pub struct Halves;

impl SortedSearch for Halves {
    #[inline(always)]
    fn first_not(
        count: usize,
        before: impl FnMut(usize) -> Result<bool, Corrupt>,
    ) -> Result<usize, Corrupt> {
        bisect(count, before)
    }
}

/// The search that compares entry by entry from the front, and ends at the first one that is not
/// before the key.
#[derive(Debug)]
pub struct FromFront;

impl SortedSearch for FromFront {
    #[inline(always)]
    fn first_not(
        count: usize,
        mut before: impl FnMut(usize) -> Result<bool, Corrupt>,
    ) -> Result<usize, Corrupt> {
        for index in 0..count {
            if !before(index)? {
                return Ok(index);
            }
        }
        Ok(count)
    }
}

impl<const NODE: usize, S: SortedSearch, const ENTRY_WORDS: usize>
    SortedLayout<NODE, S, ENTRY_WORDS>
{
    #[inline(always)]
    fn write<M: Medium>(node: View<'_, M>, index: usize, entry: Entry, writer: &mut impl Writer) {
        for (word, value) in Self::ENTRIES.words(index, entry) {
            writer.write_visible(node.word(word), value);
        }
    }
}

impl<const NODE: usize, S: SortedSearch, const ENTRY_WORDS: usize> Counted
    for SortedLayout<NODE, S, ENTRY_WORDS>
{
    const NODE: usize = NODE;
    const ENTRY_WORDS: usize = ENTRY_WORDS;
    const MAGIC: u64 = sized_magic(0x6f73, ENTRY_WORDS); // "so"
    const IS_SORTED: bool = true;

    #[inline(always)]
    fn search<M: Medium>(
        node: View<'_, M>,
        order: impl FnMut(Entry) -> Result<Ordering, Corrupt>,
    ) -> Result<SearchResult, Corrupt> {
        find_ordered::<Self, M>(node, order)
    }

    fn words_of(image: &Image) -> impl IntoIterator<Item = (usize, u64)> {
        words::<Self>(image.slots.iter().map(|slot| slot.entry).enumerate(), image)
    }
}

impl<const NODE: usize, S: SortedSearch, const ENTRY_WORDS: usize> Wordwise
    for SortedLayout<NODE, S, ENTRY_WORDS>
{
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
            Self::write(node, index + 1, node.entry(Self::ENTRIES, index), writer);
        }
        Self::write(node, rank, entry, writer);
        (node.word(COUNT), node.load(COUNT) + 1)
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
            Self::write(node, index - 1, node.entry(Self::ENTRIES, index), writer);
        }
        (node.word(COUNT), node.load(COUNT) - 1)
    }
}

impl<const NODE: usize, S: SortedSearch, const ENTRY_WORDS: usize> Ordered
    for SortedLayout<NODE, S, ENTRY_WORDS>
{
    #[inline(always)]
    fn partition<M: Medium>(
        node: View<'_, M>,
        mut before: impl FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<usize, Corrupt> {
        let count = checked_count::<Self, M>(node)?;
        S::first_not(count, |rank| before(node.entry(Self::ENTRIES, rank)))
    }

    #[inline(always)]
    fn nth<M: Medium>(node: View<'_, M>, rank: usize) -> Result<Slot, Corrupt> {
        let count = checked_count::<Self, M>(node)?;
        if rank >= count {
            let (expected, found) = (rank as u64 + 1, count as u64);
            return Err(node.corrupt(COUNT, "number of entries of a node", expected, found));
        }
        Ok(Slot { index: rank, entry: node.entry(Self::ENTRIES, rank) })
    }
}
