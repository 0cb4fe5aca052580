//! Scans: copy one leaf at a time with an optimistic read, then visit the copy without a latch.
//!
//! 1. The pairs that a step visits lie between the bound of the step before and its own bound. So
//!    each key is visited at most once and in order, whatever concurrent writers do.
//! 2. The scan finds the next leaf by a descent from the root: towards the high key of the copy, or
//!    to the keys below its low key. The copy owns both keys. The epoch pin keeps the records of
//!    low keys readable while they are copied.

use super::{KeyRef, LeafTable, row_of};
use crate::index::{Order, TreeError};
use crate::inner::{Direction, InnerNodes, LeafRoute};
use crate::key::bounds::{satisfies_end, satisfies_start};
use crate::key::{Entry, Key};
use bristlecone_pmem::{Corrupt, PmPtr};
use core::ops::{Bound, ControlFlow};

/// Keys and their entries, in key order.
pub(crate) type KeyedEntries<K> = Vec<(<K as Key>::Owned, Entry)>;

/// A copy of one leaf, taken while no writer changed the leaf.
pub(crate) struct RowCopy<K: Key> {
    pub(crate) at: PmPtr,
    /// The pairs of the leaf: each key once, within the leaf's range, in key order.
    pub(crate) pairs: KeyedEntries<K>,
    pub(crate) low: K::Owned,
    /// The low key of the right neighbour; `None` in the last leaf.
    pub(crate) high: Option<K::Owned>,
}

/// Returns an entry outside the range of its leaf or out of order, or `None` if every entry is in
/// place. Equal neighbours are out of order.
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

/// Checks that pairs are in strictly ascending order and within their leaf's range.
pub(crate) fn check_range<K: Key>(
    at: PmPtr,
    pairs: &KeyedEntries<K>,
    low: &K::Owned,
    high: Option<&K::Owned>,
) -> Result<(), Corrupt> {
    misplaced::<K>(pairs, low, high).map_or(Ok(()), |entry| Err(misplaced_key(at, entry.key)))
}

/// Returns the error for an entry with the key word `found` that its leaf, at `at`, cannot have.
#[cold]
pub(crate) fn misplaced_key(at: PmPtr, found: u64) -> Corrupt {
    let what = "entry of a leaf out of range or twice";
    Corrupt { at: at.offset(), what, expected: 0, found }
}

/// Returns a copy of the leaf that `seek` finds, retrying until no writer interferes.
fn copy_leaf<T: LeafTable>(
    tree: &T,
    seek: impl Fn() -> Result<LeafRoute, Corrupt>,
) -> Result<RowCopy<T::Key>, Corrupt> {
    loop {
        let route = seek()?;
        let (row, latch) = row_of(tree, &route);
        tree.visit(row)?;
        let Some(version) = latch.read() else { continue };
        if !tree.inner().is_current(&route) {
            continue;
        }
        let copy = tree.copy(row);
        if latch.validate(version) {
            tree.note_read(row);
            return copy;
        }
    }
}

/// Returns a copy of the leaf that covers `key`, or, with [`Direction::Below`], the keys just below
/// it.
fn copy_leaf_at<T: LeafTable>(
    tree: &T,
    key: KeyRef<'_, T>,
    toward: Direction,
) -> Result<RowCopy<T::Key>, Corrupt> {
    copy_leaf(tree, || tree.inner().seek::<T::Key>(tree.pool(), key, toward))
}

/// Calls `visit` with each pair between the bounds, in `order`, until it breaks.
///
/// # Errors
/// A leaf is damaged.
pub(crate) fn scan<T: LeafTable>(
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
    let _guard = tree.pool().pin();
    let mut copy = match from {
        Bound::Included(key) | Bound::Excluded(key) => copy_leaf_at(tree, key, Direction::Key)?,
        Bound::Unbounded => copy_leaf_at(tree, T::Key::borrow(&T::Key::least()), Direction::Key)?,
    };
    let mut visited_below: Option<<T::Key as Key>::Owned> = None;
    loop {
        for (key, entry) in &copy.pairs {
            let is_visited = visited_below.as_ref().is_some_and(|bound| key < bound);
            let key = T::Key::borrow(key);
            if is_visited || !satisfies_start::<T::Key>(from, key) {
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
        copy = copy_leaf_at(tree, T::Key::borrow(&high), Direction::Key)?;
        if copy.high.as_ref().is_some_and(|next| *next <= high) {
            return Err(no_progress(copy.at).into());
        }
        visited_below = Some(high);
    }
}

fn scan_down<T: LeafTable>(
    tree: &T,
    (from, to): (Bound<KeyRef<'_, T>>, Bound<KeyRef<'_, T>>),
    visit: &mut dyn FnMut(KeyRef<'_, T>, u64) -> ControlFlow<()>,
) -> Result<(), TreeError> {
    let _guard = tree.pool().pin();
    let mut copy = match to {
        Bound::Included(key) => copy_leaf_at(tree, key, Direction::Key)?,
        Bound::Excluded(key) => copy_leaf_at(tree, key, Direction::Below)?,
        Bound::Unbounded => copy_leaf(tree, || Ok(tree.inner().seek_last()))?,
    };
    let mut visited_from: Option<<T::Key as Key>::Owned> = None;
    loop {
        for (key, entry) in copy.pairs.iter().rev() {
            let is_visited = visited_from.as_ref().is_some_and(|bound| key >= bound);
            let key = T::Key::borrow(key);
            if is_visited || !satisfies_end::<T::Key>(to, key) {
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
        let next = copy_leaf_at(tree, low, Direction::Below)?;
        if next.low >= copy.low {
            return Err(no_progress(next.at).into());
        }
        visited_from = Some(core::mem::replace(&mut copy, next).low);
    }
}

/// Returns the error for low keys that do not ascend along the chain, with which a scan would never
/// end.
#[cold]
pub(crate) fn no_progress(at: PmPtr) -> Corrupt {
    let what = "low keys of neighbouring leaves do not increase";
    Corrupt { at: at.offset(), what, expected: 1, found: 0 }
}
