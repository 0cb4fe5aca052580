//! Bulk loads: new leaves and new inner nodes, level by level, take the place of the empty tree by
//! one store to the root block.
//!
//! 1. A new leaf's sequence number is above that of every log record, so no record of the block's
//!    former use counts.
//! 2. A thread latches the only leaf, the only inner node and the root block, in this order. A
//!    descent that began at the former root ends at the former leaf, which is obsolete, and begins
//!    again.

use super::WoTreeIndex;
use super::node::{Node, Separated};
use crate::bulk::{LeafLoader, LoadedBlocks, NewLeaf, filled, offset_of, write_leaves};
use crate::index::TreeError;
use crate::key::{Entry, Key};
use crate::leaf::TaggedEntry;
use crate::root_block::ROOT;
use bristlecone_pmem::{Medium, PmPtr, Pool, PoolError};

impl<M: Medium, K: Key, const NODE: usize> LeafLoader<M, K> for WoTreeIndex<M, K, NODE> {
    fn loader_pool(&self) -> &Pool<M> {
        &self.pool
    }

    fn reserve_new_leaf(&self) -> Result<PmPtr, PoolError> {
        self.pool.reserve(Self::NODE_BYTES)
    }

    fn write_new_leaf(
        &self,
        leaf: NewLeaf,
        next: Option<NewLeaf>,
        entries: &[TaggedEntry],
    ) -> Result<(), TreeError> {
        let entries: Vec<Entry> = entries.iter().map(|tagged| tagged.entry).collect();
        let header = (leaf.low(), offset_of(next), self.log.above_all());
        Node::<M, NODE>::create_leaf(&self.pool, leaf.at, header, &entries)?;
        Ok(())
    }
}

impl<M: Medium, K: Key, const NODE: usize> WoTreeIndex<M, K, NODE> {
    /// Fills the empty tree with `pairs`, and each node to `fill_percent` of its capacity.
    ///
    /// # Persist order
    /// ```text
    /// N leaves, key records, inner nodes    crash before C: the tree is empty
    /// |
    /// C root word                           8 B
    /// F root block |                        -> durable   budget: lines of the nodes + 1, 2 fences
    /// ```
    pub(super) fn load_pairs(
        &self,
        pairs: &mut dyn Iterator<Item = (K::Owned, u64)>,
        fill_percent: u32,
    ) -> Result<(), TreeError> {
        let mut blocks = LoadedBlocks::default();
        let most = filled(Node::<M, NODE>::CAPACITY, fill_percent);
        let loaded = write_leaves(self, pairs, most, &mut blocks).and_then(|leaves| {
            let leaves = leaves.into_iter().map(|leaf| (leaf.at, leaf.low())).collect();
            let most = 1 + filled(Node::<M, NODE>::FANOUT, fill_percent);
            let top = self.write_inner(leaves, most, &mut blocks)?;
            self.show(top)
        });
        loaded.inspect_err(|_| blocks.free::<K, M>(&self.pool, Self::NODE_BYTES))
    }

    /// Writes the inner nodes over `nodes`, of which each has the low key word, and returns their
    /// root. A node has `most` children, the last of a level the rest. Durable after the next
    /// fence.
    fn write_inner(
        &self,
        mut nodes: Vec<(PmPtr, u64)>,
        most: usize,
        blocks: &mut LoadedBlocks,
    ) -> Result<PmPtr, TreeError> {
        let mut level = 0;
        loop {
            level += 1;
            let first_block = blocks.nodes.len();
            for _ in 0..nodes.len().div_ceil(most) {
                blocks.nodes.push(self.pool.reserve(Self::NODE_BYTES)?);
            }
            let ats = &blocks.nodes[first_block..];
            let mut written = Vec::with_capacity(ats.len());
            for (index, children) in nodes.chunks(most).enumerate() {
                let entry = |&(at, low): &(PmPtr, u64)| Separated { key: low, child: at.offset() };
                let entries: Vec<_> = children[1..].iter().map(entry).collect();
                let (first, low) = children[0];
                let next = ats.get(index + 1).copied().unwrap_or(PmPtr::NULL);
                let (at, header) = (ats[index], (level, low, next));
                Node::<M, NODE>::create_inner(&self.pool, at, header, first.offset(), &entries)?;
                written.push((at, low));
            }
            if let [(root, _)] = written[..] {
                return Ok(root);
            }
            nodes = written;
        }
    }

    /// Makes `top` the root, if the tree is still empty.
    fn show(&self, top: PmPtr) -> Result<(), TreeError> {
        let guard = self.pool.pin();
        let (leaf, root, leaf_held, root_held) = loop {
            let root = self.root_node()?;
            if root.level != 1 {
                return Err(TreeError::NotEmpty);
            }
            let leaf = self.node(PmPtr::new(root.first_child()), 0)?;
            // Either is obsolete if another thread has replaced it since.
            let Some(leaf_held) = leaf.leaf_latch(self.pool.nonce()).lock() else { continue };
            let Some(root_held) = root.inner_latch(self.pool.nonce()).lock() else { continue };
            break (leaf, root, leaf_held, root_held);
        };
        let block_held = self.root_latch()?.lock();
        let has_others = root.count() > 0 || !root.next().is_null() || !leaf.next().is_null();
        let is_root = self.root_node()?.at == root.at && root.first_child() == leaf.at.offset();
        if !is_root || has_others || leaf.bitmap() != 0 {
            return Err(TreeError::NotEmpty);
        }
        let (medium, words) = (self.pool.medium(), self.root.words(&self.pool)?);
        medium.commit(&words[ROOT], top.offset(), medium.fence());
        let _ = medium.persist(&words[..=ROOT]);
        leaf_held.obsolete();
        root_held.obsolete();
        drop(block_held);
        self.pool.retire(leaf.at, Self::NODE_BYTES, &guard);
        self.pool.retire(root.at, Self::NODE_BYTES, &guard);
        Ok(())
    }
}
