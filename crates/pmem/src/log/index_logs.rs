//! Undo-redo logs in a block of an index's own, for transactions of more words than the pool's logs
//! have room for.
//!
//! The block holds four slots, each as [`UndoLog`] lays it out, one behind the other.
//!
//! 1. The block belongs to the index like any other: it is reached from its root, and all zero before
//!    that.
//! 2. An index takes its logs over before it reads anything that they may name.
//! 3. Numbers go on above those in the block, so an old line never completes a new transaction.

use super::apply::{apply, check_offset, clear, newest_in, wipe_slot};
use super::slots::{Lease, Slots, TXID_RENEW};
use super::undo::{self, UndoLog, lines_of};
use crate::error::Corrupt;
use crate::line::{LINE_BYTES, LINE_WORDS};
use crate::medium::{Medium, words_at};
use crate::word::{PmPtr, PmWord};
use core::sync::atomic::AtomicU64;

/// Slots of a block.
const SLOTS: usize = 4;

/// The most records for which a slot can have room: lines are bits of a word.
const RECORDS_MAX: usize = undo::records_of(u128::BITS as usize);

/// Undo-redo logs in a block of an index's own.
#[derive(Debug)]
pub struct UndoLogs {
    at: PmPtr,
    slot_lines: usize,
    leased: AtomicU64,
}

impl UndoLogs {
    /// Bytes of logs whose transactions change at most so many words.
    pub const fn bytes(records: usize) -> u64 {
        assert!(records >= 1 && records <= RECORDS_MAX);
        (SLOTS * lines_of(records) * LINE_BYTES) as u64
    }

    /// Opens the logs at `at` and ends every transaction in them; see
    /// [`Pool::open_undo_logs`](crate::Pool::open_undo_logs).
    pub(crate) fn open<M: Medium>(
        medium: &M,
        numbers: &Slots,
        at: PmPtr,
        records: usize,
    ) -> Result<Self, Corrupt> {
        let logs = Self { at, slot_lines: lines_of(records), leased: AtomicU64::new(0) };
        let (mut ends, mut newest) = (Vec::new(), 0);
        let bytes = Self::bytes(records);
        for index in 0..SLOTS {
            let slot = logs.slot(medium, index)?;
            newest = newest.max(newest_in(medium, slot));
            let Some(pairs) = undo::read(medium, slot)? else { continue };
            for &(offset, _) in &pairs {
                check_offset(offset, at.offset(), medium.len())?;
                if (at.offset()..at.offset() + bytes).contains(&offset) {
                    let what = "log names a word of a log";
                    return Err(Corrupt { at: at.offset(), what, expected: bytes, found: offset });
                }
            }
            ends.push((slot, pairs));
        }
        for (slot, pairs) in ends {
            let _ = apply(medium, &pairs)?;
            let _ = clear(medium, slot);
        }
        if newest >= TXID_RENEW {
            for index in 0..SLOTS {
                wipe_slot(medium, logs.slot(medium, index)?);
            }
            let _ = medium.fence();
            newest = 0;
        }
        numbers.resume_above(newest);
        Ok(logs)
    }

    /// Leases a log; see [`Pool::undo_log_in`](crate::Pool::undo_log_in).
    pub(crate) fn begin<'p, M: Medium>(
        &'p self,
        medium: &'p M,
        numbers: &'p Slots,
    ) -> UndoLog<'p, M> {
        let lease = Lease::of(&self.leased, 0..SLOTS);
        let slot = self.slot(medium, lease.index()).expect("the logs were found in this pool");
        UndoLog::begin(medium, numbers.draw(), slot, lease)
    }

    fn slot<'p, M: Medium>(&self, medium: &'p M, index: usize) -> Result<&'p [PmWord], Corrupt> {
        let offset = self.at.offset() + (index * self.slot_lines * LINE_BYTES) as u64;
        words_at(medium, PmPtr::new(offset), self.slot_lines * LINE_WORDS)
    }
}

#[cfg(test)]
mod tests;
