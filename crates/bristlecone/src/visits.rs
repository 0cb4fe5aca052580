//! Reads that call a function with borrowed values, so that most need no allocation.

use crate::error::Error;
use crate::scan::{Bounds, KeyRange, Visit, as_slice, is_empty};
use crate::store::{Store, check_key};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Medium};
use bristlecone_trees::key::{Stored, Value};
use bristlecone_trees::{Order, Record};
use core::ops::ControlFlow;

/// The longest value of a record that is copied to the stack, not to the heap.
const STACK_BYTES: usize = 256;
/// The number of keys that [`Store::multi_get_with`] looks up interleaved.
const BATCH_KEYS: usize = 32;

impl<M: Medium, const LEAF_BYTES: usize> Store<M, LEAF_BYTES> {
    /// Calls `read` with the value of `key` and returns its result, or `None` if the key is absent.
    ///
    /// Values of up to 256 B need no allocation. `read` may call methods of the same store; it runs
    /// after the lookup and holds no lock, so it may take any time.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// store.put("sequoia", "3266 years")?;
    /// let length = store.get_with("sequoia", |value| value.len())?;
    /// assert_eq!(length, Some(10));
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`get`](Self::get); `read` was not called.
    pub fn get_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        self.check_process()?;
        let key = check_key(key.as_ref())?;
        let guard = self.pool().pin();
        let found = self.index.get_pair(key).map_err(|e| self.error(e))?;
        self.settle_lookups();
        let Some(value) = found else { return Ok(None) };
        self.read_value(key, value, || guard, read).map(Some).map_err(|e| self.damaged(e))
    }

    /// Calls `read` with each pair whose key lies in `range`, in the given order, until `read`
    /// breaks.
    ///
    /// Guarantees are those of [`scan`](Self::scan), with one leaf in place of a batch: each pair
    /// was current at some moment of this call, and `read` may get one that was replaced since. No
    /// pair needs an allocation of its own: one buffer holds the values that lie outside leaves.
    /// `read` may call methods of the same store.
    ///
    /// This pins the thread in the store until it returns. Meanwhile this store cannot reuse space
    /// that any thread frees, so its file may grow. Keep `read` short. Other stores of the process
    /// are not held back.
    ///
    /// ```
    /// use bristlecone::Order;
    /// use std::ops::ControlFlow;
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// for year in 1900..2000 {
    ///     store.put(format!("{year}"), "1.2 mm")?;
    /// }
    /// let mut rings = 0;
    /// store.scan_with("1950".."1960", Order::Ascending, |_year, _width| {
    ///     rings += 1;
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(rings, 10);
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Damaged`]: the scan met damage; `read` has been called with the pairs before it.
    pub fn scan_with(
        &self,
        range: impl KeyRange,
        order: Order,
        mut read: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let bounds = range.into_bounds();
        if is_empty(&bounds) {
            return Ok(());
        }
        self.walk(&bounds, order, &mut |key, value| {
            self.settle_scanned();
            read(key, value)
        })
    }

    /// Calls `read` once for each of `keys`, in order, with the index of the key and with its
    /// value, or `None` if the key is absent.
    ///
    /// Like [`multi_get`](Self::multi_get), but values of up to 256 B need no allocation. `read`
    /// may call methods of the same store.
    ///
    /// For each batch of 32 keys this pins the thread in the store. Meanwhile this store cannot
    /// reuse space that any thread frees, so its file may grow. Keep `read` short. Other stores of
    /// the process are not held back.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// store.put("sequoia", "3266 years")?;
    /// let mut found = [false; 2];
    /// store.multi_get_with(&["larch", "sequoia"], |i, value| found[i] = value.is_some())?;
    /// assert_eq!(found, [false, true]);
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`get`](Self::get). `read` has then been called for some of the keys before
    /// the one that failed.
    pub fn multi_get_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut read: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        self.check_process()?;
        for (batch, keys) in keys.chunks(BATCH_KEYS).enumerate() {
            let mut bytes = [&[][..]; BATCH_KEYS];
            for (bytes, key) in bytes.iter_mut().zip(keys) {
                *bytes = check_key(key.as_ref())?;
            }
            let bytes = &bytes[..keys.len()];
            let mut values = [None; BATCH_KEYS];
            let _guard = self.pool().pin(); // I2 of `store`
            self.index
                .multi_get_pairs(bytes, |at, value| values[at] = value)
                .map_err(|e| self.error(e))?;
            self.settle_lookups();
            for (at, (&key, value)) in bytes.iter().zip(values).enumerate() {
                let at = batch * BATCH_KEYS + at;
                match value {
                    Some(value) => self
                        .read_value(key, value, || self.pool().pin(), |value| read(at, Some(value)))
                        .map_err(|e| self.damaged(e))?,
                    None => read(at, None),
                }
            }
        }
        Ok(())
    }

    /// Calls `read` with the value of `key`, after it has dropped the guard that `pin` returns. The
    /// caller is pinned until it calls this. `pin` is not called for a value in its entry.
    #[inline(always)]
    fn read_value<R>(
        &self,
        key: &[u8],
        value: Value,
        pin: impl FnOnce() -> Guard,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, Corrupt> {
        let stored = Record::stored(self.pool(), value)?;
        if let Stored::Inline(bytes, length) = stored {
            drop(pin);
            return Ok(read(&bytes[..length]));
        }
        let guard = pin();
        if stored.len() > STACK_BYTES {
            let bytes = self.value(key, value, &guard)?;
            drop(guard);
            return Ok(read(&bytes));
        }
        let mut bytes = [0; STACK_BYTES];
        let bytes = &mut bytes[..stored.len()];
        stored.copy_out(self.pool(), key, bytes)?;
        drop(guard);
        Ok(read(bytes))
    }

    /// Calls `read` with each pair between the bounds, in `order`, until it breaks. What it was
    /// called with is as durable as the medium promises when this returns, also an error.
    pub(crate) fn walk(
        &self,
        (low, high): &Bounds,
        order: Order,
        read: Visit<'_>,
    ) -> Result<(), Error> {
        self.check_process()?;
        let (mut bytes, mut damage) = (Vec::new(), None);
        let guard = self.pool().pin(); // I2 of `store`
        let mut visit = |key: &[u8], value: Value| {
            let outcome = Record::stored(self.pool(), value).and_then(|stored| {
                if let Stored::Inline(inline, length) = stored {
                    return Ok(read(key, &inline[..length]));
                }
                self.copy_stored(key, stored, &guard, &mut bytes)?;
                Ok(read(key, &bytes))
            });
            outcome.unwrap_or_else(|corrupt| {
                damage = Some(corrupt);
                ControlFlow::Break(())
            })
        };
        let walked = self.index.scan_pairs((as_slice(low), as_slice(high)), order, &mut visit);
        self.settle_scanned();
        walked.map_err(|e| self.error(e))?;
        damage.map_or(Ok(()), |damage| Err(self.damaged(damage)))
    }
}

#[cfg(test)]
mod tests;
