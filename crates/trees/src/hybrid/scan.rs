//! Scans: they copy one leaf at a time at a validated version, and visit its pairs without a latch.
//!
//! 1. Each step visits keys between the bound that the last step left and a new bound. So a scan
//!    visits keys in order, each at most once, whatever other threads do.
//! 2. A copy has entries, not keys. A key is read when it is visited: its record neither changes
//!    nor is freed while the scan is pinned.
//! 3. A key that makes the scan skip an entry, or end, is compared with its fingerprint. A visitor
//!    can detect a damaged record only if it gets to see the entry.
//! 4. An ascending scan follows the chain. It uses the next leaf only if that is not obsolete; the
//!    leaf's low key, which never changes, is the new bound. A descending scan descends from the
//!    root.
//! 5. Under micro-logs the next leaf may have become the first one, with the least low key. It then
//!    covers keys that the scan has visited, and may have split at one of them. The last of these
//!    keys is the bound, and the scan goes on in the leaf that covers it.
//! 6. A copy is noted as read before its pairs are visited, like the leaf of a lookup.

use super::recover::out_of_range;
use super::{Hybrid, HybridSpec, LeafRef, Restarts, Restructuring};
use crate::index::{Order, TreeError};
use crate::inner::{Direction, InnerNodes};
use crate::key::bounds::{satisfies_end, satisfies_start};
use crate::key::{Key, Value};
use crate::leaf::{Leaf, TaggedEntry};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};
use core::ops::{Bound, ControlFlow};

/// A copy of a leaf, made while no writer changed it.
struct LeafCopy<K: Key> {
    at: PmPtr,
    /// The entries in key order, with the prefixes of their keys.
    entries: Vec<(u64, TaggedEntry)>,
    low: K::Owned,
    /// The scan has visited the low key, which is then a bound of the scan, not the leaf's own.
    is_low_visited: bool,
    next: PmPtr,
}

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// Copies a leaf. Returns `None` if a writer changed it meanwhile, it is obsolete, or
    /// `is_current`, called after its version was read, returns `false`.
    fn copy_leaf(
        &self,
        leaf: &LeafRef<'_>,
        is_current: impl Fn() -> bool,
    ) -> Result<Option<LeafCopy<K>>, Corrupt> {
        let latch = self.latch(leaf);
        let early = M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::ScanLinkFirst);
        let early = early.then(|| self.next(leaf));
        let Some(version) = self.read_version(leaf)? else { return Ok(None) };
        if !is_current() {
            return Ok(None);
        }
        let copy = self.sorted_entries(leaf).and_then(|entries| {
            let low = K::read(&self.pool, self.low(leaf))?;
            if let Some((_, first)) = entries.first()
                && K::order_entry(&self.pool, first.entry, K::borrow(&low))?.is_lt()
            {
                return Err(out_of_range(leaf, first.entry));
            }
            let next = early.unwrap_or(self.next(leaf));
            Ok(LeafCopy { at: leaf.at, entries, low, is_low_visited: false, next })
        });
        if !latch.validate(version) {
            return Ok(None);
        }
        self.pool.medium().note_read(leaf.words);
        copy.map(Some)
    }

    /// Copies the leaf that covers `key` or, for [`Direction::Below`], the keys just below it.
    fn copy_at(&self, key: K::Ref<'_>, direction: Direction) -> Result<LeafCopy<K>, Corrupt> {
        let mut restarts = Restarts::default();
        loop {
            let route = self.inner.seek::<K>(&self.pool, key, direction)?;
            let leaf = self.leaf_on(&route)?;
            self.prefetch(leaf.words);
            if let Some(copy) = self.copy_leaf(&leaf, || self.inner.is_current(&route))? {
                return Ok(copy);
            }
            self.count_restart(&mut restarts, route.leaf)?;
        }
    }

    pub(super) fn walk_pairs(
        &self,
        bounds: (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
        order: Order,
        visit: &mut dyn FnMut(K::Ref<'_>, Value) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        match order {
            Order::Ascending => self.scan_up(bounds, visit),
            Order::Descending => self.scan_down(bounds, visit),
        }
    }

    fn scan_up(
        &self,
        (from, to): (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
        visit: &mut dyn FnMut(K::Ref<'_>, Value) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        let guard = self.pool.pin();
        let unpinned = M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::ScanUnpinned);
        let _guard = (!unpinned).then_some(guard);
        let least = K::least();
        let (mut from, mut restarts) = (from, Restarts::default());
        let mut copy = match from {
            Bound::Included(key) | Bound::Excluded(key) => self.copy_at(key, Direction::Key)?,
            Bound::Unbounded => self.copy_at(K::borrow(&least), Direction::Key)?,
        };
        loop {
            if satisfies_start::<K>(from, K::borrow(&copy.low)) {
                from = Bound::Unbounded; // every later key satisfies it, too
            }
            // The prefix alone excludes most entries below the bound, without reading a key.
            // Entries are sorted, so all that follow the first included one are included.
            let from_prefix = prefix_of::<K>(from).unwrap_or(0);
            let below = copy.entries.partition_point(|(prefix, _)| *prefix < from_prefix);
            let mut is_included = false;
            for &(_, tagged) in &copy.entries[below..] {
                let visited = K::with_entry(&self.pool, tagged.entry, |key| {
                    is_included = is_included || satisfies_start::<K>(from, key);
                    if !is_included {
                        return Self::check_fingerprint(copy.at, tagged, key)
                            .map(|()| ControlFlow::Continue(()));
                    }
                    if !satisfies_end::<K>(to, key) {
                        return Self::check_fingerprint(copy.at, tagged, key)
                            .map(|()| ControlFlow::Break(()));
                    }
                    Ok(visit(key, tagged.entry.held_value()))
                })??;
                if visited.is_break() {
                    return Ok(());
                }
            }
            if copy.next.is_null() {
                return Ok(());
            }
            let next = self.leaf(copy.next)?;
            if let Ok(words) = self.pool.words(self.next(&next), S::Leaf::WORDS) {
                self.prefetch(words);
            }
            let followed = if Self::HAS_LOCKS { None } else { self.copy_leaf(&next, || true)? };
            let previous = core::mem::replace(
                &mut copy,
                match followed {
                    Some(copy) => copy,
                    // A writer is changing it, it was merged away, or its lock is found by descent
                    // alone. Its low key stays readable while the scan is pinned.
                    None => self.copy_covering(&next)?,
                },
            );
            self.check_progress(&mut copy, previous, &mut restarts)?;
            if !satisfies_end::<K>(to, K::borrow(&copy.low)) {
                return Ok(());
            }
        }
    }

    /// Checks that `copy`, of the right neighbour of `previous`, lies behind it.
    fn check_progress(
        &self,
        copy: &mut LeafCopy<K>,
        previous: LeafCopy<K>,
        restarts: &mut Restarts,
    ) -> Result<(), Corrupt> {
        if S::RESTRUCTURING == Restructuring::MicroLogged && copy.low == K::least() {
            restarts.count_unlinked(copy.at)?;
            *copy = self.copy_behind(previous)?;
            if !copy.entries.is_empty() {
                *restarts = Restarts::default(); // it gets on
            }
            return Ok(());
        }
        let is_in_order = match previous.entries.last() {
            Some((_, last)) => {
                K::order_entry(&self.pool, last.entry, K::borrow(&copy.low))?.is_lt()
            }
            None => true,
        };
        if copy.low <= previous.low || !is_in_order {
            return Err(no_progress(copy.at));
        }
        Ok(())
    }

    /// Copies the leaf that now covers the last key that a scan behind `previous` has passed,
    /// without the entries that it has passed. That key becomes the low key of the copy.
    #[cold]
    fn copy_behind(&self, previous: LeafCopy<K>) -> Result<LeafCopy<K>, Corrupt> {
        let (bound, is_visited) = match previous.entries.last() {
            Some((_, last)) => (K::read_entry(&self.pool, last.entry)?, true),
            None => (previous.low, previous.is_low_visited),
        };
        let mut copy = self.copy_at(K::borrow(&bound), Direction::Key)?;
        let mut passed = 0;
        for (_, tagged) in &copy.entries {
            let order = K::order_entry(&self.pool, tagged.entry, K::borrow(&bound))?;
            if order.is_gt() || order.is_eq() && !is_visited {
                break;
            }
            passed += 1;
        }
        copy.entries.drain(..passed);
        (copy.low, copy.is_low_visited) = (bound, is_visited);
        Ok(copy)
    }

    /// Copies the leaf that now covers the low key of `leaf`, without the entries below that key.
    fn copy_covering(&self, leaf: &LeafRef<'_>) -> Result<LeafCopy<K>, Corrupt> {
        let low = K::read(&self.pool, self.low(leaf))?;
        let mut copy = self.copy_at(K::borrow(&low), Direction::Key)?;
        if M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::ScanMergeMisses) {
            copy.entries.clear(); // Wrong: the scan has passed the left leaf, not what it has got.
        }
        let mut below = 0;
        for (_, tagged) in &copy.entries {
            if K::order_entry(&self.pool, tagged.entry, K::borrow(&low))?.is_ge()
                || M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::ScanMergeRepeats)
            {
                break;
            }
            below += 1;
        }
        copy.entries.drain(..below);
        copy.low = low;
        Ok(copy)
    }

    fn scan_down(
        &self,
        (from, to): (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
        visit: &mut dyn FnMut(K::Ref<'_>, Value) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        let _guard = self.pool.pin();
        let mut copy = match to {
            Bound::Included(key) => self.copy_at(key, Direction::Key)?,
            Bound::Excluded(key) => self.copy_at(key, Direction::Below)?,
            Bound::Unbounded => self.copy_last()?,
        };
        let mut previous_low: Option<K::Owned> = None;
        loop {
            // The scan has visited all keys from the low key of the previous leaf on.
            let to_prefix = match &previous_low {
                Some(low) => K::prefix(K::borrow(low)),
                None => prefix_of::<K>(to).unwrap_or(u64::MAX),
            };
            let end = copy.entries.partition_point(|(prefix, _)| *prefix <= to_prefix);
            let mut is_included = false;
            for &(_, tagged) in copy.entries[..end].iter().rev() {
                let visited = K::with_entry(&self.pool, tagged.entry, |key| {
                    let is_new = |low| K::compare(key, K::borrow(low)).is_lt();
                    is_included = is_included
                        || satisfies_end::<K>(to, key) && previous_low.as_ref().is_none_or(is_new);
                    if !is_included {
                        return Self::check_fingerprint(copy.at, tagged, key)
                            .map(|()| ControlFlow::Continue(()));
                    }
                    if !satisfies_start::<K>(from, key) {
                        return Self::check_fingerprint(copy.at, tagged, key)
                            .map(|()| ControlFlow::Break(()));
                    }
                    Ok(visit(key, tagged.entry.held_value()))
                })??;
                if visited.is_break() {
                    return Ok(());
                }
            }
            let low = K::borrow(&copy.low);
            if copy.low == K::least() || !satisfies_start::<K>(from, low) {
                return Ok(());
            }
            let next = self.copy_at(low, Direction::Below)?;
            if next.low >= copy.low {
                return Err(no_progress(next.at).into());
            }
            previous_low = Some(core::mem::replace(&mut copy, next).low);
        }
    }

    /// Copies the last leaf of the chain.
    fn copy_last(&self) -> Result<LeafCopy<K>, Corrupt> {
        let mut restarts = Restarts::default();
        loop {
            let route = self.inner.seek_last();
            let leaf = self.leaf_on(&route)?;
            if let Some(copy) = self.copy_leaf(&leaf, || self.inner.is_current(&route))? {
                return Ok(copy);
            }
            self.count_restart(&mut restarts, route.leaf)?;
        }
    }
}

/// Returns the prefix of the key at a bound, or `None` for an unbounded one.
fn prefix_of<K: Key>(bound: Bound<K::Ref<'_>>) -> Option<u64> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(K::prefix(key)),
        Bound::Unbounded => None,
    }
}

/// Returns the error for low keys that do not increase along the chain, on which a scan could run
/// for ever.
#[cold]
fn no_progress(at: PmPtr) -> Corrupt {
    let what = "low keys of neighbouring leaves do not increase";
    Corrupt { at: at.offset(), what, expected: 1, found: 0 }
}

#[cfg(test)]
mod tests;
