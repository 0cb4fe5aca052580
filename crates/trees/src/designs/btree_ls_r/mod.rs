//! `btree-ls-r`: a log-structured B+-tree. A leaf is a chain of records, one base and its deltas,
//! in a log.
//!
//! See `docs/designs/btree-ls-r.md` for the source, the budget and the mechanisms.
//!
//! 1. A leaf consists of a base and the deltas after it, all of them records in one log. The valid
//!    base is the one with the greatest sequence number; the valid deltas are those whose numbers
//!    follow it. A mapping table in DRAM points to these records, and inner nodes point to the
//!    table. Recovery rebuilds both from the logs.
//! 2. Leaves form a list in key order: each base names the number of the leaf to the right, and
//!    leaf 0 is the first. Records of a leaf that is not in the list do not count. A leaf number is
//!    never reused.
//! 3. A change is a record that is durable before it is visible. The table changes only under the
//!    leaf's latch, which is released after the last fence. So no crash can undo a result that a
//!    reader validated.
//! 4. A key has the same key word in all records of a chain, even after it was removed. Its key
//!    record is retired when a base without the key is durable.
//! 5. Latch order: the collector latch of a log, then leaves, then inner nodes, then the log's own
//!    latch. A thread that holds an inner-node latch only try-latches leaves; a thread that holds a
//!    log's latch waits for no other. So no deadlock is possible.
//!
//! | module | contents |
//! | --- | --- |
//! | `tuning` | the parameters: number of logs, threshold of log GC, length of chains |
//! | `record` | bases and deltas |
//! | `chunk`, `log`, `space` | storage of records: chunks, rings of chunks, and their space |
//! | `table`, `chain` | the mapping table; the contents of a chain |
//! | `write`, `smo` | write operations; splits and merges |
//! | `bulk` | bulk loads |
//! | `collect` | log garbage collection |
//! | `leaf_table` | the read side of a leaf |
//! | `replay`, `recover`, `check` | reading the logs; creating and opening; checking |

mod bulk;
mod chain;
mod check;
mod chunk;
mod collect;
mod leaf_table;
pub(in crate::designs) mod log;
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

/// btree-LS with leaves of as many pairs as fit in a node of `NODE` bytes.
#[derive(Debug)]
pub struct BTreeLsR<const NODE: usize, T = Standard>(PhantomData<fn() -> T>);

/// The size of a pair in bytes.
const ITEM_BYTES: usize = 16;

impl<const NODE: usize, T: Tuning> Design for BTreeLsR<NODE, T> {
    const SPEC: Spec = Spec {
        name: "btree-ls-r",
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
    type Index<M: Medium, K: Key> = BTreeLsRIndex<M, K, NODE, T>;
}

impl<const NODE: usize, T: Tuning> BTreeLsR<NODE, T> {
    /// Returns the kind of the index's root. Each [`Tuning::LAYOUT`] has another one.
    const fn kind<K: Key>() -> u64 {
        Self::SPEC.kind::<K>() ^ T::LAYOUT
    }
}

/// A btree-LS index in a pool.
pub struct BTreeLsRIndex<M: Medium, K: Key, const NODE: usize, T: Tuning = Standard> {
    pool: Arc<Pool<M>>,
    root: PmPtr,
    /// The inner nodes. Their leaf offsets are indices of the mapping table.
    inner: Inner<M>,
    table: Table,
    log: LeafLogs<M, T>,
    maintainers: Maintainers,
    /// The number of the next new leaf.
    next_leaf: AtomicU64,
    key: PhantomData<fn() -> K>,
}

impl<M: Medium, K: Key, const NODE: usize, T: Tuning> fmt::Debug for BTreeLsRIndex<M, K, NODE, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BTreeLsRIndex").field("root", &self.root).finish_non_exhaustive()
    }
}

impl<M: Medium, K: Key, const NODE: usize, T: Tuning> BTreeLsRIndex<M, K, NODE, T> {
    /// The most pairs of a leaf.
    const CAPACITY: usize = {
        assert!(
            NODE >= 128 && NODE / ITEM_BYTES <= table::ITEMS_MAX,
            "a leaf has 8 to 64 pairs of 16 bytes"
        );
        NODE / ITEM_BYTES
    };

    fn root_words(&self) -> Result<&[PmWord], Corrupt> {
        self.pool.words(self.root, root_words::<T>())
    }
}

impl<M: Medium, K: Key, const NODE: usize, T: Tuning> PmIndex<M, K>
    for BTreeLsRIndex<M, K, NODE, T>
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
    fn bulk_load(
        &self,
        pairs: &mut dyn Iterator<Item = (K::Owned, u64)>,
        fill_percent: u32,
    ) -> Result<(), TreeError> {
        self.load_pairs(pairs, fill_percent)
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
