//! The one trait that every design implements.

use crate::key::{Entry, Key};
use crate::maintenance::Maintainer;
use crate::spec::{Cost, Spec};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool, PoolError};
use core::ops::{Bound, ControlFlow};
use std::sync::Arc;
use thiserror::Error;

/// Why an operation could not be done. The index is as it was before.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TreeError {
    /// The pool refused: full, most often. Removing works in a full pool.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The pool has no root of that name, or it belongs to something else.
    #[error("the pool has no root for this design (kind {expected:#x}, found {found:#x})")]
    Foreign {
        /// Kind that this design writes.
        expected: u64,
        /// Kind of the root that is there; 0 if there is none.
        found: u64,
    },
    /// The design is volatile: whatever a tree of it held is gone, and cannot be opened.
    #[error("{0} is volatile: nothing of it survives its process; create it anew in a new pool")]
    Volatile(&'static str),
}

impl From<Corrupt> for TreeError {
    fn from(corrupt: Corrupt) -> Self {
        Self::Pool(corrupt.into())
    }
}

/// The block of the root called `root`, which has to be of the kind that is expected.
pub(crate) fn find_root<M: Medium>(
    pool: &Pool<M>,
    root: &str,
    expected: u64,
) -> Result<PmPtr, TreeError> {
    match pool.root(root)? {
        Some(found) if found.kind == expected => Ok(found.block),
        other => Err(TreeError::Foreign { expected, found: other.map_or(0, |root| root.kind) }),
    }
}

/// The mode of a write: which of the two cases, key present or key absent, it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// Adds the pair if the key is absent; leaves a present key's value as it is.
    Insert,
    /// Replaces the value of a present key; does not add an absent key.
    Update,
    /// Adds the pair, or replaces the value.
    Upsert,
}

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From the least key.
    Ascending,
    /// From the greatest key.
    Descending,
}

/// What [`PmIndex::check`] counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeStats {
    /// Pairs.
    pub keys: u64,
    /// Leaves.
    pub leaves: u64,
    /// Inner nodes, wherever they live.
    pub inner_nodes: u64,
    /// Levels, the leaves' included.
    pub height: u32,
    /// Blocks of the pool that the index reaches, its root block and key records included.
    pub blocks: u64,
    /// Bytes of those blocks, as reserved.
    pub pm_bytes: u64,
    /// Bytes of DRAM that the index holds.
    pub dram_bytes: u64,
}

impl TreeStats {
    /// Counts a block that the index reaches, if it is one, which has to be reserved in the pool.
    pub(crate) fn count_block<M: Medium>(
        &mut self,
        pool: &Pool<M>,
        block: Option<(PmPtr, u64)>,
    ) -> Result<(), Corrupt> {
        let Some((block, bytes)) = block else { return Ok(()) };
        if !pool.is_reserved(block) {
            let (at, what) = (block.offset(), "a block in use is free in the pool");
            return Err(Corrupt { at, what, expected: 1, found: 0 });
        }
        self.blocks += 1;
        self.pm_bytes += pool.reserved_bytes(bytes);
        Ok(())
    }

    /// Counts the blocks that an entry owns or keeps alive.
    pub(crate) fn count_entry<K: Key, M: Medium>(
        &mut self,
        pool: &Pool<M>,
        entry: Entry,
    ) -> Result<(), Corrupt> {
        self.count_block(pool, K::entry_block(pool, entry)?)?;
        self.count_block(pool, K::value_block(pool, entry)?)
    }
}

/// Work that a design puts off and does now and then within an operation, such as to shorten a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaintenanceCost {
    /// The most that it costs beyond the operation's budget.
    pub most: Cost,
    /// At the most one operation in so many goes beyond its budget.
    pub every: u64,
}

/// A design at one node size: what the registry lists, and what tests and tools are generic over.
pub trait Design: Send + Sync + 'static {
    /// What the design says of itself.
    const SPEC: Spec;
    /// What its operations cost beyond the budget, if they do.
    const MAINTENANCE: Option<MaintenanceCost> = None;
    /// The index, on any medium, with any kind of key.
    type Index<M: Medium, K: Key>: PmIndex<M, K>;
}

/// An ordered map from keys to words of 8 B, in a pool.
///
/// Every operation is durable when it returns, in the domain of the pool's medium, and is atomic:
/// after a crash an operation in flight has happened wholly or not at all. Operations may be called
/// from any number of threads; each is linearizable by itself, a scan key by key.
///
/// A `dyn PmIndex<M, K>` is an index of some design; see [`ErasedDesign`](crate::ErasedDesign).
pub trait PmIndex<M: Medium, K: Key>: Send + Sync + 'static {
    /// Makes an empty index under the root called `root`.
    ///
    /// # Errors
    /// The name is taken or unfit, or the pool is full.
    fn create(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError>
    where
        Self: Sized;

    /// Opens the index under the root called `root`. After a crash (`opened` says so) it is
    /// recovered: its blocks are marked, and once everything under this root is marked, the design
    /// calls [`Pool::finish_recovery`] itself before it repairs anything that needs a new block.
    /// A pool so holds one index for now.
    ///
    /// # Errors
    /// The root is missing or another design's, or what it reaches is damaged.
    fn open(pool: Arc<Pool<M>>, root: &str, opened: Opened) -> Result<Self, TreeError>
    where
        Self: Sized;

    /// The pool that the index is in.
    fn pool(&self) -> &Arc<Pool<M>>;

    /// The value of `key`.
    ///
    /// # Errors
    /// Damage on the way; so for every operation below.
    fn get(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError>;

    /// The values of `keys`, in their order, with the memory accesses of several keys in flight at
    /// once. `values` must be as long as `keys`.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    fn multi_get(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<(), TreeError>;

    /// Adds `key` if it is absent; else changes nothing and gives the value that is there.
    ///
    /// # Errors
    /// The pool is full, or as [`get`](Self::get).
    fn insert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError>;

    /// Changes the value of `key` if it is present, and gives the former one.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    fn update(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError>;

    /// Adds `key` or changes its value; gives the former value.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    fn upsert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError>;

    /// Takes `key` out and gives its value. Nodes that empty are merged or freed.
    ///
    /// # Errors
    /// As [`get`](Self::get); a full pool is no obstacle.
    fn remove(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError>;

    /// Shows the pairs between the bounds to `visit`, in order, until it breaks. Each key is shown
    /// at most once and in order whatever other threads do; a pair that is there all the time is
    /// shown for certain. `visit` is called without a latch held.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    fn scan(
        &self,
        bounds: (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
        order: Order,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), TreeError>;

    /// Does a step of the work that the design puts off, such as to shorten a log: as much as an operation would
    /// do of it at once, see [`MaintenanceCost`]. False if there is nothing to do now, or others are at all of it. No pair
    /// changes, and what was done is durable at return. Anybody may call it whenever anybody may write; it is meant for a
    /// [`keeper`](Self::maintainer), which does something else for a while when it is told false.
    ///
    /// # Errors
    /// As [`get`](Self::get); in a full pool it does what can be done.
    fn run_maintenance_step(&self) -> Result<bool, TreeError> {
        Ok(false)
    }

    /// Registers a keeper, who is to call [`tend`](Self::run_maintenance_step) again and again until this is dropped; `None` if
    /// the design puts nothing off. While an index has maintainers, its operations leave to them what is put off, and
    /// step in only where they find no room, or where twice as much has gathered as is usual: so memory stays
    /// bounded though a keeper stalls. Several keepers share the work where the design has several logs.
    ///
    /// ```
    /// use bristlecone_pmem::{Mapped, Pool};
    /// use bristlecone_trees::ErasedDesign;
    /// use bristlecone_trees::designs::BTreeLs;
    /// use std::sync::Arc;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Arc::new(Pool::create(Mapped::anonymous(1 << 20)?)?);
    /// let index = (ErasedDesign::<Mapped, u64>::of::<BTreeLs<512>>().create)(pool, "numbers")?;
    /// let keeper = index.maintainer().expect("logs are collected");
    /// for value in 0..1000 {
    ///     index.upsert(1, value)?; // Most often by another thread.
    ///     while index.run_maintenance_step()? {}
    /// }
    /// drop(keeper); // From now on operations do it again.
    /// # Ok(())
    /// # }
    /// ```
    fn maintainer(&self) -> Option<Maintainer> {
        None
    }

    /// Walks all of it and checks every structural invariant: order, separators, that descent and
    /// chain reach the same leaves, that every block is reserved in the pool. Nobody may write
    /// meanwhile.
    ///
    /// # Errors
    /// The first thing that is wrong.
    fn check(&self) -> Result<TreeStats, TreeError>;

    /// Ends the use of the index, saving whatever makes the next open after a clean
    /// [`Pool::close`] fast. The pool stays open. Boxed, so that it can be called on `dyn PmIndex`.
    ///
    /// # Errors
    /// The pool is full; nothing is lost, the next open takes longer.
    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError>;
}
