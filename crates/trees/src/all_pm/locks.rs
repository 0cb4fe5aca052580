//! Lock arrays, as in Isle-Tree: the latch of a node is a lock in an array that belongs to its
//! parent. The arrays lie in DRAM, so a lock causes no write to persistent memory, and none
//! survives a crash.
//!
//! 1. The offset of a child chooses its lock, so an entry that shifts within its node keeps it. Two
//!    children may share a lock; a thread that latches both takes it once.
//! 2. A child that gets another parent gets another lock. The thread that moves it holds the former
//!    lock until it has done so. So a version that was read in the former array is out of date.
//! 3. A node counts its *turns*: it lost keys, got another parent, or was unlinked. A descent that
//!    waited for a child compares its key with the node's separators again. It begins at the root
//!    only if the node has taken a turn.
//! 4. An array stays with the block of its node, for the next node there. So turns only grow.

use crate::inner::Arena;
use bristlecone_pmem::dram::Blocks;
use bristlecone_pmem::{Medium, PmPtr, PoolError};
use core::sync::atomic::{AtomicU64, Ordering};

/// The number of locks of an array.
const LOCKS: usize = 32;
/// The index of the word that counts turns.
const TURNS: usize = LOCKS;
/// The size of an array in words: whole lines.
const ARRAY_WORDS: usize = 40;
/// The array of the root block, whose child is the root.
const ROOT: usize = 0;

/// The lock arrays of a tree.
#[derive(Debug)]
pub(super) struct LockArrays {
    arrays: Arena<ARRAY_WORDS>,
    /// The index of the array of the node in each block, or 0 if it has none yet.
    indices: Blocks<1>,
    node_bytes: u64,
}

impl LockArrays {
    /// # Errors
    /// The system has no address space left.
    pub(super) fn new(node_bytes: u64) -> Result<Self, PoolError> {
        let arrays = Arena::new()?;
        let root = arrays.take();
        debug_assert_eq!(root, ROOT);
        Ok(Self { arrays, indices: Blocks::new()?, node_bytes })
    }

    /// Returns the size of the arrays in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.arrays.bytes() + self.indices.bytes()
    }

    fn block(&self, at: PmPtr) -> u64 {
        at.offset() / self.node_bytes
    }

    #[inline(always)]
    fn array(&self, node: Option<PmPtr>) -> &[AtomicU64; ARRAY_WORDS] {
        let Some(at) = node else { return self.arrays.get(ROOT) };
        let block = self.block(at) as usize;
        self.indices.extend(block);
        let [word] = self.indices.get(block);
        let index = word.load(Ordering::Acquire) as usize;
        self.arrays.get(if index == ROOT { self.add(word) } else { index })
    }

    /// Gives a block an array, unless another thread does.
    #[cold]
    fn add(&self, word: &AtomicU64) -> usize {
        let fresh = self.arrays.take();
        let placed = word.compare_exchange(0, fresh as u64, Ordering::AcqRel, Ordering::Acquire);
        placed.map_or_else(
            |found| {
                self.arrays.put_back(fresh);
                found as usize
            },
            |_| fresh,
        )
    }

    /// Returns the lock of the child at `at` in the array of `parent`; `None` is the root block.
    #[inline(always)]
    pub(super) fn lock(&self, parent: Option<PmPtr>, at: PmPtr) -> &AtomicU64 {
        // Fibonacci hashing: neighbouring blocks get different locks.
        let hash = self.block(at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.array(parent)[(hash >> (64 - LOCKS.ilog2())) as usize]
    }

    /// Returns the number of turns of `node`.
    #[inline(always)]
    pub(super) fn turns<M: Medium>(&self, node: Option<PmPtr>) -> u64 {
        M::yield_point();
        self.array(node)[TURNS].load(Ordering::Acquire)
    }

    /// Counts a turn of `node`, which the caller has latched.
    pub(super) fn count_turn<M: Medium>(&self, node: Option<PmPtr>) {
        M::yield_point();
        self.array(node)[TURNS].fetch_add(1, Ordering::AcqRel);
    }
}
