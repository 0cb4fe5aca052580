//! Lookups, one by one and interleaved.

use super::{KeyRef, LeafTable, row_of};
use crate::index::TreeError;
use crate::inner::{BATCH, Direction, LeafRoute, Restart};
use bristlecone_pmem::Corrupt;
use bristlecone_pmem::sync::pin;

/// The value of `key`. Writes nothing.
#[inline]
pub(crate) fn get<T: LeafTable>(tree: &T, key: KeyRef<'_, T>) -> Result<Option<u64>, TreeError> {
    let _guard = pin();
    loop {
        let found = tree.inner().seek::<T::Key>(tree.pool(), key, Direction::Key)?;
        if let Ok(value) = get_in_row(tree, &found, key)? {
            return Ok(value);
        }
    }
}

/// The value of `key` in the row of `found`; `Restart` if a change came between.
#[inline(always)]
fn get_in_row<T: LeafTable>(
    tree: &T,
    found: &LeafRoute,
    key: KeyRef<'_, T>,
) -> Result<Result<Option<u64>, Restart>, Corrupt> {
    let (row, latch) = row_of(tree, found);
    let Some(seen) = latch.read() else { return Ok(Err(Restart)) };
    if !tree.inner().is_current(found) {
        return Ok(Err(Restart));
    }
    let value = tree.find(row, key);
    if !latch.validate(seen) {
        return Ok(Err(Restart));
    }
    Ok(Ok(value?))
}

/// Looks up all of `keys`, a batch at a time.
pub(crate) fn multi_get<T: LeafTable>(
    tree: &T,
    keys: &[KeyRef<'_, T>],
    values: &mut [Option<u64>],
) -> Result<(), TreeError> {
    assert_eq!(keys.len(), values.len(), "multi_get needs a place for each value");
    let _guard = pin();
    for (keys, values) in keys.chunks(BATCH).zip(values.chunks_mut(BATCH)) {
        let places = tree.inner().seek_batch::<T::Key>(tree.pool(), keys)?;
        // A place is an index only where the inner node has not changed: it is followed then.
        let places = places.map(|found| found.filter(|found| tree.inner().is_current(found)));
        let found =
            places.iter().zip(keys).filter_map(|(found, &key)| Some((found.as_ref()?, key)));
        tree.prefetch(found.map(|(found, key)| (row_of(tree, found).0, key)));
        for ((&key, value), found) in keys.iter().zip(values).zip(places) {
            let seen = match found {
                Some(found) => get_in_row(tree, &found, key)?,
                None => Err(Restart),
            };
            *value = match seen {
                Ok(value) => value,
                Err(Restart) => get(tree, key)?,
            };
        }
    }
    Ok(())
}
