//! Hybrid indexes whose leaves need key words that differ where keys do.
//!
//! The engine stores the key words that a layer plants for entries. A leaf that tells entries apart by
//! these words gets each layer as [`Planted`], whose entries hold what its separators hold.

use super::{Hybrid, HybridSpec};
use crate::index::{Census, Order, PmIndex, TreeError};
use crate::key::{Entry, Key};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool, PoolError};
use core::cmp::Ordering;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// A key layer whose entries hold the words of its separators.
#[derive(Debug)]
pub struct Planted<K>(PhantomData<fn() -> K>);

impl<K: Key> Key for Planted<K> {
    type Ref<'a> = K::Ref<'a>;
    type Owned = K::Owned;
    const NAME: &'static str = K::NAME;
    const EXACT: bool = K::EXACT;

    fn least() -> K::Owned {
        K::least()
    }
    #[inline(always)]
    fn borrow(key: &K::Owned) -> K::Ref<'_> {
        K::borrow(key)
    }
    #[inline(always)]
    fn to_owned(key: K::Ref<'_>) -> K::Owned {
        K::to_owned(key)
    }
    #[inline(always)]
    fn compare(a: K::Ref<'_>, b: K::Ref<'_>) -> Ordering {
        K::compare(a, b)
    }
    fn with_bytes<R>(key: K::Ref<'_>, read: impl FnOnce(&[u8]) -> R) -> R {
        K::with_bytes(key, read)
    }
    fn of_bytes(bytes: &[u8]) -> Option<K::Owned> {
        K::of_bytes(bytes)
    }
    #[inline(always)]
    fn prefix(key: K::Ref<'_>) -> u64 {
        K::prefix(key)
    }
    #[inline(always)]
    fn hash(key: K::Ref<'_>) -> u64 {
        K::hash(key)
    }
    #[inline(always)]
    fn plant<M: Medium>(pool: &Pool<M>, key: K::Ref<'_>) -> Result<u64, PoolError> {
        K::plant(pool, key)
    }
    #[inline(always)]
    fn order<M: Medium>(pool: &Pool<M>, word: u64, key: K::Ref<'_>) -> Result<Ordering, Corrupt> {
        K::order(pool, word, key)
    }
    #[inline(always)]
    fn read<M: Medium>(pool: &Pool<M>, word: u64) -> Result<K::Owned, Corrupt> {
        K::read(pool, word)
    }
    #[inline(always)]
    fn block<M: Medium>(pool: &Pool<M>, word: u64) -> Result<Option<(PmPtr, u64)>, Corrupt> {
        K::block(pool, word)
    }
    fn value_block<M: Medium>(
        pool: &Pool<M>,
        entry: Entry,
    ) -> Result<Option<(PmPtr, u64)>, Corrupt> {
        K::value_block(pool, entry)
    }
}

/// A hybrid index for leaves in which words differ where keys do.
pub struct PlantedHybrid<S: HybridSpec, M: Medium, K: Key>(Hybrid<S, M, Planted<K>>);

impl<S: HybridSpec, M: Medium, K: Key> fmt::Debug for PlantedHybrid<S, M, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<S: HybridSpec, M: Medium, K: Key> PmIndex<M, K> for PlantedHybrid<S, M, K> {
    fn create(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        Hybrid::create(pool, root).map(Self)
    }
    fn open(pool: Arc<Pool<M>>, root: &str, opened: Opened) -> Result<Self, TreeError> {
        Hybrid::open(pool, root, opened).map(Self)
    }
    fn pool(&self) -> &Arc<Pool<M>> {
        self.0.pool()
    }
    #[inline]
    fn get(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        self.0.get(key)
    }
    #[inline]
    fn multi_get(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<(), TreeError> {
        self.0.multi_get(keys, values)
    }
    #[inline]
    fn insert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.0.insert(key, value)
    }
    #[inline]
    fn update(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.0.update(key, value)
    }
    #[inline]
    fn upsert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.0.upsert(key, value)
    }
    #[inline]
    fn remove(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        self.0.remove(key)
    }
    fn scan(
        &self,
        bounds: (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
        order: Order,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        self.0.scan(bounds, order, visit)
    }
    fn check(&self) -> Result<Census, TreeError> {
        self.0.check()
    }
    fn close(self) -> Result<Arc<Pool<M>>, TreeError> {
        self.0.close()
    }
}
