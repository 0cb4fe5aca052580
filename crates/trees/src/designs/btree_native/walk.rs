//! The check: walks the tree from the root, and checks order, links and the pool's free map.

use super::BTreeNativeIndex;
use super::node::{ENTRIES, SortedNode};
use crate::index::TreeStats;
use crate::key::{Entry, Key};
use crate::line_log::LOG_BYTES;
use crate::node::check_order;
use crate::root_block::ROOT_BYTES;
use bristlecone_pmem::{Corrupt, Medium, PmPtr};

/// The state of a check.
struct Walk {
    stats: TreeStats,
    /// The link of the last leaf that was visited.
    link: Option<PmPtr>,
    /// The number of nodes that may still be visited.
    nodes_left: u64,
}

/// The keys at which the range of a node begins and ends.
type Bounds<'k, K> = (Option<&'k <K as Key>::Owned>, Option<&'k <K as Key>::Owned>);

impl<M: Medium, K: Key, const NODE: usize> BTreeNativeIndex<M, K, NODE> {
    /// Checks every invariant and returns the counts. No thread may write meanwhile.
    pub(super) fn collect_stats(&self) -> Result<TreeStats, Corrupt> {
        let root = self.root_node()?;
        let stats = TreeStats {
            height: root.level as u32 + 1,
            dram_bytes: size_of::<Self>() as u64,
            ..TreeStats::default()
        };
        let nodes_left = self.pool.medium().len() / Self::NODE_BYTES;
        let mut walk = Walk { stats, link: None, nodes_left };
        walk.stats.count_block(&self.pool, Some((self.root.at, ROOT_BYTES)))?;
        walk.stats.count_block(&self.pool, Some((self.log.at, LOG_BYTES)))?;
        self.check_node(&root, (None, None), &mut walk)?;
        match walk.link {
            Some(link) if !link.is_null() => Err(root.damage("link of the last leaf", 0, 1)),
            _ => Ok(walk.stats),
        }
    }

    fn check_node(
        &self,
        node: &SortedNode<'_, M, NODE>,
        bounds: Bounds<'_, K>,
        walk: &mut Walk,
    ) -> Result<(), Corrupt> {
        walk.stats.count_block(&self.pool, Some((node.at, Self::NODE_BYTES)))?;
        let Some(left) = walk.nodes_left.checked_sub(1) else {
            return Err(node.damage("node that is reached twice", 1, 2));
        };
        walk.nodes_left = left;
        let count = node.state()?.count;
        let read = |entry: Entry| match node.level {
            0 => K::read_entry(&self.pool, entry),
            _ => K::read(&self.pool, entry.key),
        };
        let mut keys: Vec<K::Owned> = Vec::with_capacity(count);
        for (index, entry) in node.entries(count).into_iter().enumerate() {
            let key = read(entry)?;
            check_order::<M, K>(node.view, ENTRIES.word(index), keys.last(), bounds, &key)?;
            match node.level {
                0 => walk.stats.count_entry::<K, M>(&self.pool, entry)?,
                _ => walk.stats.count_block(&self.pool, K::block(&self.pool, entry.key)?)?,
            }
            keys.push(key);
        }
        if node.level == 0 {
            return walk.leaf(node, count);
        }
        walk.stats.inner_nodes += 1;
        for rank in 0..=count {
            let child = self.node(node.child(rank), node.level - 1)?;
            let low = rank.checked_sub(1).map(|at| &keys[at]).or(bounds.0);
            let high = keys.get(rank).or(bounds.1);
            self.check_node(&child, (low, high), walk)?;
        }
        Ok(())
    }
}

impl Walk {
    /// Counts a leaf, and checks that the one before links to it.
    fn leaf<M: Medium, const NODE: usize>(
        &mut self,
        leaf: &SortedNode<'_, M, NODE>,
        count: usize,
    ) -> Result<(), Corrupt> {
        self.stats.leaves += 1;
        self.stats.keys += count as u64;
        match self.link.replace(leaf.link()) {
            Some(link) if link != leaf.at => Err(leaf.damage("leaf without a link to it", 1, 0)),
            _ => Ok(()),
        }
    }
}
