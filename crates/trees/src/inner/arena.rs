//! An arena of fixed-size blocks in DRAM. A block never moves and never returns to the system, so
//! an index stays valid for ever.

use bristlecone_pmem::PoolError;
use bristlecone_pmem::dram::Blocks;
use core::sync::atomic::AtomicU64;
use parking_lot::Mutex;

/// An arena of blocks of `WORDS` words. Threads may share it.
#[derive(Debug)]
pub(crate) struct Arena<const WORDS: usize> {
    blocks: Blocks<WORDS>,
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    returned: Vec<usize>,
    next: usize,
}

impl<const WORDS: usize> Arena<WORDS> {
    /// Creates an empty arena.
    ///
    /// # Errors
    /// The system cannot reserve the addresses.
    pub(crate) fn new() -> Result<Self, PoolError> {
        Ok(Self { blocks: Blocks::new()?, free: Mutex::default() })
    }

    /// Returns the block at `index`, which [`take`](Self::take) or [`extend`](Self::extend) once
    /// made.
    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> &[AtomicU64; WORDS] {
        self.blocks.get(index)
    }

    /// Prefetches the first line of the block at `index`, which need not exist.
    #[inline(always)]
    pub(crate) fn prefetch(&self, index: usize) {
        self.blocks.prefetch(index);
    }

    /// Makes the block at `index` exist, for an arena whose blocks belong to those of another
    /// arena.
    pub(crate) fn extend(&self, index: usize) {
        self.blocks.extend(index);
    }

    /// Returns the index of a free block. Its contents are those that its last user left.
    pub(crate) fn take(&self) -> usize {
        let mut free = self.free.lock();
        free.returned.pop().unwrap_or_else(|| {
            self.blocks.extend(free.next);
            free.next += 1;
            free.next - 1
        })
    }

    /// Returns the first of `count` free blocks with successive indices.
    pub(crate) fn take_all(&self, count: usize) -> usize {
        let mut free = self.free.lock();
        let first = free.next;
        free.next += count;
        if count > 0 {
            self.blocks.extend(free.next - 1);
        }
        first
    }

    /// Frees a block. A reader may still read it: it finds a node, but not the one that it looked
    /// for.
    pub(crate) fn put_back(&self, index: usize) {
        self.free.lock().returned.push(index);
    }

    /// Returns the number of blocks ever taken: all indices are below it.
    pub(crate) fn end(&self) -> usize {
        self.free.lock().next
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.blocks.bytes()
    }

    pub(crate) fn in_use(&self) -> u64 {
        let free = self.free.lock();
        (free.next - free.returned.len()) as u64
    }
}
