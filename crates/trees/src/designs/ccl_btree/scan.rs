//! Scans: a leaf and its buffer at a time, copied under the buffer's version, shown without a latch.
//!
//! 1. What a step shows lies between the bound that the step before left and the one that it leaves, so
//!    keys come once and in order whatever others do meanwhile.
//! 2. The next leaf, either way, is found by descent: its low key, or what lies below this one's. A low
//!    key stays readable while the scan is pinned.

use super::CclBTreeIndex;
use super::shape::Pairs;
use crate::hybrid::scan::{after, before};
use crate::index::{Order, TreeError};
use crate::inner::{Found, Toward};
use crate::key::Key;
use bristlecone_pmem::sync::pin;
use bristlecone_pmem::{Corrupt, Medium, PmPtr};
use core::ops::{Bound, ControlFlow};

/// A copy of a leaf and its buffer, taken while nobody changed them.
struct Copy<K: Key> {
    at: PmPtr,
    pairs: Pairs<K>,
    low: K::Owned,
    /// The low key of the leaf to the right.
    high: Option<K::Owned>,
}

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
