//! Lookups, one by one and interleaved.

use super::BTreeLsIndex;
use super::tuning::Tuning;
use crate::index::TreeError;
use crate::inner::{BATCH as KEYS, Found, Restart, Toward};
use crate::key::Key;
use bristlecone_pmem::Corrupt;
use bristlecone_pmem::Medium;
use bristlecone_pmem::sync::pin;

impl<M: Medium, K: Key, const NODE: usize, T: Tuning> BTreeLsIndex<M, K, NODE, T> {
    /// The value of `key`. Writes nothing.
    #[inline]
    pub(super) fn read(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        let _guard = pin();
        loop {
            let found = self.inner.seek::<K>(&self.pool, key, Toward::Key)?;
            if let Ok(value) = self.read_in(&found, key)? {
                return Ok(value);
            }
        }
    }

    /// The value of `key` in the chain of `found`; `Restart` if a change came between.
    #[inline(always)]
    fn read_in(
        &self,
        found: &Found,
        key: K::Ref<'_>,
    ) -> Result<Result<Option<u64>, Restart>, Corrupt> {
        let row = self.table.row(found.leaf.offset() as usize);
        let latch = row.latch::<M>();
        let Some(seen) = latch.read() else { return Ok(Err(Restart)) };
        if !self.inner.is_current(found) {
            return Ok(Err(Restart));
        }
        row.prefetch::<K, M>(&self.pool, key);
        let change = row.find::<K, M>(&self.pool, key);
        if !latch.validate(seen) {
            return Ok(Err(Restart));
        }
        Ok(Ok(change?.filter(|change| !change.is_removed).map(|change| change.entry.value)))
    }

    /// Looks up all of `keys`, a batch at a time.
    pub(super) fn read_many(
        &self,
        keys: &[K::Ref<'_>],
        values: &mut [Option<u64>],
    ) -> Result<(), TreeError> {
        let _guard = pin();
        for (keys, values) in keys.chunks(KEYS).zip(values.chunks_mut(KEYS)) {
            let places = self.inner.seek_batch::<K>(&self.pool, keys)?;
            // A place is an index only where the inner node has not changed: it is followed then.
            let places = places.map(|found| found.filter(|found| self.inner.is_current(found)));
            for (found, &key) in places.iter().zip(keys) {
                if let Some(found) = found {
                    let row = self.table.row(found.leaf.offset() as usize);
                    row.prefetch::<K, M>(&self.pool, key);
                }
            }
            for ((&key, value), found) in keys.iter().zip(values).zip(places) {
                let read = match found {
                    Some(found) => self.read_in(&found, key)?,
                    None => Err(Restart),
                };
                *value = match read {
                    Ok(value) => value,
                    Err(Restart) => self.read(key)?,
                };
            }
        }
        Ok(())
    }
}
