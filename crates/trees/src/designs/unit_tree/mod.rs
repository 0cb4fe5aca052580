//! `unit-tree`: leaves of four media units, and logs that make the writes durable which the units
//! do not have yet; inner nodes, leaf rows and references to the logs in DRAM.
//!
//! See `docs/designs/unit-tree.md` for the persist orders and the reasons.
//!
//! 1. Leaves form a list in key order. The root block points to the first leaf, which stays.
//!    Recovery rebuilds inner nodes and rows from the list and the logs.
//! 2. The newest acknowledged write of each key is in the leaf whose range contains the key, or in
//!    a log record with a version above the stamp of the key's home unit there. A record counts
//!    only if its version is. So a leaf that takes over a range has stamps no lower than any record
//!    of a key in it.
//! 3. A leaf and its row change only under the row's latch, which is released after the last fence.
//!    So no crash can undo a result that a reader validated.
//! 4. A leaf always has slots for the referenced records of keys that it does not contain. So units
//!    settle without a split.
//! 5. A thread latches rows from left to right, inner nodes and log lanes after rows, and waits for
//!    no other latch while it holds a lane's. So no deadlock is possible.
//! 6. Keys with records are not logged: each write settles at once.
//!
//! | module | contents |
//! | --- | --- |
//! | `unit` | the bytes of a leaf |
//! | `rows` | the rows |
//! | `record`, `log` | lines and chunks of the logs; the logs of threads |
//! | `settle` | writing referenced records to a unit |
//! | `write`, `clean` | write operations; settling old records before their chunk is used again |
//! | `split`, `merge` | splits; merges of sparse leaves |
//! | `leaf_table` | the read side of a leaf and its row |
//! | `recover`, `refer` | creating, opening, recovering, closing; references to old records |
//! | `check` | checking |

mod check;
mod clean;
mod leaf_table;
mod log;
mod merge;
mod record;
mod recover;
mod refer;
mod rows;
mod settle;
mod split;
#[cfg(test)]
mod tests;
mod unit;
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
use log::Logs;
use rows::{Rows, UnitRow};
use std::sync::Arc;
use unit::UnitLeaf;

/// The unit tree with leaves of `BYTES` bytes: four units, of 256 B in one of 1024 B.
#[derive(Debug)]
pub struct UnitTree<const BYTES: usize>;

impl<const BYTES: usize> Design for UnitTree<BYTES> {
    const SPEC: Spec = Spec {
        name: "unit-tree",
        source: "this project",
        persistent: true,
        node_bytes: BYTES,
        budget: Budget {
            insert: Cost::new(1, 1),
            update: Cost::new(1, 1),
            remove: Cost::new(1, 1),
        },
        relies_on_line_order: true,
        features: &[
            SELECTIVE,
            "buffered-leaves",
            "write-ahead-log",
            "optimistic-latches",
            "multi-get",
        ],
    };
    const MAINTENANCE: Option<MaintenanceCost> = Some(settle::maintenance_cost(BYTES));
    type Index<M: Medium, K: Key> = UnitTreeIndex<M, K, BYTES>;
}

/// A unit tree in a pool.
pub struct UnitTreeIndex<M: Medium, K: Key, const BYTES: usize> {
    pool: Arc<Pool<M>>,
    root: PmPtr,
    /// The inner nodes. Their leaf offsets are numbers of rows.
    inner: Inner<M>,
    rows: Rows,
    log: Logs<M>,
    maintainers: Maintainers,
    key: PhantomData<fn() -> K>,
}

impl<M: Medium, K: Key, const BYTES: usize> fmt::Debug for UnitTreeIndex<M, K, BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnitTreeIndex").field("root", &self.root).finish_non_exhaustive()
    }
}

impl<M: Medium, K: Key, const BYTES: usize> UnitTreeIndex<M, K, BYTES> {
    /// Returns the leaf of `row`.
    #[inline(always)]
    fn leaf(&self, row: UnitRow<'_>) -> Result<UnitLeaf<'_, BYTES>, Corrupt> {
        UnitLeaf::new(&self.pool, row.leaf::<M>())
    }

    fn root_words(&self) -> Result<&[PmWord], Corrupt> {
        self.pool.words(self.root, log::ROOT_WORDS)
    }
}

impl<M: Medium, K: Key, const BYTES: usize> PmIndex<M, K> for UnitTreeIndex<M, K, BYTES> {
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
    fn insert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.write(key, Operation::Write(WriteMode::Insert, value))
    }
    fn update(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.write(key, Operation::Write(WriteMode::Update, value))
    }
    fn upsert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.write(key, Operation::Write(WriteMode::Upsert, value))
    }
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
        Ok(self.clean_any()?)
    }
    fn maintainer(&self) -> Option<Maintainer> {
        K::EXACT.then(|| self.maintainers.register())
    }
    fn check(&self) -> Result<TreeStats, TreeError> {
        self.collect_stats()
    }
    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError> {
        self.settle_all()?;
        Ok(self.pool)
    }
}
