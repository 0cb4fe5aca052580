//! Nodes whose number of entries says all.
//!
//! | word | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | count | data | number of entries |
//! | 1 | 8 | link | data | next leaf, or leftmost child |
//! | 2 | 8 | latch | transient | version |
//! | 3 | 8 | mark | data | magic number, level |
//! | 4.. | 16 each | entries | data | key word, value word |
//!
//! 1. The first entries, as many as are counted, are there. In which order they are is for the layout to say.
//! 2. No word decides: a change is whole when all of its words are there. Who writes them sees to it that a
//!    crash leaves all of them or none; or to nothing, as in the volatile baseline.

use super::{
    Changes, Image, Layout, Linked, SearchResult, View, apply_words, encode, level_of, meta,
    plan_words,
};
use crate::key::Entry;
use bristlecone_pmem::{Corrupt, Medium};
use core::cmp::Ordering;

pub(super) const COUNT: usize = 0;
const LINK: usize = 1;
const LATCH: usize = 2;
const META: usize = 3;
pub(super) const ENTRIES: usize = 4;

/// What such a layout says of itself.
pub(super) trait Counted: Send + Sync + 'static {
    /// Bytes of a node.
    const NODE: usize;
    /// Its name in ASCII.
    const MAGIC: u64;
    /// Whether the entries are in key order.
    const IS_SORTED: bool;

    /// [`Layout::find`].
    fn search<M: Medium>(
        node: View<'_, M>,
        order: impl FnMut(Entry) -> Result<Ordering, Corrupt>,
    ) -> Result<SearchResult, Corrupt>;

    /// The words of a node with that content, the count last.
    fn words_of(image: &Image) -> impl IntoIterator<Item = (usize, u64)>;
}

/// The number of entries, which has to be one that the node has room for.
#[inline(always)]
pub(super) fn checked_count<L: Counted, M: Medium>(node: View<'_, M>) -> Result<usize, Corrupt> {
    let count = node.load(COUNT);
    if count > L::CAPACITY as u64 {
        return Err(node.corrupt(COUNT, "number of entries", L::CAPACITY as u64, count));
    }
    Ok(count as usize)
}

/// The words of `entries`, each with its index, and of the link and the count behind them.
pub(super) fn words<'a>(
    entries: impl Iterator<Item = (usize, Entry)> + 'a,
    image: &Image,
) -> impl Iterator<Item = (usize, u64)> + 'a {
    let words = entries.flat_map(|(index, entry)| {
        let at = ENTRIES + 2 * index;
        [(at, entry.key), (at + 1, entry.value)]
    });
    words.chain([(LINK, image.link), (COUNT, image.slots.len() as u64)])
}

impl<L: Counted> Layout for L {
    const BYTES: usize = L::NODE;
    const CAPACITY: usize = {
        assert!(L::NODE.is_multiple_of(64));
        (L::NODE / 8 - ENTRIES) / 2
    };
    const LATCH: usize = LATCH;
    const ENTRIES: usize = ENTRIES;

    fn encode(level: u64, link: u64, entries: &[Entry]) -> Vec<u8> {
        assert!(entries.len() <= L::CAPACITY);
        encode(&[entries.len() as u64, link, 0, meta(L::MAGIC, level)], entries)
    }

    #[inline(always)]
    fn level<M: Medium>(node: View<'_, M>) -> Result<u64, Corrupt> {
        level_of(node, META, L::MAGIC)
    }

    #[inline(always)]
    fn link<M: Medium>(node: View<'_, M>) -> u64 {
        node.load(LINK)
    }

    #[inline(always)]
    fn count<M: Medium>(node: View<'_, M>) -> usize {
        (node.load(COUNT) as usize).min(L::CAPACITY)
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

    /// Every word that differs: nothing else would bring it about.
    fn plan<'a, M: Medium>(node: View<'a, M>, image: &Image, changes: &mut Changes<'a>) {
        plan_words(node, L::words_of(image), changes);
    }

    /// ```text
    /// W words that differ: none if the transaction has stored what was planned
    /// F their lines
    /// ```
    fn apply<M: Medium>(node: View<'_, M>, image: &Image) {
        apply_words(node, L::words_of(image));
    }
}

impl<L: Counted> Linked for L {
    const LINK: usize = LINK;
}
