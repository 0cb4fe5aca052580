//! `btree-ls`: a B+-tree whose leaves are chains of records in logs.
//!
//! See `docs/designs/btree-ls.md` for the source, the persist orders and the departures.
//!
//! 1. A leaf is a base and the deltas after it, records that lie in a log: the base with the greatest
//!    sequence number, and the deltas with the numbers that follow. The mapping table, in DRAM, leads to
//!    them; inner nodes lead to the table; both are rebuilt from the logs.
//! 2. LeafUpdate form a chain in key order from the first one, by their numbers; a base names the leaf to the
//!    right. What is said of a leaf that is not in the chain counts no more. Numbers are never used again.
//! 3. A change is a record, durable before it is seen: the table changes only while the leaf's latch is
//!    held, which is released after the last fence. So what a reader has validated, no crash undoes.
//! 4. A key has one key word as long as a chain has it, whether it is there or was removed. Its record goes
//!    when a base without it is durable.
//! 5. Who waits for what: a collector for leaves; who holds a leaf for inner nodes and logs; who holds an
//!    inner node for logs, but leaves it only tries; who holds a log for nobody.
//!
//! | module | what it is |
//! | --- | --- |
//! | `tuning` | what may be chosen: number of logs, when to collect, length of chains |
//! | `record` | bases and deltas |
//! | `chunk`, `log`, `room` | where records are: chunks, rings of them, and how full they may be |
//! | `table`, `chain` | the mapping table; what a chain comes to |
//! | `write`, `shape` | operations that write; splits and merges |
//! | `collect` | what keeps the logs short |
//! | `rows` | what operations read of a leaf |
//! | `replay`, `recover`, `check` | reading the logs; opening, closing; checking |

mod chain;
mod check;
mod chunk;
mod collect;
mod leaf_table;
mod log;
mod record;
mod recover;
mod replay;
mod smo;
mod space;
mod table;
#[cfg(test)]
mod tests;
mod tuning;
mod write;

use crate::index::{Design, MaintenanceCost, Order, PmIndex, TreeError, TreeStats, WriteMode};
use crate::inner::Inner;
use crate::key::Key;
use crate::leaf_table::{Operation, get, multi_get, scan};
use crate::maintenance::{Maintainer, Maintainers};
use crate::spec::{Budget, Cost, SELECTIVE, Spec};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use core::sync::atomic::AtomicU64;
use log::{LeafLogs, root_words};
use std::sync::Arc;
use table::Table;

pub use tuning::{Standard, Tuned, Tuning};

/// btree-LS with as many items in a leaf as lie in a node of `NODE` bytes.
#[derive(Debug)]
pub struct BTreeLs<const NODE: usize, T = Standard>(PhantomData<fn() -> T>);

/// Bytes of an item.
const ITEM_BYTES: usize = 16;

impl<const NODE: usize, T: Tuning> Design for BTreeLs<NODE, T> {
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
            "fingerprints",
            "optimistic-latches",
            "parallel-recovery",
            "multi-get",
        ],
    };
    const MAINTENANCE: Option<MaintenanceCost> = Some(collect::maintenance_cost(NODE / ITEM_BYTES));
    type Index<M: Medium, K: Key> = BTreeLsIndex<M, K, NODE, T>;
}

impl<const NODE: usize, T: Tuning> BTreeLs<NODE, T> {
    /// The number under which a root of it stands: another one for each layout.
    const fn kind<K: Key>() -> u64 {
        Self::SPEC.kind::<K>() ^ T::LAYOUT
    }
}

/// An index of it.
pub struct BTreeLsIndex<M: Medium, K: Key, const NODE: usize, T: Tuning = Standard> {
    pool: Arc<Pool<M>>,
    root: PmPtr,
    /// Leads from keys to entries of the mapping table: what it takes for a leaf's offset is an index.
    inner: Inner<M>,
    table: Table,
    log: LeafLogs<M, T>,
    maintainers: Maintainers,
    /// Number of the next leaf.
    next_leaf: AtomicU64,
    key: PhantomData<fn() -> K>,
}

impl<M: Medium, K: Key, const NODE: usize, T: Tuning> fmt::Debug for BTreeLsIndex<M, K, NODE, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BTreeLsIndex").field("root", &self.root).finish_non_exhaustive()
    }
}

impl<M: Medium, K: Key, const NODE: usize, T: Tuning> BTreeLsIndex<M, K, NODE, T> {
    /// Keys of a leaf.
    const CAPACITY: usize = {
        assert!(NODE >= 128 && NODE / ITEM_BYTES <= table::ITEMS_MAX, "the table has room for it");
        NODE / ITEM_BYTES
    };

    fn root_words(&self) -> Result<&[PmWord], Corrupt> {
        self.pool.words(self.root, root_words::<T>())
    }
}

impl<M: Medium, K: Key, const NODE: usize, T: Tuning> PmIndex<M, K>
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
        self.tend_worst()
    }
    fn maintainer(&self) -> Option<Maintainer> {
        Some(self.maintainers.register())
    }
    fn check(&self) -> Result<TreeStats, TreeError> {
        self.census()
    }
    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError> {
        Ok(self.pool)
    }
}
