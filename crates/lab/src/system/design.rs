//! A design of the registry, in a pool of its own.

use super::{MemoryUse, OnMedium, Session, System};
use crate::error::Result;
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Medium, Pool};
use bristlecone_trees::erased::BoxedIndex;
use bristlecone_trees::{ErasedDesign, Key, Maintainer, Order, PmIndex, TreeError};
use core::hint::black_box;
use core::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// A tree of a design, the only user of its pool.
pub struct DesignTree<M: Medium, K: Key> {
    index: BoxedIndex<M, K>,
}

/// The pool root of a measured tree.
const ROOT: &str = "bench";

impl<M: Medium, K: Key> core::fmt::Debug for DesignTree<M, K> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("DesignTree").finish_non_exhaustive()
    }
}

impl<M: Medium, K: Key> DesignTree<M, K> {
    /// Creates an empty tree of `design` in a new pool on `medium`.
    ///
    /// # Errors
    /// The medium is too small for a pool, or the design failed.
    pub fn create(design: &ErasedDesign<M, K>, medium: M) -> Result<Self> {
        Ok(Self { index: (design.create)(Arc::new(Pool::create(medium)?), ROOT)? })
    }

    /// Opens the tree of `design` in the pool on `medium`.
    ///
    /// # Errors
    /// The pool is damaged, or has no tree of this design.
    pub fn open(design: &ErasedDesign<M, K>, medium: M) -> Result<Self> {
        let (pool, opened) = Pool::open(medium)?;
        Ok(Self { index: (design.open)(Arc::new(pool), ROOT, opened)? })
    }

    /// Closes the index and opens it again in the same pool, which empties its buffers.
    ///
    /// # Errors
    /// The design failed.
    pub fn reopen(self, design: &ErasedDesign<M, K>) -> Result<Self> {
        let pool = self.index.close()?;
        Ok(Self { index: (design.open)(pool, ROOT, Opened::Clean)? })
    }

    /// Returns the index of the tree.
    pub fn index(&self) -> &dyn PmIndex<M, K> {
        &*self.index
    }

    /// Returns the medium of the pool.
    pub fn medium(&self) -> &M {
        self.index.pool().medium()
    }
}

impl<M: Medium, K: Key> System<K> for DesignTree<M, K> {
    type Session<'a> = TreeSession<'a, M, K>;

    fn sessions(&mut self, threads: u64) -> Vec<Self::Session<'_>> {
        let (index, medium) = (&*self.index, self.medium());
        (0..threads).map(|_| TreeSession { index, medium }).collect()
    }
    fn defers_work(&self) -> bool {
        self.index.maintainer().is_some()
    }
    fn bulk_load(
        &mut self,
        pairs: &mut dyn Iterator<Item = (K::Owned, u64)>,
        fill_percent: u32,
    ) -> Result<()> {
        Ok(self.index.bulk_load(pairs, fill_percent)?)
    }
    fn memory(&mut self) -> Result<Option<MemoryUse>> {
        let stats = self.index.check()?;
        Ok(Some(MemoryUse { pm_bytes: stats.pm_bytes, dram_bytes: stats.dram_bytes }))
    }
}

impl<M: Medium, K: Key> OnMedium for DesignTree<M, K> {
    type Medium = M;

    fn medium(&self) -> &M {
        self.medium()
    }
    fn close(self) -> Result<()> {
        let pool = self.index.close()?;
        Ok(Arc::into_inner(pool).expect("a measured tree is the only user of its pool").close()?)
    }
}

/// A thread's access to a tree. An operation is one call through the table of the index. It ends
/// when what it has written or read is as durable as the medium promises.
pub(crate) struct TreeSession<'a, M: Medium, K: Key> {
    index: &'a dyn PmIndex<M, K>,
    medium: &'a M,
}

impl<M: Medium, K: Key> core::fmt::Debug for TreeSession<'_, M, K> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TreeSession").finish_non_exhaustive()
    }
}

impl<M: Medium, K: Key> TreeSession<'_, M, K> {
    #[inline]
    fn settled<T>(&self, done: T) -> Result<T> {
        self.medium.settle_writes()?;
        Ok(done)
    }

    /// Returns what a read returned. A design need not note its lines, so this waits for all.
    #[inline]
    fn seen<T>(&self, read: core::result::Result<T, TreeError>) -> Result<T> {
        self.medium.settle_reads();
        Ok(read?)
    }
}

impl<M: Medium, K: Key> Session<K> for TreeSession<'_, M, K> {
    #[inline]
    fn get(&mut self, key: K::Ref<'_>) -> Result<Option<u64>> {
        self.seen(self.index.get(key))
    }
    #[inline]
    fn multi_get(&mut self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<()> {
        self.seen(self.index.multi_get(keys, values))
    }
    #[inline]
    fn insert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool> {
        self.settled(self.index.insert(key, value)?.is_none())
    }
    #[inline]
    fn update(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool> {
        self.settled(self.index.update(key, value)?.is_some())
    }
    #[inline]
    fn upsert(&mut self, key: K::Ref<'_>, value: u64) -> Result<()> {
        self.index.upsert(key, value)?;
        self.settled(())
    }
    #[inline]
    fn remove(&mut self, key: K::Ref<'_>) -> Result<bool> {
        self.settled(self.index.remove(key)?.is_some())
    }
    #[inline]
    fn scan(&mut self, key: K::Ref<'_>, length: usize) -> Result<usize> {
        let (mut left, mut sum) = (length, 0_u64);
        let bounds = (Bound::Included(key), Bound::Unbounded);
        let scanned = self.index.scan(bounds, Order::Ascending, &mut |key, value| {
            sum = sum.wrapping_add(K::prefix(key) ^ value);
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.seen(scanned)?;
        black_box(sum);
        Ok(length - left)
    }
    fn maintainer(&self) -> Option<Maintainer> {
        self.index.maintainer()
    }
    fn run_maintenance_step(&mut self) -> Result<bool> {
        Ok(self.index.run_maintenance_step()?)
    }
}
