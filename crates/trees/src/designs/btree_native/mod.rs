//! The native B+-tree of the WO-tree study: sorted nodes in persistent memory, a write-ahead log
//! for leaves and inner nodes, and latches that are coupled.
//!
//! See `docs/designs/btree-native.md` for the source, the budget and the mechanisms.
//!
//! The root block (`root_block.rs`) points to the root node and to the log. Its latch is shared
//! to follow the root pointer, and held to replace it.
//!
//! 1. Every key of a node lies in the range that the separators above the node give. A leaf's link
//!    points to the next leaf in key order.
//! 2. A thread takes a latch in a node only while it has the latch of the parent, or of the root
//!    block. A writer releases a latch after the last fence of its change. So everything that a
//!    thread reads is durable.
//! 3. Everything that a record of the log, a pointer in a node or the root block points to is
//!    durable before it.
//! 4. The node that stores a separator owns its key record. When the separator moves to another
//!    node, so does the ownership.

mod descend;
mod log;
mod merge;
mod node;
mod recover;
mod scan;
mod split;
mod walk;
mod write;

use crate::index::{Design, Order, PmIndex, TreeError, TreeStats, WriteMode};
use crate::key::Key;
use crate::line_log::{LOG_BYTES, LineLog};
use crate::linked_leaves::{LinkedLeaves, SearchTarget};
use crate::root_block::{FirstBlocks, RootBlock, RootKind};
use crate::spec::{Budget, Cost, Spec};
use crate::unique_words::{UniqueWords, UniqueWordsIndex};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::sync::{OnMedium, SharedLatch};
use bristlecone_pmem::{Corrupt, Mapped, Medium, PmPtr, Pool};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use node::SortedNode;
use std::sync::Arc;

/// The native B+-tree with nodes of `NODE` bytes: 256, 512, 1024 or 2048.
#[derive(Debug)]
pub struct BTreeNative<const NODE: usize>;

impl<const NODE: usize> Design for BTreeNative<NODE> {
    const SPEC: Spec = {
        let capacity = SortedNode::<Mapped, NODE>::CAPACITY as u32;
        // The record, each moved entry, the new one, and the state: an insert at the front of a
        // leaf with one free place, or a removal there from a full leaf.
        let (insert, remove) = (1 + (capacity - 1) + 1 + 1, 1 + (capacity - 1) + 1);
        Spec {
            name: "btree-native",
            source: "Ma et al., Write-Optimized B+ Tree Index Technology for Persistent Memory, JCST 2021",
            persistent: true,
            node_bytes: NODE,
            budget: Budget {
                insert: Cost::new(insert, insert),
                update: Cost::new(1, 1),
                remove: Cost::new(remove, remove),
            },
            relies_on_line_order: true,
            features: &["coupled-latches"],
        }
    };
    type Index<M: Medium, K: Key> = UniqueWordsIndex<BTreeNativeIndex<M, UniqueWords<K>, NODE>, K>;
}

const MAGIC: u64 = 0x3070_4A7E << 32;

/// A native B+-tree in a pool. Key words of the layer `K` differ where keys do.
pub struct BTreeNativeIndex<M, K, const NODE: usize> {
    pool: Arc<Pool<M>>,
    root: RootBlock,
    log: LineLog,
    key: PhantomData<fn() -> K>,
}

impl<M, K, const NODE: usize> fmt::Debug for BTreeNativeIndex<M, K, NODE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BTreeNativeIndex").field("root", &self.root).finish_non_exhaustive()
    }
}

impl<M: Medium, K: Key, const NODE: usize> BTreeNativeIndex<M, K, NODE> {
    const NODE_BYTES: u64 = NODE as u64;

    fn root_latch(&self) -> Result<SharedLatch<OnMedium<'_, M>>, Corrupt> {
        let word = self.root.latch_word(&self.pool)?;
        Ok(OnMedium::shared(self.pool.medium(), word, self.pool.nonce()))
    }

    /// Returns the root node. The caller has the latch of the root block, or is alone.
    #[inline(always)]
    fn root_node(&self) -> Result<SortedNode<'_, M, NODE>, Corrupt> {
        SortedNode::view_any(&self.pool, self.root.root(&self.pool)?)
    }

    /// Returns the node of `level` at `at`.
    #[inline(always)]
    fn node(&self, at: PmPtr, level: u64) -> Result<SortedNode<'_, M, NODE>, Corrupt> {
        SortedNode::view(&self.pool, at, level)
    }

    /// Returns what tells the root called `name` from those of other designs.
    fn root_kind(name: &str) -> RootKind<'_> {
        let kind = BTreeNative::<NODE>::SPEC.kind::<K>();
        RootKind { name, kind, tag: MAGIC | NODE as u64 }
    }
}

impl<M: Medium, K: Key, const NODE: usize> PmIndex<M, K> for BTreeNativeIndex<M, K, NODE> {
    /// # Persist order
    /// ```text
    /// N root block, log, an empty leaf     crash before C: all are free again
    /// |
    /// C root's entry                       -> durable
    /// ```
    fn create(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        let sizes = [LOG_BYTES, Self::NODE_BYTES];
        let block = RootBlock::create(&pool, Self::root_kind(root), sizes, |[log, leaf]| {
            SortedNode::<M, NODE>::create(&pool, leaf, (0, 0, 0), &[])?;
            LineLog::create(&pool, log)?;
            Ok(FirstBlocks { root: leaf, log })
        })?;
        let log = LineLog::open(&pool, block.log(&pool)?)?;
        Ok(Self { pool, root: block, log, key: PhantomData })
    }

    fn open(pool: Arc<Pool<M>>, root: &str, opened: Opened) -> Result<Self, TreeError> {
        let block = RootBlock::open(&pool, Self::root_kind(root))?;
        let log = LineLog::open(&pool, block.log(&pool)?)?;
        let tree = Self { pool, root: block, log, key: PhantomData };
        if opened == Opened::Crashed {
            tree.recover()?;
        }
        tree.root_node()?;
        Ok(tree)
    }

    fn pool(&self) -> &Arc<Pool<M>> {
        &self.pool
    }

    /// The shared latch of the leaf keeps writers out, so the value is durable.
    fn get(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        let leaf = self.latch_leaf(SearchTarget::At(key), false)?;
        let (_, found) = self.search(&leaf.node, leaf.node.state()?.count, key)?;
        Ok(found.map(|entry| entry.value))
    }

    fn multi_get(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<(), TreeError> {
        assert_eq!(keys.len(), values.len(), "multi_get needs one value slot for each key");
        for (&key, value) in keys.iter().zip(values) {
            *value = self.get(key)?;
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
