//! `lb-tree`: LB+-Tree. Leaves of 256 B in the pool, inner nodes and latches in DRAM, and as few
//! lines written as possible: entry moving and logless splits.
//!
//! See `docs/designs/lb-tree.md` for the source, the budget and the departures.
//!
//! 1. Leaves form a list in key order. The root block points to the first leaf. The list is the
//!    whole persistent state; each open rebuilds leaf table and inner nodes from it.
//! 2. Each leaf has an entry, unless it is the only leaf. So the least key of a leaf can stand for
//!    its low key, which the leaf has no space for, when an open computes the separators.
//! 3. A leaf and its row change only under the row's latch, which is released after the last fence.
//!    So no crash can undo a result that a reader validated.
//! 4. A thread latches leaves from left to right, and inner nodes after leaves. So no deadlock is
//!    possible.
//! 5. Every operation pins an epoch. A block that a reader may still read is retired, not released.
//!
//! | module | contents |
//! | --- | --- |
//! | `layout` | the bytes of a leaf, and its persist orders |
//! | `table` | the rows of the leaf table |
//! | `leaf_table` | the read side of a leaf |
//! | `write`, `remove` | write operations; splits; unlinking an empty leaf |
//! | `bulk` | bulk loads |
//! | `recover` | creating, opening, closing, checking |

mod bulk;
mod layout;
mod leaf_table;
mod recover;
mod remove;
mod table;
#[cfg(test)]
mod tests;
mod write;

use crate::index::{Design, Order, PmIndex, TreeError, TreeStats, WriteMode};
use crate::inner::{Inner, VectorSearch};
use crate::key::Key;
use crate::leaf_table::{get, multi_get, scan};
use crate::spec::{Budget, Cost, EMPTY_LEAVES, SELECTIVE, Spec};
use crate::unique_words::{UniqueWords, UniqueWordsIndex};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use layout::LbLeaf;
use std::sync::Arc;
use table::{LeafRow, LeafRows};

/// LB+-Tree with its only leaf size, 256 B.
#[derive(Debug)]
pub struct LbTree;

impl Design for LbTree {
    const SPEC: Spec = Spec {
        name: "lb-tree",
        source: "Liu, Chen, Wang, PVLDB 13(7), 2020",
        persistent: true,
        node_bytes: layout::BYTES as usize,
        budget: Budget {
            insert: Cost::new(2, 2),
            update: Cost::new(1, 1),
            remove: Cost::new(1, 1),
        },
        relies_on_line_order: true,
        features: &[SELECTIVE, "fingerprints", EMPTY_LEAVES, "optimistic-latches", "multi-get"],
    };
    type Index<M: Medium, K: Key> = UniqueWordsIndex<LbTreeIndex<M, UniqueWords<K>>, K>;
}

/// Inner nodes in DRAM of 256 B, as those of the paper, with 14 separators.
type InnerNodes256<M> = Inner<M, VectorSearch, 32>;

/// An LB+-Tree index in a pool, for keys whose entries hold the words of separators.
pub struct LbTreeIndex<M: Medium, K: Key> {
    pool: Arc<Pool<M>>,
    root: PmPtr,
    /// The inner nodes. Their leaf offsets are indices of rows.
    inner: InnerNodes256<M>,
    table: LeafRows,
    key: PhantomData<fn() -> K>,
}

impl<M: Medium, K: Key> fmt::Debug for LbTreeIndex<M, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LbTreeIndex").field("root", &self.root).finish_non_exhaustive()
    }
}

impl<M: Medium, K: Key> LbTreeIndex<M, K> {
    /// Returns the leaf of `row`.
    #[inline(always)]
    fn leaf(&self, row: LeafRow<'_>) -> Result<LbLeaf<'_>, Corrupt> {
        LbLeaf::new(&self.pool, row.leaf::<M>())
    }
}

impl<M: Medium, K: Key> PmIndex<M, K> for LbTreeIndex<M, K> {
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
        self.write(key, value, WriteMode::Insert)
    }
    #[inline]
    fn update(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.write(key, value, WriteMode::Update)
    }
    #[inline]
    fn upsert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.write(key, value, WriteMode::Upsert)
    }
    #[inline]
    fn remove(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        self.remove_key(key)
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
    fn check(&self) -> Result<TreeStats, TreeError> {
        self.collect_stats()
    }
    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError> {
        self.release_orphans()?;
        Ok(self.pool)
    }
}
