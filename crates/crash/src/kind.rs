//! A design with a kind of key, its type left behind: everything in the explorer but the design itself
//! is then compiled once for each kind of key, and not once more for each design.

use crate::lab::Lab;
use bristlecone_pmem::Pool;
use bristlecone_pmem::pool::Opened;
use bristlecone_trees::{Census, Design, Key, Order, PmIndex, Spec, TreeError};
use core::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// The bounds of a scan.
pub(crate) type Bounds<'a, K> = (Bound<<K as Key>::Ref<'a>>, Bound<<K as Key>::Ref<'a>>);

/// What a scan shows its pairs to.
pub(crate) type Visit<'a, K> = &'a mut dyn FnMut(<K as Key>::Ref<'_>, u64) -> ControlFlow<()>;

/// An index of some design, with the methods of [`PmIndex`].
pub(crate) trait Index<K: Key>: Send + Sync {
    fn pool(&self) -> &Arc<Pool<Lab>>;
    fn get(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError>;
    fn insert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError>;
    fn update(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError>;
    fn upsert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError>;
    fn remove(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError>;
    fn scan(&self, bounds: Bounds<K>, order: Order, visit: Visit<K>) -> Result<(), TreeError>;
    fn check(&self) -> Result<Census, TreeError>;
    fn close(self: Box<Self>) -> Result<Arc<Pool<Lab>>, TreeError>;
}

impl<K: Key, I: PmIndex<Lab, K>> Index<K> for I {
    fn pool(&self) -> &Arc<Pool<Lab>> {
        PmIndex::pool(self)
    }
    fn get(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        PmIndex::get(self, key)
    }
    fn insert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        PmIndex::insert(self, key, value)
    }
    fn update(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        PmIndex::update(self, key, value)
    }
    fn upsert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        PmIndex::upsert(self, key, value)
    }
    fn remove(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        PmIndex::remove(self, key)
    }
    fn scan(&self, bounds: Bounds<K>, order: Order, visit: Visit<K>) -> Result<(), TreeError> {
        PmIndex::scan(self, bounds, order, visit)
    }
    fn check(&self) -> Result<Census, TreeError> {
        PmIndex::check(self)
    }
    fn close(self: Box<Self>) -> Result<Arc<Pool<Lab>>, TreeError> {
        PmIndex::close(*self)
    }
}

type Create<K> = fn(Arc<Pool<Lab>>, &str) -> Result<Box<dyn Index<K>>, TreeError>;
type Open<K> = fn(Arc<Pool<Lab>>, &str, Opened) -> Result<Box<dyn Index<K>>, TreeError>;

/// What operations other than a get tell of the value that they found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tells {
    /// Which it was.
    Values,
    /// Whether there was one; an upsert not even that.
    Presence,
}

/// A design with a kind of key.
pub(crate) struct Kind<K: Key> {
    /// What the design says of itself.
    pub(crate) spec: Spec,
    /// What its operations tell where threads meet.
    pub(crate) tells: Tells,
    /// [`PmIndex::create`] of its index.
    pub(crate) create: Create<K>,
    /// [`PmIndex::open`] of its index.
    pub(crate) open: Open<K>,
}

impl<K: Key> Kind<K> {
    /// The design `D` with these keys.
    pub(crate) fn of<D: Design>() -> Self {
        Self {
            spec: D::SPEC,
            tells: Tells::Values,
            create: |pool, root| Ok(Box::new(D::Index::<Lab, K>::create(pool, root)?)),
            open: |pool, root, opened| Ok(Box::new(D::Index::<Lab, K>::open(pool, root, opened)?)),
        }
    }
}

impl<K: Key> Kind<K> {
    /// The same, telling `tells`.
    pub(crate) fn telling(self, tells: Tells) -> Self {
        Self { tells, ..self }
    }
}

impl<K: Key> Clone for Kind<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Key> Copy for Kind<K> {}
