//! Layouts in which the number of entries determines the valid ones.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | count | data | number of entries; [mark](super::header) |
//! | 1 | 8 | link, latch | data, transient | next leaf, or leftmost child; [latch](super::header) |
//! | 2.. | 16 each | entries | data | key word, value word |
//! | 4.. | or 32 each | entries | data | key word, value word, padding |
//!
//! 1. The first `count` entries are valid. The layout decides their order.
//! 2. No word commits a change: it is complete when all of its words are stored. The caller makes
//!    it failure-atomic, with a log, or leaves it torn by a crash, as the volatile baseline does.

use super::header::{self, LINK, Mark};
use super::{
    Changes, Entries, Image, Layout, Linked, SearchResult, Slot, View, apply_words, encode,
    plan_words,
};
use crate::key::Entry;
use bristlecone_pmem::sync::LatchBits;
use bristlecone_pmem::{Corrupt, Medium};
use core::cmp::Ordering;

pub(super) const COUNT: usize = 0;

/// The parts in which two counted layouts differ.
pub(super) trait Counted: Send + Sync + 'static {
    /// The size of a node in bytes.
    const NODE: usize;
    /// The number of words of an entry.
    const ENTRY_WORDS: usize = Entry::WORDS;
    /// The start of the layout's name in ASCII, as its magic number.
    const MAGIC: u64;
    /// The mark of the nodes.
    const MARK: Mark = Mark::new(32, Self::MAGIC);
    /// `true` if the entries are in key order.
    const IS_SORTED: bool;

    /// Searches as [`Layout::find`] does.
    fn search<M: Medium>(
        node: View<'_, M>,
        order: impl FnMut(Entry) -> Result<Ordering, Corrupt>,
    ) -> Result<SearchResult, Corrupt>;

    /// Yields the words of a node with the content `image`, with their indices; the count comes
    /// last.
    fn words_of(image: &Image) -> impl IntoIterator<Item = (usize, u64)>;
}

/// Returns the number of entries, after a check that so many fit.
#[inline(always)]
pub(super) fn checked_count<L: Counted, M: Medium>(node: View<'_, M>) -> Result<usize, Corrupt> {
    let count = node.load(COUNT) & L::MARK.own;
    if count > L::CAPACITY as u64 {
        return Err(node.corrupt(COUNT, "number of entries of a node", L::CAPACITY as u64, count));
    }
    Ok(count as usize)
}

/// Yields the words of `entries`, which come with their slot indices, then the count of `image`.
pub(super) fn words<'a, L: Counted>(
    entries: impl Iterator<Item = (usize, Entry)> + 'a,
    image: &Image,
) -> impl Iterator<Item = (usize, u64)> + 'a {
    let words = entries.flat_map(|(index, entry)| L::ENTRIES.words(index, entry));
    words.chain([(COUNT, L::MARK.at(image.level) | image.slots.len() as u64)])
}

impl<L: Counted> Layout for L {
    const BYTES: usize = L::NODE;
    const CAPACITY: usize = {
        assert!(L::NODE.is_multiple_of(64));
        L::ENTRIES.capacity(L::NODE)
    };
    const LATCH: usize = LINK;
    const LATCH_BITS: LatchBits = LatchBits::BesideLink;
    const OFFSET_MAX: u64 = header::offset_max(L::NODE);
    const ENTRIES: Entries = Entries::new(L::ENTRY_WORDS, L::ENTRY_WORDS);

    fn encode(level: u64, link: u64, entries: &[Entry]) -> Vec<u8> {
        assert!(entries.len() <= L::CAPACITY);
        let count = L::MARK.at(level) | entries.len() as u64;
        let mut words = vec![count, header::link_bits(link, L::NODE)];
        words.resize(L::ENTRY_WORDS, 0);
        encode(&words, L::ENTRIES, entries)
    }

    #[inline(always)]
    fn level<M: Medium>(node: View<'_, M>) -> Result<u64, Corrupt> {
        L::MARK.level_of(node, L::NODE)
    }

    #[inline(always)]
    fn link<M: Medium>(node: View<'_, M>) -> u64 {
        header::link_of(node, L::NODE)
    }

    #[inline(always)]
    fn count<M: Medium>(node: View<'_, M>) -> usize {
        ((node.load(COUNT) & L::MARK.own) as usize).min(L::CAPACITY)
    }

    #[inline(always)]
    fn find<M: Medium>(
        node: View<'_, M>,
        order: impl FnMut(Entry) -> Result<Ordering, Corrupt>,
    ) -> Result<SearchResult, Corrupt> {
        L::search(node, order)
    }

    fn slot_indices<M: Medium>(node: View<'_, M>) -> Result<Vec<usize>, Corrupt> {
        Ok((0..checked_count::<L, M>(node)?).collect())
    }

    fn is_sorted<M: Medium>(_: View<'_, M>) -> bool {
        L::IS_SORTED
    }

    /// Adds every word that differs: without a commit word, only the transaction can change them
    /// together.
    fn plan<'a, M: Medium>(node: View<'a, M>, image: &Image, changes: &mut Changes<'a>) {
        if image.link != Self::link(node) {
            changes.push((node.word(LINK), header::link_word(node, image.link, L::NODE)));
        }
        plan_words(node, L::words_of(image), changes);
    }

    /// Adds nothing: [`plan`](Layout::plan) adds every word.
    fn plan_entry<'a, M: Medium>(_: View<'a, M>, _: Slot, _: &mut Changes<'a>) {}

    /// ```text
    /// W words that differ: none if the transaction stored the planned words
    /// F their lines
    /// ```
    fn apply<M: Medium>(node: View<'_, M>, image: &Image) {
        if image.link != Self::link(node) {
            node.store(LINK, header::link_word(node, image.link, L::NODE));
            node.flush(LINK..=LINK);
        }
        apply_words(node, L::words_of(image));
    }
}

impl<L: Counted> Linked for L {
    const LINK: usize = LINK;

    fn link_word<M: Medium>(node: View<'_, M>, link: u64) -> u64 {
        header::link_word(node, link, L::NODE)
    }
}
