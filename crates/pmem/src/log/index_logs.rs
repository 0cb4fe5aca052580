//! Undo-redo logs in a block of an index's own, for transactions of more words than the pool's logs
//! have room for.
//!
//! The block holds four slots, each as [`UndoLog`] lays it out, one behind the other.
//!
//! 1. The block belongs to the index like any other: it is reached from its root, and all zero before
//!    that.
//! 2. An index takes its logs over before it reads anything that they may name.
//! 3. Numbers go on above those in the block, so an old line never completes a new transaction.

use super::replay::{apply, check_offset, newest_in, wipe_slot};
use super::slots::{Lease, TXID_RENEW};
use super::undo::{UndoLog, lines_of};
use super::{redo, undo};
use crate::line::{LINE_BYTES, LINE_WORDS};
use crate::medium::Medium;
use crate::pool::{Corrupt, Pool};
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

    /// Takes over the logs in the [`bytes`](Self::bytes) at `at`, and brings every transaction in them
    /// to its end: committed ones forward, others back. Durable at return. Nobody else may use the
    /// pool meanwhile.
    ///
    /// ```text
    /// for each slot with a transaction
    ///   W words                crash: the slot is as it was, the next open does the same
    ///   F their lines |
    ///   W state = 0
    ///   F state |              -> durable
    /// ```
    ///
    /// # Errors
    /// A log is damaged, or names a word that no log can name. Nothing has changed then.
    pub fn open<M: Medium>(pool: &Pool<M>, at: PmPtr, records: usize) -> Result<Self, Corrupt> {
        let logs = Self { at, slot_lines: lines_of(records), leased: AtomicU64::new(0) };
        let (mut ends, mut newest) = (Vec::new(), 0);
        let bytes = Self::bytes(records);
        for index in 0..SLOTS {
            let slot = logs.slot(pool, index)?;
            newest = newest.max(newest_in(pool, slot));
            let Some(pairs) = undo::read(pool, slot)? else { continue };
            for &(offset, _) in &pairs {
                check_offset(offset, at.offset(), pool.medium().len())?;
                if (at.offset()..at.offset() + bytes).contains(&offset) {
                    let what = "log names a word of a log";
                    return Err(Corrupt { at: at.offset(), what, expected: bytes, found: offset });
                }
            }
            ends.push((slot, pairs));
        }
        for (slot, pairs) in ends {
            let _ = apply(pool, &pairs)?;
            let _ = redo::clear(pool, slot);
        }
        if newest >= TXID_RENEW {
            for index in 0..SLOTS {
                wipe_slot(pool, logs.slot(pool, index)?);
            }
            let _ = pool.medium().fence();
            newest = 0;
        }
        pool.logs.resume_above(newest);
        Ok(logs)
    }

    /// Leases a log, waiting until one is free: 4 transactions can be under way at once. Whoever holds
    /// one must not wait for a latch.
    ///
    /// # Panics
    /// `pool` is not the one that the logs are in.
    pub fn begin<'p, M: Medium>(&'p self, pool: &'p Pool<M>) -> UndoLog<'p, M> {
        let lease = Lease::of(&self.leased, 0..SLOTS);
        let slot = self.slot(pool, lease.index()).expect("the logs were found in this pool");
        UndoLog::begin(pool, slot, lease)
    }

    fn slot<'p, M: Medium>(
        &self,
        pool: &'p Pool<M>,
        index: usize,
    ) -> Result<&'p [PmWord], Corrupt> {
        let offset = self.at.offset() + (index * self.slot_lines * LINE_BYTES) as u64;
        pool.words(PmPtr::new(offset), self.slot_lines * LINE_WORDS)
    }
}

#[cfg(test)]
mod tests;
