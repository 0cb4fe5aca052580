//! The growth of a file with a journal: space on the device, a durable length, working memory.
//!
//! 1. A thread extends the file and working memory ahead of the pool. A write that outruns it waits
//!    for the device.
//! 2. A failed sync of the pool file ends all writing, also one for a length: pages of a checkpoint
//!    may be lost.

use super::folder::Folder;
use super::journaled::{Journaled, SharedJournal};
use super::lines::Journal;
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

    /// Makes the length durable, and the pages of working memory present.
    fn make_ready(&self, old: u64, new: u64) {
        // If this fails, so does the growth that needs the length.
        let _ = self.sync_length(new);
        self.journal.memory.populate(old, new);
    }
}

impl SharedJournal {
    /// Takes what the file has past `bytes` for space that is not allocated.
    pub(super) fn limit_length(&self, bytes: u64) {
        let mut length = self.length.lock();
        length.ready = length.ready.min(bytes);
        length.durable = length.durable.min(bytes);
    }

    /// Makes a length of `bytes` of the pool file survive a power cut. Nothing to do if it does.
    pub(super) fn sync_length(&self, bytes: u64) -> Result<(), MediumError> {
        let ready = {
            let length = self.length.lock();
            if length.durable >= bytes {
                return Ok(());
            }
            length.ready
        };
        self.journal.sync_pool_length(ready)?;
        let mut length = self.length.lock();
        length.durable = length.durable.max(ready);
        Ok(())
    }
}

impl Journal<Folder> {
    fn sync_pool_length(&self, bytes: u64) -> Result<(), MediumError> {
        self.check()?;
        self.checked(self.disk.sync_length(bytes))
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
