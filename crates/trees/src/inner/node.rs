//! A node of 512 B: a line's worth of header and prefixes, then children.

use bristlecone_pmem::sync::Latch;
use core::sync::atomic::{AtomicU64, Ordering};

/// Separators of a node; children are one more.
pub(super) const FANOUT: usize = 30;

/// An inner node. Every word is an atomic: readers may look while a writer writes.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Node {
    version: AtomicU64,
    /// Separators in the low half, level (1: children are leaves) in the high half.
    shape: AtomicU64,
    prefixes: [AtomicU64; FANOUT],
    children: [AtomicU64; FANOUT + 1],
    spare: u64,
}

const _: () = assert!(core::mem::size_of::<Node>() == 512);

/// The separator words of a node.
#[derive(Debug)]
pub(super) struct Ties {
    words: [AtomicU64; FANOUT],
}

impl Default for Node {
    fn default() -> Self {
        Self {
            version: AtomicU64::new(0),
            shape: AtomicU64::new(0),
            prefixes: [const { AtomicU64::new(0) }; FANOUT],
            children: [const { AtomicU64::new(0) }; FANOUT + 1],
            spare: 0,
        }
    }
}

impl Default for Ties {
    fn default() -> Self {
        Self { words: [const { AtomicU64::new(0) }; FANOUT] }
    }
}

impl Ties {
    pub(super) fn word(&self, at: usize) -> u64 {
        load(&self.words[at])
    }

    pub(super) fn set_word(&self, at: usize, word: u64) {
        store(&self.words[at], word);
    }
}

impl Node {
    #[inline(always)]
    pub(super) fn latch(&self) -> Latch<&AtomicU64> {
        Latch::new(&self.version, 0)
    }

    /// Separators; never more than fit, whatever a torn read gives.
    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        ((load(&self.shape) as u32) as usize).min(FANOUT)
    }

    #[inline(always)]
    pub(super) fn level(&self) -> u64 {
        load(&self.shape) >> 32
    }

    #[inline(always)]
    pub(super) fn child(&self, at: usize) -> u64 {
        load(&self.children[at])
    }

    pub(super) fn prefix(&self, at: usize) -> u64 {
        load(&self.prefixes[at])
    }

    /// How many of the first `count` prefixes, which never decrease, fulfil `below`. Binary, without
    /// a branch that depends on a key.
    #[inline(always)]
    pub(super) fn count_below(&self, count: usize, below: impl Fn(u64) -> bool) -> usize {
        let (mut base, mut left) = (0, count);
        while left > 1 {
            let half = left / 2;
            base += usize::from(below(load(&self.prefixes[base + half - 1]))) * half;
            left -= half;
        }
        if left == 1 { base + usize::from(below(load(&self.prefixes[base]))) } else { base }
    }

    /// Asks for all lines of the node.
    #[inline(always)]
    pub(super) fn prefetch(&self) {
        let address = core::ptr::from_ref(self) as usize;
        for line in bristlecone_pmem::line::lines(address, core::mem::size_of::<Self>()) {
            bristlecone_pmem::sys::prefetch(line);
        }
    }

    pub(super) fn set_shape(&self, level: u64, count: usize) {
        store(&self.shape, level << 32 | count as u64);
    }

    pub(super) fn set_prefix(&self, at: usize, prefix: u64) {
        store(&self.prefixes[at], prefix);
    }

    pub(super) fn set_child(&self, at: usize, child: u64) {
        store(&self.children[at], child);
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
