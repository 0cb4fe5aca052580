//! Locks for readers, which the WO-tree paper's comparators take: a thread counts itself as a
//! reader of a node while it searches it, and a writer that has taken the node's latch waits until
//! no reader is left.
//!
//! 1. The counts lie in DRAM, so a lock causes no write to persistent memory, and none survives a
//!    crash.
//! 2. A thread that is counted waits for nothing. So no deadlock is possible.
//! 3. What a thread has read counts only if the version of the node holds, as in each design of the
//!    engine. A thread that counts itself after a writer took the latch restarts.

use bristlecone_pmem::dram::Blocks;
use bristlecone_pmem::sync::{LatchWord, OnMedium};
use bristlecone_pmem::{Medium, PmPtr, PoolError};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};

/// The numbers of readers of a tree's nodes.
#[derive(Debug)]
pub(super) struct ReaderCounts {
    /// A word for each block, of which the root block takes one, too.
    counts: Blocks<1>,
    node_bytes: u64,
}

impl ReaderCounts {
    /// # Errors
    /// The system has no address space left.
    pub(super) fn new(node_bytes: u64) -> Result<Self, PoolError> {
        Ok(Self { counts: Blocks::new()?, node_bytes })
    }

    /// Returns the size of the counts in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.counts.bytes()
    }

    /// Returns the readers of the node at `at`.
    #[inline(always)]
    pub(super) fn of<M>(&self, at: PmPtr) -> Readers<'_, M> {
        let block = (at.offset() / self.node_bytes) as usize;
        self.counts.extend(block);
        let [count] = self.counts.get(block);
        Readers { count, medium: PhantomData }
    }
}

/// The readers of a node.
#[derive(Debug)]
pub(super) struct Readers<'a, M> {
    count: &'a AtomicU64,
    medium: PhantomData<fn() -> M>,
}

impl<M> Clone for Readers<'_, M> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<M> Copy for Readers<'_, M> {}

impl<'a, M: Medium> Readers<'a, M> {
    /// Counts this thread until the result is dropped.
    #[inline(always)]
    pub(super) fn enter(self) -> Reader<'a, M> {
        M::yield_point();
        self.count.fetch_add(1, Ordering::AcqRel);
        Reader(self)
    }

    /// Waits until there are no readers. The caller has the latch of the node.
    #[inline(always)]
    pub(super) fn wait_until_none(self) {
        let mut spins = 0;
        loop {
            M::yield_point();
            if self.count.load(Ordering::Acquire) == 0 {
                return;
            }
            OnMedium::<'_, M>::relax(&mut spins);
        }
    }
}

/// A thread that counts as a reader of a node.
#[derive(Debug)]
#[must_use = "the thread counts until this is dropped"]
pub(super) struct Reader<'a, M: Medium>(Readers<'a, M>);

impl<M: Medium> Drop for Reader<'_, M> {
    #[inline(always)]
    fn drop(&mut self) {
        M::yield_point();
        self.0.count.fetch_sub(1, Ordering::AcqRel);
    }
}
