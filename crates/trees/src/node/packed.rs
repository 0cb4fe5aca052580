//! Packed: entries in the order in which they came, without gaps, so that their number says all.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | count | data | number of entries |
//! | 1 | 8 | link | data | next leaf |
//! | 2 | 8 | latch | transient | version |
//! | 3 | 8 | mark | data | magic number, level |
//! | 4.. | 16 each | entries | data | key word, value word |
//!
//! 1. An entry from the count on is nobody's. So an insert moves nothing, and its count shows it.
//! 2. A remove moves the last entry into the gap. Who writes the words sees to it that a crash leaves
//!    all of them or none.

use super::{
    Changes, Found, Image, Layout, Linked, Place, View, Wordwise, Writer, encode, level_of, meta,
    plan_words, settle_words,
};
use crate::key::Entry;
use bristlecone_pmem::{Corrupt, Medium};
use core::cmp::Ordering;

/// Packed in nodes of `NODE` bytes; for leaves.
#[derive(Debug)]
pub struct Packed<const NODE: usize>;

const COUNT: usize = 0;
const LINK: usize = 1;
const LATCH: usize = 2;
const META: usize = 3;
const ENTRIES: usize = 4;
/// "packed" in ASCII.
const MAGIC: u64 = 0x6465_6b63_6170;

impl<const NODE: usize> Packed<NODE> {
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

    /// The words of a node with that content: entries stay where they are, but those past the new
    /// count move into the gaps before it.
    fn words_of(image: &Image) -> Vec<(usize, u64)> {
        let count = image.slots.len();
        let stays = |index| image.slots.iter().any(|slot| slot.index == index);
        let mut gaps = (0..count).filter(|&index| !stays(index));
        let mut words = Vec::with_capacity(2 * count + 2);
        for slot in &image.slots {
            let mut moved =
                || gaps.next().expect("as many gaps before the count as entries past it");
            let index = if slot.index < count { slot.index } else { moved() };
            let at = ENTRIES + 2 * index;
            words.extend([(at, slot.entry.key), (at + 1, slot.entry.value)]);
        }
        words.extend([(LINK, image.link), (COUNT, count as u64)]);
        words
    }
}

impl<const NODE: usize> Layout for Packed<NODE> {
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
        mut order: impl FnMut(Entry) -> Result<Ordering, Corrupt>,
    ) -> Result<Found, Corrupt> {
        let count = Self::checked_count(node)?;
        for index in 0..count {
            let entry = node.entry(ENTRIES, index);
            if order(entry)? == Ordering::Equal {
                return Ok(Found::Here(Place { index, rank: 0 }, entry));
            }
        }
        Ok(Found::Absent(0))
    }

    fn places<M: Medium>(node: View<'_, M>) -> Result<Vec<usize>, Corrupt> {
        Ok((0..Self::checked_count(node)?).collect())
    }

    fn is_sorted<M: Medium>(_: View<'_, M>) -> bool {
        false
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

impl<const NODE: usize> Linked for Packed<NODE> {
    const LINK: usize = LINK;
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
        writer.fresh(node.word(ENTRIES + 2 * count), entry.key);
        writer.fresh(node.word(ENTRIES + 2 * count + 1), entry.value);
        writer.used(node.word(COUNT), count as u64 + 1);
    }

    /// ```text
    /// W last entry, into the gap     in use; nothing if the last one goes
    /// W count                        in use
    /// ```
    #[inline(always)]
    fn remove<M: Medium>(node: View<'_, M>, at: Place, writer: &mut impl Writer) {
        let count = Self::count(node);
        assert!(at.index < count, "what is removed is there");
        if at.index + 1 < count {
            let last = node.entry(ENTRIES, count - 1);
            writer.used(node.word(ENTRIES + 2 * at.index), last.key);
            writer.used(node.word(ENTRIES + 2 * at.index + 1), last.value);
        }
        writer.used(node.word(COUNT), count as u64 - 1);
    }
}
