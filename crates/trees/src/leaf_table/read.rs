//! Point lookups: one key, or a batch whose cache misses overlap.

use super::{KeyRef, LeafTable, row_of};
use crate::index::TreeError;
use crate::inner::{BATCH, Direction, InnerNodes, LeafRoute, Restart};
use bristlecone_pmem::Corrupt;

/// Returns the value of `key`, or `None` if the key is absent. Writes nothing.
#[inline]
pub(crate) fn get<T: LeafTable>(tree: &T, key: KeyRef<'_, T>) -> Result<Option<u64>, TreeError> {
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
) -> Result<Result<Option<u64>, Restart>, Corrupt> {
    let (row, latch) = row_of(tree, route);
    let Some(version) = latch.read() else { return Ok(Err(Restart)) };
    if !tree.inner().is_current(route) {
        return Ok(Err(Restart));
    }
    let value = tree.find(row, key);
    if !latch.validate(version) {
        return Ok(Err(Restart));
    }
    Ok(Ok(value?))
}

/// Looks up all `keys`, [`BATCH`] at a time: prefetches for a whole batch before it reads.
pub(crate) fn multi_get<T: LeafTable>(
    tree: &T,
    keys: &[KeyRef<'_, T>],
    values: &mut [Option<u64>],
) -> Result<(), TreeError> {
    assert_eq!(keys.len(), values.len(), "multi_get takes one value slot for each key");
    let _guard = tree.pool().pin();
    let mut routes = [None; BATCH];
    for (keys, values) in keys.chunks(BATCH).zip(values.chunks_mut(BATCH)) {
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
        for ((&key, value), route) in keys.iter().zip(values).zip(&routes) {
            let result = match route {
                Some(route) => get_in_row(tree, route, key)?,
                None => Err(Restart),
            };
            *value = match result {
                Ok(value) => value,
                Err(Restart) => get(tree, key)?,
            };
        }
    }
    Ok(())
}
