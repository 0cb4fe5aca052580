//! FAST & FAIR with selective persistence: its leaves, under inner nodes in DRAM.
//!
//! The tree is the hybrid engine with the shifting node as its leaf. The engine stores the key words
//! that a layer plants for entries, and a shift needs words that differ where keys do; so the engine
//! gets each layer as [`Planted`], whose entries hold what its separators hold.

use crate::hybrid::{Hybrid, HybridSpec};
use crate::index::{Census, Design, Order, PmIndex, TreeError};
use crate::key::{Entry, Key};
use crate::leaf::sorted_shift::SortedShift;
use crate::spec::{Budget, Cost, Spec};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool, PoolError};
use core::cmp::Ordering;
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// The design, with leaves of `NODE` bytes.
#[derive(Debug)]
pub struct FastFairSp<const NODE: usize>;

impl<const NODE: usize> HybridSpec for FastFairSp<NODE> {
    const SPEC: Spec = {
        // A shift over a whole leaf finishes each of its lines by itself.
        let whole = Cost::new((NODE / 64) as u32, (NODE / 64) as u32);
        Spec {
            name: "fast-fair-sp",
            source: "Hwang et al., FAST & FAIR, FAST 2018; inner nodes in DRAM as later studies have it",
            persistent: true,
            node_bytes: NODE,
            budget: Budget { insert: whole, update: Cost::new(1, 1), remove: whole },
            relies_on_line_order: true,
            features: &["selective-persistence", "log-free", "optimistic-latches", "multi-get"],
        }
    };
    type Leaf = SortedShift<NODE>;
}

impl<const NODE: usize> Design for FastFairSp<NODE> {
    const SPEC: Spec = <Self as HybridSpec>::SPEC;
    type Index<M: Medium, K: Key> = SelectiveTree<M, K, NODE>;
}

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

/// An index of this design.
#[derive(Debug)]
pub struct SelectiveTree<M: Medium, K: Key, const NODE: usize>(
    Hybrid<FastFairSp<NODE>, M, Planted<K>>,
);

impl<M: Medium, K: Key, const NODE: usize> PmIndex<M, K> for SelectiveTree<M, K, NODE> {
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
