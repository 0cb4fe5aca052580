//! Key layers for leaves that need distinct key words for distinct keys.
//!
//! Layers such as [`Record`](crate::Record) keep only the first 8 B of the key in an entry's key
//! word, so the words of two keys may be equal. A leaf that identifies entries by these words uses
//! the layer [`UniqueWords`] instead: its entries hold the words of separators, which differ where
//! keys do.

use crate::index::{Order, PmIndex, TreeError, TreeStats};
use crate::key::{Entry, Key};
use crate::maintenance::Maintainer;
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool, PoolError};
use core::cmp::Ordering;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// A key layer whose entries hold the words that layer `K` uses for separators.
#[derive(Debug)]
pub struct UniqueWords<K>(PhantomData<fn() -> K>);

impl<K: Key> Key for UniqueWords<K> {
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
    fn store_separator<M: Medium>(pool: &Pool<M>, key: K::Ref<'_>) -> Result<u64, PoolError> {
        K::store_separator(pool, key)
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
    fn prefetch<M: Medium>(pool: &Pool<M>, word: u64) {
        K::prefetch(pool, word);
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

/// An index over keys of layer `K`, implemented by an index over [`UniqueWords<K>`](UniqueWords).
pub struct UniqueWordsIndex<I, K> {
    index: I,
    layer: PhantomData<fn() -> K>,
}

impl<I: fmt::Debug, K> fmt::Debug for UniqueWordsIndex<I, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.index.fmt(f)
    }
}

impl<I, K> UniqueWordsIndex<I, K> {
    fn over(index: I) -> Self {
        Self { index, layer: PhantomData }
    }
}

impl<M: Medium, K: Key, I: PmIndex<M, UniqueWords<K>>> PmIndex<M, K> for UniqueWordsIndex<I, K> {
    fn create(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        I::create(pool, root).map(Self::over)
    }
    fn open(pool: Arc<Pool<M>>, root: &str, opened: Opened) -> Result<Self, TreeError> {
        I::open(pool, root, opened).map(Self::over)
    }
    fn pool(&self) -> &Arc<Pool<M>> {
        self.index.pool()
    }
    #[inline]
    fn get(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        self.index.get(key)
    }
    #[inline]
    fn multi_get(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<(), TreeError> {
        self.index.multi_get(keys, values)
    }
    #[inline]
    fn insert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.index.insert(key, value)
    }
    #[inline]
    fn update(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.index.update(key, value)
    }
    #[inline]
    fn upsert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.index.upsert(key, value)
    }
    #[inline]
    fn remove(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        self.index.remove(key)
    }
    fn bulk_load(
        &self,
        pairs: &mut dyn Iterator<Item = (K::Owned, u64)>,
        fill_percent: u32,
    ) -> Result<(), TreeError> {
        self.index.bulk_load(pairs, fill_percent)
    }
    fn scan(
        &self,
        bounds: (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
        order: Order,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        self.index.scan(bounds, order, visit)
    }
    fn run_maintenance_step(&self) -> Result<bool, TreeError> {
        self.index.run_maintenance_step()
    }
    fn maintainer(&self) -> Option<Maintainer> {
        self.index.maintainer()
    }
    fn check(&self) -> Result<TreeStats, TreeError> {
        self.index.check()
    }
    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError> {
        Box::new(self.index).close()
    }
}
