//! Point lookups: one key, or a batch whose cache misses overlap.

use super::{KeyRef, LeafTable, row_of};
use crate::index::TreeError;
use crate::inner::{BATCH, Direction, InnerNodes, LeafRoute, Restart};
use crate::key::Value;
use bristlecone_pmem::Corrupt;

/// Returns the value word of `key`, or `None` if the key is absent. Writes nothing.
#[inline]
pub(crate) fn get<T: LeafTable>(tree: &T, key: KeyRef<'_, T>) -> Result<Option<u64>, TreeError> {
    Ok(get_value(tree, key)?.map(|value| value.word))
}

/// As [`get`], with the encoding of the entry.
#[inline]
pub(crate) fn get_value<T: LeafTable>(
    tree: &T,
    key: KeyRef<'_, T>,
) -> Result<Option<Value>, TreeError> {
    let _guard = tree.pool().pin();
    loop {
        let route = tree.inner().seek::<T::Key>(tree.pool(), key, Direction::Key)?;
        if let Ok(value) = get_in_row(tree, &route, key)? {
            return Ok(value);
        }
    }
}

/// Returns the value of `key` in the row of `route`, or `Restart` if a writer changed the row or
/// its parent since the descent.
#[inline(always)]
fn get_in_row<T: LeafTable>(
    tree: &T,
    route: &LeafRoute,
    key: KeyRef<'_, T>,
) -> Result<Result<Option<Value>, Restart>, Corrupt> {
    let (row, latch) = row_of(tree, route);
    tree.visit(row)?;
    let Some(version) = latch.read() else { return Ok(Err(Restart)) };
    if !tree.inner().is_current(route) {
        return Ok(Err(Restart));
    }
    let value = tree.find_value(row, key);
    if !latch.validate(version) {
        return Ok(Err(Restart));
    }
    tree.note_read(row);
    Ok(Ok(value?))
}

/// Looks up all `keys`, [`BATCH`] at a time: prefetches for a whole batch before it reads.
pub(crate) fn multi_get<T: LeafTable>(
    tree: &T,
    keys: &[KeyRef<'_, T>],
    values: &mut [Option<u64>],
) -> Result<(), TreeError> {
    assert_eq!(keys.len(), values.len(), "multi_get takes one value slot for each key");
    multi_get_values(tree, keys, |at, value| values[at] = value.map(|value| value.word))
}

/// As [`multi_get`], and calls `found` with the index of each key and its value, in order.
pub(crate) fn multi_get_values<T: LeafTable>(
    tree: &T,
    keys: &[KeyRef<'_, T>],
    mut found: impl FnMut(usize, Option<Value>),
) -> Result<(), TreeError> {
    let _guard = tree.pool().pin();
    let mut routes = [None; BATCH];
    for (batch, keys) in keys.chunks(BATCH).enumerate() {
        tree.inner().seek_batch::<T::Key>(tree.pool(), keys, &mut routes, |leaf, key| {
            tree.prefetch_row(leaf.offset() as usize, key);
        })?;
        // A route is a valid row index only while its inner node is current. A stale one is dropped
        // here, and its key looked up again below.
        for route in &mut routes[..keys.len()] {
            *route = route.filter(|route| tree.inner().is_current(route));
        }
        let current =
            routes.iter().zip(keys).filter_map(|(route, &key)| Some((route.as_ref()?, key)));
        tree.prefetch(current.map(|(route, key)| (row_of(tree, route).0, key)));
        for (at, (&key, route)) in keys.iter().zip(&routes).enumerate() {
            let result = match route {
                Some(route) => get_in_row(tree, route, key)?,
                None => Err(Restart),
            };
            let value = match result {
                Ok(value) => value,
                Err(Restart) => get_value(tree, key)?,
            };
            found(batch * BATCH + at, value);
        }
    }
    Ok(())
}
