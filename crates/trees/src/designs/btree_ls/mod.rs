//! `btree-ls`: a log-structured B+-tree as its report describes it. A leaf is a chain of records in
//! a log, the newest first, from the deltas to a base.
//!
//! See `docs/designs/btree-ls.md` for the source, the budget and the mechanisms.
//!
//! 1. A mapping table in DRAM points to the newest record of each leaf, and each delta points to
//!    the record before it. All records of a leaf are in one log. Inner nodes in DRAM point to the
//!    table. Recovery rebuilds both from the logs.
//! 2. The range of a leaf is in its base. A split replaces a leaf by two new ones; a merge lets the
//!    left leaf take the range of the right one. A leaf number is never reused.
//! 3. The end record of a leaf commits a split or a merge: the bases that wait for it count from
//!    then on, and the leaf that it ends does not.
//! 4. A change is a record that is durable before it is visible. The table changes only under the
//!    leaf's latch, which is released after the last fence. So no crash can undo a result that a
//!    reader validated.
//! 5. A key has the same key word in all records of a chain, even after it was removed. Its key
//!    record is retired when a base without the key is durable.
//! 6. Latch order: the collector latch of a log, then leaves, then inner nodes, then the log's own
//!    latch. A thread that holds an inner-node latch only try-latches leaves; a thread that holds a
//!    log's latch waits for no other. The second leaf of a split is latched before any thread but
//!    a collector can find it. So no deadlock is possible.
//!
//! | module | contents |
//! | --- | --- |
//! | `tuning` | the parameters: logs, threshold of log GC, pointers in a row, replay threads |
//! | `record` | bases, deltas and end records |
//! | `segment`, `log`, `space` | the circular buffers: segments, appends, space |
//! | `table`, `chain` | the mapping table; the walk along a chain |
//! | `write`, `smo` | write operations; splits and merges |
//! | `collect` | log garbage collection |
//! | `leaf_table` | the read side of a leaf |
//! | `replay`, `recover`, `check` | reading the logs; creating and opening; checking |

mod chain;
mod check;
mod collect;
mod leaf_table;
mod log;
mod record;
mod recover;
mod replay;
mod segment;
mod smo;
mod space;
mod table;
#[cfg(test)]
mod tests;
mod tuning;
mod write;

use crate::index::{Design, MaintenanceCost, Order, PmIndex, TreeError, TreeStats, WriteMode};
use crate::inner::{Inner, LinearSearch};
use crate::key::{Entry, Key};
use crate::leaf_table::{Operation, get, multi_get, scan};
use crate::maintenance::{Maintainer, Maintainers};
use crate::spec::{Budget, Cost, SELECTIVE, Spec};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use core::sync::atomic::AtomicU64;
use log::{CircularLogs, root_words};
use std::sync::Arc;
use table::ChainTable;

pub use tuning::{GC_OFF, LsChoice, LsOptions, LsUsual};

/// btree-LS with leaves of as many pairs as fit in a node of `NODE` bytes.
#[derive(Debug)]
pub struct BTreeLs<const NODE: usize, T = LsUsual>(PhantomData<fn() -> T>);

/// The size of a pair in bytes.
const ITEM_BYTES: usize = 8 * Entry::WIDE_WORDS;

impl<const NODE: usize, T: LsOptions> Design for BTreeLs<NODE, T> {
    const SPEC: Spec = Spec {
        name: "btree-ls",
        source: "Ni et al., Closing the Performance Gap between DRAM and PM, UCSC-CRSS-20-01, 2020",
        persistent: true,
        node_bytes: NODE,
        budget: Budget {
            insert: Cost::new(1, 1),
            update: Cost::new(1, 1),
            remove: Cost::new(1, 1),
        },
        relies_on_line_order: true,
        features: &[
            SELECTIVE,
            "log-structured",
            "optimistic-latches",
            "parallel-recovery",
            "multi-get",
        ],
    };
    const MAINTENANCE: Option<MaintenanceCost> = Some(collect::maintenance_cost(NODE / ITEM_BYTES));
    type Index<M: Medium, K: Key> = BTreeLsIndex<M, K, NODE, T>;
}

impl<const NODE: usize, T: LsOptions> BTreeLs<NODE, T> {
    /// Returns the kind of the index's root. Each [`LsOptions::LAYOUT`] has another one.
    const fn kind<K: Key>() -> u64 {
        Self::SPEC.kind::<K>() ^ T::LAYOUT
    }
}

/// A btree-LS index in a pool.
pub struct BTreeLsIndex<M: Medium, K: Key, const NODE: usize, T: LsOptions = LsUsual> {
    pool: Arc<Pool<M>>,
    root: PmPtr,
    /// The inner nodes. Their leaf offsets are indices of the mapping table.
    inner: Inner<M, LinearSearch>,
    table: ChainTable,
    log: CircularLogs<M, T>,
    maintainers: Maintainers,
    /// The number of the next new leaf.
    next_leaf: AtomicU64,
    key: PhantomData<fn() -> K>,
}

impl<M: Medium, K: Key, const NODE: usize, T: LsOptions> fmt::Debug
    for BTreeLsIndex<M, K, NODE, T>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BTreeLsIndex").field("root", &self.root).finish_non_exhaustive()
    }
}

impl<M: Medium, K: Key, const NODE: usize, T: LsOptions> BTreeLsIndex<M, K, NODE, T> {
    /// The most pairs of a leaf.
    const CAPACITY: usize = {
        assert!(
            NODE >= 256 && NODE / ITEM_BYTES <= table::ITEMS_MAX,
            "a leaf has 8 to 64 pairs of 32 bytes"
        );
        NODE / ITEM_BYTES
    };

    fn root_words(&self) -> Result<&[PmWord], Corrupt> {
        self.pool.words(self.root, root_words::<T>())
    }
}

impl<M: Medium, K: Key, const NODE: usize, T: LsOptions> PmIndex<M, K>
    for BTreeLsIndex<M, K, NODE, T>
{
    fn create(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        Self::create_at(pool, root)
    }
    fn open(pool: Arc<Pool<M>>, root: &str, opened: Opened) -> Result<Self, TreeError> {
        Self::open_at(pool, root, opened)
    }
    fn pool(&self) -> &Arc<Pool<M>> {
        &self.pool
    }
    #[inline]
    fn get(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        get(self, key)
    }
    fn multi_get(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<(), TreeError> {
        multi_get(self, keys, values)
    }
    #[inline]
    fn insert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.write(key, Operation::Write(WriteMode::Insert, value))
    }
    #[inline]
    fn update(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.write(key, Operation::Write(WriteMode::Update, value))
    }
    #[inline]
    fn upsert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.write(key, Operation::Write(WriteMode::Upsert, value))
    }
    #[inline]
    fn remove(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        self.write(key, Operation::Remove)
    }
    fn scan(
        &self,
        bounds: (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
        order: Order,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        scan(self, bounds, order, visit)
    }
    fn run_maintenance_step(&self) -> Result<bool, TreeError> {
        self.collect_worst_log()
    }
    fn maintainer(&self) -> Option<Maintainer> {
        Some(self.maintainers.register())
    }
    fn check(&self) -> Result<TreeStats, TreeError> {
        self.collect_stats()
    }
    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError> {
        Ok(self.pool)
    }
}
