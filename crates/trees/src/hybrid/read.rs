//! Lookups: of one key, and of many keys interleaved.

use super::{Hybrid, HybridSpec, LeafRef, Restarts};
use crate::index::TreeError;
use crate::inner::{BATCH, Direction, InnerNodes, LeafRoute, Restart};
use crate::key::{Key, Value};
use crate::leaf::Leaf;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Defect, Medium};

/// The words that a batch prefetches of a leaf without a directory: four lines, a whole leaf of
/// 256 B.
const PREFETCHED_WORDS: usize = 32;

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// Returns the value of `key`. Takes no latch.
    #[inline]
    pub(super) fn read(&self, key: K::Ref<'_>) -> Result<Option<Value>, TreeError> {
        let _guard = self.pool.pin();
        let mut restarts = Restarts::default();
        loop {
            let route = self.inner.seek::<K>(&self.pool, key, Direction::Key)?;
            let leaf = self.leaf_on(&route)?;
            self.prefetch(leaf.words);
            if let Ok(value) = self.read_in(&route, &leaf, key)? {
                return Ok(value);
            }
            self.count_restart(&mut restarts, route.leaf)?;
        }
    }

    /// Returns the value of `key` in `leaf`, which is at the end of `route`, or `Restart` if a
    /// writer changed the leaf, or the inner node above it, meanwhile.
    #[inline(always)]
    fn read_in(
        &self,
        route: &LeafRoute,
        leaf: &LeafRef<'_>,
        key: K::Ref<'_>,
    ) -> Result<Result<Option<Value>, Restart>, Corrupt> {
        let latch = self.latch(leaf);
        let Some(version) = self.read_version(leaf)? else { return Ok(Err(Restart)) };
        // The leaf's version was read before this check. So at that version the leaf covered `key`.
        if !self.inner.is_current(route) {
            return Ok(Err(Restart));
        }
        let found = S::Leaf::find::<K, M>(&self.pool, leaf.words, key);
        if !latch.validate(version) {
            return Ok(Err(Restart));
        }
        self.pool.medium().note_read(leaf.words);
        Ok(Ok(found?.map(|(_, value)| value)))
    }

    /// Looks up all of `keys`, one batch at a time, and calls `found` with the index and value of
    /// each.
    pub(super) fn read_many(
        &self,
        keys: &[K::Ref<'_>],
        mut found: impl FnMut(usize, Option<Value>),
    ) -> Result<(), TreeError> {
        let _guard = self.pool.pin();
        let first_words = if S::Leaf::HAS_DIRECTORY { LINE_WORDS } else { PREFETCHED_WORDS };
        let mut routes = [None; BATCH];
        for (batch, keys) in keys.chunks(BATCH).enumerate() {
            self.inner.seek_batch::<K>(&self.pool, keys, &mut routes, |leaf, _| {
                if let Ok(words) = self.pool.words(leaf, first_words) {
                    self.pool.medium().prefetch(words);
                }
            })?;
            if S::Leaf::HAS_DIRECTORY || !K::EXACT {
                self.prefetch_candidates(keys, &routes);
            }
            for (at, (&key, route)) in keys.iter().zip(&routes).enumerate() {
                let read = match route {
                    Some(route)
                        if M::INJECTS_DEFECTS
                            && self.pool.medium().injects(Defect::BatchUnchecked) =>
                    {
                        let leaf = self.leaf_on(route)?;
                        let found = S::Leaf::find::<K, M>(&self.pool, leaf.words, key)?;
                        Ok(found.map(|(_, value)| value))
                    }
                    Some(route) => {
                        let leaf = self.leaf_on(route)?;
                        if !S::Leaf::HAS_DIRECTORY {
                            self.prefetch(leaf.words);
                        }
                        self.read_in(route, &leaf, key)?
                    }
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

    /// Prefetches what the lookups of `keys` read beyond the first lines of their leaves. Each pass
    /// loads only what the one before has prefetched.
    fn prefetch_candidates(&self, keys: &[K::Ref<'_>], routes: &[Option<LeafRoute>; BATCH]) {
        let leaves = keys.iter().zip(routes).filter_map(|(&key, route)| {
            let leaf = self.leaf_on(route.as_ref()?).ok()?;
            Some((leaf.words, key))
        });
        let mut names_record = false;
        for (words, key) in leaves.clone() {
            names_record |= S::Leaf::prefetch_entries::<K, M>(&self.pool, words, key);
        }
        if names_record {
            for (words, key) in leaves {
                S::Leaf::prefetch_records::<K, M>(&self.pool, words, key);
            }
        }
    }
}
