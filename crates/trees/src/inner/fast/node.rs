//! The layout of a FAST node in DRAM: a header, then pairs beside each other in key order.
//!
//! | offset | bytes | field | meaning |
//! | --- | --- | --- | --- |
//! | 0 | 8 | version | the latch |
//! | 8 | 8 | level and count | low half: the number of separators; high half: the level |
//! | 16 | 8 | sibling | the right neighbour on the level: its index and 1; 0: none |
//! | 24 | 8 | | free |
//! | 32 | 8 `PAIR` each | pairs | the prefix of a key; in the middle of the pair, a child |
//!
//! Pair 0 has the low key of the node and the leftmost child. Pair i + 1 has separator i and the
//! child to its right.

use crate::inner::node::{DramView, NodeView};
use bristlecone_pmem::Medium;
use bristlecone_pmem::sync::{Latch, OnDram};

const VERSION: usize = 0;
const LEVEL_AND_COUNT: usize = 1;
const SIBLING: usize = 2;
const PAIRS: usize = 4;

/// A view of a node of `WORDS` words, with pairs of `PAIR` words.
#[derive(Debug)]
pub struct FastNode<'a, M, const WORDS: usize, const PAIR: usize>(DramView<'a, M, WORDS>);

impl<M, const WORDS: usize, const PAIR: usize> Clone for FastNode<'_, M, WORDS, PAIR> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<M, const WORDS: usize, const PAIR: usize> Copy for FastNode<'_, M, WORDS, PAIR> {}

impl<'a, M: Medium, const WORDS: usize, const PAIR: usize> FastNode<'a, M, WORDS, PAIR> {
    /// The largest number of separators.
    pub(super) const FANOUT: usize = (WORDS - PAIRS) / PAIR - 1;

    #[inline(always)]
    pub(super) fn new(words: DramView<'a, M, WORDS>) -> Self {
        Self(words)
    }

    #[inline(always)]
    const fn key(pair: usize) -> usize {
        PAIRS + PAIR * pair
    }

    /// Returns the prefix of the low key.
    #[inline(always)]
    pub(super) fn low(self) -> u64 {
        self.0.load(Self::key(0))
    }

    pub(super) fn set_low(self, prefix: u64) {
        self.0.store(Self::key(0), prefix);
    }

    /// Returns the right neighbour on the level.
    #[inline(always)]
    pub(super) fn sibling(self) -> Option<usize> {
        self.0.load(SIBLING).checked_sub(1).map(|index| index as usize)
    }

    pub(super) fn set_sibling(self, index: Option<usize>) {
        self.0.store(SIBLING, index.map_or(0, |index| index as u64 + 1));
    }
}

impl<'a, M: Medium, const WORDS: usize, const PAIR: usize> NodeView<'a, M>
    for FastNode<'a, M, WORDS, PAIR>
{
    #[inline(always)]
    fn latch(self) -> Latch<OnDram<'a, M>> {
        self.0.latch_at(VERSION)
    }

    #[inline(always)]
    fn count(self) -> usize {
        ((self.0.load(LEVEL_AND_COUNT) as u32) as usize).min(Self::FANOUT)
    }

    #[inline(always)]
    fn level(self) -> u64 {
        self.0.load(LEVEL_AND_COUNT) >> 32
    }

    #[inline(always)]
    fn child(self, at: usize) -> u64 {
        self.0.load(Self::key(at) + PAIR / 2)
    }

    #[inline(always)]
    fn prefix(self, at: usize) -> u64 {
        self.0.load(Self::key(at + 1))
    }

    fn set_level_and_count(self, level: u64, count: usize) {
        self.0.store(LEVEL_AND_COUNT, level << 32 | count as u64);
    }

    fn set_prefix(self, at: usize, prefix: u64) {
        self.0.store(Self::key(at + 1), prefix);
    }

    fn set_child(self, at: usize, child: u64) {
        self.0.store(Self::key(at) + PAIR / 2, child);
    }

    #[inline(always)]
    fn prefetch(self) {
        self.0.prefetch_lines();
    }
}
