//! Copies of leaves for scans: a chain put together under the latch's version.

use super::BTreeLsIndex;
use super::table::Row;
use super::tuning::Tuning;
use crate::inner::scan::{Copies, Copy};
use crate::inner::{Found, Toward};
use crate::key::Key;
use bristlecone_pmem::{Corrupt, Medium};

impl<M: Medium, K: Key, const NODE: usize, T: Tuning> BTreeLsIndex<M, K, NODE, T> {
    /// A copy of what `seek` finds.
    fn copy(&self, seek: impl Fn() -> Result<Found, Corrupt>) -> Result<Copy<K>, Corrupt> {
        loop {
            let found = seek()?;
            let row = self.table.row(found.leaf.offset() as usize);
            let latch = row.latch::<M>();
            let Some(seen) = latch.read() else { continue };
            if !self.inner.is_current(&found) {
                continue;
            }
            let copy = self.read_copy(row);
            if latch.validate(seen) {
                return copy;
            }
        }
    }

    fn read_copy(&self, row: Row<'_>) -> Result<Copy<K>, Corrupt> {
        let pool = &*self.pool;
        let contents = row.contents::<K, M>(pool)?;
        let range = row.base_in(pool)?.range(pool.medium());
        let low = K::read(pool, range.low)?;
        let high = range.right.map(|_| K::read(pool, range.high)).transpose()?;
        let at = row.base::<M>();
        contents.check(at, &low, high.as_ref())?;
        Ok(Copy { at, pairs: contents.pairs, low, high })
    }
}

impl<M: Medium, K: Key, const NODE: usize, T: Tuning> Copies<K> for BTreeLsIndex<M, K, NODE, T> {
    fn copy_at(&self, key: K::Ref<'_>, toward: Toward) -> Result<Copy<K>, Corrupt> {
        self.copy(|| self.inner.seek::<K>(&self.pool, key, toward))
    }

    fn copy_last(&self) -> Result<Copy<K>, Corrupt> {
        self.copy(|| Ok(self.inner.seek_last()))
    }
}
