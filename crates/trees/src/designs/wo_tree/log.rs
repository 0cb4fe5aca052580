//! The records of the log of the leaves, a [`LineLog`](crate::line_log::LineLog).
//!
//! The fields of a record:
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | leaf | data | the leaf that changes |
//! | 8 | 8 | key or node | data | insert: key word; split: the new leaf; unlink: the unlinked one |
//! | 16 | 8 | value | data | insert: value word |
//! | 24 | 8 | bitmap | data | insert, remove: the new bitmap word |
//!
//! A thread that waits for a line holds latches of leaves alone, and one that has a line waits for
//! latches of inner nodes alone. So no deadlock is possible.

use crate::line_log::{LineRecord, LogLine};
use bristlecone_pmem::{Defect, Fenced, Medium, PmPtr};

/// The operation of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// An insert of a pair at an index.
    Insert { index: usize, key: u64, value: u64, bitmap: u64 },
    /// A removal of the entry at an index.
    Remove { index: usize, bitmap: u64 },
    /// A split, with the new leaf.
    Split { right: PmPtr },
    /// An unlink of the next leaf.
    Unlink { right: PmPtr },
}

/// A record: an operation on a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogRecord {
    pub(super) op: Op,
    pub(super) leaf: PmPtr,
    pub(super) seq: u64,
}

impl LogRecord {
    fn encode(self) -> LineRecord {
        let (operation, index, [a, b, bitmap]) = match self.op {
            Op::Insert { index, key, value, bitmap } => (1, index, [key, value, bitmap]),
            Op::Remove { index, bitmap } => (2, index, [0, 0, bitmap]),
            Op::Split { right } => (3, 0, [right.offset(), 0, 0]),
            Op::Unlink { right } => (4, 0, [right.offset(), 0, 0]),
        };
        let fields = [self.leaf.offset(), a, b, bitmap];
        LineRecord { fields, seq: self.seq, index, operation }
    }

    /// Returns the record in `line`, or `None` if the operation does not exist.
    pub(super) fn decode(line: &LineRecord) -> Option<Self> {
        let ([leaf, a, value, bitmap], index) = (line.fields, line.index);
        let op = match line.operation {
            1 => Op::Insert { index, key: a, value, bitmap },
            2 => Op::Remove { index, bitmap },
            3 => Op::Split { right: PmPtr::new(a) },
            4 => Op::Unlink { right: PmPtr::new(a) },
            _ => return None,
        };
        Some(Self { op, leaf: PmPtr::new(leaf), seq: line.seq })
    }

    /// Writes the record to `line`, as [`LogLine::write`].
    pub(super) fn write<M: Medium>(self, line: &LogLine<'_, M>) -> Fenced {
        let injects = |defect| M::INJECTS_DEFECTS && line.medium.injects(defect);
        if injects(Defect::SlotsApart) {
            return Fenced::nothing();
        }
        if injects(Defect::RecordUnfenced) {
            line.store(self.encode());
            return Fenced::nothing();
        }
        line.write(self.encode())
    }
}
