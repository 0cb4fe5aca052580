//! Recovery: the records of the log, each for the nodes that it names, from the root down.
//!
//! 1. A parent is repaired before its children are followed. So a node that only a record names is
//!    reached, and one that a record releases is not.
//! 2. A record says where its change began, and the entries how far it came: of two neighbours with
//!    one key word, one is the copy. The change resumes there. To begin again would copy an entry
//!    over one that has not moved yet.
//! 3. The state of a node is stored last and has the sequence number of the record. So a second
//!    recovery changes nothing, and no record needs to be ended.
//! 4. Recovery reserves no block. It reads the leaves that records name, and all of them if keys
//!    have records of their own, which it marks.

use super::BTreeNativeIndex;
use super::log::{Change, NodeRecord};
use super::node::SortedNode;
use crate::index::TreeError;
use crate::key::{self, Key};
use crate::line_log::LOG_BYTES;
use crate::root_block::ROOT_BYTES;
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmPtr};

impl<M: Medium, K: Key, const NODE: usize> BTreeNativeIndex<M, K, NODE> {
    /// Recovers after a crash: completes the changes of all records that count, and marks all
    /// blocks of the tree.
    pub(super) fn recover(&self) -> Result<(), TreeError> {
        let records = self.log.records(&self.pool, NodeRecord::decode)?;
        self.pool.mark(self.root.at, ROOT_BYTES)?;
        self.pool.mark(self.log.at, LOG_BYTES)?;
        let root = self.root_node()?;
        self.recover_below(root.at, root.level, &records)?;
        self.pool.finish_recovery();
        Ok(())
    }

    /// Completes the changes of the node at `at` and of all nodes below it, and marks them. A block
    /// that two pointers lead to cannot be marked twice, so damage ends the walk.
    fn recover_below(&self, at: PmPtr, level: u64, records: &[NodeRecord]) -> Result<(), Corrupt> {
        self.pool.mark(at, Self::NODE_BYTES)?;
        let changes = records.iter().filter_map(|record| Some((record, record.change_of(at)?)));
        let mut changes = changes.peekable();
        if level == 0 && K::EXACT && changes.peek().is_none() {
            return Ok(());
        }
        let node = self.node(at, level)?;
        for (record, change) in changes {
            if node.state()?.seq < record.seq {
                let _ = self.complete(&node, change, record.seq)?;
            }
        }
        let count = node.state()?.count;
        if level == 0 {
            let mark = |index| key::mark_entry::<K, M>(&self.pool, node.entry(index));
            return if K::EXACT { Ok(()) } else { (0..count).try_for_each(mark) };
        }
        for index in 0..count {
            key::mark::<K, M>(&self.pool, node.entry(index).key)?;
        }
        (0..=count).try_for_each(|rank| self.recover_below(node.child(rank), level - 1, records))
    }

    /// Completes a change of `node`.
    ///
    /// # Persist order
    /// ```text
    /// that of the change, from the entry on that has moved last     -> durable
    /// ```
    pub(super) fn complete(
        &self,
        node: &SortedNode<'_, M, NODE>,
        change: Change,
        seq: u64,
    ) -> Result<Fenced, Corrupt> {
        let count = node.state()?.count;
        let now = (count, seq);
        let from_start = M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::RedoFromStart);
        let doubled = |place, last| if from_start { None } else { node.doubled(place, last) };
        let fenced = Fenced::nothing(); // The record is durable, or recovery would not read it.
        match change {
            Change::In { place, entry } => {
                if place > count || count == SortedNode::<M, NODE>::CAPACITY {
                    return Err(node.damage("place of a log record", count, place));
                }
                let first = if place < count && node.entry(place).key == entry.key {
                    place // All entries have moved.
                } else {
                    doubled(place, count).map_or(count, |copied| copied + 1)
                };
                Ok(node.insert_from(first, place, entry, now))
            }
            Change::Out { place } => {
                if place >= count {
                    return Err(node.damage("place of a log record", count, place));
                }
                let first = doubled(place, count - 1).unwrap_or(place) + 1;
                Ok(node.remove_from(first, now, fenced))
            }
            Change::Cut { right } => Ok(Self::cut(node, right, now, fenced)),
            Change::Take { right } => self.take(node, right, now, fenced),
        }
    }
}
