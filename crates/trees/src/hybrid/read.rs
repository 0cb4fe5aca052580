//! Lookups, one by one and interleaved.

use super::{Hybrid, HybridSpec, Restarts};
use crate::index::TreeError;
use crate::inner::{BATCH, Direction, LeafRoute, Restart};
use crate::key::{Key, Value};
use crate::leaf::Leaf;
use bristlecone_pmem::sync::pin;
use bristlecone_pmem::{Corrupt, Medium};

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// The value of `key`. Writes nothing.
    #[inline]
    pub(super) fn read(&self, key: K::Ref<'_>) -> Result<Option<Value>, TreeError> {
        let _guard = pin();
        let mut restarts = Restarts::default();
        loop {
            let found = self.inner.seek::<K>(&self.pool, key, Direction::Key)?;
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
        found: &LeafRoute,
        key: K::Ref<'_>,
    ) -> Result<Result<Option<Value>, Restart>, Corrupt> {
        let leaf = self.leaf(found.leaf)?;
        self.pool.medium().prefetch(leaf.words);
        let latch = self.latch(&leaf);
        let Some(seen) = self.enter(&leaf)? else { return Ok(Err(Restart)) };
        if !self.inner.is_current(found) {
            return Ok(Err(Restart));
        }
        let slot = S::Leaf::find::<K, M>(&self.pool, leaf.words, key);
        if !latch.validate(seen) {
            return Ok(Err(Restart));
        }
        Ok(Ok(slot?.map(|(_, value)| value)))
    }

    /// Looks up all of `keys`, a batch at a time, and tells `found` of each by its index.
    pub(super) fn read_many(
        &self,
        keys: &[K::Ref<'_>],
        found: &mut dyn FnMut(usize, Option<Value>),
    ) -> Result<(), TreeError> {
        let _guard = pin();
        for (batch, keys) in keys.chunks(BATCH).enumerate() {
            let places = self.inner.seek_batch::<K>(&self.pool, keys)?;
            if !K::EXACT {
                for (&key, place) in keys.iter().zip(&places) {
                    if let Some(leaf) = place.and_then(|place| self.leaf(place.leaf).ok()) {
                        S::Leaf::prefetch_candidates::<K, M>(&self.pool, leaf.words, key);
                    }
                }
            }
            for (at, (&key, place)) in keys.iter().zip(places).enumerate() {
                let read = match place {
                    Some(place) => self.read_in(&place, key)?,
                    None => Err(Restart),
                };
                let value = match read {
                    Ok(value) => value,
                    Err(Restart) => self.read(key)?,
                };
                found(batch * BATCH + at, value);
            }
        }
        Ok(())
    }
}
