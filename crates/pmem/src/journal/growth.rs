//! The growth of a file with a journal: space on the device, a durable length, working memory.
//!
//! 1. A thread extends the file and working memory ahead of the pool. A write that outruns it waits
//!    for the device.
//! 2. A failed sync of the pool file ends all writing, also one for a length: pages of a checkpoint
//!    may be lost.

use super::journaled::{Journaled, SharedJournal};
use crate::medium::{Extensible, FileLength, Medium, MediumError};
use parking_lot::Mutex;

impl Extensible for SharedJournal {
    fn length(&self) -> &Mutex<FileLength> {
        &self.length
    }

    fn extend(&self, length: &mut FileLength, new: u64) -> Result<(), MediumError> {
        let (journal, old) = (&self.journal, length.ready);
        journal.check()?;
        journal.disk.extend(old, new)?;
        if let Err(error) = journal.memory.grow(new) {
            journal.disk.cut(old);
            return Err(error);
        }
        length.ready = new;
        Ok(())
    }

    fn populate(&self, old: u64, new: u64) {
        self.journal.memory.populate(old, new);
    }

    fn has_durable_length(&self) -> bool {
        true
    }

    /// Ends all writing if it fails (I2).
    fn sync_file(&self, bytes: u64) -> Result<(), MediumError> {
        self.journal.check()?;
        self.journal.checked(self.journal.disk.sync_length(bytes))
    }
}

impl SharedJournal {
    /// Takes what the file has past `bytes` for space that is not allocated.
    pub(super) fn limit_length(&self, bytes: u64) {
        let mut length = self.length.lock();
        length.ready = length.ready.min(bytes);
        length.durable = length.durable.min(bytes);
    }
}

impl Journaled {
    /// Grows to between `least` and `ample` bytes and returns the new length.
    pub(super) fn extend_between(&self, least: u64, ample: u64) -> Result<u64, MediumError> {
        if self.is_inherited() {
            return Err(MediumError::Inherited);
        }
        let [reserved, memory] = self.limits;
        if least > reserved {
            return Err(MediumError::Limit { wanted: least, limit: reserved });
        }
        if least > memory {
            return Err(MediumError::Memory { wanted: least, limit: memory });
        }
        let bytes = self.growing.take(least, self.growth_limit(ample).max(least))?;
        self.note_length(bytes);
        Ok(bytes)
    }

    /// Starts to prepare growth to `bytes`.
    pub(super) fn prepare(&self, bytes: u64) {
        if !self.is_inherited() {
            self.growing.prepare(self.growth_limit(bytes));
        }
    }

    /// Returns the part of `bytes` to which the file may grow.
    fn growth_limit(&self, bytes: u64) -> u64 {
        self.limits.into_iter().fold(bytes, u64::min)
    }
}
