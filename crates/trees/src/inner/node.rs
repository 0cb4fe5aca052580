//! The layout of an inner node: version, level and count, then prefixes, then children.

use crate::spec::NodeSearch;
use bristlecone_pmem::Medium;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::sync::{Latch, OnDram};
use bristlecone_pmem::sys;
use core::hint::select_unpredictable;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};

/// The size of a node in words: 512 B, unless a design chooses another.
pub(super) const NODE_WORDS: usize = 64;
/// The largest number of separators of a node of that size.
pub(super) const FANOUT: usize = fanout(NODE_WORDS);
/// The size of the block of a node's separator words, in words.
pub(super) const SEPARATOR_WORDS: usize = 32;

const VERSION: usize = 0;
/// The number of separators in the low half; the level in the high half, 1 above leaves.
const LEVEL_AND_COUNT: usize = 1;
const PREFIXES: usize = 2;

const _: () = assert!(FANOUT <= SEPARATOR_WORDS);

/// Returns the largest number of separators of a node of `words` words. It has one child more, and
/// a word for the number of times that it lost keys, if it has a lock array.
const fn fanout(words: usize) -> usize {
    (words - PREFIXES - 2) / 2
}

/// A view of a block in DRAM. Each access passes a yield point of the medium `M`. Every word is an
/// atomic, since readers read while a writer writes.
#[derive(Debug)]
pub struct DramView<'a, M, const WORDS: usize> {
    words: &'a [AtomicU64; WORDS],
    medium: PhantomData<fn() -> M>,
}

/// A view of an inner node of 512 B.
pub(super) type InnerNode<'a, M> = DramView<'a, M, NODE_WORDS>;

/// A view of the separator words of a node. Each access passes a yield point of the medium `M`.
#[derive(Debug)]
pub struct SeparatorWords<'a, M> {
    words: &'a [AtomicU64],
    medium: PhantomData<fn() -> M>,
}

/// A view of an inner node: separators in ascending order, and a child more.
pub trait NodeView<'a, M: Medium>: Copy {
    /// Returns the latch of the node.
    fn latch(self) -> Latch<OnDram<'a, M>>;
    /// Returns the number of separators, at most as many as fit even if the read is torn.
    fn count(self) -> usize;
    /// Returns the level of the node; 1 above leaves.
    fn level(self) -> u64;
    /// Returns the child at position `at`.
    fn child(self, at: usize) -> u64;
    /// Returns the prefix of the separator at `at`.
    fn prefix(self, at: usize) -> u64;
    /// Stores level and number of separators.
    fn set_level_and_count(self, level: u64, count: usize);
    /// Stores the prefix of the separator at `at`.
    fn set_prefix(self, at: usize, prefix: u64);
    /// Stores the child at position `at`.
    fn set_child(self, at: usize, child: u64);
    /// Prefetches all lines of the node.
    fn prefetch(self);
    /// Prefetches what a search of the node reads, and perhaps more.
    #[inline(always)]
    fn prefetch_separators(self) {
        self.prefetch();
    }
    /// Prefetches the child at position `at`, if [`prefetch_separators`](Self::prefetch_separators)
    /// does not.
    #[inline(always)]
    fn prefetch_child(self, _at: usize) {}

    /// Returns how often the node lost keys: its upper half split off, or it was freed. Only nodes
    /// with lock arrays count this.
    #[inline(always)]
    fn losses(self) -> u64 {
        0
    }

    /// Returns the number of the first `count` prefixes, which are in ascending order, that are at
    /// most `bound`.
    #[inline(always)]
    fn count_up_to(self, _search: NodeSearch, count: usize, bound: u64) -> usize {
        self.count_from_front(count, bound)
    }

    /// Returns the same after a search from the front.
    #[inline(always)]
    fn count_from_front(self, count: usize, bound: u64) -> usize {
        (0..count).find(|&at| self.prefix(at) > bound).unwrap_or(count)
    }

    /// Returns the number of the first `count` prefixes that are below `bound`.
    #[inline(always)]
    fn count_below(self, search: NodeSearch, count: usize, bound: u64) -> usize {
        bound.checked_sub(1).map_or(0, |bound| self.count_up_to(search, count, bound))
    }
}

impl<M, const WORDS: usize> Clone for DramView<'_, M, WORDS> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<M, const WORDS: usize> Copy for DramView<'_, M, WORDS> {}

impl<'a, M: Medium, const WORDS: usize> DramView<'a, M, WORDS> {
    #[inline(always)]
    pub(super) fn new(words: &'a [AtomicU64; WORDS]) -> Self {
        Self { words, medium: PhantomData }
    }

    #[inline(always)]
    pub(super) fn load(self, at: usize) -> u64 {
        load::<M>(&self.words[at])
    }

    #[inline(always)]
    pub(super) fn store(self, at: usize, value: u64) {
        store::<M>(&self.words[at], value);
    }

    /// Returns the latch in the word at `at`.
    #[inline(always)]
    pub(super) fn latch_at(self, at: usize) -> Latch<OnDram<'a, M>> {
        OnDram::latch(&self.words[at])
    }

    /// Prefetches all lines of the block.
    #[inline(always)]
    pub(super) fn prefetch_lines(self) {
        prefetch_lines(self.words);
    }
}

impl<'a, M: Medium> SeparatorWords<'a, M> {
    #[inline(always)]
    pub(super) fn new(words: &'a [AtomicU64]) -> Self {
        Self { words, medium: PhantomData }
    }

    pub(super) fn word(&self, at: usize) -> u64 {
        load::<M>(&self.words[at])
    }

    pub(super) fn set_word(&self, at: usize, word: u64) {
        store::<M>(&self.words[at], word);
    }
}

impl<M, const WORDS: usize> DramView<'_, M, WORDS> {
    /// The largest number of separators of an inner node.
    pub(super) const FANOUT: usize = fanout(WORDS);
    const CHILDREN: usize = {
        let children = PREFIXES + Self::FANOUT;
        assert!(children.is_multiple_of(LINE_WORDS), "separators fill their lines");
        children
    };
    const LOSSES: usize = {
        let losses = Self::CHILDREN + Self::FANOUT + 1;
        assert!(losses < WORDS);
        losses
    };
}

impl<'a, M: Medium, const WORDS: usize> NodeView<'a, M> for DramView<'a, M, WORDS> {
    #[inline(always)]
    fn latch(self) -> Latch<OnDram<'a, M>> {
        self.latch_at(VERSION)
    }

    #[inline(always)]
    fn count(self) -> usize {
        ((self.load(LEVEL_AND_COUNT) as u32) as usize).min(Self::FANOUT)
    }

    #[inline(always)]
    fn level(self) -> u64 {
        self.load(LEVEL_AND_COUNT) >> 32
    }

    #[inline(always)]
    fn child(self, at: usize) -> u64 {
        self.load(Self::CHILDREN + at)
    }

    #[inline(always)]
    fn prefix(self, at: usize) -> u64 {
        self.load(PREFIXES + at)
    }

    #[inline(always)]
    fn losses(self) -> u64 {
        self.load(Self::LOSSES)
    }

    #[inline(always)]
    fn count_up_to(self, search: NodeSearch, count: usize, bound: u64) -> usize {
        if search == NodeSearch::Linear {
            return self.count_from_front(count, bound);
        }
        if !M::CONTROLS_SCHEDULE
            && let Some(above) = self.above(bound)
        {
            // The mask sets the bits from `count` on: prefixes there are stale.
            return (above | u32::MAX << count).trailing_zeros() as usize;
        }
        let (mut base, mut left) = (0, count);
        while left > 1 {
            let half = left / 2;
            let goes_right = self.prefix(base + half - 1) <= bound;
            base = select_unpredictable(goes_right, base + half, base);
            left -= half;
        }
        if left == 1 { base + usize::from(self.prefix(base) <= bound) } else { base }
    }

    fn set_level_and_count(self, level: u64, count: usize) {
        self.store(LEVEL_AND_COUNT, level << 32 | count as u64);
    }

    fn set_prefix(self, at: usize, prefix: u64) {
        self.store(PREFIXES + at, prefix);
    }

    fn set_child(self, at: usize, child: u64) {
        self.store(Self::CHILDREN + at, child);
    }

    #[inline(always)]
    fn prefetch(self) {
        self.prefetch_lines();
    }

    #[inline(always)]
    fn prefetch_separators(self) {
        prefetch_lines(&self.words[..Self::CHILDREN]);
    }

    #[inline(always)]
    fn prefetch_child(self, at: usize) {
        sys::prefetch(self.words[Self::CHILDREN + at].as_ptr() as usize);
    }
}

impl<M: Medium, const WORDS: usize> DramView<'_, M, WORDS> {
    /// Returns a bit for each prefix that is greater than `bound`, beside bits of other words, or
    /// `None` where the processor has no fast way. Reads no line behind that of the last prefix,
    /// but the first word of the children in a node of 512 B.
    #[inline(always)]
    fn above(self, bound: u64) -> Option<u32> {
        if Self::CHILDREN <= 16 {
            return Some(sys::greater(self.words.first_chunk::<16>()?, bound)? >> PREFIXES);
        }
        sys::greater(self.words[PREFIXES..].first_chunk::<32>()?, bound)
    }

    /// Notes that the node, which is latched, loses keys.
    pub(super) fn lose_keys(self) {
        self.store(Self::LOSSES, self.load(Self::LOSSES).wrapping_add(1));
    }
}

/// Prefetches the lines of `words`, which begin at a line, as blocks of an arena do.
#[inline(always)]
fn prefetch_lines(words: &[AtomicU64]) {
    for line in words.chunks_exact(LINE_WORDS) {
        sys::prefetch(line.as_ptr() as usize);
    }
}

/// Reads a shared word in DRAM with acquire ordering.
#[inline(always)]
pub(crate) fn load<M: Medium>(word: &AtomicU64) -> u64 {
    M::yield_point();
    word.load(Ordering::Acquire)
}

/// Writes a shared word in DRAM with release ordering.
#[inline(always)]
pub(crate) fn store<M: Medium>(word: &AtomicU64, value: u64) {
    M::yield_point();
    word.store(value, Ordering::Release);
}
