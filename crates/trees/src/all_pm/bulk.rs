//! Bulk loads: a tree is built from sorted pairs, level by level, and replaces the empty tree by
//! one store to the root word.
//!
//! 1. Nothing points to a new node before that store. A crash before it leaves the empty
//!    tree, and recovery frees the nodes.
//! 2. An inner node gets at least one separator, as every inner node but the root has.

use super::descend::{DescentTarget, Interrupted, retry};
use super::structure::Structure;
use super::{root_cell, root_word};
use crate::bulk::{LeafLoader, LoadedBlocks, NewLeaf, filled, offset_of, write_leaves};
use crate::index::TreeError;
use crate::key::{Entry, Key, PmPtr};
use crate::leaf::TaggedEntry;
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Defect, Medium, Pool, PoolError};

/// A new node, and the separator before it; `None` for the leftmost node of a level.
type Child = (PmPtr, Option<u64>);

impl<M: Medium, K: Key> LeafLoader<M, K> for dyn Structure<M, K> + '_ {
    fn loader_pool(&self) -> &Pool<M> {
        self.pool_ref()
    }

    fn reserve_new_leaf(&self) -> Result<PmPtr, PoolError> {
        self.reserve_node()
    }

    fn write_new_leaf(
        &self,
        leaf: NewLeaf,
        next: Option<NewLeaf>,
        entries: &[TaggedEntry],
    ) -> Result<(), TreeError> {
        let entries: Vec<_> = entries.iter().map(|tagged| tagged.entry).collect();
        let low = leaf.low();
        self.fill_leaf(self.node(leaf.at)?, low, offset_of(next).offset(), &entries);
        Ok(())
    }
}

impl<M: Medium, K: Key> dyn Structure<M, K> + '_ {
    /// Fills the empty tree with `pairs`, and each node to `fill_percent` of its capacity.
    ///
    /// ```text
    /// N leaves, key records, inner nodes    crash before C: the tree is empty
    /// W their logs                          empty, if nodes have logs
    /// |
    /// C root word                           8 B
    /// F root word |                         -> durable    budget: lines of the nodes + 1, 2 fences
    /// ```
    pub(super) fn load(
        &self,
        pairs: &mut dyn Iterator<Item = (K::Owned, u64)>,
        fill_percent: u32,
    ) -> Result<(), TreeError> {
        let mut blocks = LoadedBlocks::default();
        let loaded = self.build_tree(pairs, fill_percent, &mut blocks);
        let shown = loaded.and_then(|(root, level)| {
            retry(self.pool_ref(), |guard| self.try_show(root, level, guard))
        });
        shown.inspect_err(|_| {
            blocks.free::<K, M>(self.pool_ref(), self.node_bytes());
            for &log in &blocks.logs {
                self.pool_ref().release(log, self.sizes().log_bytes);
            }
        })
    }

    /// Writes all nodes. Returns the root and its level. Durable after the next fence.
    fn build_tree(
        &self,
        pairs: &mut dyn Iterator<Item = (K::Owned, u64)>,
        fill_percent: u32,
        blocks: &mut LoadedBlocks,
    ) -> Result<(PmPtr, u64), TreeError> {
        let most = |level| filled(self.shape(level).capacity, fill_percent);
        let leaves = write_leaves(self, pairs, most(0), blocks)?;
        let mut nodes: Vec<_> = leaves.iter().map(|leaf| (leaf.at, leaf.separator)).collect();
        // Two separators at least, so that a lone child can go to a neighbour (2).
        let most = 1 + most(1).max(2);
        let mut level = 0;
        while nodes.len() > 1 {
            level += 1;
            nodes = self.build_level(level, &nodes, most, blocks)?;
        }
        Ok((nodes[0].0, level))
    }

    /// Writes the nodes of `level` over `children`, each with `most` children, or fewer at the end.
    fn build_level(
        &self,
        level: u64,
        children: &[Child],
        most: usize,
        blocks: &mut LoadedBlocks,
    ) -> Result<Vec<Child>, TreeError> {
        let mut nodes = Vec::new();
        let mut rest = children;
        while let [first, ..] = rest {
            let leaves_one = rest.len() == most + 1;
            let (group, others) = rest.split_at(rest.len().min(most - usize::from(leaves_one)));
            let entries: Vec<_> = group[1..]
                .iter()
                .map(|(at, separator)| {
                    let separator = separator.expect("only the leftmost node has none");
                    Entry::plain(separator, at.offset())
                })
                .collect();
            let new = self.reserve_on(level)?;
            blocks.nodes.push(new.at);
            blocks.logs.extend(new.log());
            self.write_new(new, level, first.0.offset(), &entries)?;
            nodes.push((new.at, first.1));
            rest = others;
        }
        Ok(nodes)
    }

    /// Makes the new tree the tree, if it is still empty.
    fn try_show(&self, root: PmPtr, level: u64, guard: &Guard) -> Result<(), Interrupted> {
        let (path, _) = self.descend(DescentTarget::First, &mut |_| Ok(true))?;
        let anchor = path.parent.upgrade()?;
        let former = path.node.upgrade()?;
        if path.node.level > 0 || self.count(path.node.view, 0) > 0 {
            return Err(Interrupted::Failed(TreeError::NotEmpty));
        }
        let (cell, word) = (root_cell(path.parent.view), root_word(root, level));
        if M::INJECTS_DEFECTS && self.medium().injects(Defect::LoadUnfenced) {
            self.set_word(cell, word); // Wrong: it may become durable before the nodes.
        } else {
            self.publish_word(cell, word);
        }
        former.obsolete();
        drop(anchor);
        let _ = self.pool_ref().try_retire(path.node.at, self.node_bytes(), guard);
        Ok(())
    }
}
