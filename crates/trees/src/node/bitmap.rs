//! Bitmap alone: unsorted entries in any slot, and a bitmap that marks the valid ones.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | bitmap | commit | bit i: entry i is valid |
//! | 1 | 8 | link | data | next leaf |
//! | 2 | 8 | latch | transient | version |
//! | 3 | 8 | mark | data | magic number, level |
//! | 4.. | 16 each | entries | data | key word, value word |
//!
//! 1. An entry is durable before its bit is set, so nothing relies on the order in which the words
//!    of a line persist.
//! 2. A slot is used again only after the store that cleared its bit is durable.

use super::{
    Atomic, Changes, Image, Layout, Linked, SearchResult, SlotPos, View, Wordwise, Writer, encode,
    level_of, mark,
};
use crate::key::Entry;
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmWord};
use core::cmp::Ordering;

/// The bitmap layout in nodes of `NODE` bytes; for leaves.
#[derive(Debug)]
pub struct Bitmap<const NODE: usize>;

const COMMIT: usize = 0;
const LINK: usize = 1;
const LATCH: usize = 2;
const MARK: usize = 3;
const ENTRIES: usize = 4;
/// The magic number of the layout: "bitmap" in ASCII.
const MAGIC: u64 = 0x7061_6d74_6962;

impl<const NODE: usize> Bitmap<NODE> {
    const BITS: u64 = u64::MAX >> (64 - Self::CAPACITY);
    const GEOMETRY: () = assert!(
        NODE.is_multiple_of(64)
            && Self::CAPACITY >= 4
            && Self::CAPACITY <= 64
            && (ENTRIES + 2 * Self::CAPACITY) * 8 <= NODE
    );

    fn bits(image: &Image) -> u64 {
        image.slots.iter().fold(0, |bits, slot| bits | 1 << slot.index)
    }

    fn commit<M: Medium>(node: View<'_, M>, bitmap: u64, fenced: Fenced) -> Fenced {
        node.medium().commit(node.word(COMMIT), bitmap, fenced);
        node.persist(COMMIT..=COMMIT)
    }
}

impl<const NODE: usize> Layout for Bitmap<NODE> {
    const BYTES: usize = NODE;
    const CAPACITY: usize = (NODE / 8 - ENTRIES) / 2;
    const LATCH: usize = LATCH;
    const ENTRIES: usize = ENTRIES;

    fn encode(level: u64, link: u64, entries: &[Entry]) -> Vec<u8> {
        const { Self::GEOMETRY };
        assert!(entries.len() <= Self::CAPACITY);
        let bitmap = u64::MAX.checked_shr(64 - entries.len() as u32).unwrap_or(0);
        let header = [bitmap, link, 0, mark(MAGIC, level)];
        encode(&header, entries)
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
            let entry = node.entry(ENTRIES, index);
            if order(entry)? == Ordering::Equal {
                return Ok(SearchResult::Found(SlotPos { index, rank: 0 }, entry));
            }
            left &= left - 1;
        }
        Ok(SearchResult::Absent(0))
    }

    fn slot_indices<M: Medium>(node: View<'_, M>) -> Result<Vec<usize>, Corrupt> {
        let bitmap = node.load(COMMIT);
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
        if node.load(LINK) != image.link {
            changes.push((node.word(LINK), image.link));
        }
    }

    /// ```text
    /// W link, bitmap    the words that the log holds
    /// F their line
    /// ```
    fn apply<M: Medium>(node: View<'_, M>, image: &Image) {
        if node.load(LINK) != image.link {
            node.store(LINK, image.link);
        }
        node.store(COMMIT, Self::bits(image));
        node.flush(COMMIT..=LINK);
    }
}

impl<const NODE: usize> Atomic for Bitmap<NODE> {
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
            node.store_entry(ENTRIES, index, entry);
            return node.persist(ENTRIES + 2 * index..=ENTRIES + 2 * index);
        }
        node.store_entry(ENTRIES, index, entry);
        let word = ENTRIES + 2 * index;
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

impl<const NODE: usize> Linked for Bitmap<NODE> {
    const LINK: usize = LINK;
}

impl<const NODE: usize> Wordwise for Bitmap<NODE> {
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
        writer.write_hidden(node.word(ENTRIES + 2 * index), entry.key);
        writer.write_hidden(node.word(ENTRIES + 2 * index + 1), entry.value);
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
