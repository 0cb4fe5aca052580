//! `ccl-btree`: CCL-BTree. Leaves of 256 B in the pool, each with a write buffer in DRAM, and logs
//! that make the buffered writes durable.
//!
//! See `docs/designs/ccl-btree.md` for the source, the budget and the departures.
//!
//! 1. Leaves form a list in key order. The root block points to the first leaf, which only a bulk
//!    load frees. Recovery rebuilds inner nodes and buffers from the list and the logs.
//! 2. The newest acknowledged write of each key is in the leaf whose range contains the key, or in
//!    a log with a stamp above that leaf's. A log entry does not count if its stamp is not above
//!    that leaf's. So a leaf that takes over a range gets a stamp no lower than any log entry of a
//!    key in the range: a split's right leaf, and the left neighbour of a leaf that is unlinked.
//! 3. A leaf and its buffer change only under the buffer's latch, which is released after the last
//!    fence. So no crash can undo a result that a reader validated.
//! 4. A leaf always has space for the buffered keys that it does not contain. So a buffer settles,
//!    and recovery replays, without a split and without a new block.
//! 5. A thread that holds a buffer's latch may wait for inner nodes and log lanes. A thread that
//!    holds an inner node's or a lane's latch only try-latches others. A collector waits for
//!    buffers; other threads only try-latch the collector. So no deadlock is possible.
//!
//! | module | contents |
//! | --- | --- |
//! | `layout` | the bytes of a leaf |
//! | `buffer` | buffer nodes |
//! | `settle` | the commit of a batch into a leaf |
//! | `chunk`, `log` | entries and chunks; logs of threads, and epochs |
//! | `bulk` | bulk loads |
//! | `write`, `smo` | write operations; splits and the removal of empty leaves |
//! | `collect` | log garbage collection |
//! | `techniques` | what the lab leaves out |
//! | `leaf_table` | the read side of a leaf and its buffer |
//! | `recover`, `check` | creating, opening, closing; checking |

mod buffer;
mod bulk;
mod check;
mod chunk;
mod collect;
mod layout;
mod leaf_table;
mod log;
mod recover;
mod settle;
mod smo;
pub mod techniques;
#[cfg(test)]
mod tests;
mod write;

use crate::index::{Design, MaintenanceCost, Order, PmIndex, TreeError, TreeStats, WriteMode};
use crate::inner::FastNodes;
use crate::key::{Entry, Key};
use crate::leaf_table::{Operation, get, multi_get, scan};
use crate::maintenance::{Maintainer, Maintainers};
use crate::spec::{Budget, Cost, SELECTIVE, Spec};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};
use buffer::Buffers;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use layout::LeafView;
use log::LaneLogs;
use std::sync::Arc;
use techniques::{Published, Techniques};

/// CCL-BTree with buffers of `BATCH` writes, 0 to 8; the paper's choice is 2.
#[derive(Debug)]
pub struct CclBTree<const BATCH: usize, T = Published>(PhantomData<T>);

impl<const BATCH: usize, T> CclBTree<BATCH, T> {
    /// Returns the most lines of a leaf, the first excepted, that `entries` entries can touch.
    const fn lines(entries: usize) -> u32 {
        if entries < 3 { entries as u32 } else { 3 }
    }
}

impl<const BATCH: usize, T: Techniques> Design for CclBTree<BATCH, T> {
    const SPEC: Spec = Spec {
        name: "ccl-btree",
        source: "Li et al., CCL-BTree, EuroSys 2024",
        persistent: true,
        node_bytes: layout::BYTES as usize,
        // The cost of the most expensive write of a batch, the one that settles the buffer.
        budget: Budget {
            insert: Cost::new(Self::lines(BATCH + 1) + 1, 2),
            update: match BATCH {
                0 => Cost::new(1, 1),
                _ => Cost::new(Self::lines(BATCH + 1) + 1, 2),
            },
            remove: match BATCH {
                0 => Cost::new(1, 1),
                _ => Cost::new(Self::lines(BATCH) + 1, 2),
            },
        },
        relies_on_line_order: true,
        features: &[
            SELECTIVE,
            "fingerprints",
            "buffered-leaves",
            "write-ahead-log",
            "optimistic-latches",
            "multi-get",
        ],
    };
    const MAINTENANCE: Option<MaintenanceCost> = match BATCH {
        0 => None,
        _ => Some(collect::maintenance_cost(BATCH)),
    };
    type Index<M: Medium, K: Key> = CclBTreeIndex<M, K, BATCH, T>;
}

/// The inner nodes: those of FAST & FAIR, of 512 B, in DRAM.
type InnerFast<M> = FastNodes<M, 64, { Entry::WORDS }>;

/// A CCL-BTree index in a pool.
pub struct CclBTreeIndex<M: Medium, K: Key, const BATCH: usize, T = Published> {
    pool: Arc<Pool<M>>,
    root: PmPtr,
    /// The inner nodes. Their leaf offsets are indices of buffer nodes.
    inner: InnerFast<M>,
    buffers: Buffers,
    log: LaneLogs<M>,
    maintainers: Maintainers,
    key: PhantomData<fn() -> (K, T)>,
}

impl<M: Medium, K: Key, const BATCH: usize, T: Techniques> fmt::Debug
    for CclBTreeIndex<M, K, BATCH, T>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CclBTreeIndex").field("root", &self.root).finish_non_exhaustive()
    }
}

impl<M: Medium, K: Key, const BATCH: usize, T: Techniques> CclBTreeIndex<M, K, BATCH, T> {
    #[inline(always)]
    fn leaf(&self, at: PmPtr) -> Result<LeafView<'_>, Corrupt> {
        LeafView::new(&self.pool, at)
    }

    #[inline(always)]
    fn node(&self, index: usize) -> buffer::BufferNode<'_> {
        self.buffers.node(index)
    }

    fn root_words(&self) -> Result<&[PmWord], Corrupt> {
        self.pool.words(self.root, log::ROOT_WORDS)
    }
}

impl<M: Medium, K: Key, const BATCH: usize, T: Techniques> PmIndex<M, K>
    for CclBTreeIndex<M, K, BATCH, T>
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
        Ok(self.try_collect_step(&self.pool.pin())?)
    }
    fn maintainer(&self) -> Option<Maintainer> {
        (BATCH > 0).then(|| self.maintainers.register())
    }
    fn check(&self) -> Result<TreeStats, TreeError> {
        self.collect_stats()
    }
    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError> {
        self.settle_all()?;
        Ok(self.pool)
    }
}
