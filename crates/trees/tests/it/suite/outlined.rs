//! A design as the suite sees it: the same, with its methods kept out of line.
//!
//! Engines inline their hot paths wherever they are called. The suite calls from a hundred places, so
//! without this each design would be compiled a hundred times over.

use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Medium, Pool};
use bristlecone_trees::{Census, Design, Key, Order, PmIndex, Spec, TreeError, Upkeep};
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// The design `D`, out of line.
pub(crate) struct Outlined<D>(PhantomData<fn() -> D>);

impl<D: Design> Design for Outlined<D> {
    const SPEC: Spec = D::SPEC;
    const UPKEEP: Option<Upkeep> = D::UPKEEP;
    type Index<M: Medium, K: Key> = OutlinedIndex<D::Index<M, K>>;
}

/// An index of it.
pub(crate) struct OutlinedIndex<I>(I);

impl<M: Medium, K: Key, I: PmIndex<M, K>> PmIndex<M, K> for OutlinedIndex<I> {
    #[inline(never)]
    fn create(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        I::create(pool, root).map(Self)
    }
    #[inline(never)]
    fn open(pool: Arc<Pool<M>>, root: &str, opened: Opened) -> Result<Self, TreeError> {
        I::open(pool, root, opened).map(Self)
    }
    #[inline(never)]
    fn pool(&self) -> &Arc<Pool<M>> {
        self.0.pool()
    }
    #[inline(never)]
    fn get(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        self.0.get(key)
    }
    #[inline(never)]
    fn multi_get(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<(), TreeError> {
        self.0.multi_get(keys, values)
    }
    #[inline(never)]
    fn insert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.0.insert(key, value)
    }
    #[inline(never)]
    fn update(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.0.update(key, value)
    }
    #[inline(never)]
    fn upsert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.0.upsert(key, value)
    }
    #[inline(never)]
    fn remove(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        self.0.remove(key)
    }
    #[inline(never)]
    fn scan(
        &self,
        bounds: (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
        order: Order,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        self.0.scan(bounds, order, visit)
    }
    #[inline(never)]
    fn check(&self) -> Result<Census, TreeError> {
        self.0.check()
    }
    #[inline(never)]
    fn close(self) -> Result<Arc<Pool<M>>, TreeError> {
        self.0.close()
    }
}
