//! Designs whose type is left behind: one value for any of them.
//!
//! What takes a [`DynDesign`] is compiled once for each kind of key and medium, and not once more for
//! each design; calls go through a table. So explorers and tests are better off with this, and
//! whatever is timed with [`Visitor`](crate::registry::Visitor).

use crate::index::{Census, Design, Order, PmIndex, TreeError, Upkeep};
use crate::key::Key;
use crate::spec::Spec;
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Medium, Pool};
use core::fmt;
use core::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// The bounds of a scan.
pub type Bounds<'a, K> = (Bound<<K as Key>::Ref<'a>>, Bound<<K as Key>::Ref<'a>>);

/// What a scan shows its pairs to.
pub type Visit<'a, K> = &'a mut dyn FnMut(<K as Key>::Ref<'_>, u64) -> ControlFlow<()>;

/// An index of some design, with the methods of [`PmIndex`], which say what each does.
#[expect(missing_docs, reason = "each method is the one of PmIndex that it is named after")]
#[expect(clippy::missing_errors_doc, reason = "as above")]
pub trait DynIndex<M: Medium, K: Key>: Send + Sync {
    fn pool(&self) -> &Arc<Pool<M>>;
    fn get(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError>;
    fn multi_get(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<(), TreeError>;
    fn insert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError>;
    fn update(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError>;
    fn upsert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError>;
    fn remove(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError>;
    fn scan(&self, bounds: Bounds<K>, order: Order, visit: Visit<K>) -> Result<(), TreeError>;
    fn check(&self) -> Result<Census, TreeError>;
    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError>;
}

impl<M: Medium, K: Key, I: PmIndex<M, K>> DynIndex<M, K> for I {
    fn pool(&self) -> &Arc<Pool<M>> {
        PmIndex::pool(self)
    }
    fn get(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        PmIndex::get(self, key)
    }
    fn multi_get(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<(), TreeError> {
        PmIndex::multi_get(self, keys, values)
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
    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError> {
        PmIndex::close(*self)
    }
}

/// An index of some design, owned.
pub type BoxedIndex<M, K> = Box<dyn DynIndex<M, K>>;

/// [`PmIndex::create`] of some design.
pub type Create<M, K> = fn(Arc<Pool<M>>, &str) -> Result<BoxedIndex<M, K>, TreeError>;

/// [`PmIndex::open`] of some design.
pub type Open<M, K> = fn(Arc<Pool<M>>, &str, Opened) -> Result<BoxedIndex<M, K>, TreeError>;

/// A design at one node size, on one medium, with one kind of key.
///
/// ```
/// use bristlecone_pmem::{Mapped, Pool};
/// use bristlecone_trees::DynDesign;
/// use bristlecone_trees::designs::{FpTree, WbTree};
/// use std::sync::Arc;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// for design in [DynDesign::<Mapped, u64>::of::<FpTree<512>>(), DynDesign::of::<WbTree<512>>()] {
///     let pool = Arc::new(Pool::create(Mapped::anonymous(1 << 20)?)?);
///     let index = (design.create)(pool, "numbers")?;
///     index.insert(1, 10)?;
///     assert_eq!(index.get(1)?, Some(10), "{}", design.spec.name);
/// }
/// # Ok(())
/// # }
/// ```
pub struct DynDesign<M: Medium, K: Key> {
    /// What the design says of itself.
    pub spec: Spec,
    /// What its operations cost beyond the budget, if they do.
    pub upkeep: Option<Upkeep>,
    /// [`PmIndex::create`] of its index.
    pub create: Create<M, K>,
    /// [`PmIndex::open`] of its index.
    pub open: Open<M, K>,
}

impl<M: Medium, K: Key> DynDesign<M, K> {
    /// The design `D`.
    pub fn of<D: Design>() -> Self {
        Self {
            spec: D::SPEC,
            upkeep: D::UPKEEP,
            create: |pool, root| Ok(Box::new(D::Index::<M, K>::create(pool, root)?)),
            open: |pool, root, opened| Ok(Box::new(D::Index::<M, K>::open(pool, root, opened)?)),
        }
    }
}

impl<M: Medium, K: Key> fmt::Debug for DynDesign<M, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynDesign").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl<M: Medium, K: Key> Clone for DynDesign<M, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Medium, K: Key> Copy for DynDesign<M, K> {}
