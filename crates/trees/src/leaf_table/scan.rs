//! Scans: a leaf at a time, copied while nobody changed it, shown without a latch.
//!
//! 1. What a step shows lies between the bound that the step before left and the one that it leaves, so
//!    keys come once and in order whatever others do meanwhile.
//! 2. The next leaf, either way, is found by descent: its low key, or what lies below this one's. A low
//!    key stays readable while the scan is pinned.

use super::{KeyRef, LeafTable, row_of};
use crate::index::{Order, TreeError};
use crate::inner::{Direction, LeafRoute};
use crate::key::bounds::{satisfies_end, satisfies_start};
use crate::key::{Entry, Key};
use bristlecone_pmem::sync::pin;
use bristlecone_pmem::{Corrupt, PmPtr};
use core::ops::{Bound, ControlFlow};

/// Keys and their entries, in key order.
pub(crate) type KeyedEntries<K> = Vec<(<K as Key>::Owned, Entry)>;

/// What a leaf holds, taken while nobody changed it.
pub(crate) struct RowCopy<K: Key> {
    pub(crate) at: PmPtr,
    /// Each key once, within the leaf's range.
    pub(crate) pairs: KeyedEntries<K>,
    pub(crate) low: K::Owned,
    /// The low key of the leaf to the right.
    pub(crate) high: Option<K::Owned>,
}

/// The entry that lies outside its leaf's range or out of order, if one does. No key is there twice.
pub(crate) fn misplaced<K: Key>(
    pairs: &KeyedEntries<K>,
    low: &K::Owned,
    high: Option<&K::Owned>,
) -> Option<Entry> {
    let below = pairs.first().filter(|(key, _)| key < low);
    let above = pairs.last().filter(|(key, _)| high.is_some_and(|high| key >= high));
    let wrong = pairs.windows(2).find(|pair| pair[0].0 >= pair[1].0).map(|pair| &pair[1]);
    below.or(above).or(wrong).map(|(_, entry)| *entry)
}

/// A copy of the leaf whose row `seek` finds.
fn copy<T: LeafTable>(
    tree: &T,
    seek: impl Fn() -> Result<LeafRoute, Corrupt>,
) -> Result<RowCopy<T::Key>, Corrupt> {
    loop {
        let found = seek()?;
        let (row, latch) = row_of(tree, &found);
        let Some(seen) = latch.read() else { continue };
        if !tree.inner().is_current(&found) {
            continue;
        }
        let copy = tree.copy(row);
        if latch.validate(seen) {
            return copy;
        }
    }
}

/// A copy of the leaf that covers `key`, or the keys below it.
fn copy_at<T: LeafTable>(
    tree: &T,
    key: KeyRef<'_, T>,
    toward: Direction,
) -> Result<RowCopy<T::Key>, Corrupt> {
    copy(tree, || tree.inner().seek::<T::Key>(tree.pool(), key, toward))
}

/// Shows the pairs between the bounds until `visit` has enough.
///
/// # Errors
/// A leaf is damaged.
pub(crate) fn walk<T: LeafTable>(
    tree: &T,
    bounds: (Bound<KeyRef<'_, T>>, Bound<KeyRef<'_, T>>),
    order: Order,
    visit: &mut dyn FnMut(KeyRef<'_, T>, u64) -> ControlFlow<()>,
) -> Result<(), TreeError> {
    match order {
        Order::Ascending => scan_up(tree, bounds, visit),
        Order::Descending => scan_down(tree, bounds, visit),
    }
}

fn scan_up<T: LeafTable>(
    tree: &T,
    (from, to): (Bound<KeyRef<'_, T>>, Bound<KeyRef<'_, T>>),
    visit: &mut dyn FnMut(KeyRef<'_, T>, u64) -> ControlFlow<()>,
) -> Result<(), TreeError> {
    let _guard = pin();
    let mut copy = match from {
        Bound::Included(key) | Bound::Excluded(key) => copy_at(tree, key, Direction::Key)?,
        Bound::Unbounded => copy_at(tree, T::Key::borrow(&T::Key::least()), Direction::Key)?,
    };
    let mut shown_below: Option<<T::Key as Key>::Owned> = None;
    loop {
        for (key, entry) in &copy.pairs {
            let is_shown = shown_below.as_ref().is_some_and(|bound| key < bound);
            let key = T::Key::borrow(key);
            if is_shown || !satisfies_start::<T::Key>(from, key) {
                continue;
            }
            if !satisfies_end::<T::Key>(to, key) || visit(key, entry.value).is_break() {
                return Ok(());
            }
        }
        let Some(high) = copy.high else { return Ok(()) };
        if !satisfies_end::<T::Key>(to, T::Key::borrow(&high)) {
            return Ok(());
        }
        copy = copy_at(tree, T::Key::borrow(&high), Direction::Key)?;
        if copy.high.as_ref().is_some_and(|next| *next <= high) {
            return Err(no_progress(copy.at).into());
        }
        shown_below = Some(high);
    }
}

fn scan_down<T: LeafTable>(
    tree: &T,
    (from, to): (Bound<KeyRef<'_, T>>, Bound<KeyRef<'_, T>>),
    visit: &mut dyn FnMut(KeyRef<'_, T>, u64) -> ControlFlow<()>,
) -> Result<(), TreeError> {
    let _guard = pin();
    let mut copy = match to {
        Bound::Included(key) => copy_at(tree, key, Direction::Key)?,
        Bound::Excluded(key) => copy_at(tree, key, Direction::Below)?,
        Bound::Unbounded => copy(tree, || Ok(tree.inner().seek_last()))?,
    };
    let mut shown_from: Option<<T::Key as Key>::Owned> = None;
    loop {
        for (key, entry) in copy.pairs.iter().rev() {
            let is_shown = shown_from.as_ref().is_some_and(|bound| key >= bound);
            let key = T::Key::borrow(key);
            if is_shown || !satisfies_end::<T::Key>(to, key) {
                continue;
            }
            if !satisfies_start::<T::Key>(from, key) || visit(key, entry.value).is_break() {
                return Ok(());
            }
        }
        let low = T::Key::borrow(&copy.low);
        if copy.low == T::Key::least() || !satisfies_start::<T::Key>(from, low) {
            return Ok(());
        }
        let next = copy_at(tree, low, Direction::Below)?;
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
