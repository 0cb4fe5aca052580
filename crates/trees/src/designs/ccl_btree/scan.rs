//! Copies of leaves for scans: a leaf and its buffer, under the buffer's version.

use super::CclBTreeIndex;
use super::shape::Pairs;
use crate::inner::scan::{Copies, Copy};
use crate::inner::{Found, Toward};
use crate::key::Key;
use bristlecone_pmem::{Corrupt, Medium, PmPtr};

impl<M: Medium, K: Key, const BATCH: usize> CclBTreeIndex<M, K, BATCH> {
    /// A copy of what `seek` finds.
    fn copy(&self, seek: impl Fn() -> Result<Found, Corrupt>) -> Result<Copy<K>, Corrupt> {
        loop {
            let found = seek()?;
            let latch = self.node(found.leaf.offset() as usize).latch::<M>();
            let Some(seen) = latch.read() else { continue };
            if !self.inner.is_current(&found) {
                continue;
            }
            let copy = self.read_copy(&found);
            if latch.validate(seen) {
                return copy;
            }
        }
    }

    fn read_copy(&self, found: &Found) -> Result<Copy<K>, Corrupt> {
        let (pool, medium) = (&*self.pool, self.pool.medium());
        let node = self.node(found.leaf.offset() as usize);
        let leaf = self.leaf(node.leaf::<M>())?;
        medium.prefetch(leaf.words);
        let low = K::read(pool, leaf.low(medium))?;
        let next = leaf.next(medium);
        let high =
            if next.is_null() { None } else { Some(K::read(pool, self.leaf(next)?.low(medium))?) };
        let pairs = self.contents(&node, &leaf)?;
        check_range::<K>(leaf.at, &pairs, &low, high.as_ref())?;
        Ok(Copy { at: leaf.at, pairs, low, high })
    }
}

impl<M: Medium, K: Key, const BATCH: usize> Copies<K> for CclBTreeIndex<M, K, BATCH> {
    fn copy_at(&self, key: K::Ref<'_>, toward: Toward) -> Result<Copy<K>, Corrupt> {
        self.copy(|| self.inner.seek::<K>(&self.pool, key, toward))
    }

    fn copy_last(&self) -> Result<Copy<K>, Corrupt> {
        self.copy(|| Ok(self.inner.seek_last()))
    }
}

/// Whether pairs lie in the range of their leaf, each key once.
pub(super) fn check_range<K: Key>(
    at: PmPtr,
    pairs: &Pairs<K>,
    low: &K::Owned,
    high: Option<&K::Owned>,
) -> Result<(), Corrupt> {
    let below = pairs.first().filter(|(key, _)| key < low);
    let above = pairs.last().filter(|(key, _)| high.is_some_and(|high| key >= high));
    let twice = pairs.windows(2).find(|pair| pair[0].0 == pair[1].0).map(|pair| &pair[1]);
    match below.or(above).or(twice) {
        Some((_, entry)) => {
            let what = "an entry outside its leaf's range, or twice in it";
            Err(Corrupt { at: at.offset(), what, expected: 0, found: entry.key })
        }
        None => Ok(()),
    }
}
