//! Lookups, one by one and interleaved.

use super::CclBTreeIndex;
use crate::index::TreeError;
use crate::inner::{BATCH as KEYS, Found, Restart, Toward};
use crate::key::Key;
use bristlecone_pmem::sync::pin;
use bristlecone_pmem::{Corrupt, Medium};

impl<M: Medium, K: Key, const BATCH: usize> CclBTreeIndex<M, K, BATCH> {
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

    /// The value of `key` in the buffer of `found` or in its leaf; `Restart` if a change came between.
    #[inline(always)]
    fn read_in(
        &self,
        found: &Found,
        key: K::Ref<'_>,
    ) -> Result<Result<Option<u64>, Restart>, Corrupt> {
        let node = self.node(found.leaf.offset() as usize);
        let latch = node.latch::<M>();
        let Some(seen) = latch.read() else { return Ok(Err(Restart)) };
        if !self.inner.is_current(found) {
            return Ok(Err(Restart));
        }
        let value = self.find(found, key);
        if !latch.validate(seen) {
            return Ok(Err(Restart));
        }
        Ok(Ok(value?))
    }

    #[inline(always)]
    fn find(&self, found: &Found, key: K::Ref<'_>) -> Result<Option<u64>, Corrupt> {
        let node = self.node(found.leaf.offset() as usize);
        let leaf = self.leaf(node.leaf::<M>())?;
        self.pool.medium().prefetch(leaf.words);
        if let Some((slot, meta)) = node.find::<K, M>(&self.pool, key)? {
            return Ok((!meta.is_removed(slot)).then(|| node.entry::<M>(slot).value));
        }
        Ok(leaf.find::<K, M>(&self.pool, key)?.map(|(_, entry)| entry.value))
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
            self.prefetch(&places, keys);
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

    /// Asks for the leaves, and then for the keys in them that will be compared, to be brought near.
    fn prefetch(&self, places: &[Option<Found>; KEYS], keys: &[K::Ref<'_>]) {
        let leaf = |found: &Option<Found>| {
            let node = self.node(found.as_ref()?.leaf.offset() as usize);
            self.leaf(node.leaf::<M>()).ok()
        };
        for leaf in places.iter().filter_map(leaf) {
            self.pool.medium().prefetch(leaf.words);
        }
        if !K::EXACT {
            for (leaf, &key) in places.iter().map(leaf).zip(keys) {
                if let Some(leaf) = leaf {
                    leaf.prefetch_candidates::<K, M>(&self.pool, key);
                }
            }
        }
    }
}
