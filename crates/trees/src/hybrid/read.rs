//! Lookups, one by one and interleaved.

use super::{Hybrid, HybridSpec, Restarts};
use crate::index::TreeError;
use crate::inner::{BATCH, Found, Restart, Toward};
use crate::key::Key;
use crate::leaf::Leaf;
use bristlecone_pmem::sync::pin;
use bristlecone_pmem::{Corrupt, Medium};

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// The value of `key`. Writes nothing.
    #[inline]
    pub(super) fn read(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        let _guard = pin();
        let mut restarts = Restarts::default();
        loop {
            let found = self.inner.seek::<K>(&self.pool, key, Toward::Key)?;
            if let Ok(value) = self.read_in(&found, key)? {
                return Ok(value);
            }
            self.count_restart(&mut restarts, found.leaf)?;
        }
    }

    /// The value of `key` in the leaf of `found`; `Restart` if a change came between.
    #[inline(always)]
    fn read_in(
        &self,
        found: &Found,
        key: K::Ref<'_>,
    ) -> Result<Result<Option<u64>, Restart>, Corrupt> {
        let leaf = self.leaf(found.leaf)?;
        self.pool.medium().prefetch(leaf.words);
        let latch = self.latch(&leaf);
        let Some(seen) = latch.read() else { return Ok(Err(Restart)) };
        if !self.inner.is_current(found) {
            return Ok(Err(Restart));
        }
        let slot = S::Leaf::find::<K, M>(&self.pool, leaf.words, key);
        if !latch.validate(seen) {
            return Ok(Err(Restart));
        }
        Ok(Ok(slot?.map(|(_, value)| value)))
    }

    pub(super) fn read_many(
        &self,
        keys: &[K::Ref<'_>],
        values: &mut [Option<u64>],
    ) -> Result<(), TreeError> {
        assert_eq!(keys.len(), values.len(), "multi_get needs a place for each value");
        let _guard = pin();
        for (keys, values) in keys.chunks(BATCH).zip(values.chunks_mut(BATCH)) {
            let batch = self.inner.seek_batch::<K>(&self.pool, keys)?;
            if !K::EXACT {
                for (&key, found) in keys.iter().zip(&batch) {
                    if let Some(leaf) = found.and_then(|found| self.leaf(found.leaf).ok()) {
                        S::Leaf::prefetch_candidates::<K, M>(&self.pool, leaf.words, key);
                    }
                }
            }
            for ((&key, value), found) in keys.iter().zip(values).zip(batch) {
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
