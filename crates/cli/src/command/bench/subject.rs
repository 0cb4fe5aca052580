//! What is measured, seen from the loop that measures: a design, or std's `BTreeMap`.
//!
//! A [`Subject`] hands out one [`Actor`] a thread. Both are types, not objects: the loop is
//! compiled for each of them, so a call costs what it would cost a program that uses the tree by its
//! type.

use anyhow::Result;
use bristlecone_pmem::medium::{Count, Counts};
use bristlecone_pmem::{Medium, Pool};
use bristlecone_trees::{Order, PmIndex};
use core::hint::black_box;
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

/// One thread's access to a subject. Mutations say whether the key was as expected: absent for an
/// insert, present for the others.
pub(super) trait Actor: Send {
    fn get(&mut self, key: u64) -> Result<Option<u64>>;
    fn multi_get(&mut self, keys: &[u64], values: &mut [Option<u64>]) -> Result<()>;
    fn insert(&mut self, key: u64, value: u64) -> Result<bool>;
    fn update(&mut self, key: u64, value: u64) -> Result<bool>;
    fn remove(&mut self, key: u64) -> Result<bool>;
    /// Reads up to `length` pairs from `key` on; gives their number.
    fn scan(&mut self, key: u64, length: usize) -> Result<usize>;
}

/// An ordered map from words to words.
pub(super) trait Subject {
    type Actor<'a>: Actor
    where
        Self: 'a;
    /// Access for `threads` threads.
    fn actors(&mut self, threads: u64) -> Vec<Self::Actor<'_>>;
    /// What memory it takes, if it can tell.
    fn memory(&mut self) -> Result<Option<Memory>>;
}

/// The memory that a subject takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    pub(super) pm_bytes: u64,
    pub(super) dram_bytes: u64,
}

/// A subject on a medium that counts.
pub(super) trait Counted: Subject {
    /// What passed since the last call.
    fn take(&self) -> Counts;
}

/// A design with keys of 8 B.
pub(super) struct Tree<M, I> {
    index: I,
    medium: PhantomData<fn() -> M>,
}

/// The root under which a measured tree stands.
pub(super) const ROOT: &str = "bench";

impl<M: Medium, I: PmIndex<M, u64>> Tree<M, I> {
    /// An empty tree in a new pool on `medium`.
    pub(super) fn create(medium: M) -> Result<Self> {
        Ok(Self::of(I::create(Arc::new(Pool::create(medium)?), ROOT)?))
    }

    /// The tree of `index`.
    pub(super) fn of(index: I) -> Self {
        Self { index, medium: PhantomData }
    }

    /// What it is on.
    pub(super) fn medium(&self) -> &M {
        self.index.pool().medium()
    }

    /// The index by itself.
    pub(super) fn into_index(self) -> I {
        self.index
    }
}

impl<M: Medium, I: PmIndex<M, u64>> Subject for Tree<M, I> {
    type Actor<'a> = &'a Self;

    fn actors(&mut self, threads: u64) -> Vec<&Self> {
        (0..threads).map(|_| &*self).collect()
    }
    fn memory(&mut self) -> Result<Option<Memory>> {
        let census = self.index.check()?;
        Ok(Some(Memory { pm_bytes: census.pm_bytes, dram_bytes: census.dram_bytes }))
    }
}

impl<M: Medium, I: PmIndex<Count<M>, u64>> Counted for Tree<Count<M>, I> {
    fn take(&self) -> Counts {
        self.index.pool().medium().take()
    }
}

/// Each operation is compiled once, and called: within each loop that uses it, it would be a copy of the
/// tree. A call is a nanosecond or two.
impl<M: Medium, I: PmIndex<M, u64>> Actor for &Tree<M, I> {
    #[inline(never)]
    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        Ok(self.index.get(key)?)
    }
    #[inline(never)]
    fn multi_get(&mut self, keys: &[u64], values: &mut [Option<u64>]) -> Result<()> {
        Ok(self.index.multi_get(keys, values)?)
    }
    #[inline(never)]
    fn insert(&mut self, key: u64, value: u64) -> Result<bool> {
        Ok(self.index.insert(key, value)?.is_none())
    }
    #[inline(never)]
    fn update(&mut self, key: u64, value: u64) -> Result<bool> {
        Ok(self.index.update(key, value)?.is_some())
    }
    #[inline(never)]
    fn remove(&mut self, key: u64) -> Result<bool> {
        Ok(self.index.remove(key)?.is_some())
    }
    #[inline(never)]
    fn scan(&mut self, key: u64, length: usize) -> Result<usize> {
        let (mut left, mut sum) = (length, 0_u64);
        let bounds = (Bound::Included(key), Bound::Unbounded);
        self.index.scan(bounds, Order::Ascending, &mut |key, value| {
            sum = sum.wrapping_add(key ^ value);
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        black_box(sum);
        Ok(length - left)
    }
}

/// std's map for one thread, without a lock.
#[derive(Default)]
pub(super) struct Alone(BTreeMap<u64, u64>);

impl Subject for Alone {
    type Actor<'a> = &'a mut BTreeMap<u64, u64>;

    fn actors(&mut self, threads: u64) -> Vec<&mut BTreeMap<u64, u64>> {
        assert_eq!(threads, 1, "std's map has no latches");
        vec![&mut self.0]
    }
    fn memory(&mut self) -> Result<Option<Memory>> {
        Ok(None)
    }
}

impl Actor for &mut BTreeMap<u64, u64> {
    #[inline]
    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        Ok(BTreeMap::get(self, &key).copied())
    }
    #[inline]
    fn multi_get(&mut self, keys: &[u64], values: &mut [Option<u64>]) -> Result<()> {
        for (key, value) in keys.iter().zip(values) {
            *value = BTreeMap::get(self, key).copied();
        }
        Ok(())
    }
    #[inline]
    fn insert(&mut self, key: u64, value: u64) -> Result<bool> {
        Ok(BTreeMap::insert(self, key, value).is_none())
    }
    #[inline]
    fn update(&mut self, key: u64, value: u64) -> Result<bool> {
        Ok(self.get_mut(&key).map(|place| *place = value).is_some())
    }
    #[inline]
    fn remove(&mut self, key: u64) -> Result<bool> {
        Ok(BTreeMap::remove(self, &key).is_some())
    }
    #[inline]
    fn scan(&mut self, key: u64, length: usize) -> Result<usize> {
        Ok(read_on(self, key, length))
    }
}

/// std's map for several threads, behind one lock for readers and writers.
#[derive(Default)]
pub(super) struct Locked(RwLock<BTreeMap<u64, u64>>);

impl Subject for Locked {
    type Actor<'a> = &'a RwLock<BTreeMap<u64, u64>>;

    fn actors(&mut self, threads: u64) -> Vec<&RwLock<BTreeMap<u64, u64>>> {
        (0..threads).map(|_| &self.0).collect()
    }
    fn memory(&mut self) -> Result<Option<Memory>> {
        Ok(None)
    }
}

/// Nothing that is done under the lock panics.
const WHOLE: &str = "no thread has panicked";

impl Actor for &RwLock<BTreeMap<u64, u64>> {
    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        Ok(self.read().expect(WHOLE).get(&key).copied())
    }
    fn multi_get(&mut self, keys: &[u64], values: &mut [Option<u64>]) -> Result<()> {
        let map = self.read().expect(WHOLE);
        for (key, value) in keys.iter().zip(values) {
            *value = map.get(key).copied();
        }
        Ok(())
    }
    fn insert(&mut self, key: u64, value: u64) -> Result<bool> {
        Ok(self.write().expect(WHOLE).insert(key, value).is_none())
    }
    fn update(&mut self, key: u64, value: u64) -> Result<bool> {
        Ok(self.write().expect(WHOLE).get_mut(&key).map(|place| *place = value).is_some())
    }
    fn remove(&mut self, key: u64) -> Result<bool> {
        Ok(self.write().expect(WHOLE).remove(&key).is_some())
    }
    fn scan(&mut self, key: u64, length: usize) -> Result<usize> {
        Ok(read_on(&self.read().expect(WHOLE), key, length))
    }
}

fn read_on(map: &BTreeMap<u64, u64>, key: u64, length: usize) -> usize {
    let (mut count, mut sum) = (0, 0_u64);
    for (key, value) in map.range(key..).take(length) {
        sum = sum.wrapping_add(key ^ value);
        count += 1;
    }
    black_box(sum);
    count
}
