//! The records of the write-ahead log, a [`LineLog`](crate::line_log::LineLog).
//!
//! The fields of a record:
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | node | data | the node that changes |
//! | 8 | 8 | key | data | insert: key word; split: separator word |
//! | 16 | 8 | value | data | insert: value word or child; split, merge: the right node |
//! | 24 | 8 | parent | data | split, merge: the parent, which changes too |
//!
//! 1. A record is written before the first store of its change that anything shows, and has all
//!    that the change needs. So a record that counts is always completed, never undone.
//! 2. A record counts for a node that the tree reaches and whose sequence number is lower. The two
//!    nodes of a record get one sequence number.
//! 3. A thread has a line only while it stores, and waits for no latch then. So no deadlock is
//!    possible.

use super::BTreeNativeIndex;
use super::node::{SortedNode, State};
use crate::key::{Entry, Key};
use crate::line_log::LineRecord;
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmPtr};

/// The operation of a record. `place` is the index of an entry: of the parent, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeOp {
    /// An insert of an entry.
    Insert { place: usize, key: u64, value: u64 },
    /// A removal of an entry.
    Remove { place: usize },
    /// A split: the upper half has been copied to `right`.
    Split { place: usize, low: u64, right: PmPtr, parent: PmPtr },
    /// A merge: the entries of `right` have been copied behind those of the node.
    Merge { place: usize, right: PmPtr, parent: PmPtr },
}

/// A record: an operation on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeRecord {
    pub(super) op: NodeOp,
    pub(super) node: PmPtr,
    pub(super) seq: u64,
}

/// The change of one node that a record asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// An entry shifts in.
    In { place: usize, entry: Entry },
    /// An entry shifts out.
    Out { place: usize },
    /// The upper half goes; a leaf links to `right`.
    Cut { right: PmPtr },
    /// The entries of `right` count; a leaf links to the next one of `right`.
    Take { right: PmPtr },
}

impl NodeRecord {
    fn encode(self) -> LineRecord {
        let (operation, index, [a, b, parent]) = match self.op {
            NodeOp::Insert { place, key, value } => (1, place, [key, value, 0]),
            NodeOp::Remove { place } => (2, place, [0; 3]),
            NodeOp::Split { place, low, right, parent } => {
                (3, place, [low, right.offset(), parent.offset()])
            }
            NodeOp::Merge { place, right, parent } => {
                (4, place, [0, right.offset(), parent.offset()])
            }
        };
        let fields = [self.node.offset(), a, b, parent];
        LineRecord { fields, seq: self.seq, index, operation }
    }

    /// Returns the record in `line`, or `None` if the operation does not exist.
    pub(super) fn decode(line: &LineRecord) -> Option<Self> {
        let ([node, key, value, parent], place) = (line.fields, line.index);
        let (right, parent) = (PmPtr::new(value), PmPtr::new(parent));
        let op = match line.operation {
            1 => NodeOp::Insert { place, key, value },
            2 => NodeOp::Remove { place },
            3 => NodeOp::Split { place, low: key, right, parent },
            4 => NodeOp::Merge { place, right, parent },
            _ => return None,
        };
        Some(Self { op, node: PmPtr::new(node), seq: line.seq })
    }

    /// Returns the change of the node at `at` that the record asks for, if any.
    pub(super) fn change_of(&self, at: PmPtr) -> Option<Change> {
        let is_node = self.node == at;
        match self.op {
            NodeOp::Insert { place, key, value } if is_node => {
                Some(Change::In { place, entry: Entry::plain(key, value) })
            }
            NodeOp::Remove { place } if is_node => Some(Change::Out { place }),
            NodeOp::Split { right, .. } if is_node => Some(Change::Cut { right }),
            NodeOp::Merge { right, .. } if is_node => Some(Change::Take { right }),
            NodeOp::Split { place, low, right, parent } if parent == at => {
                Some(Change::In { place, entry: Entry::plain(low, right.offset()) })
            }
            NodeOp::Merge { place, parent, .. } if parent == at => Some(Change::Out { place }),
            _ => None,
        }
    }
}

impl<M: Medium, K: Key, const NODE: usize> BTreeNativeIndex<M, K, NODE> {
    /// Writes a record about `node`, and calls `change` while it stands.
    ///
    /// # Persist order
    /// ```text
    /// C record; F |      crash from here on: recovery completes the change
    /// change
    /// ```
    pub(super) fn logged(
        &self,
        op: NodeOp,
        node: &SortedNode<'_, M, NODE>,
        seq: u64,
        change: impl FnOnce(Fenced) -> Result<Fenced, Corrupt>,
    ) -> Result<(), Corrupt> {
        let line = self.log.lease(&self.pool)?;
        let record = NodeRecord { op, node: node.at, seq }.encode();
        let fenced = if M::INJECTS_DEFECTS && line.medium.injects(Defect::WriteAheadUnfenced) {
            line.store(record);
            Fenced::nothing()
        } else {
            line.write(record)
        };
        change(fenced).map(drop)
    }

    /// Returns the count of the lower half of a split node.
    pub(super) const fn lower_half(count: usize) -> usize {
        count / 2
    }

    /// Ends a split in the lower node: leaf or inner node, `state` its state before.
    ///
    /// # Persist order
    /// ```text
    /// W link of a leaf, C state; F line 0 |   -> durable   budget: 1 line, 1 fence
    /// ```
    pub(super) fn cut(
        node: &SortedNode<'_, M, NODE>,
        right: PmPtr,
        (count, seq): (usize, u64),
        fenced: Fenced,
    ) -> Fenced {
        let link = if node.level == 0 { right } else { node.link() };
        node.commit_link(link, State { count: Self::lower_half(count), seq }, fenced)
    }

    /// Ends a merge in the left node, behind whose `count` entries those of `right` have been
    /// copied.
    ///
    /// # Persist order
    /// ```text
    /// W link of a leaf, C state; F line 0 |   -> durable   budget: 1 line, 1 fence
    /// ```
    ///
    /// # Errors
    /// The two have more entries than fit.
    pub(super) fn take(
        &self,
        node: &SortedNode<'_, M, NODE>,
        right: PmPtr,
        (count, seq): (usize, u64),
        fenced: Fenced,
    ) -> Result<Fenced, Corrupt> {
        let right = self.node(right, node.level)?;
        let sum = count + right.state()?.count + usize::from(node.level > 0);
        if sum > SortedNode::<M, NODE>::CAPACITY {
            return Err(node.damage(
                "entries of merged nodes",
                SortedNode::<M, NODE>::CAPACITY,
                sum,
            ));
        }
        let link = if node.level == 0 { right.link() } else { node.link() };
        Ok(node.commit_link(link, State { count: sum, seq }, fenced))
    }
}
