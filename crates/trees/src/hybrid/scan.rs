//! Scans: a leaf at a time, copied under its version, shown without a latch.
//!
//! 1. What a step shows lies between the bound that the step before left and a bound that this step
//!    leaves, so keys come once and in order whatever others do meanwhile.
//! 2. What is copied are entries. Keys are read as they are shown: their records neither change nor go
//!    while the scan is pinned.
//! 3. A key that decides what is left out, or what comes first, is compared with its fingerprint: nothing
//!    else is ever told of an entry that is not shown.
//! 4. Upwards the next leaf is reached by the chain; it is trusted only if it is not obsolete, and
//!    its low key, which never changes, is then the bound. Downwards it is found by descent.

use super::recover::out_of_range;
use super::{Hybrid, HybridSpec, LeafRef, Restarts};
use crate::index::{Order, TreeError};
use crate::inner::Direction;
use crate::key::bounds::{after, before};
use crate::key::{Key, Value};
use crate::leaf::{Leaf, TaggedEntry};
use bristlecone_pmem::sync::pin;
use bristlecone_pmem::{Corrupt, Medium, PmPtr};
use core::ops::{Bound, ControlFlow};

/// A copy of a leaf, taken while nobody changed it.
struct Copy<K: Key> {
    at: PmPtr,
    /// In key order, with the prefixes of their keys.
    entries: Vec<(u64, TaggedEntry)>,
    low: K::Owned,
    next: PmPtr,
}

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// A copy of the leaf, or `None` if a writer came between or it is obsolete.
    fn copy(
        &self,
        leaf: &LeafRef<'_>,
        trusted: impl Fn() -> bool,
    ) -> Result<Option<Copy<K>>, Corrupt> {
        let latch = self.latch(leaf);
        let Some(seen) = self.enter(leaf)? else { return Ok(None) };
        if !trusted() {
            return Ok(None);
        }
        let copy = self.ordered(leaf).and_then(|entries| {
            let low = K::read(&self.pool, self.low(leaf))?;
            if let Some((_, first)) = entries.first()
                && K::order_entry(&self.pool, first.entry, K::borrow(&low))?.is_lt()
            {
                return Err(out_of_range(leaf, first.entry));
            }
            Ok(Copy { at: leaf.at, entries, low, next: self.next(leaf) })
        });
        if latch.validate(seen) { copy.map(Some) } else { Ok(None) }
    }

    /// A copy of the leaf that covers `key`, or the keys below it.
    fn copy_at(&self, key: K::Ref<'_>, toward: Direction) -> Result<Copy<K>, Corrupt> {
        let mut restarts = Restarts::default();
        loop {
            let found = self.inner.seek::<K>(&self.pool, key, toward)?;
            let leaf = self.leaf(found.leaf)?;
            self.pool.medium().prefetch(leaf.words);
            if let Some(copy) = self.copy(&leaf, || self.inner.is_current(&found))? {
                return Ok(copy);
            }
            self.count_restart(&mut restarts, found.leaf)?;
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
        let _guard = pin();
        let least = K::least();
        let mut from = from;
        let mut copy = match from {
            Bound::Included(key) | Bound::Excluded(key) => self.copy_at(key, Direction::Key)?,
            Bound::Unbounded => self.copy_at(K::borrow(&least), Direction::Key)?,
        };
        loop {
            if after::<K>(from, K::borrow(&copy.low)) {
                from = Bound::Unbounded; // All that is to come is after it.
            }
            // Prefixes say of most entries that are out whether they are; no key is read for that. Once
            // one is in, so is what follows.
            let from_prefix = prefix_of::<K>(from).unwrap_or(0);
            let below = copy.entries.partition_point(|(prefix, _)| *prefix < from_prefix);
            let mut is_in = false;
            for &(_, held) in &copy.entries[below..] {
                let shown = K::with_entry(&self.pool, held.entry, |key| {
                    is_in = is_in || after::<K>(from, key);
                    if !is_in {
                        return Self::check_fingerprint(copy.at, held, key)
                            .map(|()| ControlFlow::Continue(()));
                    }
                    if !before::<K>(to, key) {
                        return Self::check_fingerprint(copy.at, held, key)
                            .map(|()| ControlFlow::Break(()));
                    }
                    Ok(visit(key, held.entry.held_value()))
                })??;
                if shown.is_break() {
                    return Ok(());
                }
            }
            if copy.next.is_null() {
                return Ok(());
            }
            let next = self.leaf(copy.next)?;
            if let Ok(words) = self.pool.words(self.next(&next), S::Leaf::WORDS) {
                self.pool.medium().prefetch(words);
            }
            let former = core::mem::replace(
                &mut copy,
                match self.copy(&next, || true)? {
                    Some(copy) => copy,
                    // It is changing, or merged away. Its low key stays readable while we are
                    // pinned.
                    None => self.copy_again(&next)?,
                },
            );
            let passed = match former.entries.last() {
                Some((_, last)) => {
                    K::order_entry(&self.pool, last.entry, K::borrow(&copy.low))?.is_lt()
                }
                None => true,
            };
            if copy.low <= former.low || !passed {
                return Err(no_progress(next.at).into());
            }
            if !before::<K>(to, K::borrow(&copy.low)) {
                return Ok(());
            }
        }
    }

    /// The part of what now covers a leaf's range, from its low key on.
    fn copy_again(&self, leaf: &LeafRef<'_>) -> Result<Copy<K>, Corrupt> {
        let low = K::read(&self.pool, self.low(leaf))?;
        let mut copy = self.copy_at(K::borrow(&low), Direction::Key)?;
        let mut below = 0;
        for (_, held) in &copy.entries {
            if K::order_entry(&self.pool, held.entry, K::borrow(&low))?.is_ge() {
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
        let _guard = pin();
        let mut copy = match to {
            Bound::Included(key) => self.copy_at(key, Direction::Key)?,
            Bound::Excluded(key) => self.copy_at(key, Direction::Below)?,
            Bound::Unbounded => self.copy_last()?,
        };
        let mut former_low: Option<K::Owned> = None;
        loop {
            // What the leaf before covered has been shown.
            let to_prefix = match &former_low {
                Some(low) => K::prefix(K::borrow(low)),
                None => prefix_of::<K>(to).unwrap_or(u64::MAX),
            };
            let end = copy.entries.partition_point(|(prefix, _)| *prefix <= to_prefix);
            let mut is_in = false;
            for &(_, held) in copy.entries[..end].iter().rev() {
                let shown = K::with_entry(&self.pool, held.entry, |key| {
                    let is_new = |low| K::compare(key, K::borrow(low)).is_lt();
                    is_in = is_in || before::<K>(to, key) && former_low.as_ref().is_none_or(is_new);
                    if !is_in {
                        return Self::check_fingerprint(copy.at, held, key)
                            .map(|()| ControlFlow::Continue(()));
                    }
                    if !after::<K>(from, key) {
                        return Self::check_fingerprint(copy.at, held, key)
                            .map(|()| ControlFlow::Break(()));
                    }
                    Ok(visit(key, held.entry.held_value()))
                })??;
                if shown.is_break() {
                    return Ok(());
                }
            }
            let low = K::borrow(&copy.low);
            if copy.low == K::least() || !after::<K>(from, low) {
                return Ok(());
            }
            let next = self.copy_at(low, Direction::Below)?;
            if next.low >= copy.low {
                return Err(no_progress(next.at).into());
            }
            former_low = Some(core::mem::replace(&mut copy, next).low);
        }
    }

    /// A copy of the last leaf.
    fn copy_last(&self) -> Result<Copy<K>, Corrupt> {
        let mut restarts = Restarts::default();
        loop {
            let found = self.inner.seek_last();
            let leaf = self.leaf(found.leaf)?;
            if let Some(copy) = self.copy(&leaf, || self.inner.is_current(&found))? {
                return Ok(copy);
            }
            self.count_restart(&mut restarts, found.leaf)?;
        }
    }
}

/// The prefix of the key at a bound.
fn prefix_of<K: Key>(bound: Bound<K::Ref<'_>>) -> Option<u64> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(K::prefix(key)),
        Bound::Unbounded => None,
    }
}

/// Leaves whose low keys do not ascend along the chain: a scan would never end.
#[cold]
fn no_progress(at: PmPtr) -> Corrupt {
    let what = "low keys of neighbouring leaves do not increase";
    Corrupt { at: at.offset(), what, expected: 1, found: 0 }
}
