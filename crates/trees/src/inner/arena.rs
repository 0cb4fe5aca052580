//! Blocks that are taken and put back, and never move: an index once given is good for ever.

use bristlecone_pmem::PoolError;
use bristlecone_pmem::dram::Blocks;
use core::sync::atomic::AtomicU64;
use parking_lot::Mutex;

/// An arena of blocks of `WORDS` words.
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
    /// # Errors
    /// The system has no addresses left.
    pub(crate) fn new() -> Result<Self, PoolError> {
        Ok(Self { blocks: Blocks::new()?, free: Mutex::default() })
    }

    /// The block at `index`, which was taken at some time.
    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> &[AtomicU64; WORDS] {
        self.blocks.get(index)
    }

    /// Makes sure of a block at `index`, for an arena that goes along with another.
    pub(crate) fn extend(&self, index: usize) {
        self.blocks.extend(index);
    }

    /// A block that nobody uses, with whatever content.
    pub(crate) fn take(&self) -> usize {
        let mut free = self.free.lock();
        free.returned.pop().unwrap_or_else(|| {
            self.blocks.extend(free.next);
            free.next += 1;
            free.next - 1
        })
    }

    /// Gives a block back.
    pub(crate) fn put_back(&self, index: usize) {
        self.free.lock().returned.push(index);
    }

    /// One more than the greatest index that was ever taken.
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
