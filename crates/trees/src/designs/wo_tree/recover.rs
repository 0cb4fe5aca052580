//! Recovery: the inner nodes level by level, then one leaf for each record of the log.
//!
//! 1. The inner nodes say which leaves there are; no leaf is read but those that records name. Keys
//!    that have records are the exception: the leaves say which records there are.
//! 2. A record counts if its leaf is the child of an inner node, or the right leaf of a split whose
//!    record counts. So records are tried until no more of them counts.
//! 3. Steps that need a block come after those that need none, when the pool hands out blocks
//!    again. The records are cleared last, so a crash of the recovery is followed by the same one.

use super::WoTreeIndex;
use super::leaf::indices;
use super::log::{LogRecord, Op};
use super::node::Node;
use super::split::Spare;
use crate::index::TreeError;
use crate::key::{self, Key};
use crate::line_log::LOG_BYTES;
use crate::root_block::ROOT_BYTES;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};
use std::collections::BTreeSet;

/// A node that the level above lacks: its low key word, offset and level.
type Unposted = (u64, PmPtr, u32);

/// The result of the walk through the inner nodes.
struct Levels<'t, M, const NODE: usize> {
    inner: Vec<PmPtr>,
    /// The nodes of level 1.
    lowest: Vec<Node<'t, M, NODE>>,
    leaves: BTreeSet<PmPtr>,
    unposted: Vec<Unposted>,
}

impl<M: Medium, K: Key, const NODE: usize> WoTreeIndex<M, K, NODE> {
    /// Recovers after a crash: marks all blocks of the tree, repairs inner nodes, replays the log
    /// and completes splits and unlinks.
    ///
    /// ```text
    /// repair inner nodes        entries that do not count
    /// replay records            one leaf each: entry, bitmap and seq, slots, unlinks
    /// post                      nodes that the level above lacks, right leaves of splits
    /// clear records
    /// ```
    pub(super) fn recover(&self) -> Result<(), TreeError> {
        let mut levels = self.repair_levels()?;
        let splits = self.replay(&mut levels)?;
        self.mark(&levels)?;
        self.pool.finish_recovery();
        let mut spare = Spare::reserve(&self.pool, Self::NODE_BYTES, 0)?;
        if M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::RecordsEarly) {
            self.log.clear(&self.pool)?;
        }
        let rights = splits.into_iter().map(|right| (right.low(), right.at, 0));
        for (low, at, level) in levels.unposted.into_iter().chain(rights) {
            let key = K::read(&self.pool, low)?;
            self.post(low, K::borrow(&key), at, level + 1, &mut spare)?;
        }
        self.log.clear(&self.pool)?;
        Ok(())
    }

    /// Walks the inner nodes, from the root's level down, and along each level from left to right.
    /// Removes entries that do not count.
    fn repair_levels(&self) -> Result<Levels<'_, M, NODE>, Corrupt> {
        let root = self.root_node()?;
        let mut levels = Levels {
            inner: Vec::new(),
            lowest: Vec::new(),
            leaves: BTreeSet::new(),
            unposted: Vec::new(),
        };
        let mut above = BTreeSet::from([root.at]);
        let mut first = root;
        loop {
            let level = first.level;
            let nodes = self.repair_level(first, &mut |node| {
                if !above.contains(&node.at) {
                    levels.unposted.push((node.low(), node.at, level));
                }
            })?;
            levels.inner.extend(nodes.iter().map(|node| node.at));
            above.clear();
            for node in &nodes {
                above.insert(PmPtr::new(node.first_child()));
                above.extend(node.separated().iter().map(|entry| PmPtr::new(entry.child)));
            }
            if level == 1 {
                (levels.lowest, levels.leaves) = (nodes, above);
                return Ok(levels);
            }
            first = self.node(PmPtr::new(nodes[0].first_child()), level - 1)?;
        }
    }

    /// Repairs the nodes of one level and returns them. Calls `visit` with each.
    fn repair_level<'t>(
        &'t self,
        first: Node<'t, M, NODE>,
        visit: &mut dyn FnMut(&Node<'t, M, NODE>),
    ) -> Result<Vec<Node<'t, M, NODE>>, Corrupt> {
        let (mut nodes, mut node) = (Vec::new(), first);
        if node.low() != 0 {
            return Err(node.damage("low key of the leftmost node", 0, node.low()));
        }
        let mut low = K::least();
        loop {
            visit(&node);
            nodes.push(node);
            let next = node.next();
            if next.is_null() {
                self.repair_node(&node, None)?;
                return Ok(nodes);
            }
            let next = self.node(next, node.level)?;
            let limit = K::read(&self.pool, next.low())?;
            // Low keys rise, so the walk ends.
            if limit <= low {
                return Err(next.damage("low key not above that of the left node", 0, next.low()));
            }
            self.repair_node(&node, Some(K::borrow(&limit)))?;
            (node, low) = (next, limit);
        }
    }

    /// Removes the entries of `node` that do not count: those with the child of the place before,
    /// and those at or above `limit`, the next node's low key.
    ///
    /// # Persist order
    /// ```text
    /// shift out, or W child = null, F |     crash: fewer entries that do not count
    /// ```
    fn repair_node(
        &self,
        node: &Node<'_, M, NODE>,
        limit: Option<K::Ref<'_>>,
    ) -> Result<(), Corrupt> {
        let mut index = 0;
        while index < Node::<M, NODE>::FANOUT && node.child(index) != 0 {
            if node.child(index) == node.child_before(index) {
                let _ = node.shift_out(node.count(), index);
            } else if let Some(limit) = limit
                && K::order(&self.pool, node.key(index), limit)?.is_ge()
            {
                let _ = node.cut(index);
            } else {
                index += 1;
            }
        }
        Ok(())
    }

    /// Replays the records that count. Returns the right leaves of their splits.
    fn replay<'t>(
        &'t self,
        levels: &mut Levels<'t, M, NODE>,
    ) -> Result<Vec<Node<'t, M, NODE>>, Corrupt> {
        let mut waiting = self.log.records(&self.pool, LogRecord::decode)?;
        let mut rights = Vec::new();
        loop {
            let before = waiting.len();
            let mut unreached = Vec::new();
            for record in waiting {
                if levels.leaves.contains(&record.leaf) {
                    rights.extend(self.replay_record(record, levels)?);
                } else {
                    unreached.push(record);
                }
            }
            waiting = unreached;
            let is_last = M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::RecordsOnePass);
            if waiting.len() == before || is_last {
                // A later record may have unlinked a leaf that an earlier one has split off.
                rights.retain(|right: &Node<'_, M, NODE>| levels.leaves.contains(&right.at));
                return Ok(rights);
            }
        }
    }

    /// Replays a record. Returns the right leaf if it is that of a split which has linked it.
    ///
    /// # Persist order
    /// ```text
    /// insert: W entry, F |          only if the leaf's seq is below the record's
    /// W bitmap, W seq, F |          as above; for a split the entries below the right leaf
    /// unlink: shift out, then W next, W seq, F |   as above
    /// W slots, F |                  also if the two are equal
    /// ```
    fn replay_record<'t>(
        &'t self,
        record: LogRecord,
        levels: &mut Levels<'t, M, NODE>,
    ) -> Result<Option<Node<'t, M, NODE>>, Corrupt> {
        let leaf = self.node(record.leaf, 0)?;
        let (old, seq) = (leaf.seq(), record.seq);
        if old > seq {
            return Ok(None);
        }
        let is_due = old < seq;
        let mut linked = None;
        match record.op {
            Op::Insert { index, key, value, bitmap } if is_due => {
                if index >= Node::<M, NODE>::CAPACITY {
                    return Err(leaf.damage("index of a log record", 0, index as u64));
                }
                let _ = leaf.set_entry(index, key::Entry::plain(key, value));
                let _ = leaf.set_bitmap(leaf.with_bitmap_part(index, bitmap), seq);
            }
            Op::Remove { index, bitmap } if is_due => {
                let _ = leaf.set_bitmap(leaf.with_bitmap_part(index, bitmap), seq);
            }
            Op::Split { right } if leaf.next() == right => {
                let right = self.node(right, 0)?;
                if is_due {
                    let limit = K::read(&self.pool, right.low())?;
                    let mut kept = leaf.bitmap();
                    for index in indices(kept) {
                        let entry = leaf.entry(index);
                        if K::order_entry(&self.pool, entry, K::borrow(&limit))?.is_ge() {
                            kept &= !(1 << index);
                        }
                    }
                    let _ = leaf.set_bitmap(kept, seq);
                }
                levels.leaves.insert(right.at);
                linked = Some(right);
            }
            Op::Unlink { right } if is_due && leaf.next() == right => {
                self.replay_unlink(&leaf, right, seq, levels)?;
            }
            _ => {}
        }
        self.remake_slots(&leaf)?;
        Ok(linked)
    }

    /// Completes the unlink of the leaf at `right` behind `leaf`. If the leaf is still the only
    /// child of an inner node, nothing has happened to it, and it stays.
    fn replay_unlink(
        &self,
        leaf: &Node<'_, M, NODE>,
        right: PmPtr,
        seq: u64,
        levels: &mut Levels<'_, M, NODE>,
    ) -> Result<(), Corrupt> {
        let right = self.node(right, 0)?;
        if levels.lowest.iter().any(|node| node.first_child() == right.at.offset()) {
            return Ok(());
        }
        for parent in &levels.lowest {
            if let Some(index) = Self::index_of(parent, right.at) {
                let _ = parent.shift_out(parent.count(), index);
            }
        }
        let _ = leaf.set_next(right.next(), seq);
        levels.leaves.remove(&right.at);
        Ok(())
    }

    /// Marks all blocks of the tree.
    fn mark(&self, levels: &Levels<'_, M, NODE>) -> Result<(), Corrupt> {
        self.pool.mark(self.root.at, ROOT_BYTES)?;
        self.pool.mark(self.log.at, LOG_BYTES)?;
        let nodes = levels.inner.iter().chain(&levels.leaves);
        let blocks: Vec<_> = nodes.map(|&at| (at, Self::NODE_BYTES)).collect();
        self.pool.mark_all(&blocks)?;
        if K::EXACT {
            return Ok(());
        }
        for &at in &levels.leaves {
            let leaf = self.node(at, 0)?;
            // The separators above have the same word.
            key::mark::<K, M>(&self.pool, leaf.low())?;
            for index in indices(leaf.bitmap()) {
                key::mark_entry::<K, M>(&self.pool, leaf.entry(index))?;
            }
        }
        Ok(())
    }
}
