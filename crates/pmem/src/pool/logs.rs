//! The logs of a pool: those in its header, and those in the blocks of indexes.

use super::Pool;
use crate::error::Corrupt;
use crate::log::{RedoLog, UndoLog, UndoLogs};
use crate::medium::Medium;
use crate::word::PmPtr;

impl<M: Medium> Pool<M> {
    /// Leases a redo log, and waits until one is free: 32 transactions can run at once. The caller
    /// must not wait for a latch while it holds the log.
    pub fn redo_log(&self) -> RedoLog<'_, M> {
        RedoLog::lease(self.medium(), &self.log_slots)
    }

    /// Leases an undo-redo log, and waits until one is free: 8 transactions can run at once. The
    /// caller must not wait for a latch while it holds the log.
    pub fn undo_log(&self) -> UndoLog<'_, M> {
        UndoLog::lease(self.medium(), &self.log_slots)
    }

    /// Opens the undo-redo logs of an index, in the [`UndoLogs::bytes`] at `at`, and ends every
    /// transaction in them: replays those that are committed, undoes the others. Durable on return.
    /// No other thread may use the pool meanwhile.
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
    /// A log is damaged, or names a word that no log may change. Nothing has changed then.
    pub fn open_undo_logs(
        &self,
        at: PmPtr,
        records: usize,
        fresh: usize,
    ) -> Result<UndoLogs, Corrupt> {
        UndoLogs::open(self.medium(), &self.log_slots, at, records, fresh)
    }

    /// Returns the blocks that [`UndoLog::alloc_node`] has recorded in `logs`, whose transactions
    /// have no fresh words.
    ///
    /// # Errors
    /// A record is damaged.
    ///
    /// # Panics
    /// `logs` are not in this pool.
    pub fn allocated_nodes(&self, logs: &UndoLogs) -> Result<Vec<PmPtr>, Corrupt> {
        logs.allocated(self.medium())
    }

    /// Leases one of an index's own `logs`, and waits until one is free: 4 transactions can run at
    /// once. The caller must not wait for a latch while it holds the log.
    ///
    /// # Panics
    /// `logs` are not in this pool.
    pub fn undo_log_in<'p>(&'p self, logs: &'p UndoLogs) -> UndoLog<'p, M> {
        logs.begin(self.medium(), &self.log_slots)
    }
}
