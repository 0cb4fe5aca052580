//! Cleaning: settling the units of old records before their chunk is used again.

use super::UnitTreeIndex;
use super::log::OldRecord;
use super::rows::tag_of;
use super::unit::home_of;
use crate::inner::{Direction, InnerNodes};
use crate::key::Key;
use crate::leaf_table::LeafTable;
use bristlecone_pmem::{Corrupt, Medium};

/// The number of records that a write cleans: two for the one that it appends, so that a chunk is
/// clean before the lane needs it.
const RECORDS: usize = 2;

impl<M: Medium, K: Key, const BYTES: usize> UnitTreeIndex<M, K, BYTES> {
    /// Cleans some records of the thread's lane, and settles at most one unit. The caller holds no
    /// latch. Damage is reported by the next operation that reads it; until then its chunk is not
    /// used again.
    pub(super) fn clean(&self) {
        for _ in 0..RECORDS {
            let Ok(Some(old)) = self.log.next_to_clean(&self.pool) else { return };
            let Ok(has_settled) = self.clean_record(&old) else { return };
            self.log.note_cleaned(&old);
            if has_settled {
                return;
            }
        }
    }

    /// Settles the unit of a record, if a row refers to it, and returns `true` then. See
    /// [`settle_unit`](Self::settle_unit).
    fn clean_record(&self, old: &OldRecord) -> Result<bool, Corrupt> {
        let Some(record) = old.record else { return Ok(false) };
        let key = K::read_entry(&self.pool, record.change.entry)?;
        let hash = K::hash(K::borrow(&key));
        loop {
            let route = self.inner.seek::<K>(&self.pool, K::borrow(&key), Direction::Key)?;
            let (row, latch) = self.row(route.leaf.offset() as usize);
            let Some(version) = latch.read() else { continue };
            if !self.inner.is_current(&route) {
                continue;
            }
            let word = old.position.word();
            let is_referenced = row.tagged::<M>(tag_of(hash)).any(|at| row.position::<M>(at) == word);
            if !is_referenced {
                if latch.validate(version) {
                    return Ok(false);
                }
                continue;
            }
            if let Some(_held) = latch.upgrade(version) {
                self.settle_unit(row, self.leaf(row)?, home_of(hash), None)?;
                return Ok(true);
            }
        }
    }
}
