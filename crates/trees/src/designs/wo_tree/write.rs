//! Insert, update, upsert and remove.

use super::WoTreeIndex;
use super::leaf::{with_slot, without_slot};
use super::log::{LogRecord, Op};
use super::node::Node;
use crate::index::{TreeError, WriteMode};
use crate::key::{self, Entry, Key};
use crate::linked_leaves::SearchTarget;
use bristlecone_pmem::{Medium, PoolError};

impl<M: Medium, K: Key, const NODE: usize> WoTreeIndex<M, K, NODE> {
    /// Inserts, updates or upserts, as `mode` says.
    ///
    /// # Persist order
    /// ```text
    /// insert
    ///   N key's record |         only if the layer has records; crash: free again
    ///   C log record, F |        crash from here on: recovery replays it
    ///   W entry[p], F |
    ///   W bitmap, W seq, F |     line 0, in this order
    ///   W slots, F |             -> durable   budget: 4 lines (5 at 2048 B), 4 fences
    /// update
    ///   C value[i], F |          -> durable   budget: 1 line, 1 fence
    /// ```
    pub(super) fn put(
        &self,
        key: K::Ref<'_>,
        value: u64,
        mode: WriteMode,
    ) -> Result<Option<u64>, TreeError> {
        let _guard = self.pool.pin();
        loop {
            let (leaf, held) = self.latch_leaf(SearchTarget::At(key))?;
            let found = leaf.search::<K>(&self.pool, key)?;
            if let Some((index, former)) = found.entry {
                if mode != WriteMode::Insert {
                    let _ = leaf.set_value(index, value);
                }
                return Ok(Some(former));
            }
            if mode == WriteMode::Update {
                return Ok(None);
            }
            let bitmap = leaf.bitmap();
            let Some(index) = Node::<M, NODE>::first_free(bitmap) else {
                self.split(&leaf, held)?;
                continue; // The pair then takes an insert of its own.
            };
            let line = self.log.lease(&self.pool)?;
            let entry = Entry::plain(self.store_key(key, value)?, value);
            let (grown, seq) = (bitmap | 1 << index, leaf.seq().wrapping_add(1));
            let part = Node::<M, NODE>::bitmap_part(grown, index);
            let op = Op::Insert { index, key: entry.key, value, bitmap: part };
            let _ = LogRecord { op, leaf: leaf.at, seq }.write(&line);
            let _ = leaf.set_entry(index, entry);
            let _ = leaf.set_bitmap(grown, seq);
            let old = leaf.slots();
            let _ = leaf.set_slots(&old, &with_slot(&old, found.rank, index));
            return Ok(None);
        }
    }

    /// Returns the key word for an entry. Its record, if the layer has records, is durable.
    fn store_key(&self, key: K::Ref<'_>, value: u64) -> Result<u64, PoolError> {
        let word = K::store_entry_key(&self.pool, key, value)?;
        if !K::EXACT {
            // The log record that names the word may persist before its own fence.
            let _ = self.pool.medium().fence();
        }
        Ok(word)
    }

    /// Removes `key`. Then unlinks the leaf if nothing is left in it.
    ///
    /// # Persist order
    /// ```text
    /// C log record, F |        crash from here on: recovery replays it
    /// W bitmap, W seq, F |     line 0, in this order
    /// W slots, F |             -> durable   budget: 3 lines (4 at 2048 B), 3 fences
    /// unlink                   only if the leaf is empty
    /// ```
    pub(super) fn remove_entry(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        let guard = self.pool.pin();
        let (leaf, held) = self.latch_leaf(SearchTarget::At(key))?;
        let found = leaf.search::<K>(&self.pool, key)?;
        let Some((index, value)) = found.entry else { return Ok(None) };
        let entry = leaf.entry(index);
        let line = self.log.lease(&self.pool)?;
        let (kept, seq) = (leaf.bitmap() & !(1 << index), leaf.seq().wrapping_add(1));
        let op = Op::Remove { index, bitmap: Node::<M, NODE>::bitmap_part(kept, index) };
        let _ = LogRecord { op, leaf: leaf.at, seq }.write(&line);
        let _ = leaf.set_bitmap(kept, seq);
        let old = leaf.slots();
        let _ = leaf.set_slots(&old, &without_slot(&old, found.rank));
        let low = leaf.low();
        drop((held, line));
        // The entry is removed, durably. Damage that is met from here on does not make this fail:
        // the next operation that reads it reports it.
        let _ = key::retire_entry::<K, M>(&self.pool, entry, &guard);
        if kept == 0 && low != 0 {
            let _ = self.unlink_from(low, &guard);
        }
        Ok(Some(value))
    }
}
