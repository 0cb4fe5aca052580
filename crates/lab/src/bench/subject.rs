//! What is measured, seen from the loop that measures: a design, the store, or a peer.
//!
//! A [`Subject`] hands out one [`Actor`] a thread. The loop calls it as an object: a tree's operation is
//! a call in any case, and so the loop is compiled once for all trees.

use crate::error::Result;
use bristlecone_pmem::medium::{Count, Counts};
use bristlecone_pmem::{Medium, Pool};
use bristlecone_trees::{Key, Maintainer, Order, PmIndex};
use core::hint::black_box;
use core::marker::PhantomData;
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
    fn memory(&mut self) -> Result<Option<Memory>>;
}

/// The memory that a subject takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) pm_bytes: u64,
    pub(crate) dram_bytes: u64,
}

/// A subject on a medium that counts.
pub(crate) trait Counted<K: Key = u64>: Subject<K> {
    /// What passed since the last call.
    fn take(&self) -> Counts;
}

/// A design, with whatever keys its index takes; `I` may be a `dyn PmIndex`.
pub(crate) struct Tree<M, I: ?Sized> {
    index: Box<I>,
    medium: PhantomData<fn() -> M>,
}

/// The root under which a measured tree stands.
pub(crate) const ROOT: &str = "bench";

impl<M: Medium, I> Tree<M, I> {
    /// An empty tree in a new pool on `medium`.
    pub(crate) fn create<K: Key>(medium: M) -> Result<Self>
    where
        I: PmIndex<M, K>,
    {
        Ok(Self::of(Box::new(I::create(Arc::new(Pool::create(medium)?), ROOT)?)))
    }
}

impl<M: Medium, I: ?Sized> Tree<M, I> {
    /// The tree of `index`.
    pub(crate) fn of(index: Box<I>) -> Self {
        Self { index, medium: PhantomData }
    }

    /// What it is on.
    pub(crate) fn medium<K: Key>(&self) -> &M
    where
        I: PmIndex<M, K>,
    {
        self.index.pool().medium()
    }

    /// The index by itself.
    pub(crate) fn into_index(self) -> Box<I> {
        self.index
    }
}

impl<M: Medium, K: Key, I: PmIndex<M, K> + ?Sized> Subject<K> for Tree<M, I> {
    type Actor<'a> = &'a Self;

    fn actors(&mut self, threads: u64) -> Vec<&Self> {
        (0..threads).map(|_| &*self).collect()
    }
    fn puts_off(&self) -> bool {
        self.index.maintainer().is_some()
    }
    fn memory(&mut self) -> Result<Option<Memory>> {
        let census = self.index.check()?;
        Ok(Some(Memory { pm_bytes: census.pm_bytes, dram_bytes: census.dram_bytes }))
    }
}

impl<M: Medium, K: Key, I: PmIndex<Count<M>, K>> Counted<K> for Tree<Count<M>, I> {
    fn take(&self) -> Counts {
        self.index.pool().medium().take()
    }
}

/// Each operation is compiled once, and called: within each loop that uses it, it would be a copy of the
/// tree. A call is a nanosecond or two.
impl<M: Medium, K: Key, I: PmIndex<M, K> + ?Sized> Actor<K> for &Tree<M, I> {
    #[inline(never)]
    fn get(&mut self, key: K::Ref<'_>) -> Result<Option<u64>> {
        Ok(self.index.get(key)?)
    }
    #[inline(never)]
    fn multi_get(&mut self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<()> {
        Ok(self.index.multi_get(keys, values)?)
    }
    #[inline(never)]
    fn insert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool> {
        Ok(self.index.insert(key, value)?.is_none())
    }
    #[inline(never)]
    fn update(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool> {
        Ok(self.index.update(key, value)?.is_some())
    }
    #[inline(never)]
    fn upsert(&mut self, key: K::Ref<'_>, value: u64) -> Result<()> {
        self.index.upsert(key, value)?;
        Ok(())
    }
    #[inline(never)]
    fn remove(&mut self, key: K::Ref<'_>) -> Result<bool> {
        Ok(self.index.remove(key)?.is_some())
    }
    #[inline(never)]
    fn scan(&mut self, key: K::Ref<'_>, length: usize) -> Result<usize> {
        let (mut left, mut sum) = (length, 0_u64);
        let bounds = (Bound::Included(key), Bound::Unbounded);
        self.index.scan(bounds, Order::Ascending, &mut |key, value| {
            sum = sum.wrapping_add(K::prefix(key) ^ value);
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
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
