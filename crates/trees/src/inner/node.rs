//! A node of 512 B: a line's worth of header and prefixes, then children.

use bristlecone_pmem::sync::Latch;
use bristlecone_pmem::sys;
use core::hint::select_unpredictable;
use core::sync::atomic::{AtomicU64, Ordering};

/// Separators of a node; children are one more.
pub(super) const FANOUT: usize = 30;

/// Words of a node.
pub(super) const NODE_WORDS: usize = 64;
/// Words of a node's separators.
pub(super) const TIE_WORDS: usize = 32;

const VERSION: usize = 0;
/// Separators in the low half, level (1: children are leaves) in the high half.
const SHAPE: usize = 1;
const PREFIXES: usize = 2;
const CHILDREN: usize = PREFIXES + FANOUT;

const _: () = assert!(CHILDREN + FANOUT < NODE_WORDS && FANOUT <= TIE_WORDS);

/// A view of an inner node. Every word is an atomic: readers may look while a writer writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'a>(pub(super) &'a [AtomicU64; NODE_WORDS]);

/// A view of the separator words of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ties<'a>(pub(super) &'a [AtomicU64; TIE_WORDS]);

impl Ties<'_> {
    pub(super) fn word(self, at: usize) -> u64 {
        load(&self.0[at])
    }

    pub(super) fn set_word(self, at: usize, word: u64) {
        store(&self.0[at], word);
    }
}

impl<'a> Node<'a> {
    #[inline(always)]
    pub(super) fn latch(self) -> Latch<&'a AtomicU64> {
        Latch::new(&self.0[VERSION], 0)
    }

    /// Separators; never more than fit, whatever a torn read gives.
    #[inline(always)]
    pub(super) fn count(self) -> usize {
        ((load(&self.0[SHAPE]) as u32) as usize).min(FANOUT)
    }

    #[inline(always)]
    pub(super) fn level(self) -> u64 {
        load(&self.0[SHAPE]) >> 32
    }

    #[inline(always)]
    pub(super) fn child(self, at: usize) -> u64 {
        load(&self.0[CHILDREN + at])
    }

    #[inline(always)]
    pub(super) fn prefix(self, at: usize) -> u64 {
        load(&self.0[PREFIXES + at])
    }

    /// How many of the first `count` prefixes, which never decrease, are not above `bound`.
    #[inline(always)]
    pub(super) fn count_up_to(self, count: usize, bound: u64) -> usize {
        if let Some(window) = self.0[PREFIXES..].first_chunk()
            && let Some(above) = sys::greater(window, bound)
        {
            // What lies behind the last prefix is cut off.
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

    /// How many of the first `count` prefixes are below `bound`.
    #[inline(always)]
    pub(super) fn count_below(self, count: usize, bound: u64) -> usize {
        bound.checked_sub(1).map_or(0, |bound| self.count_up_to(count, bound))
    }

    /// Asks for all lines of the node.
    #[inline(always)]
    pub(super) fn prefetch(self) {
        for line in bristlecone_pmem::line::lines(self.0.as_ptr() as usize, 8 * NODE_WORDS) {
            sys::prefetch(line);
        }
    }

    pub(super) fn set_shape(self, level: u64, count: usize) {
        store(&self.0[SHAPE], level << 32 | count as u64);
    }

    pub(super) fn set_prefix(self, at: usize, prefix: u64) {
        store(&self.0[PREFIXES + at], prefix);
    }

    pub(super) fn set_child(self, at: usize, child: u64) {
        store(&self.0[CHILDREN + at], child);
    }
}

#[inline(always)]
fn load(word: &AtomicU64) -> u64 {
    word.load(Ordering::Acquire)
}

#[inline(always)]
fn store(word: &AtomicU64, value: u64) {
    word.store(value, Ordering::Release);
}
