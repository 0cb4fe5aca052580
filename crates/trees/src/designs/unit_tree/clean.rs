//! Cleaning: settling the units of old records before their chunk is used again.

use super::UnitTreeIndex;
use super::log::{Logs, OldRecord};
use super::rows::{REFERENCES, tag_of};
use super::unit::{UnitLeaf, home_of};
use crate::inner::{Direction, InnerNodes};
use crate::key::Key;
use crate::leaf_table::LeafTable;
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Medium};

impl<M: Medium, K: Key, const BYTES: usize> UnitTreeIndex<M, K, BYTES> {
    /// Cleans some records of the thread's lane, unless there are maintenance workers. Settles at
    /// most one unit. The caller holds no latch. Damage is reported by the next operation that
    /// meets it; the chunk is not used again.
    pub(super) fn clean(&self, is_behind: bool, guard: &Guard) {
        if !is_behind && self.maintainers.are_registered::<M>() {
            return;
        }
        for _ in 0..self.log.records_to_clean(self.log_target()) {
            let cleaned = self.clean_one(Logs::<M>::lanes().0, guard);
            if !matches!(cleaned, Ok(Some(false))) {
                return;
            }
        }
    }

    /// Cleans a record of any lane, or settles a unit of a leaf whose row is full. Returns `false`
    /// if there is none. Durable on return.
    pub(super) fn clean_any(&self) -> Result<bool, Corrupt> {
        let guard = self.pool.pin();
        for lane in Logs::<M>::lanes().1 {
            if self.clean_one(lane, &guard)?.is_some() {
                return Ok(true);
            }
        }
        let Some(row) = self.rows.take_full() else { return Ok(false) };
        let Some(_held) = row.latch::<M>().lock() else { return Ok(true) };
        if row.pending::<M>().count == REFERENCES {
            self.settle_fullest(row, self.leaf(row)?)?;
        }
        Ok(true)
    }

    /// Cleans the next record of a lane; `None` if there is none. Returns `true` if its unit
    /// settles.
    fn clean_one(&self, lane: usize, guard: &Guard) -> Result<Option<bool>, Corrupt> {
        let Some(old) = self.log.next_to_clean(&self.pool, lane)? else { return Ok(None) };
        let has_settled = self.clean_record(&old)?;
        let (place, root) = ((&*self.pool, guard), self.root_words()?);
        self.log.note_cleaned(place, root, (lane, &old), self.log_target())?;
        Ok(Some(has_settled))
    }

    /// Returns the number of records that the logs should have room for: 1.2 for each key, as
    /// leaves are 70 % full.
    pub(super) fn log_target(&self) -> u64 {
        self.rows.in_use() * (UnitLeaf::<BYTES>::CAPACITY as u64 * 5 / 6)
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
            let is_referenced =
                row.tagged::<M>(tag_of(hash)).any(|at| row.position::<M>(at) == word);
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
