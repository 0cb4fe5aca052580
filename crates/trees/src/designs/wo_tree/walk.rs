//! The check: walks every level, and every leaf, and checks each block against the pool's free map.

use super::WoTreeIndex;
use super::node::Node;
use crate::index::TreeStats;
use crate::key::Key;
use crate::line_log::LOG_BYTES;
use crate::root_block::ROOT_BYTES;
use bristlecone_pmem::{Corrupt, Medium, PmPtr};

/// A child as its parent names it: separator word and offset.
type Child = (u64, PmPtr);

impl<M: Medium, K: Key, const NODE: usize> WoTreeIndex<M, K, NODE> {
    /// Checks every invariant and returns the counts. No thread may write meanwhile.
    pub(super) fn collect_stats(&self) -> Result<TreeStats, Corrupt> {
        let root = self.root_node()?;
        let mut stats = TreeStats {
            height: root.level + 1,
            dram_bytes: size_of::<Self>() as u64,
            ..TreeStats::default()
        };
        stats.count_block(&self.pool, Some((self.root.at, ROOT_BYTES)))?;
        stats.count_block(&self.pool, Some((self.log.at, LOG_BYTES)))?;
        let mut children = vec![(0, root.at)];
        for level in (0..=root.level).rev() {
            children = self.check_level(level, &children, &mut stats)?;
        }
        Ok(stats)
    }

    /// Checks the nodes of a level, of which the level above names `posted`. Returns their
    /// children.
    fn check_level(
        &self,
        level: u32,
        posted: &[Child],
        stats: &mut TreeStats,
    ) -> Result<Vec<Child>, Corrupt> {
        let mut children = Vec::new();
        let mut posted = posted.iter().peekable();
        let mut node = self.node(posted.peek().map_or(PmPtr::NULL, |child| child.1), level)?;
        let mut low = K::least();
        if node.low() != 0 {
            return Err(node.damage("low key of the leftmost node", 0, node.low()));
        }
        loop {
            stats.count_block(&self.pool, Some((node.at, Self::NODE_BYTES)))?;
            match posted.next_if(|child| child.1 == node.at) {
                Some(&(separator, _)) if separator != node.low() => {
                    let what = "separator that is not its child's low key";
                    return Err(node.damage(what, node.low(), separator));
                }
                // A full pool can leave an inner node without a separator, and no leaf.
                None if level == 0 => return Err(node.damage("leaf without a separator", 1, 0)),
                _ => {}
            }
            let next = node.next();
            let next = if next.is_null() { None } else { Some(self.node(next, level)?) };
            let limit = next.map(|next| K::read(&self.pool, next.low())).transpose()?;
            if let (Some(limit), Some(next)) = (&limit, &next)
                && *limit <= low
            {
                return Err(next.damage("low key not above that of the left node", 0, next.low()));
            }
            if level == 0 {
                self.check_leaf(&node, &low, limit.as_ref(), stats)?;
            } else {
                self.check_inner(&node, &low, limit.as_ref(), &mut children)?;
                stats.inner_nodes += 1;
            }
            let (Some(next), Some(limit)) = (next, limit) else { break };
            (node, low) = (next, limit);
        }
        match posted.next() {
            None => Ok(children),
            Some((_, at)) => {
                let what = "child that is not among the nodes of its level";
                Err(Corrupt { at: at.offset(), what, expected: 0, found: at.offset() })
            }
        }
    }

    fn check_inner(
        &self,
        node: &Node<'_, M, NODE>,
        low: &K::Owned,
        limit: Option<&K::Owned>,
        children: &mut Vec<Child>,
    ) -> Result<(), Corrupt> {
        let (mut last, mut before) = (low.clone(), node.first_child());
        children.push((node.low(), PmPtr::new(before)));
        for entry in node.separated() {
            if entry.child == before {
                return Err(node.damage("child that is there twice", 0, entry.child));
            }
            let key = K::read(&self.pool, entry.key)?;
            if key <= last || limit.is_some_and(|limit| key >= *limit) {
                return Err(node.damage("separator out of order", 0, entry.key));
            }
            children.push((entry.key, PmPtr::new(entry.child)));
            (last, before) = (key, entry.child);
        }
        Ok(())
    }

    fn check_leaf(
        &self,
        leaf: &Node<'_, M, NODE>,
        low: &K::Owned,
        limit: Option<&K::Owned>,
        stats: &mut TreeStats,
    ) -> Result<(), Corrupt> {
        leaf.check_bitmap()?;
        let mut last: Option<K::Owned> = None;
        for (_, entry) in leaf.ordered()? {
            let key = K::read_entry(&self.pool, entry)?;
            let in_order = last.as_ref().map_or(key >= *low, |last| key > *last);
            if !in_order || limit.is_some_and(|limit| key >= *limit) {
                return Err(leaf.damage("key out of order", 0, entry.key));
            }
            stats.count_entry::<K, M>(&self.pool, entry)?;
            stats.keys += 1;
            last = Some(key);
        }
        stats.leaves += 1;
        stats.count_block(&self.pool, K::block(&self.pool, leaf.low())?)
    }
}
