//! `ccl-btree`: CCL-BTree. LeafUpdate of 256 B in the pool, a buffer in DRAM before each of them, and logs
//! of what the buffers hold.
//!
//! See `docs/designs/ccl-btree.md` for the source, the persist orders and the departures.
//!
//! 1. LeafUpdate form a chain in key order from the first one, which the root block names and which is
//!    never freed. Inner nodes and buffers are rebuilt from the chain and the logs.
//! 2. For each key the newest write that was acknowledged is in the leaf, or in a log with a stamp above
//!    the leaf's. What a log says of a leaf up to the leaf's stamp, or of a leaf that is not in the chain,
//!    counts no more. A leaf in a block that held one before has a stamp no less than that one's entries.
//! 3. A leaf and its buffer change only while the buffer's latch is held, which is released after the last
//!    fence: what a reader has validated, no crash undoes.
//! 4. There is always room in a leaf for the keys that its buffer has and it has not. So buffers settle,
//!    and recovery replays, without a split and without a block.
//! 5. Whoever holds a buffer's latch may wait for inner nodes and for lanes of the log; whoever holds an
//!    inner node's, or a lane's, only tries. A collector waits for buffers, and is only tried for.
//!
//! | module | what it is |
//! | --- | --- |
//! | `layout` | a leaf's bytes |
//! | `buffer` | buffer nodes |
//! | `settle` | the commit of a batch into a leaf |
//! | `chunk`, `log` | entries, chunks, lanes and epochs |
//! | `write`, `shape` | operations that write; splits and merges |
//! | `collect` | what keeps the logs short |
//! | `rows` | what operations read of a leaf |
//! | `recover`, `check` | opening, closing, checking |

mod buffer;
mod check;
mod chunk;
mod collect;
mod layout;
mod leaf_table;
mod log;
mod recover;
mod settle;
mod smo;
#[cfg(test)]
mod tests;
mod write;

use crate::index::{Design, MaintenanceCost, Order, PmIndex, TreeError, TreeStats, WriteMode};
use crate::inner::Inner;
use crate::key::Key;
use crate::leaf_table::{Operation, get, multi_get, scan};
use crate::maintenance::{Maintainer, Maintainers};
use crate::spec::{Budget, Cost, SELECTIVE, Spec};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::sync::pin;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};
use buffer::Buffers;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use core::sync::atomic::AtomicU64;
use layout::LeafView;
use log::LaneLogs;
use std::sync::Arc;

/// CCL-BTree with buffers of `BATCH` writes, 0 to 8; the paper's choice is 2.
#[derive(Debug)]
pub struct CclBTree<const BATCH: usize>;

impl<const BATCH: usize> CclBTree<BATCH> {
    /// The lines of a leaf beside the first in which so many entries may lie.
    const fn lines(entries: usize) -> u32 {
        if entries < 3 { entries as u32 } else { 3 }
    }
}

impl<const BATCH: usize> Design for CclBTree<BATCH> {
    const SPEC: Spec = Spec {
        name: "ccl-btree",
        source: "Li et al., CCL-BTree, EuroSys 2024",
        persistent: true,
        node_bytes: layout::BYTES as usize,
        // What the dearest write of a batch costs, the one that settles it.
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
    type Index<M: Medium, K: Key> = CclBTreeIndex<M, K, BATCH>;
}

/// An index of it.
pub struct CclBTreeIndex<M: Medium, K: Key, const BATCH: usize> {
    pool: Arc<Pool<M>>,
    root: PmPtr,
    /// Leads from keys to buffer nodes: what it takes for a leaf's offset is a node's index.
    inner: Inner<M>,
    buffers: Buffers,
    log: LaneLogs<M>,
    maintainers: Maintainers,
    /// No less than the stamp of any log entry of a leaf that was unlinked.
    floor: AtomicU64,
    key: PhantomData<fn() -> K>,
}

impl<M: Medium, K: Key, const BATCH: usize> fmt::Debug for CclBTreeIndex<M, K, BATCH> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CclBTreeIndex").field("root", &self.root).finish_non_exhaustive()
    }
}

impl<M: Medium, K: Key, const BATCH: usize> CclBTreeIndex<M, K, BATCH> {
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

impl<M: Medium, K: Key, const BATCH: usize> PmIndex<M, K> for CclBTreeIndex<M, K, BATCH> {
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
        Ok(self.collect_some(&pin())?)
    }
    fn maintainer(&self) -> Option<Maintainer> {
        (BATCH > 0).then(|| self.maintainers.register())
    }
    fn check(&self) -> Result<TreeStats, TreeError> {
        self.census()
    }
    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError> {
        self.settle_all()?;
        Ok(self.pool)
    }
}
