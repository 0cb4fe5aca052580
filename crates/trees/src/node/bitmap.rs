//! Bitmap alone: unsorted entries in any slot, and a bitmap that marks the valid ones.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | bitmap | commit | bit i: entry i is valid; [mark](super::header) |
//! | 1 | 8 | link, latch | data, transient | next leaf; [latch](super::header) |
//! | 2.. | 16 each | entries | data | key word, value word |
//!
//! With entries of 32 B:
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 2 | 16 | long bitmap | commit | in a node of 2 or 4 KiB, in place of that in word 0 |
//! | 4.. | 32 each | entries | data | key word, value word, padding |
//!
//! 1. An entry is durable before its bit is set, so nothing relies on the order in which the words
//!    of a line persist.
//! 2. A slot is used again only after the store that cleared its bit is durable.
//! 3. An insert or a remove changes one word of the bitmap.

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
/// The first word of a bitmap that is too long for word 0.
const LONG: usize = 2;
/// The most bits of such a bitmap, which ends where the entries begin.
const LONG_BITS_MAX: usize = 64 * (Entry::WIDE_WORDS - LONG);
/// The name of the layout: "bi" in ASCII.
const NAME: u64 = 0x6962;

impl<const NODE: usize, const ENTRY_WORDS: usize> Bitmap<NODE, ENTRY_WORDS> {
    /// `true` if the bitmap lies in words of its own.
    const IS_LONG: bool =
        ENTRY_WORDS == Entry::WIDE_WORDS && Self::ENTRIES.capacity(NODE) > BITS_MAX;
    /// The number of words of the bitmap.
    const PARTS: usize = if Self::IS_LONG { Self::CAPACITY.div_ceil(64) } else { 1 };
    const MARK: Mark =
        Mark::new(if Self::IS_LONG { 0 } else { Self::CAPACITY }, sized_magic(NAME, ENTRY_WORDS));
    const GEOMETRY: () = assert!(NODE.is_multiple_of(64) && Self::CAPACITY >= 3);

    /// Returns the index of word `part` of the bitmap.
    #[inline(always)]
    const fn word(part: usize) -> usize {
        if Self::IS_LONG { LONG + part } else { COMMIT }
    }

    /// Returns the mask of the entries' bits in word `part` of the bitmap.
    #[inline(always)]
    const fn bits(part: usize) -> u64 {
        let left = Self::CAPACITY - 64 * part;
        if left < 64 { (1 << left) - 1 } else { u64::MAX }
    }

    /// Returns what the words of the bitmap have beside the entries' bits.
    const fn mark(level: u64) -> u64 {
        if Self::IS_LONG { 0 } else { Self::MARK.at(level) }
    }

    /// Returns word `part` of the bitmap of `image`.
    fn bitmap_of(image: &Image, part: usize) -> u64 {
        let those = image.slots.iter().filter(|slot| slot.index / 64 == part);
        those.fold(Self::mark(image.level), |bits, slot| bits | 1 << (slot.index % 64))
    }

    /// Returns the word with the bit of the first free slot, its value, and the slot.
    fn first_free<M: Medium>(node: View<'_, M>) -> (usize, u64, usize) {
        for part in 0..Self::PARTS {
            let bitmap = node.load(Self::word(part));
            let index = 64 * part + bitmap.trailing_ones() as usize;
            if index < Self::CAPACITY.min(64 * (part + 1)) {
                return (Self::word(part), bitmap, index);
            }
        }
        unreachable!("the caller checked for a free slot")
    }

    /// Returns the word with the bit of a slot that has an entry, and the value without that bit.
    fn without<M: Medium>(node: View<'_, M>, index: usize) -> (usize, u64) {
        let (word, bit) = (Self::word(index / 64), 1 << (index % 64));
        let bitmap = node.load(word);
        assert!(bitmap & bit != 0, "the entry to remove exists");
        (word, bitmap & !bit)
    }
}

impl<const NODE: usize, const ENTRY_WORDS: usize> Layout for Bitmap<NODE, ENTRY_WORDS> {
    const BYTES: usize = NODE;
    const CAPACITY: usize = {
        let fits = Self::ENTRIES.capacity(NODE);
        let most = if Self::IS_LONG { LONG_BITS_MAX } else { BITS_MAX };
        if fits < most { fits } else { most }
    };
    const LATCH: usize = LINK;
    const LATCH_BITS: LatchBits = LatchBits::BesideLink;
    const OFFSET_MAX: u64 = header::offset_max(NODE);
    const ENTRIES: Entries = Entries::new(ENTRY_WORDS, ENTRY_WORDS);

    fn encode(level: u64, link: u64, entries: &[Entry]) -> Vec<u8> {
        const { Self::GEOMETRY };
        assert!(entries.len() <= Self::CAPACITY);
        let mut header = vec![Self::MARK.at(level), header::link_bits(link, NODE)];
        header.resize(ENTRY_WORDS, 0);
        for index in 0..entries.len() {
            header[Self::word(index / 64)] |= 1 << (index % 64);
        }
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
        let ones = |part| (node.load(Self::word(part)) & Self::bits(part)).count_ones() as usize;
        (0..Self::PARTS).map(ones).sum()
    }

    #[inline(always)]
    fn find<M: Medium>(
        node: View<'_, M>,
        mut order: impl FnMut(Entry) -> Result<Ordering, Corrupt>,
    ) -> Result<SearchResult, Corrupt> {
        for part in 0..Self::PARTS {
            let mut left = node.load(Self::word(part)) & Self::bits(part);
            while left != 0 {
                let index = 64 * part + left.trailing_zeros() as usize;
                let entry = node.entry(Self::ENTRIES, index);
                if order(entry)? == Ordering::Equal {
                    return Ok(SearchResult::Found(SlotPos { index, rank: 0 }, entry));
                }
                left &= left - 1;
            }
        }
        Ok(SearchResult::Absent(0))
    }

    fn slot_indices<M: Medium>(node: View<'_, M>) -> Result<Vec<usize>, Corrupt> {
        let own = if Self::IS_LONG { u64::MAX } else { Self::MARK.own };
        let mut indices = Vec::with_capacity(Self::CAPACITY);
        for part in 0..Self::PARTS {
            let (bitmap, bits) = (node.load(Self::word(part)) & own, Self::bits(part));
            if bitmap & !bits != 0 {
                let what = "bitmap of a node with bits beyond the last entry";
                return Err(node.corrupt(Self::word(part), what, bits, bitmap));
            }
            indices.extend((0..64).filter(|bit| bitmap >> bit & 1 == 1).map(|bit| 64 * part + bit));
        }
        Ok(indices)
    }

    fn is_sorted<M: Medium>(_: View<'_, M>) -> bool {
        false
    }

    fn plan<'a, M: Medium>(node: View<'a, M>, image: &Image, changes: &mut Changes<'a>) {
        for part in 0..Self::PARTS {
            changes.push((node.word(Self::word(part)), Self::bitmap_of(image, part)));
        }
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
        for part in 0..Self::PARTS {
            node.store(Self::word(part), Self::bitmap_of(image, part));
        }
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
        let (word, bitmap, index) = Self::first_free(node);
        let shown = bitmap | 1 << (index % 64);
        let at = Self::ENTRIES.word(index);
        if M::INJECTS_DEFECTS && node.medium().injects(Defect::TokenFirst) {
            node.store(word, shown);
            let _ = node.persist(word..=word);
            node.store_entry(Self::ENTRIES, index, entry);
            return node.persist(at..=at);
        }
        node.store_entry(Self::ENTRIES, index, entry);
        let fenced = node.persist(at..=at);
        node.medium().commit(node.word(word), shown, fenced);
        node.persist(word..=word)
    }

    /// ```text
    /// C bitmap     8 B
    /// F bitmap |   -> durable    budget: 1 line, 1 fence
    /// ```
    fn remove<M: Medium>(node: View<'_, M>, at: SlotPos) -> Fenced {
        let (word, bitmap) = Self::without(node, at.index);
        node.store(word, bitmap);
        node.persist(word..=word)
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
        let (at, bitmap, index) = Self::first_free(node);
        for (word, value) in Self::ENTRIES.words(index, entry) {
            writer.write_hidden(node.word(word), value);
        }
        (node.word(at), bitmap | 1 << (index % 64))
    }

    /// ```text
    /// W bitmap     last
    /// ```
    fn remove<'a, M: Medium>(
        node: View<'a, M>,
        at: SlotPos,
        _writer: &mut impl Writer,
    ) -> (&'a PmWord, u64) {
        let (word, bitmap) = Self::without(node, at.index);
        (node.word(word), bitmap)
    }
}
