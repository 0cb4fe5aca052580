//! Isle: pairs sorted within each line, lines in no order; the [leaf of
//! Isle-Tree](crate::leaf::isle) as a node layout, for leaves.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | link | data | next leaf |
//! | 1 | 8 | mark | data | magic number, level |
//! | 2 | 8 | latch | transient | version |
//! | 3.. | | count words | commit | see [`count_word`](crate::leaf::isle::count_word) |
//! | 7 | 8 | low | data | separator word of the low key, with counters alone; 0 in the first leaf |
//! | | 16 each | pairs | commit | key word, value word; four to a line |
//!
//! 1. The key words decide which pairs are valid, by the rules of the leaf. So no slot can hold a
//!    hidden key: nothing is written before the transaction, and the transaction carries every word
//!    that differs.
//! 2. In each line the entries of an [`Image`] that stay are the first ones, because a split
//!    removes the greatest keys. New entries are greater than all others and fill the ends of the
//!    lines.

use super::{
    Atomic, Changes, Entries, Image, Layout, Linked, LowKeyed, SearchResult, Slot, SlotPos, View,
    apply_words, level_of, mark, plan_words,
};
use crate::key::Entry;
use crate::leaf::isle::count_word::{CountWord, Counters};
use crate::leaf::isle::{COUNT_WORD, Isle, LATCH, LINES_MAX, LOW, NEXT};
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Fenced, Medium};
use core::cmp::Ordering;

const MARK: usize = LOW;
/// The index of the word of a node's low key, behind the counters.
const LOW_KEY: usize = LINE_WORDS - 1;
const _: () = assert!(COUNT_WORD + (LINES_MAX - 1).div_ceil(8) <= LOW_KEY);
/// The magic number of the layout: "isle" in ASCII.
const MAGIC: u64 = 0x656c_7369;

impl<T: CountWord, const NODE: usize> Isle<T, NODE> {
    /// Returns the word at which the entry of that index begins.
    #[inline(always)]
    const fn word_of(index: usize) -> usize {
        T::HEADER_WORDS + 2 * index
    }

    #[inline(always)]
    const fn index_of(word: usize) -> usize {
        (word - T::HEADER_WORDS) / 2
    }

    /// Returns the line in which the entry of that index lies.
    #[inline(always)]
    const fn line_of(index: usize) -> usize {
        Self::word_of(index) / LINE_WORDS
    }

    /// Returns all words, except the latch, of a node with the content `image`.
    fn words_of<M: Medium>(node: View<'_, M>, image: &Image) -> Vec<(usize, u64)> {
        let mut words: Vec<_> = (0..Self::BLOCK_WORDS).map(|word| node.load(word)).collect();
        words[NEXT] = image.link;
        words[COUNT_WORD..T::HEADER_WORDS.min(LOW_KEY)].fill(0);
        for (line, pairs) in Self::line_ranges() {
            let mut count = 0;
            let of_line = image.slots.iter().filter(|slot| pairs.contains(&slot.index));
            // The entries are the first of the line already, in this order, unless damage has left
            // two pairs with one key.
            for (index, slot) in pairs.clone().zip(of_line) {
                let at = Self::word_of(index);
                words[at..at + 2].copy_from_slice(&[slot.entry.key, slot.entry.value]);
                count += 1;
            }
            for vacant in pairs.skip(count.max(1)) {
                words[Self::word_of(vacant)] = 0;
            }
            T::encode_count(&mut words, line, count);
        }
        words.into_iter().enumerate().filter(|&(word, _)| word != LATCH).collect()
    }
}

impl<T: CountWord, const NODE: usize> Layout for Isle<T, NODE> {
    const BYTES: usize = NODE;
    const CAPACITY: usize = Self::PAIRS;
    const LATCH: usize = LATCH;
    const ENTRIES: Entries = Entries::pairs(T::HEADER_WORDS);

    /// Returns the bytes of the whole node, because vacancies must be 0.
    fn encode(level: u64, link: u64, entries: &[Entry]) -> Vec<u8> {
        assert!(entries.len() <= Self::PAIRS);
        let mut image = Self::image(entries);
        image[NEXT] = link;
        image[MARK] = mark(MAGIC, level);
        image.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    #[inline(always)]
    fn level<M: Medium>(node: View<'_, M>) -> Result<u64, Corrupt> {
        level_of(node, MARK, MAGIC)
    }

    #[inline(always)]
    fn link<M: Medium>(node: View<'_, M>) -> u64 {
        node.load(NEXT)
    }

    #[inline(always)]
    fn count<M: Medium>(node: View<'_, M>) -> usize {
        Self::pair_count(node.medium(), node.words())
    }

    /// For an absent key, the rank in the result is the index at which its entry must be inserted.
    #[inline(always)]
    fn find<M: Medium>(
        node: View<'_, M>,
        mut order: impl FnMut(Entry) -> Result<Ordering, Corrupt>,
    ) -> Result<SearchResult, Corrupt> {
        let (medium, words) = (node.medium(), node.words());
        let mut order = |at, key| order(Entry::plain(key, node.load(at + 1)));
        if let Some(at) = Self::search(medium, words, &mut order)? {
            let entry = Entry::plain(node.load(at), node.load(at + 1));
            return Ok(SearchResult::Found(SlotPos { index: Self::index_of(at), rank: 0 }, entry));
        }
        let vacancy = Self::find_vacancy(medium, words, order)?;
        Ok(SearchResult::Absent(vacancy.map_or(Self::PAIRS, Self::index_of)))
    }

    fn slot_indices<M: Medium>(node: View<'_, M>) -> Result<Vec<usize>, Corrupt> {
        match Self::valid_pair_words(node.medium(), node.words()) {
            Ok(begins) => Ok(begins.into_iter().map(Self::index_of).collect()),
            Err((at, key)) => Err(node.corrupt(at, "key after the end of an isle line", 0, key)),
        }
    }

    fn is_sorted<M: Medium>(_: View<'_, M>) -> bool {
        false
    }

    /// Checks that the keys of each line increase.
    fn check_order<M: Medium>(node: View<'_, M>, slots: &[Slot]) -> Result<(), Corrupt> {
        let mut next_index = [0; LINES_MAX];
        for slot in slots {
            let next_index = &mut next_index[Self::line_of(slot.index)];
            if slot.index < *next_index {
                let (at, what) = (Self::word_of(slot.index), "keys of an isle line out of order");
                return Err(node.corrupt(at, what, *next_index as u64, slot.index as u64));
            }
            *next_index = slot.index + 1;
        }
        Ok(())
    }

    /// Does nothing: the transaction carries all words that differ (1).
    fn write_free_slots<M: Medium>(_: View<'_, M>, _: &[Slot]) {}

    fn plan<'a, M: Medium>(node: View<'a, M>, image: &Image, changes: &mut Changes<'a>) {
        plan_words(node, Self::words_of(node, image), changes);
    }

    /// ```text
    /// W words that differ: none if the transaction stored the planned words
    /// F their lines
    /// ```
    fn apply<M: Medium>(node: View<'_, M>, image: &Image) {
        apply_words(node, Self::words_of(node, image));
    }

    fn needs_repair<M: Medium>(node: View<'_, M>) -> bool {
        Self::lines_need_repair(node.medium(), node.words())
    }

    /// ```text
    /// W lines              the left one of two equal keys goes: it was invalid
    /// F lines |
    /// W count words, F |   -> durable; as many fences as the count words take
    /// ```
    fn repair<M: Medium>(node: View<'_, M>, _: &Image) {
        Self::repair_lines(node.medium(), node.words());
    }
}

impl<T: CountWord, const NODE: usize> Atomic for Isle<T, NODE> {
    const PUBLISHES_UNFENCED: bool = true;

    /// Persist order: that of `Isle::insert_pair`.
    #[inline(always)]
    fn insert<M: Medium>(node: View<'_, M>, rank: usize, entry: Entry) -> Fenced {
        assert!(rank < Self::PAIRS, "the caller checked for a free slot");
        Self::insert_pair(node.medium(), node.words(), Self::word_of(rank), entry)
    }

    /// Persist order: that of `Isle::remove_pair`.
    #[inline(always)]
    fn remove<M: Medium>(node: View<'_, M>, at: SlotPos) -> Fenced {
        Self::remove_pair(node.medium(), node.words(), Self::word_of(at.index)).1
    }
}

impl<T: CountWord, const NODE: usize> Linked for Isle<T, NODE> {
    const LINK: usize = NEXT;
}

impl<const NODE: usize> LowKeyed for Isle<Counters, NODE> {
    const LOW: usize = LOW_KEY;
}
