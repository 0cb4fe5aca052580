//! Scans of trees that find each leaf by descent: a leaf at a time, copied while nobody changed it, shown
//! without a latch.
//!
//! 1. What a step shows lies between the bound that the step before left and the one that it leaves, so
//!    keys come once and in order whatever others do meanwhile.
//! 2. The next leaf, either way, is found by descent: its low key, or what lies below this one's. A low
//!    key stays readable while the scan is pinned.

use super::Toward;
use crate::index::{Order, TreeError};
use crate::key::bounds::{after, before};
use crate::key::{Entry, Key};
use bristlecone_pmem::sync::pin;
use bristlecone_pmem::{Corrupt, PmPtr};
use core::ops::{Bound, ControlFlow};

/// What a leaf holds, taken while nobody changed it.
pub(crate) struct Copy<K: Key> {
    pub(crate) at: PmPtr,
    /// In key order, each key once, within the leaf's range.
    pub(crate) pairs: Vec<(K::Owned, Entry)>,
    pub(crate) low: K::Owned,
    /// The low key of the leaf to the right.
    pub(crate) high: Option<K::Owned>,
}

/// A tree that gives copies of its leaves.
pub(crate) trait Copies<K: Key> {
    /// A copy of the leaf that covers `key`, or the keys below it.
    fn copy_at(&self, key: K::Ref<'_>, toward: Toward) -> Result<Copy<K>, Corrupt>;

    /// A copy of the last leaf.
    fn copy_last(&self) -> Result<Copy<K>, Corrupt>;
}

/// Shows the pairs between the bounds until `visit` has enough.
///
/// # Errors
/// A leaf is damaged.
pub(crate) fn walk<K: Key, T: Copies<K>>(
    tree: &T,
    bounds: (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
    order: Order,
    visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
) -> Result<(), TreeError> {
    match order {
        Order::Ascending => scan_up(tree, bounds, visit),
        Order::Descending => scan_down(tree, bounds, visit),
    }
}

fn scan_up<K: Key, T: Copies<K>>(
    tree: &T,
    (from, to): (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
    visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
) -> Result<(), TreeError> {
    let _guard = pin();
    let mut copy = match from {
        Bound::Included(key) | Bound::Excluded(key) => tree.copy_at(key, Toward::Key)?,
        Bound::Unbounded => tree.copy_at(K::borrow(&K::least()), Toward::Key)?,
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
        copy = tree.copy_at(K::borrow(&high), Toward::Key)?;
        if copy.high.as_ref().is_some_and(|next| *next <= high) {
            return Err(no_progress(copy.at).into());
        }
        shown_below = Some(high);
    }
}

fn scan_down<K: Key, T: Copies<K>>(
    tree: &T,
    (from, to): (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
    visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
) -> Result<(), TreeError> {
    let _guard = pin();
    let mut copy = match to {
        Bound::Included(key) => tree.copy_at(key, Toward::Key)?,
        Bound::Excluded(key) => tree.copy_at(key, Toward::Below)?,
        Bound::Unbounded => tree.copy_last()?,
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
        let next = tree.copy_at(low, Toward::Below)?;
        if next.low >= copy.low {
            return Err(no_progress(next.at).into());
        }
        shown_from = Some(core::mem::replace(&mut copy, next).low);
    }
}

/// Leaves whose low keys do not ascend along the chain: a scan would never end.
#[cold]
fn no_progress(at: PmPtr) -> Corrupt {
    let what = "low keys of neighbouring leaves do not increase";
    Corrupt { at: at.offset(), what, expected: 1, found: 0 }
}
