//! WO-tree: leaves and inner nodes in persistent memory; a log for the leaves alone.
//!
//! See `docs/designs/wo-tree.md` for the source, the budget and the mechanisms.
//!
//! The root block is one line, which the pool's root table names:
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | root | commit | the leftmost node of the highest level, which is 1 or above |
//! | 8 | 8 | latch | transient | held to replace the root |
//! | 16 | 8 | tag | data | a magic number, and the bytes of a node in the low half |
//! | 24 | 8 | log | data | the block of the log |
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

use crate::index::{Design, Order, PmIndex, TreeError, TreeStats, WriteMode, find_root};
use crate::key::Key;
use crate::line_log::{LOG_BYTES, LineLog};
use crate::linked_leaves::LinkedLeaves;
use crate::spec::{Budget, Cost, PARTIAL_LOGGING, Spec};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::sync::{Latch, OnMedium};
use bristlecone_pmem::{Corrupt, Mapped, Medium, PmPtr, PmWord, Pool};
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

const ROOT: usize = 0;
const LATCH: usize = 1;
const TAG: usize = 2;
const LOG: usize = 3;
const ROOT_WORDS: usize = 8;
const ROOT_BYTES: u64 = 64;
const MAGIC: u64 = 0x3070_700D << 32;

/// A WO-tree in a pool.
pub struct WoTreeIndex<M, K, const NODE: usize> {
    pool: Arc<Pool<M>>,
    /// The offset of the root block.
    root: PmPtr,
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

    #[inline(always)]
    fn root_words(&self) -> Result<&[PmWord], Corrupt> {
        self.pool.words(self.root, ROOT_WORDS)
    }

    fn root_latch(&self) -> Result<Latch<OnMedium<'_, M>>, Corrupt> {
        let word = &self.root_words()?[LATCH];
        Ok(OnMedium::latch(self.pool.medium(), word, self.pool.nonce()))
    }

    /// Returns the leftmost node of the highest level.
    #[inline(always)]
    fn root_node(&self) -> Result<Node<'_, M, NODE>, Corrupt> {
        let word = &self.root_words()?[ROOT];
        Node::view_root(&self.pool, PmPtr::new(self.pool.medium().load(word)))
    }

    /// Returns the node of `level` at `at`.
    #[inline(always)]
    fn node(&self, at: PmPtr, level: u32) -> Result<Node<'_, M, NODE>, Corrupt> {
        Node::view(&self.pool, at, level)
    }

    /// Reserves the blocks of an empty tree, adds them to `reserved` and creates the tree in them.
    /// Returns the root block and the log.
    fn create_in(
        pool: &Pool<M>,
        root: &str,
        blocks: [u64; 4],
        reserved: &mut Vec<PmPtr>,
    ) -> Result<(PmPtr, PmPtr), TreeError> {
        for bytes in blocks {
            reserved.push(pool.reserve(bytes)?);
        }
        let [block, log, top, leaf] = reserved[..] else { unreachable!("four were reserved") };
        Node::<M, NODE>::create_leaf(pool, leaf, (0, PmPtr::NULL, 0), &[])?;
        let header = (1, 0, PmPtr::NULL);
        Node::<M, NODE>::create_inner(pool, top, header, leaf.offset(), &[])?;
        let medium = pool.medium();
        LineLog::create(pool, log)?;
        let words = [top.offset(), 0, MAGIC | NODE as u64, log.offset(), 0, 0, 0, 0];
        let bytes: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
        medium.fill(pool.words(block, ROOT_WORDS)?, &bytes);
        pool.create_root(root, WoTree::<NODE>::SPEC.kind::<K>(), block)?;
        Ok((block, log))
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
        let blocks = [ROOT_BYTES, LOG_BYTES, Self::NODE_BYTES, Self::NODE_BYTES];
        let mut reserved = Vec::with_capacity(blocks.len());
        let done = Self::create_in(&pool, root, blocks, &mut reserved);
        if done.is_err() {
            reserved.into_iter().zip(blocks).for_each(|(at, bytes)| pool.release(at, bytes));
        }
        let (block, log) = done?;
        let log = LineLog::open(&pool, log)?;
        Ok(Self { pool, root: block, log, key: PhantomData })
    }

    fn open(pool: Arc<Pool<M>>, root: &str, opened: Opened) -> Result<Self, TreeError> {
        let block = find_root(&pool, root, WoTree::<NODE>::SPEC.kind::<K>())?;
        let medium = pool.medium();
        let words = pool.words(block, ROOT_WORDS)?;
        let tag = medium.load(&words[TAG]);
        if tag != MAGIC | NODE as u64 {
            let (at, what) = (block.offset() + 8 * TAG as u64, "tag of a root block");
            return Err(Corrupt { at, what, expected: MAGIC | NODE as u64, found: tag }.into());
        }
        let log = LineLog::open(&pool, PmPtr::new(medium.load(&words[LOG])))?;
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
