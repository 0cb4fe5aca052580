//! Scans: a leaf at a time, its chain put together under the latch's version, shown without a latch.
//!
//! 1. What a step shows lies between the bound that the step before left and the one that it leaves, so
//!    keys come once and in order whatever others do meanwhile.
//! 2. The next leaf, either way, is found by descent: its low key, or what lies below this one's. A low
//!    key stays readable while the scan is pinned.

use super::BTreeLsIndex;
use super::chain::Pairs;
use super::table::Row;
use crate::hybrid::scan::{after, before};
use crate::index::{Order, TreeError};
use crate::inner::{Found, Toward};
use crate::key::Key;
use bristlecone_pmem::sync::pin;
use bristlecone_pmem::{Corrupt, Medium, PmPtr};
use core::ops::{Bound, ControlFlow};

/// What a leaf holds, taken while nobody changed it.
struct Copy<K: Key> {
    at: PmPtr,
    pairs: Pairs<K>,
    low: K::Owned,
    /// The low key of the leaf to the right.
    high: Option<K::Owned>,
}

impl<M: Medium, K: Key, const NODE: usize> BTreeLsIndex<M, K, NODE> {
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

    /// A copy of the leaf that covers `key`, or the keys below it.
    fn copy_at(&self, key: K::Ref<'_>, toward: Toward) -> Result<Copy<K>, Corrupt> {
        self.copy(|| self.inner.seek::<K>(&self.pool, key, toward))
    }

    pub(super) fn walk_pairs(
        &self,
        bounds: (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
        order: Order,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        match order {
            Order::Ascending => self.scan_up(bounds, visit),
            Order::Descending => self.scan_down(bounds, visit),
        }
    }

    fn scan_up(
        &self,
        (from, to): (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        let _guard = pin();
        let mut copy = match from {
            Bound::Included(key) | Bound::Excluded(key) => self.copy_at(key, Toward::Key)?,
            Bound::Unbounded => self.copy_at(K::borrow(&K::least()), Toward::Key)?,
        };
        let mut shown_below: Option<K::Owned> = None;
        loop {
            for (key, entry) in &copy.pairs {
                let is_shown = shown_below.as_ref().is_some_and(|bound| key < bound);
                let key = K::borrow(key);
                if is_shown || !after::<K>(from, key) {
                    continue;
                }
                if !before::<K>(to, key) || visit(key, entry.value).is_break() {
                    return Ok(());
                }
            }
            let Some(high) = copy.high else { return Ok(()) };
            if !before::<K>(to, K::borrow(&high)) {
                return Ok(());
            }
            copy = self.copy_at(K::borrow(&high), Toward::Key)?;
            if copy.high.as_ref().is_some_and(|next| *next <= high) {
                return Err(no_progress(copy.at).into());
            }
            shown_below = Some(high);
        }
    }

    fn scan_down(
        &self,
        (from, to): (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        let _guard = pin();
        let mut copy = match to {
            Bound::Included(key) => self.copy_at(key, Toward::Key)?,
            Bound::Excluded(key) => self.copy_at(key, Toward::Below)?,
            Bound::Unbounded => self.copy(|| Ok(self.inner.seek_last()))?,
        };
        let mut shown_from: Option<K::Owned> = None;
        loop {
            for (key, entry) in copy.pairs.iter().rev() {
                let is_shown = shown_from.as_ref().is_some_and(|bound| key >= bound);
                let key = K::borrow(key);
                if is_shown || !before::<K>(to, key) {
                    continue;
                }
                if !after::<K>(from, key) || visit(key, entry.value).is_break() {
                    return Ok(());
                }
            }
            let low = K::borrow(&copy.low);
            if copy.low == K::least() || !after::<K>(from, low) {
                return Ok(());
            }
            let next = self.copy_at(low, Toward::Below)?;
            if next.low >= copy.low {
                return Err(no_progress(next.at).into());
            }
            shown_from = Some(core::mem::replace(&mut copy, next).low);
        }
    }
}

/// Leaves whose low keys do not ascend along the chain: a scan would never end.
#[cold]
fn no_progress(at: PmPtr) -> Corrupt {
    let what = "low keys of neighbouring leaves do not increase";
    Corrupt { at: at.offset(), what, expected: 1, found: 0 }
}
