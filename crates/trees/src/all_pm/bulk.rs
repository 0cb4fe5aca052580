//! Bulk loads: a tree is built from sorted pairs, level by level, and replaces the empty tree by
//! one store to the root word.
//!
//! 1. Nothing points to a new node before that store. A crash before it leaves the empty
//!    tree, and recovery frees the nodes.
//! 2. A leaf's block is reserved before the leaf to its left is written, whose link names it.
//! 3. An inner node gets at least one separator, as every inner node but the root has.

use super::descend::{DescentTarget, Interrupted, retry};
use super::structure::Structure;
use super::{root_cell, root_word};
use crate::index::TreeError;
use crate::key::{self, Entry, Key, PmPtr};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Defect, Medium};
use core::cmp::Ordering;

/// A new node, and the separator before it; `None` for the leftmost node of a level.
struct Child {
    at: PmPtr,
    separator: Option<u64>,
}

/// The blocks of a load, to be freed if it fails.
#[derive(Default)]
struct LoadedBlocks {
    nodes: Vec<PmPtr>,
    separators: Vec<u64>,
    /// The entries whose keys may own records.
    entries: Vec<Entry>,
}

impl<M: Medium, K: Key> dyn Structure<M, K> + '_ {
    /// Fills the empty tree with `pairs`, and each node to `fill_percent` of its capacity.
    ///
    /// ```text
    /// N leaves, key records, inner nodes    crash before C: the tree is empty
    /// |
    /// C root word                           8 B
    /// F root word |                         -> durable    budget: lines of the nodes + 1, 2 fences
    /// ```
    pub(super) fn load(
        &self,
        pairs: &mut dyn Iterator<Item = (K::Owned, u64)>,
        fill_percent: u32,
    ) -> Result<(), TreeError> {
        assert!((1..=100).contains(&fill_percent), "a node is filled to 1 to 100 %");
        let mut blocks = LoadedBlocks::default();
        let loaded = self.build_tree(pairs, fill_percent as usize, &mut blocks);
        let shown = loaded.and_then(|(root, level)| {
            retry(self.pool_ref(), |guard| self.try_show(root, level, guard))
        });
        shown.inspect_err(|_| self.free_loaded(&blocks))
    }

    /// Writes all nodes. Returns the root and its level. Durable after the next fence.
    fn build_tree(
        &self,
        pairs: &mut dyn Iterator<Item = (K::Owned, u64)>,
        fill_percent: usize,
        blocks: &mut LoadedBlocks,
    ) -> Result<(PmPtr, u64), TreeError> {
        let filled = |level| self.shape(level).capacity * fill_percent / 100;
        let mut nodes = self.build_leaves(pairs, filled(0).max(1), blocks)?;
        // Two separators at least, so that a lone child can go to a neighbour (3).
        let most = 1 + filled(1).max(2);
        let mut level = 0;
        while nodes.len() > 1 {
            level += 1;
            nodes = self.build_level(level, &nodes, most, blocks)?;
        }
        Ok((nodes[0].at, level))
    }

    /// Writes leaves of `most` pairs each; the last one gets the rest.
    fn build_leaves(
        &self,
        pairs: &mut dyn Iterator<Item = (K::Owned, u64)>,
        most: usize,
        blocks: &mut LoadedBlocks,
    ) -> Result<Vec<Child>, TreeError> {
        let pool = self.pool_ref();
        let mut leaves = Vec::new();
        let mut leaf = Child { at: self.reserve_node(blocks)?, separator: None };
        let mut entries = Vec::with_capacity(most);
        let mut last: Option<K::Owned> = None;
        for (key, value) in pairs {
            let here = K::borrow(&key);
            if last.is_some_and(|last| K::compare(K::borrow(&last), here) != Ordering::Less) {
                return Err(TreeError::Unsorted);
            }
            if entries.len() == most {
                let next = self.reserve_node(blocks)?;
                self.write_leaf(&leaf, next, &entries)?;
                let separator = K::store_separator(pool, here)?;
                blocks.separators.push(separator);
                leaves.push(core::mem::replace(
                    &mut leaf,
                    Child { at: next, separator: Some(separator) },
                ));
                entries.clear();
            }
            let entry = Entry::plain(K::store_entry_key(pool, here, value)?, value);
            if !K::EXACT {
                blocks.entries.push(entry);
            }
            entries.push(entry);
            last = Some(key);
        }
        self.write_leaf(&leaf, PmPtr::NULL, &entries)?;
        leaves.push(leaf);
        Ok(leaves)
    }

    fn write_leaf(&self, leaf: &Child, next: PmPtr, entries: &[Entry]) -> Result<(), TreeError> {
        let low = leaf.separator.unwrap_or(0);
        self.fill_leaf(self.node(leaf.at)?, low, next.offset(), entries);
        Ok(())
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
                .map(|child| {
                    let separator = child.separator.expect("only the leftmost node has none");
                    Entry::plain(separator, child.at.offset())
                })
                .collect();
            let at = self.reserve_node(blocks)?;
            self.write_new(at, level, first.at.offset(), &entries)?;
            nodes.push(Child { at, separator: first.separator });
            rest = others;
        }
        Ok(nodes)
    }

    fn reserve_node(&self, blocks: &mut LoadedBlocks) -> Result<PmPtr, TreeError> {
        let at = self.pool_ref().reserve(self.node_bytes())?;
        blocks.nodes.push(at);
        Ok(at)
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

    /// Frees the blocks of a load that failed. Nothing points to them.
    #[cold]
    fn free_loaded(&self, blocks: &LoadedBlocks) {
        let pool = self.pool_ref();
        for &at in &blocks.nodes {
            pool.release(at, self.node_bytes());
        }
        for &separator in &blocks.separators {
            key::free_separator::<K, M>(pool, separator);
        }
        for &entry in &blocks.entries {
            key::free_entry_key::<K, M>(pool, entry);
        }
    }
}

#[cfg(test)]
mod tests;
