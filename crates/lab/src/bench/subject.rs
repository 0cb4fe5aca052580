//! What is measured, seen from the loop that measures: a design, the store, or a peer.
//!
//! A [`Subject`] hands out one [`Actor`] a thread. The loop is compiled for each kind of subject, and once
//! for all trees: a tree's operation is a call through the table of its index.

use crate::error::Result;
use bristlecone_pmem::medium::{Count, Counts};
use bristlecone_pmem::{Mapped, Medium, Pool, Simulated};
use bristlecone_trees::erased::BoxedIndex;
use bristlecone_trees::{ErasedDesign, Key, Maintainer, Order, PmIndex};
use core::hint::black_box;
use core::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// One thread's access to a subject. Mutations say whether the key was as expected: absent for an
/// insert, present for the others.
pub(crate) trait Actor<K: Key = u64>: Send {
    fn get(&mut self, key: K::Ref<'_>) -> Result<Option<u64>>;
    fn multi_get(&mut self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<()>;
    fn insert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool>;
    fn update(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool>;
    /// Adds `key` or changes its value. What has no such operation tries the one, then the other.
    fn upsert(&mut self, key: K::Ref<'_>, value: u64) -> Result<()> {
        if !self.update(key, value)? {
            self.insert(key, value)?;
        }
        Ok(())
    }
    fn remove(&mut self, key: K::Ref<'_>) -> Result<bool>;
    /// Reads up to `length` pairs from `key` on; gives their number.
    fn scan(&mut self, key: K::Ref<'_>, length: usize) -> Result<usize>;
    /// Registers this thread as one that does what is put off, if anything is.
    fn maintainer(&self) -> Option<Maintainer> {
        None
    }
    /// Does a step of what was put off; whether there was anything.
    fn run_maintenance_step(&mut self) -> Result<bool> {
        Ok(false)
    }
}

/// An ordered map from keys to words.
pub(crate) trait Subject<K: Key = u64> {
    type Actor<'a>: Actor<K>
    where
        Self: 'a;
    /// Access for `threads` threads.
    fn actors(&mut self, threads: u64) -> Vec<Self::Actor<'_>>;
    /// Whether it puts anything off, so that threads can do it beside those that it has actors for.
    fn puts_off(&self) -> bool {
        false
    }
    /// What memory it takes, if it can tell.
    fn memory(&mut self) -> Result<Option<MemoryUse>>;
}

/// The memory that a subject takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryUse {
    pub(crate) pm_bytes: u64,
    pub(crate) dram_bytes: u64,
}

/// A subject on a medium that counts.
pub(crate) trait Counted<K: Key = u64>: Subject<K> {
    /// What passed since the last call.
    fn take(&self) -> Counts;
}

/// A tree of some design.
pub(crate) struct Tree<M: Medium, K: Key> {
    index: BoxedIndex<M, K>,
}

/// The root under which a measured tree stands.
pub(crate) const ROOT: &str = "bench";

impl<M: Medium, K: Key> Tree<M, K> {
    /// An empty tree of `design` in a new pool on `medium`.
    pub(crate) fn create(design: &ErasedDesign<M, K>, medium: M) -> Result<Self> {
        Ok(Self { index: (design.create)(Arc::new(Pool::create(medium)?), ROOT)? })
    }

    /// The tree of `design` in the pool that is on `medium`.
    pub(crate) fn open(design: &ErasedDesign<M, K>, medium: M) -> Result<Self> {
        let (pool, opened) = Pool::open(medium)?;
        Ok(Self { index: (design.open)(Arc::new(pool), ROOT, opened)? })
    }

    /// What it is on.
    pub(crate) fn medium(&self) -> &M {
        self.index.pool().medium()
    }

    /// The index by itself.
    pub(crate) fn into_index(self) -> BoxedIndex<M, K> {
        self.index
    }
}

impl<M: Medium, K: Key> Subject<K> for Tree<M, K> {
    type Actor<'a> = &'a dyn PmIndex<M, K>;

    fn actors(&mut self, threads: u64) -> Vec<Self::Actor<'_>> {
        (0..threads).map(|_| &*self.index).collect()
    }
    fn puts_off(&self) -> bool {
        self.index.maintainer().is_some()
    }
    fn memory(&mut self) -> Result<Option<MemoryUse>> {
        let census = self.index.check()?;
        Ok(Some(MemoryUse { pm_bytes: census.pm_bytes, dram_bytes: census.dram_bytes }))
    }
}

/// A simulated medium that counts.
pub(crate) fn counter(medium: &Simulated) -> &Count<Mapped> {
    medium.simulation_as().expect("counted passes run on a counter")
}

impl<K: Key> Counted<K> for Tree<Simulated, K> {
    fn take(&self) -> Counts {
        counter(self.medium()).take()
    }
}

/// An operation is a call through the table of the index, and no other call.
impl<M: Medium, K: Key> Actor<K> for &dyn PmIndex<M, K> {
    #[inline]
    fn get(&mut self, key: K::Ref<'_>) -> Result<Option<u64>> {
        Ok((**self).get(key)?)
    }
    #[inline]
    fn multi_get(&mut self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<()> {
        Ok((**self).multi_get(keys, values)?)
    }
    #[inline]
    fn insert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool> {
        Ok((**self).insert(key, value)?.is_none())
    }
    #[inline]
    fn update(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool> {
        Ok((**self).update(key, value)?.is_some())
    }
    #[inline]
    fn upsert(&mut self, key: K::Ref<'_>, value: u64) -> Result<()> {
        (**self).upsert(key, value)?;
        Ok(())
    }
    #[inline]
    fn remove(&mut self, key: K::Ref<'_>) -> Result<bool> {
        Ok((**self).remove(key)?.is_some())
    }
    #[inline]
    fn scan(&mut self, key: K::Ref<'_>, length: usize) -> Result<usize> {
        let (mut left, mut sum) = (length, 0_u64);
        let bounds = (Bound::Included(key), Bound::Unbounded);
        (**self).scan(bounds, Order::Ascending, &mut |key, value| {
            sum = sum.wrapping_add(K::prefix(key) ^ value);
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        black_box(sum);
        Ok(length - left)
    }
    fn maintainer(&self) -> Option<Maintainer> {
        (**self).maintainer()
    }
    fn run_maintenance_step(&mut self) -> Result<bool> {
        Ok((**self).run_maintenance_step()?)
    }
}
