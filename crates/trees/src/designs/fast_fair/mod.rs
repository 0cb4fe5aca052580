//! FAST & FAIR: every node in persistent memory, sorted and shifted in place without a log. A split
//! links the sibling before it changes the node or the parent.
//!
//! The root block (`root_block.rs`) points to the leftmost node of the highest level.
//!
//! 1. A node holds the keys from its low key up to its sibling's low key. Its low key never
//!    changes. The nodes of a level, from sibling to sibling, hold all keys. The leftmost node's
//!    low key is the least key.
//! 2. A separator in the parent is a shortcut: a node without one is reached through its left
//!    neighbour. A crash or a full pool can leave a node without a separator. The next writer that
//!    passes posts it.
//! 3. Everything that a pointer in a node or in the root block points to is durable before the
//!    pointer is.
//! 4. A writer releases a latch after the last fence of the change. A reader takes no latch and
//!    waits for none. If a writer is in the leaf that answers, the reader makes durable what the
//!    answer rests on. So no crash can undo a result that a reader returned.
//! 5. Latch order: the root block, parents before children, left before right. No thread waits for
//!    a parent's latch while it holds a child's. So no deadlock is possible.
//! 6. A node is unlinked from its parent, then from its left neighbour, durably in that order. It
//!    is then marked obsolete and retired. An operation that reaches it as a leaf, or latches it,
//!    restarts; as an inner node it still leads on.
//! 7. A separator, a low key and a key of a leaf are three words; each owns a key record of its
//!    own.
//! 8. Recovery changes no node that holds entries. The first writer that latches a node after an
//!    open mends it (`mend.rs`); until then every operation bears what a crash has left there.

mod check;
mod descend;
mod mend;
mod merge;
mod read;
mod recover;
mod scan;
mod split;
mod walk;
mod write;

use crate::index::{Design, Order, PmIndex, TreeError, TreeStats, WriteMode};
use crate::key::Key;
use crate::leaf::sorted_shift::{
    FencedAfter, FencedAround, NodeHeader, ShiftForm, ShiftNode, Wide,
};
use crate::linked_leaves::LinkedLeaves;
use crate::node::prefetch_words;
use crate::root_block::{FirstBlocks, RootBlock, RootKind};
use crate::spec::{Budget, Cost, Spec};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::sync::{Latch, OnMedium, ShiftCounter};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// FAST & FAIR with nodes of `NODE` bytes, and fences around each flush as published.
#[derive(Debug)]
pub struct FastFair<const NODE: usize>;

/// FAST & FAIR with nodes of `NODE` bytes and one fence a flush.
#[derive(Debug)]
pub struct FastFairR<const NODE: usize>;

/// FAST & FAIR with nodes of `NODE` bytes and entries of 32 B, and fences as published.
#[derive(Debug)]
pub struct FastFairWide<const NODE: usize>;

/// The choice of a FAST & FAIR design.
pub trait FastFairSpec: Design {
    /// The form of its nodes.
    type Form: ShiftForm;
    /// `true` if a node at most a quarter full joins a sibling. Otherwise only an empty leaf and an
    /// inner node with a single child do.
    const MERGES_QUARTERS: bool = false;
}

/// Returns the description of the design called `name` with nodes of form `F`.
const fn spec<F: ShiftForm>(name: &'static str, node_bytes: usize) -> Spec {
    // A shift over a whole node flushes and fences each of its lines.
    let lines = (node_bytes / 64) as u32;
    let whole = Cost::new(lines, F::FENCES * lines);
    Spec {
        name,
        source: "Hwang et al., Endurable Transient Inconsistency in Byte-Addressable Persistent B+-Tree, FAST 2018",
        persistent: true,
        node_bytes,
        budget: Budget { insert: whole, update: Cost::new(1, F::FENCES), remove: whole },
        relies_on_line_order: true,
        features: &["latch-free-readers", "log-free", "multi-get"],
    }
}

impl<const NODE: usize> FastFairSpec for FastFair<NODE> {
    type Form = FencedAround;
}

impl<const NODE: usize> Design for FastFair<NODE> {
    const SPEC: Spec = spec::<FencedAround>("fast-fair", NODE);
    type Index<M: Medium, K: Key> = FastFairTree<M, K, Self, NODE>;
}

impl<const NODE: usize> FastFairSpec for FastFairR<NODE> {
    type Form = FencedAfter;
    const MERGES_QUARTERS: bool = true;
}

impl<const NODE: usize> Design for FastFairR<NODE> {
    const SPEC: Spec = spec::<FencedAfter>("fast-fair-r", NODE);
    type Index<M: Medium, K: Key> = FastFairTree<M, K, Self, NODE>;
}

impl<const NODE: usize> FastFairSpec for FastFairWide<NODE> {
    type Form = Wide<FencedAround>;
}

impl<const NODE: usize> Design for FastFairWide<NODE> {
    const SPEC: Spec = spec::<Wide<FencedAround>>("fast-fair-wide", NODE);
    type Index<M: Medium, K: Key> = FastFairTree<M, K, Self, NODE>;
}

const MAGIC: u64 = 0xFA57_FA13 << 32;

/// A FAST & FAIR tree in a pool.
pub struct FastFairTree<M, K, S, const NODE: usize> {
    pool: Arc<Pool<M>>,
    root: RootBlock,
    design: PhantomData<fn() -> (K, S)>,
}

impl<M, K, S, const NODE: usize> fmt::Debug for FastFairTree<M, K, S, NODE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FastFairTree").field("root", &self.root).finish_non_exhaustive()
    }
}

impl<M: Medium, K: Key, S: FastFairSpec, const NODE: usize> FastFairTree<M, K, S, NODE> {
    const NODE_BYTES: u64 = NODE as u64;

    fn root_latch(&self) -> Result<Latch<OnMedium<'_, M>>, Corrupt> {
        let word = self.root.latch_word(&self.pool)?;
        Ok(OnMedium::latch(self.pool.medium(), word, self.pool.nonce()))
    }

    /// Returns what tells the root called `name` from those of other designs.
    fn root_kind(name: &str) -> RootKind<'_> {
        RootKind { name, kind: S::SPEC.kind::<K>(), tag: MAGIC | NODE as u64 }
    }

    #[inline(always)]
    fn latch<'t>(&self, node: &ShiftNode<'t, M, S::Form, NODE>) -> Latch<OnMedium<'t, M>> {
        node.latch(self.pool.nonce())
    }

    #[inline(always)]
    fn shifts<'t>(&self, node: &ShiftNode<'t, M, S::Form, NODE>) -> ShiftCounter<OnMedium<'t, M>> {
        node.shifts(self.pool.nonce())
    }

    /// Returns the leftmost node of the highest level.
    #[inline(always)]
    fn root_node(&self) -> Result<ShiftNode<'_, M, S::Form, NODE>, Corrupt> {
        ShiftNode::view(&self.pool, self.root.root(&self.pool)?)
    }

    /// Returns the node at `at`, after checking that it is on `level`.
    #[inline(always)]
    fn node(&self, at: PmPtr, level: u32) -> Result<ShiftNode<'_, M, S::Form, NODE>, Corrupt> {
        let node = ShiftNode::view_unchecked(&self.pool, at)?;
        check_level(&node, level)?;
        Ok(node)
    }

    /// Prefetches the part of the node at `at` that a search reads. Does not check the node.
    #[inline(always)]
    fn prefetch_node(&self, at: PmPtr) -> Result<ShiftNode<'_, M, S::Form, NODE>, Corrupt> {
        let node = ShiftNode::view_unchecked(&self.pool, at)?;
        self.pool.medium().prefetch(&node.words()[..prefetch_words(NODE / 8)]);
        Ok(node)
    }
}

/// Checks a node's header before its first use.
///
/// # Errors
/// The block holds no node, or a node of another level.
#[inline(always)]
fn check_level<M: Medium, F: ShiftForm, const NODE: usize>(
    node: &ShiftNode<'_, M, F, NODE>,
    level: u32,
) -> Result<(), Corrupt> {
    node.check_tag()?;
    let found = node.level();
    if found == level { Ok(()) } else { Err(wrong_level(node.at(), level, found)) }
}

#[cold]
fn wrong_level(at: PmPtr, level: u32, found: u32) -> Corrupt {
    let what = "level of a node";
    Corrupt { at: at.offset() + 24, what, expected: u64::from(level), found: u64::from(found) }
}

impl<M: Medium, K: Key, S: FastFairSpec, const NODE: usize> PmIndex<M, K>
    for FastFairTree<M, K, S, NODE>
{
    /// ```text
    /// N root block, an empty leaf    crash before C: both are free again
    /// |
    /// C root's entry                 -> durable
    /// ```
    fn create(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        let sizes = [Self::NODE_BYTES];
        let block = RootBlock::create(&pool, Self::root_kind(root), sizes, |[leaf]| {
            let header = NodeHeader { sibling: PmPtr::NULL, low: 0, level: 0 };
            ShiftNode::<M, S::Form, NODE>::create(&pool, leaf, header, &[])?;
            Ok(FirstBlocks { root: leaf, log: PmPtr::NULL })
        })?;
        Ok(Self { pool, root: block, design: PhantomData })
    }

    fn open(pool: Arc<Pool<M>>, root: &str, opened: Opened) -> Result<Self, TreeError> {
        let block = RootBlock::open(&pool, Self::root_kind(root))?;
        let tree = Self { pool, root: block, design: PhantomData };
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
        Ok(self.lookup_many(keys, values, &self.pool.pin())?)
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
