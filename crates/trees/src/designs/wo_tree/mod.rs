//! WO-tree: leaves and inner nodes in persistent memory; a log for the leaves alone.
//!
//! See `docs/designs/wo-tree.md` for the source, the budget and the mechanisms.
//!
//! The root block (`root_block.rs`) points to the leftmost node of the highest level, which is 1
//! or above, and to the log.
//!
//! 1. A node holds the keys from its low key up to the next node's low key. Its low key never
//!    changes. The nodes of a level, from next to next, hold all keys.
//! 2. Each leaf is the child of a node of level 1, or the right leaf of a split whose record
//!    counts. An inner node may lack its separator above: after a crash, or in a full pool. Its
//!    left neighbour leads to it.
//! 3. Everything that a pointer in a node or in the root block points to is durable before the
//!    pointer is.
//! 4. A writer releases a latch after the last fence of the change. A reader takes the shared latch
//!    of a leaf and none of an inner node: no result depends on an inner node.
//! 5. Latch order: leaves, then inner nodes from level 1 upwards, then the root block; on each
//!    level from left to right. So no deadlock is possible.
//! 6. An unlinked node is marked obsolete in its latch word and retired. A descent that reaches a
//!    leaf of that kind restarts.
//! 7. A separator in an inner node, that node's low key and the low key of the leaf that they lead
//!    to are one word. The leaf owns its key record.

mod bulk;
mod descend;
mod inner;
mod leaf;
mod log;
mod node;
mod read;
mod recover;
mod scan;
mod split;
mod unlink;
mod walk;
mod write;

use crate::index::{Design, Order, PmIndex, TreeError, TreeStats, WriteMode};
use crate::key::Key;
use crate::line_log::{LOG_BYTES, LineLog};
use crate::linked_leaves::LinkedLeaves;
use crate::root_block::{FirstBlocks, RootBlock, RootKind};
use crate::spec::{Budget, Cost, PARTIAL_LOGGING, Spec};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::sync::{Latch, OnMedium};
use bristlecone_pmem::{Corrupt, Mapped, Medium, PmPtr, Pool};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use node::Node;
use std::sync::Arc;

/// WO-tree with nodes of `NODE` bytes: 256, 512, 1024 or 2048.
#[derive(Debug)]
pub struct WoTree<const NODE: usize>;

impl<const NODE: usize> Design for WoTree<NODE> {
    const SPEC: Spec = {
        let slots = Node::<Mapped, NODE>::SLOT_LINES as u32;
        Spec {
            name: "wo-tree",
            source: "Ma et al., Write-Optimized B+ Tree Index Technology for Persistent Memory, JCST 2021",
            persistent: true,
            node_bytes: NODE,
            budget: Budget {
                insert: Cost::new(3 + slots, 4),
                update: Cost::new(1, 1),
                remove: Cost::new(2 + slots, 3),
            },
            relies_on_line_order: true,
            features: &[PARTIAL_LOGGING, "latch-free-search", "shared-leaf-latches"],
        }
    };
    type Index<M: Medium, K: Key> = WoTreeIndex<M, K, NODE>;
}

const MAGIC: u64 = 0x3070_700D << 32;

/// A WO-tree in a pool.
pub struct WoTreeIndex<M, K, const NODE: usize> {
    pool: Arc<Pool<M>>,
    root: RootBlock,
    log: LineLog,
    key: PhantomData<fn() -> K>,
}

impl<M, K, const NODE: usize> fmt::Debug for WoTreeIndex<M, K, NODE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WoTreeIndex").field("root", &self.root).finish_non_exhaustive()
    }
}

impl<M: Medium, K: Key, const NODE: usize> WoTreeIndex<M, K, NODE> {
    const NODE_BYTES: u64 = NODE as u64;

    fn root_latch(&self) -> Result<Latch<OnMedium<'_, M>>, Corrupt> {
        let word = self.root.latch_word(&self.pool)?;
        Ok(OnMedium::latch(self.pool.medium(), word, self.pool.nonce()))
    }

    /// Returns the leftmost node of the highest level.
    #[inline(always)]
    fn root_node(&self) -> Result<Node<'_, M, NODE>, Corrupt> {
        Node::view_root(&self.pool, self.root.root(&self.pool)?)
    }

    /// Returns the node of `level` at `at`.
    #[inline(always)]
    fn node(&self, at: PmPtr, level: u32) -> Result<Node<'_, M, NODE>, Corrupt> {
        Node::view(&self.pool, at, level)
    }

    /// Returns what tells the root called `name` from those of other designs.
    fn root_kind(name: &str) -> RootKind<'_> {
        let kind = WoTree::<NODE>::SPEC.kind::<K>();
        RootKind { name, kind, tag: MAGIC | NODE as u64 }
    }
}

impl<M: Medium, K: Key, const NODE: usize> PmIndex<M, K> for WoTreeIndex<M, K, NODE> {
    /// # Persist order
    /// ```text
    /// N root block, log, a root of level 1, an empty leaf    crash before C: all are free again
    /// |
    /// C root's entry                 -> durable
    /// ```
    fn create(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        let sizes = [LOG_BYTES, Self::NODE_BYTES, Self::NODE_BYTES];
        let block = RootBlock::create(&pool, Self::root_kind(root), sizes, |[log, top, leaf]| {
            Node::<M, NODE>::create_leaf(&pool, leaf, (0, PmPtr::NULL, 0), &[])?;
            let header = (1, 0, PmPtr::NULL);
            Node::<M, NODE>::create_inner(&pool, top, header, leaf.offset(), &[])?;
            LineLog::create(&pool, log)?;
            Ok(FirstBlocks { root: top, log })
        })?;
        let log = LineLog::open(&pool, block.log(&pool)?)?;
        Ok(Self { pool, root: block, log, key: PhantomData })
    }

    fn open(pool: Arc<Pool<M>>, root: &str, opened: Opened) -> Result<Self, TreeError> {
        let block = RootBlock::open(&pool, Self::root_kind(root))?;
        let log = LineLog::open(&pool, block.log(&pool)?)?;
        let tree = Self { pool, root: block, log, key: PhantomData };
        tree.root_latch()?.reset();
        if opened == Opened::Crashed {
            tree.recover()?;
        }
        tree.root_node()?;
        Ok(tree)
    }

    fn pool(&self) -> &Arc<Pool<M>> {
        &self.pool
    }

    fn get(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        Ok(self.lookup(key, &self.pool.pin())?)
    }

    fn multi_get(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<(), TreeError> {
        assert_eq!(keys.len(), values.len(), "multi_get needs one value slot for each key");
        let guard = self.pool.pin();
        for (&key, value) in keys.iter().zip(values) {
            *value = self.lookup(key, &guard)?;
        }
        Ok(())
    }

    fn insert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.put(key, value, WriteMode::Insert)
    }

    fn update(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.put(key, value, WriteMode::Update)
    }

    fn upsert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        self.put(key, value, WriteMode::Upsert)
    }

    fn remove(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        self.remove_entry(key)
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
        let leaves: &dyn LinkedLeaves<M, K> = self;
        Ok(leaves.scan(bounds, order, visit)?)
    }

    fn check(&self) -> Result<TreeStats, TreeError> {
        Ok(self.collect_stats()?)
    }

    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError> {
        Ok(self.pool)
    }
}

#[cfg(test)]
mod tests;
