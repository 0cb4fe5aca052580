//! Bitmap alone: unsorted entries in any slot, and a bitmap that marks the valid ones.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | bitmap | commit | bit i: entry i is valid; [mark](super::header) |
//! | 1 | 8 | link, latch | data, transient | next leaf; [latch](super::header) |
//! | 2.. | 16 each | entries | data | key word, value word |
//! | 4.. | or 32 each | entries | data | key word, value word, padding |
//!
//! 1. An entry is durable before its bit is set, so nothing relies on the order in which the words
//!    of a line persist.
//! 2. A slot is used again only after the store that cleared its bit is durable.

use super::header::{self, BITS_MAX, LINK, Mark};
use super::{
    Atomic, Changes, Entries, Image, Layout, Linked, SearchResult, SlotPos, View, Wordwise, Writer,
    encode, sized_magic,
};
use crate::key::Entry;
use bristlecone_pmem::sync::LatchBits;
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmWord};
use core::cmp::Ordering;

/// The bitmap layout in nodes of `NODE` bytes, with entries of `ENTRY_WORDS` words; for leaves.
#[derive(Debug)]
pub struct Bitmap<const NODE: usize, const ENTRY_WORDS: usize = { Entry::WORDS }>;

/// The bitmap layout with entries of 32 B.
pub type WideBitmap<const NODE: usize> = Bitmap<NODE, { Entry::WIDE_WORDS }>;

const COMMIT: usize = 0;
/// The name of the layout: "bi" in ASCII.
const NAME: u64 = 0x6962;

impl<const NODE: usize, const ENTRY_WORDS: usize> Bitmap<NODE, ENTRY_WORDS> {
    const MARK: Mark = Mark::new(Self::CAPACITY, sized_magic(NAME, ENTRY_WORDS));
    const BITS: u64 = u64::MAX >> (64 - Self::CAPACITY);
    const GEOMETRY: () = assert!(NODE.is_multiple_of(64) && Self::CAPACITY >= 3);

    fn bits(image: &Image) -> u64 {
        image.slots.iter().fold(Self::MARK.at(image.level), |bits, slot| bits | 1 << slot.index)
    }

    fn commit<M: Medium>(node: View<'_, M>, bitmap: u64, fenced: Fenced) -> Fenced {
        node.medium().commit(node.word(COMMIT), bitmap, fenced);
        node.persist(COMMIT..=COMMIT)
    }
}

impl<const NODE: usize, const ENTRY_WORDS: usize> Layout for Bitmap<NODE, ENTRY_WORDS> {
    const BYTES: usize = NODE;
    const CAPACITY: usize = {
        let fits = Self::ENTRIES.capacity(NODE);
        if fits < BITS_MAX { fits } else { BITS_MAX }
    };
    const LATCH: usize = LINK;
    const LATCH_BITS: LatchBits = LatchBits::BesideLink;
    const OFFSET_MAX: u64 = header::offset_max(NODE);
    const ENTRIES: Entries = Entries::new(ENTRY_WORDS, ENTRY_WORDS);

    fn encode(level: u64, link: u64, entries: &[Entry]) -> Vec<u8> {
        const { Self::GEOMETRY };
        assert!(entries.len() <= Self::CAPACITY);
        let bitmap = u64::MAX.checked_shr(64 - entries.len() as u32).unwrap_or(0);
        let bitmap = Self::MARK.at(level) | bitmap;
        let mut header = vec![bitmap, header::link_bits(link, NODE)];
        header.resize(ENTRY_WORDS, 0);
        encode(&header, Self::ENTRIES, entries)
    }

    #[inline(always)]
    fn level<M: Medium>(node: View<'_, M>) -> Result<u64, Corrupt> {
        Self::MARK.level_of(node, NODE)
    }

    #[inline(always)]
    fn link<M: Medium>(node: View<'_, M>) -> u64 {
        header::link_of(node, NODE)
    }

    #[inline(always)]
    fn count<M: Medium>(node: View<'_, M>) -> usize {
        (node.load(COMMIT) & Self::BITS).count_ones() as usize
    }

    #[inline(always)]
    fn find<M: Medium>(
        node: View<'_, M>,
        mut order: impl FnMut(Entry) -> Result<Ordering, Corrupt>,
    ) -> Result<SearchResult, Corrupt> {
        let mut left = node.load(COMMIT) & Self::BITS;
        while left != 0 {
            let index = left.trailing_zeros() as usize;
            let entry = node.entry(Self::ENTRIES, index);
            if order(entry)? == Ordering::Equal {
                return Ok(SearchResult::Found(SlotPos { index, rank: 0 }, entry));
            }
            left &= left - 1;
        }
        Ok(SearchResult::Absent(0))
    }

    fn slot_indices<M: Medium>(node: View<'_, M>) -> Result<Vec<usize>, Corrupt> {
        let bitmap = node.load(COMMIT) & Self::MARK.own;
        if bitmap & !Self::BITS != 0 {
            return Err(node.corrupt(
                COMMIT,
                "bitmap of a node with bits beyond the last entry",
                Self::BITS,
                bitmap,
            ));
        }
        Ok((0..Self::CAPACITY).filter(|index| bitmap >> index & 1 == 1).collect())
    }

    fn is_sorted<M: Medium>(_: View<'_, M>) -> bool {
        false
    }

    fn plan<'a, M: Medium>(node: View<'a, M>, image: &Image, changes: &mut Changes<'a>) {
        changes.push((node.word(COMMIT), Self::bits(image)));
        if image.link != Self::link(node) {
            changes.push((node.word(LINK), header::link_word(node, image.link, NODE)));
        }
    }

    /// ```text
    /// W link, bitmap    the words that the log holds
    /// F their line
    /// ```
    fn apply<M: Medium>(node: View<'_, M>, image: &Image) {
        if image.link != Self::link(node) {
            node.store(LINK, header::link_word(node, image.link, NODE));
        }
        node.store(COMMIT, Self::bits(image));
        node.flush(COMMIT..=LINK);
    }
}

impl<const NODE: usize, const ENTRY_WORDS: usize> Atomic for Bitmap<NODE, ENTRY_WORDS> {
    /// ```text
    /// W entry      1 line    crash before C: the entry is invisible (1)
    /// F entry |
    /// C bitmap     8 B
    /// F bitmap |   -> durable    budget: 2 lines, 2 fences
    /// ```
    fn insert<M: Medium>(node: View<'_, M>, _rank: usize, entry: Entry) -> Fenced {
        let bitmap = node.load(COMMIT);
        let index = bitmap.trailing_ones() as usize;
        assert!(index < Self::CAPACITY, "the caller checked for a free slot");
        if M::INJECTS_DEFECTS && node.medium().injects(Defect::TokenFirst) {
            node.store(COMMIT, bitmap | 1 << index);
            let _ = node.persist(COMMIT..=COMMIT);
            node.store_entry(Self::ENTRIES, index, entry);
            let word = Self::ENTRIES.word(index);
            return node.persist(word..=word);
        }
        node.store_entry(Self::ENTRIES, index, entry);
        let word = Self::ENTRIES.word(index);
        let fenced = node.persist(word..=word);
        Self::commit(node, bitmap | 1 << index, fenced)
    }

    /// ```text
    /// C bitmap     8 B
    /// F bitmap |   -> durable    budget: 1 line, 1 fence
    /// ```
    fn remove<M: Medium>(node: View<'_, M>, at: SlotPos) -> Fenced {
        let bitmap = node.load(COMMIT);
        assert!(bitmap >> at.index & 1 == 1, "the entry to remove exists");
        node.store(COMMIT, bitmap & !(1 << at.index));
        node.persist(COMMIT..=COMMIT)
    }
}

impl<const NODE: usize, const ENTRY_WORDS: usize> Linked for Bitmap<NODE, ENTRY_WORDS> {
    const LINK: usize = LINK;

    fn link_word<M: Medium>(node: View<'_, M>, link: u64) -> u64 {
        header::link_word(node, link, NODE)
    }
}

impl<const NODE: usize, const ENTRY_WORDS: usize> Wordwise for Bitmap<NODE, ENTRY_WORDS> {
    /// ```text
    /// W entry      hidden
    /// W bitmap     last
    /// ```
    fn insert<'a, M: Medium>(
        node: View<'a, M>,
        _rank: usize,
        entry: Entry,
        writer: &mut impl Writer,
    ) -> (&'a PmWord, u64) {
        let bitmap = node.load(COMMIT);
        let index = bitmap.trailing_ones() as usize;
        assert!(index < Self::CAPACITY, "the caller checked for a free slot");
        for (word, value) in Self::ENTRIES.words(index, entry) {
            writer.write_hidden(node.word(word), value);
        }
        (node.word(COMMIT), bitmap | 1 << index)
    }

    /// ```text
    /// W bitmap     last
    /// ```
    fn remove<'a, M: Medium>(
        node: View<'a, M>,
        at: SlotPos,
        _writer: &mut impl Writer,
    ) -> (&'a PmWord, u64) {
        let bitmap = node.load(COMMIT);
        assert!(bitmap >> at.index & 1 == 1, "the entry to remove exists");
        (node.word(COMMIT), bitmap & !(1 << at.index))
    }
}
