//! The public interface of a tree: [`PmIndex`], which every design implements, and its types.

use crate::key::{Entry, Key};
use crate::maintenance::Maintainer;
use crate::spec::{Cost, Spec};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool, PoolError};
use core::ops::{Bound, ControlFlow};
use std::sync::Arc;
use thiserror::Error;

/// The error type of [`PmIndex`].
///
/// After an error no pair has changed, with one exception: an insert, update or remove that meets
/// damage late, in an inner node or in a node that it splits or merges, may have changed its own
/// key. In hybrid designs a remove that has changed its key succeeds: damage that it meets after
/// that is reported by the next operation that reads it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TreeError {
    /// The pool refused: most often it is full or damaged. Removing works in a full pool.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The pool has no root with that name, or the root belongs to another design, node size or
    /// kind of key.
    #[error(
        "the root is of kind {found:#x} (0: there is no such root), not {expected:#x}; open it with the design, node size and key type that created it"
    )]
    Foreign {
        /// The kind that this design, node size and kind of key has: [`Spec::kind`].
        expected: u64,
        /// The kind of the root in the pool, or 0 if there is no root with that name.
        found: u64,
    },
    /// The pool was not closed, and has other roots. A recovery frees the blocks that the index
    /// does not reach, so it would free theirs. Nothing has changed.
    #[error(
        "the pool was not closed and has {roots} roots; a recovery of one would free the blocks of \
         the others; create each index in a pool of its own"
    )]
    Shared {
        /// The number of roots of the pool.
        roots: usize,
    },
    /// The design is volatile: the contents of its trees end with their process, so nothing can be
    /// opened.
    #[error(
        "{0} is volatile: its contents end with their process; create a new index in a new pool"
    )]
    Volatile(&'static str),
    /// A bulk load into an index that has pairs, or leaves that removals have emptied.
    #[error(
        "the index has pairs, or leaves without any; a bulk load fills a new one; insert instead"
    )]
    NotEmpty,
    /// A bulk load of pairs whose keys do not ascend strictly.
    #[error("the keys of a bulk load do not ascend strictly; sort the pairs")]
    Unsorted,
    /// A bulk load into an index of a design that has none.
    #[error("this design has no bulk load; insert instead")]
    NoBulkLoad,
    /// A batch for an index of a design that has none.
    #[error("this design has no batches; write one pair after the other")]
    NoBatch,
}

impl From<Corrupt> for TreeError {
    fn from(corrupt: Corrupt) -> Self {
        Self::Pool(corrupt.into())
    }
}

/// Returns the root block of the index called `root`, whose root must be of kind `expected`.
pub(crate) fn find_root<M: Medium>(
    pool: &Pool<M>,
    root: &str,
    expected: u64,
) -> Result<PmPtr, TreeError> {
    let all = pool.roots()?;
    let found = all.iter().find(|found| found.name == root);
    let Some(found) = found.filter(|found| found.kind == expected) else {
        return Err(TreeError::Foreign { expected, found: found.map_or(0, |root| root.kind) });
    };
    if pool.is_recovering() && all.len() > 1 {
        return Err(TreeError::Shared { roots: all.len() });
    }
    Ok(found.block)
}

/// The write mode: whether a write adds an absent key, replaces the value of a present one, or
/// either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// Adds the pair if the key is absent. Leaves the value of a present key unchanged.
    Insert,
    /// Replaces the value of a present key. Does not add an absent key.
    Update,
    /// Adds the pair if the key is absent, or replaces the value.
    Upsert,
}

/// The order in which a scan visits the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The order from the least key to the greatest.
    Ascending,
    /// The order from the greatest key to the least.
    Descending,
}

/// The size of an index, as [`PmIndex::check`] counted it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeStats {
    /// The number of pairs.
    pub keys: u64,
    /// The number of leaves.
    pub leaves: u64,
    /// The number of inner nodes, in persistent memory or in DRAM.
    pub inner_nodes: u64,
    /// The number of levels, the level of the leaves included.
    pub height: u32,
    /// The number of blocks of the pool that the index reaches, its root block and key records
    /// included.
    pub blocks: u64,
    /// The bytes that those blocks take in the pool, rounded up to the sizes that the pool hands
    /// out.
    pub pm_bytes: u64,
    /// The bytes of DRAM that the index has allocated for inner nodes, tables and buffers.
    pub dram_bytes: u64,
}

impl TreeStats {
    /// Counts `block`, if there is one. Fails if the pool says that the block is free.
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

/// The cost of deferred work, such as log garbage collection, that writes do now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaintenanceCost {
    /// The upper bound of the cost that one operation pays on top of its [`Budget`](crate::Budget).
    pub most: Cost,
    /// The number N such that at most one operation in N exceeds its budget.
    pub every: u64,
}

/// A design at one node size: a row of the registry. Tests and tools are generic over it.
pub trait Design: Send + Sync + 'static {
    /// The name, source, budget and features of the design.
    const SPEC: Spec;
    /// The cost of the work that writes do on top of the budget; `None` if they do none.
    const MAINTENANCE: Option<MaintenanceCost> = None;
    /// The index type of this design on medium `M` with keys of kind `K`.
    type Index<M: Medium, K: Key>: PmIndex<M, K>;
}

/// An ordered map in a pool, from keys of kind `K` to values of 8 B.
///
/// # Durability
///
/// Every change is durable when its method returns, in the persistence domain of the pool's medium.
/// It is failure-atomic: recovery after a crash finds a change that was under way completely done
/// or not done at all. A value that a read returns is durable, too: a writer keeps its latch until
/// its last fence. None of this holds for designs whose [`Spec::persistent`] is false.
///
/// # Threads
///
/// Any number of threads may call all methods but [`check`](Self::check) and [`close`](Self::close)
/// at the same time. Each operation on one key is linearizable. A [`scan`](Self::scan) is not a
/// snapshot: it is linearizable only for each key by itself. Reads take no latch, but those of
/// `wo-tree` share the latch of a leaf, and those of `btree-native` every latch on the way. A read
/// waits only while a writer holds the latch of a node that it needs, and it restarts if a writer
/// changed the node.
///
/// # Errors
///
/// An operation that meets damage fails with [`TreeError::Pool`] of a [`PoolError::Corrupt`], which
/// names the offset. An operation that needs a block fails with [`PoolError::Full`] if the pool has
/// no space and cannot grow. [`TreeError`] says what may have changed then.
///
/// A `dyn PmIndex<M, K>` is an index of some design; see [`ErasedDesign`](crate::ErasedDesign).
pub trait PmIndex<M: Medium, K: Key>: Send + Sync + 'static {
    /// Creates an empty index under the root called `root`. Durable on return: after a crash before
    /// that, the pool has no such root and the blocks are free. The pool should have no other root:
    /// [`open`](Self::open) says why.
    ///
    /// # Errors
    /// - [`PoolError::RootExists`]: the name is taken.
    /// - [`PoolError::RootName`]: the name is empty or over 39 bytes.
    /// - [`PoolError::RootsFull`]: all 64 roots of the pool are in use.
    /// - [`PoolError::Full`]: the pool has no space for the first nodes.
    fn create(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError>
    where
        Self: Sized;

    /// Opens the index under the root called `root`.
    ///
    /// After a clean close (`opened` is [`Opened::Clean`]) there is nothing to recover, and hybrid
    /// designs load the inner nodes that the close saved. After a crash this takes O(n): it marks
    /// every block that the index reaches, finishes changes that the crash interrupted, and
    /// rebuilds what the design keeps in DRAM.
    ///
    /// The design itself calls [`Pool::finish_recovery`], which frees all unmarked blocks, before
    /// it repairs anything that needs a new block. Blocks of a second index would be unmarked then,
    /// so a pool holds one index, and no other root.
    ///
    /// # Errors
    /// - [`TreeError::Foreign`]: there is no root with that name, or it belongs to another design,
    ///   node size or kind of key.
    /// - [`TreeError::Shared`]: the pool was not closed, and has other roots.
    /// - [`TreeError::Volatile`]: the design is volatile.
    /// - [`PoolError::Corrupt`]: a block that the index reaches is damaged.
    fn open(pool: Arc<Pool<M>>, root: &str, opened: Opened) -> Result<Self, TreeError>
    where
        Self: Sized;

    /// Returns the pool that holds the index.
    fn pool(&self) -> &Arc<Pool<M>>;

    /// Returns the value of `key`, or `None` if the key is absent.
    ///
    /// # Errors
    /// [`PoolError::Corrupt`]: a node on the path to `key` is damaged. This holds for every
    /// operation below.
    fn get(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError>;

    /// Looks up all of `keys`: `values[i]` becomes the value of `keys[i]`, or `None` if it is
    /// absent.
    ///
    /// Several lookups run interleaved, so that their cache misses overlap. Each lookup is
    /// linearizable; all of them together are not one atomic operation.
    ///
    /// # Panics
    /// `values` is not as long as `keys`.
    ///
    /// # Errors
    /// As [`get`](Self::get). The contents of `values` are then unspecified.
    fn multi_get(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<(), TreeError>;

    /// Adds `key` with `value` if the key is absent and returns `None`. If the key is present,
    /// changes nothing and returns its value. Durable on return.
    ///
    /// # Errors
    /// As [`get`](Self::get), and [`PoolError::Full`]: the pool has no space for a split or the
    /// key's record.
    fn insert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError>;

    /// Sets the value of `key` if the key is present, and returns the old value. If the key is
    /// absent, changes nothing and returns `None`. Durable on return.
    ///
    /// # Errors
    /// As [`insert`](Self::insert): designs that write a leaf or a log record again need space.
    fn update(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError>;

    /// Sets the value of `key`, whether it is present or not, and returns the old value, if any.
    /// Durable on return.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    fn upsert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError>;

    /// Removes `key` and returns its value, or `None` if the key was absent. Durable on return.
    ///
    /// A node that becomes sparse is merged with a neighbour, and its block is retired: the pool
    /// can reuse it after every reader that may still read it has unpinned.
    ///
    /// # Errors
    /// As [`get`](Self::get). A full pool does not make this fail.
    fn remove(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError>;

    /// Fills the empty index with `pairs`, whose keys ascend strictly. Fills each node to
    /// `fill_percent` of its capacity, level by level from the leaves up. The last node of a level
    /// may have fewer entries.
    ///
    /// All or nothing, and durable on return: a crash before that leaves the empty index. Other
    /// threads may use the index meanwhile; they find it empty until the load ends. The default is
    /// that of a design without a bulk load: it fails.
    ///
    /// # Panics
    /// `fill_percent` is not within 1 and 100.
    ///
    /// # Errors
    /// No pair has been added.
    /// - [`TreeError::NotEmpty`]: the index has pairs or emptied leaves, or another thread has
    ///   added a pair.
    /// - [`TreeError::Unsorted`]: a key is not greater than the one before.
    /// - [`TreeError::NoBulkLoad`]: the design has no bulk load.
    /// - [`PoolError::Full`]: the pool has no space for all pairs.
    fn bulk_load(
        &self,
        _pairs: &mut dyn Iterator<Item = (K::Owned, u64)>,
        _fill_percent: u32,
    ) -> Result<(), TreeError> {
        Err(TreeError::NoBulkLoad)
    }

    /// Sets each key of `changes`, which ascend strictly, to its new value, or removes it for
    /// `None`: all or nothing for a crash and for operations on single keys. Returns the former
    /// values. Durable on return. The default is that of a design without batches: it fails.
    ///
    /// # Errors
    /// No pair has changed.
    /// - [`TreeError::NoBatch`]: the design has no batches.
    /// - Those of [`insert`](Self::insert), for any key.
    fn commit(
        &self,
        _changes: &[(K::Ref<'_>, Option<u64>)],
    ) -> Result<Vec<Option<u64>>, TreeError> {
        Err(TreeError::NoBatch)
    }

    /// Calls `visit` with each pair whose key lies within `bounds`, in `order`, until `visit`
    /// breaks.
    ///
    /// The scan visits each key at most once and in order, whatever other threads do. It visits
    /// every key that is present throughout the scan; a key that is inserted or removed meanwhile
    /// may be missing. Each pair was current at some moment of the scan; when `visit` gets it, it
    /// may have been replaced. The scan holds no latch while it calls `visit`, so `visit` may call
    /// methods of the same index. It pins an epoch until it returns: meanwhile the pool cannot
    /// reuse space that any thread frees.
    ///
    /// # Errors
    /// As [`get`](Self::get): pairs before the damage have been visited.
    fn scan(
        &self,
        bounds: (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
        order: Order,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), TreeError>;

    /// Runs one step of deferred work, such as log garbage collection: at most as much as one write
    /// would do, see [`MaintenanceCost`]. Returns `false` if no work is due or other threads are
    /// doing all of it.
    ///
    /// Changes no pair. The step is durable on return. Any thread may call this at any time; it is
    /// meant for a maintenance worker that holds a [`maintainer`](Self::maintainer), calls it in a
    /// loop and pauses after `false`. The default does nothing and returns `false`.
    ///
    /// # Errors
    /// As [`get`](Self::get). In a full pool it does the steps that need no new block.
    fn run_maintenance_step(&self) -> Result<bool, TreeError> {
        Ok(false)
    }

    /// Registers a maintenance worker until the returned [`Maintainer`] is dropped. Returns `None`
    /// if the design defers no work.
    ///
    /// The worker should call [`run_maintenance_step`](Self::run_maintenance_step) in a loop. While
    /// a worker is registered, writes leave the deferred work to it. They do it themselves if they
    /// find no space, or if twice as much garbage as usual has gathered; so the index stays bounded
    /// though a worker stalls. Several workers share the work of a design that has several logs.
    ///
    /// ```
    /// use bristlecone_pmem::{Mapped, Pool};
    /// use bristlecone_trees::ErasedDesign;
    /// use bristlecone_trees::designs::BTreeLsR;
    /// use std::sync::Arc;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Arc::new(Pool::create(Mapped::anonymous(1 << 20)?)?);
    /// let index = (ErasedDesign::<Mapped, u64>::of::<BTreeLsR<512>>().create)(pool, "numbers")?;
    /// let maintainer = index.maintainer().expect("btree-ls-r has logs to collect");
    /// for value in 0..1000 {
    ///     index.upsert(1, value)?; // in a real program, another thread writes
    ///     while index.run_maintenance_step()? {}
    /// }
    /// drop(maintainer); // from now on writes collect the logs again
    /// # Ok(())
    /// # }
    /// ```
    fn maintainer(&self) -> Option<Maintainer> {
        None
    }

    /// Walks the whole index and checks every structural invariant, then returns its size. The
    /// checks include: keys and separators are in order, a descent and the chain of leaves reach
    /// the same leaves, and every block is reserved in the pool.
    ///
    /// No thread may write to the index meanwhile: a check beside a writer may report damage that
    /// is not there.
    ///
    /// # Errors
    /// [`PoolError::Corrupt`]: the first violation that the walk meets.
    fn check(&self) -> Result<TreeStats, TreeError>;

    /// Ends the use of the index and returns its pool, which stays open. No other thread may use
    /// the index meanwhile.
    ///
    /// Saves what makes the open after a clean [`Pool::close`] fast, such as inner nodes that are
    /// in DRAM. Dropping the index instead loses no pair. `self` is boxed so that this can be
    /// called on a `Box<dyn PmIndex>`.
    ///
    /// # Errors
    /// [`PoolError::Full`]: there is no space to save in. No pair is lost; the next open is slower.
    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError>;
}
