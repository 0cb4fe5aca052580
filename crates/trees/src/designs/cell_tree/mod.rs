//! `cell-tree`: leaves of cells that commit themselves, addressed by hash; inner nodes and leaf
//! words in DRAM.
//!
//! See `docs/designs/cell-tree.md` for the persist orders and the reasons.
//!
//! 1. Leaves form a list in key order. The root of the index is the first leaf, which stays. The
//!    list is the whole persistent state; recovery rebuilds leaf words and inner nodes from it.
//!    After a clean close an open loads the inner nodes, and an operation makes the words of each
//!    leaf that it is the first to reach.
//! 2. A leaf and its notes change only under its latch, which is released after the last fence. So
//!    no crash can undo a result that a reader validated.
//! 3. A split leaves the moved entries where they are, hidden by the low key of the right leaf. The
//!    leaf words tell which they are. So a split writes none of the left leaf's cells.
//! 4. A thread latches leaves from left to right, and inner nodes after leaves. So no deadlock is
//!    possible.
//! 5. Every operation pins an epoch. A block that a reader may still read is retired, not released.
//!
//! | module | contents |
//! | --- | --- |
//! | `word`, `cell`, `leaf` | the bytes of commit word, cell and leaf, and their persist orders |
//! | `epoch` | records under the fence of their cell |
//! | `place` | the cells of a key; packing a new leaf |
//! | `rows` | the leaf words |
//! | `leaf_table`, `scan` | the read side of a leaf; scans that read keys when they visit them |
//! | `sorted` | the entries of a leaf in the order of their keys |
//! | `write`, `split`, `remove` | write operations; splits; merges |
//! | `recover`, `visit`, `check` | creating, opening, recovering; first use; checking |
//! | `batch` | changes of several pairs, all or none |
//! | `pairs` | the interface for the store |
//! | `bytes` | the leaves of a damaged store, read from its file |

mod batch;
mod bytes;
mod cell;
mod check;
#[cfg(test)]
mod dense_tests;
mod epoch;
mod leaf;
mod leaf_table;
mod pairs;
mod place;
mod recover;
mod remove;
mod rows;
mod scan;
mod sorted;
mod split;
#[cfg(test)]
mod tests;
mod visit;
mod word;
mod write;

pub use bytes::{CellBytes, LeafBytes};

use crate::index::{Design, Order, PmIndex, TreeError, TreeStats, WriteMode};
use crate::inner::Inner;
use crate::key::Key;
use crate::leaf_table::{get, multi_get, scan};
use crate::spec::{Budget, Cost, DENSE, EMPTY_LEAVES, SELECTIVE, Spec};
pub use batch::{CommittedPairs, PairChange, PairState};

use batch::Batches;
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use leaf::CellLeaf;
use place::Candidates;
use rows::{LeafWordTable, LeafWords};
use std::sync::Arc;

/// The cell tree with leaves of `BYTES` bytes.
#[derive(Debug)]
pub struct CellTree<const BYTES: usize>;

impl<const BYTES: usize> Design for CellTree<BYTES> {
    const SPEC: Spec = Spec {
        name: "cell-tree",
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
            "fingerprints",
            EMPTY_LEAVES,
            DENSE,
            "checksums",
            "optimistic-latches",
            "multi-get",
        ],
    };
    type Index<M: Medium, K: Key> = CellTreeIndex<M, K, BYTES>;
}

/// A cell tree in a pool.
pub struct CellTreeIndex<M: Medium, K: Key, const BYTES: usize> {
    pool: Arc<Pool<M>>,
    /// The first leaf.
    first: PmPtr,
    /// The inner nodes, which lead to offsets of leaves.
    inner: Inner<M>,
    rows: LeafWordTable,
    /// The epoch of this open.
    epoch: u64,
    batches: Batches,
    key: PhantomData<fn() -> K>,
}

impl<M: Medium, K: Key, const BYTES: usize> fmt::Debug for CellTreeIndex<M, K, BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CellTreeIndex").field("first", &self.first).finish_non_exhaustive()
    }
}

impl<M: Medium, K: Key, const BYTES: usize> CellTreeIndex<M, K, BYTES> {
    /// The number of cells of a leaf.
    const CELLS: usize = leaf::cells_of(BYTES);

    /// Returns the words of the leaf at `at`.
    #[inline(always)]
    fn row_at(&self, at: PmPtr) -> LeafWords<'_> {
        self.rows.row::<K>(at, BYTES)
    }

    /// Returns the leaf of `row`.
    #[inline(always)]
    fn leaf(&self, row: LeafWords<'_>) -> Result<CellLeaf<'_>, Corrupt> {
        CellLeaf::new(&self.pool, row.at, BYTES)
    }

    /// Returns the near cells of a key with this hash.
    #[inline(always)]
    fn candidates(hash: u64) -> Candidates {
        Candidates::of(hash, Self::CELLS)
    }
}

impl<M: Medium, K: Key, const BYTES: usize> PmIndex<M, K> for CellTreeIndex<M, K, BYTES> {
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
        self.write_plain(key, value, WriteMode::Insert)
    }
    #[inline]
    fn update(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.write_plain(key, value, WriteMode::Update)
    }
    #[inline]
    fn upsert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.write_plain(key, value, WriteMode::Upsert)
    }
    #[inline]
    fn remove(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        Ok(self.remove_entry_if(key, |_| true)?.map(|entry| entry.value))
    }
    fn scan(
        &self,
        bounds: (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
        order: Order,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        if K::PREFIX_IN_ENTRY {
            return self.walk_pairs(bounds, order, &mut |key, value| visit(key, value.word));
        }
        scan(self, bounds, order, visit)
    }
    fn check(&self) -> Result<TreeStats, TreeError> {
        self.collect_stats()
    }
    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError> {
        self.end_epoch()?;
        self.save_checkpoint()?;
        Ok(self.pool)
    }
}
