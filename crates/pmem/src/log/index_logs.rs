//! Undo-redo logs in a block of an index, for transactions with more words than a log in the pool's
//! header holds.
//!
//! The block holds four consecutive slots, with the layout of [`UndoLog`].
//!
//! 1. The index owns the block like any other: its root reaches the block, which is all zero before
//!    that.
//! 2. An index opens its logs before it reads any word that they may contain.
//! 3. Transaction numbers continue above those in the block, so an old line never completes a new
//!    transaction.

use super::apply::{apply, check_offset, clear_seals, newest_txid, truncate};
use super::slots::{Lease, SlotState, TXID_RESTART};
use super::undo::{self, Shape, UndoLog, allocated};
use crate::defect::Defect;
use crate::error::Corrupt;
use crate::line::{LINE_BYTES, LINE_WORDS};
use crate::medium::{Medium, words_at};
use crate::word::{PmPtr, PmWord};
use core::sync::atomic::AtomicU64;

/// The number of slots of a block.
const SLOTS: usize = 4;

/// The undo-redo logs in a block of an index.
#[derive(Debug)]
pub struct UndoLogs {
    at: PmPtr,
    shape: Shape,
    leased: AtomicU64,
}

impl UndoLogs {
    /// Returns the size of the block, in bytes, if each transaction changes at most `records` words
    /// in use and `fresh` words of fresh space.
    pub const fn bytes(records: usize, fresh: usize) -> u64 {
        assert!(records >= 1);
        (SLOTS * Shape::of(records, fresh).lines() * LINE_BYTES) as u64
    }

    /// Opens the logs at `at` and ends every transaction in them: see
    /// [`Pool::open_undo_logs`](crate::Pool::open_undo_logs).
    pub(crate) fn open<M: Medium>(
        medium: &M,
        state: &SlotState,
        at: PmPtr,
        records: usize,
        fresh: usize,
    ) -> Result<Self, Corrupt> {
        let shape = Shape::of(records, fresh);
        let logs = Self { at, shape, leased: AtomicU64::new(0) };
        let (mut ends, mut newest) = (Vec::new(), 0);
        let bytes = Self::bytes(records, fresh);
        for index in 0..SLOTS {
            let slot = logs.slot(medium, index)?;
            newest = newest.max(newest_txid(medium, shape.sealed(slot), &undo::SEALS));
            let Some(found) = undo::read(medium, slot, shape)? else { continue };
            for &(offset, _) in &found.pairs {
                check_offset(offset, at.offset(), medium.len())?;
                if (at.offset()..at.offset() + bytes).contains(&offset) {
                    let what = "word of a log, which a log may not change";
                    return Err(Corrupt { at: at.offset(), what, expected: bytes, found: offset });
                }
            }
            ends.push((slot, found));
        }
        for (slot, found) in ends {
            let _ = apply(medium, &found.pairs)?;
            if !(M::INJECTS_DEFECTS && medium.injects(Defect::IndexReplayKept)) {
                let _ = truncate(medium, slot, found.end);
            }
        }
        if newest >= TXID_RESTART {
            let slots: Result<Vec<_>, _> =
                (0..SLOTS).map(|index| logs.slot(medium, index)).collect();
            let sealed = slots?.into_iter().map(|slot| (shape.sealed(slot), &undo::SEALS[..]));
            clear_seals(medium, sealed);
            newest = 0;
        }
        state.resume_above(newest);
        Ok(logs)
    }

    /// Leases a log: see [`Pool::undo_log_in`](crate::Pool::undo_log_in).
    pub(crate) fn begin<'p, M: Medium>(
        &'p self,
        medium: &'p M,
        state: &'p SlotState,
    ) -> UndoLog<'p, M> {
        let lease = Lease::acquire(&self.leased, 0..SLOTS);
        let slot = self.slot(medium, lease.index()).expect("the logs were found in this pool");
        UndoLog::begin(medium, state.next_txid(), slot, self.shape, lease)
    }

    /// Returns the blocks that the logs record: see
    /// [`Pool::allocated_nodes`](crate::Pool::allocated_nodes).
    pub(crate) fn allocated<M: Medium>(&self, medium: &M) -> Result<Vec<PmPtr>, Corrupt> {
        let mut blocks = Vec::new();
        for index in 0..SLOTS {
            blocks.extend(allocated::read(medium, self.shape.fresh(self.slot(medium, index)?))?);
        }
        Ok(blocks)
    }

    fn slot<'p, M: Medium>(&self, medium: &'p M, index: usize) -> Result<&'p [PmWord], Corrupt> {
        let lines = self.shape.lines();
        let offset = self.at.offset() + (index * lines * LINE_BYTES) as u64;
        words_at(medium, PmPtr::new(offset), lines * LINE_WORDS)
    }
}

#[cfg(test)]
mod tests;
