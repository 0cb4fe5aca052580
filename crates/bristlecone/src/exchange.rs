//! Writes that depend on the value of their key: compare-and-exchange, swap, fetch-and-update.
//!
//! 1. A method reads the pair, compares or copies its value without a latch, and then replaces the
//!    entry if it is still the one that was read. The engine compares the entries under the leaf's
//!    latch. If they differ, the method begins again. The entry of a short value is known without a
//!    read.
//! 2. Equal entries mean equal values. A short value is in its entry. A record never changes, and
//!    its block is not used again while the thread is pinned, which it is from the read on.
//! 3. No code of the caller runs while this thread holds a latch or is pinned.

use crate::error::Error;
use crate::store::{Store, check_key, check_value};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Defect, Medium, PoolError};
use bristlecone_trees::key::Value;
use bristlecone_trees::{Record, TreeError};
use thiserror::Error;

/// The error of [`Store::compare_exchange`] if the key has another value than the expected one, or
/// none, or one where none is expected. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the key has another value than expected; compare with `current` and try again")]
pub struct Mismatch {
    /// The value of the key, or `None` if the key was absent.
    pub current: Option<Vec<u8>>,
}

impl<M: Medium, const LEAF_BYTES: usize> Store<M, LEAF_BYTES> {
    /// Changes `key` from the value `expected` to the value `new`; `None` is an absent key. If the
    /// key is in another state, changes nothing and returns [`Mismatch`] with the value that it
    /// has. Durable on return.
    ///
    /// Comparison and write are one atomic step: of several threads that expect the same value and
    /// set different ones, exactly one succeeds. Values are equal if their bytes are. If `new` is
    /// `expected`, a value is written again. Waiting and space are those of [`put`](Self::put), or
    /// of [`delete`](Self::delete) if `new` is `None`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// // A lock with a name: free while its key is absent.
    /// assert!(store.compare_exchange("lock", None, Some(b"thread 1"))?.is_ok());
    /// let refused = store.compare_exchange("lock", None, Some(b"thread 2"))?;
    /// assert_eq!(refused.unwrap_err().current.as_deref(), Some(&b"thread 1"[..]));
    /// assert!(store.compare_exchange("lock", Some(b"thread 1"), None)?.is_ok());
    /// assert!(!store.contains("lock")?);
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`put`](Self::put). A `new` value that is too long is an error also if the
    /// comparison fails; an `expected` one equals no value.
    ///
    /// # Persist order
    /// ```text
    /// N record            its lines   not for a pair of up to 8 B + 8 B, nor without a new value
    /// index.replace, insert or remove: .. |
    ///   C                 8 B         crash before C: the old state; after C: the new state
    ///                     -> durable  budget: the record's lines, a fence for it, and the index's
    ///                                 update, insert or remove; nothing if the comparison fails
    /// ```
    pub fn compare_exchange(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<Result<(), Mismatch>, Error> {
        self.check_process()?;
        let key = check_key(key.as_ref())?;
        new.map_or(Ok(()), check_value)?;
        // The entry of a short value is known without a read, and a short new value needs no space
        // that a mismatch would waste.
        let entry = |value: Option<&[u8]>| value.and_then(|value| Record::inline(key, value));
        if let (Some(old), Some(new)) = (entry(expected), entry(new))
            && self.complete_write(|| self.replace_entry(key, old, new))?
        {
            return Ok(Ok(()));
        }
        self.complete_write(|| {
            let guard = self.pool().pin(); // I2
            let old = entry(expected).filter(|_| new.is_none());
            if old.is_some() && self.replace(key, old, None, &guard)? {
                return Ok(Ok(()));
            }
            loop {
                let found = self.index.get_pair(key)?;
                if !self.is_value(key, found, expected, &guard)? {
                    let current = self.copied_value(key, found, &guard)?;
                    return Ok(Err(Mismatch { current }));
                }
                if self.replace(key, found, new, &guard)? {
                    return Ok(Ok(()));
                }
            }
        })
    }

    /// Sets `key` to `value` and returns the value that this replaced, or `None` if the key was
    /// absent. Durable on return.
    ///
    /// Like [`put`](Self::put) in one atomic step with the [`get`](Self::get) before it: of several
    /// threads that swap one key, each gets the value that another one wrote.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// assert_eq!(store.swap("sequoia", "3200 years")?, None);
    /// assert_eq!(store.swap("sequoia", "3266 years")?.as_deref(), Some(&b"3200 years"[..]));
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`put`](Self::put). If the record of the old value is damaged, nothing has
    /// changed.
    ///
    /// # Persist order
    /// That of [`put`](Self::put).
    pub fn swap(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.check_process()?;
        let (key, value) = (check_key(key.as_ref())?, value.as_ref());
        check_value(value)?;
        self.complete_write(|| {
            let guard = self.pool().pin(); // I2
            loop {
                let found = self.index.get_pair(key)?;
                let former = self.copied_value(key, found, &guard)?;
                if self.replace(key, found, Some(value), &guard)? {
                    return Ok(former);
                }
            }
        })
    }

    /// Sets `key` to what `update` returns for its value; `None` is an absent key, so `update` can
    /// insert and delete. Returns the value that this replaced. Durable on return.
    ///
    /// Read and write are one atomic step: no other write of the key comes between them. If one
    /// does, this calls `update` again with the newer value. So `update` may run several times, and
    /// should have no effect but its result. It holds no lock and may call methods of the same
    /// store.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// let count = |value: Option<&[u8]>| {
    ///     let rings = value.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
    ///     Some((rings + 1).to_le_bytes().to_vec())
    /// };
    /// assert_eq!(store.fetch_update("rings", count)?, None);
    /// assert_eq!(store.fetch_update("rings", count)?, Some(1u64.to_le_bytes().to_vec()));
    /// assert_eq!(store.get("rings")?, Some(2u64.to_le_bytes().to_vec()));
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`get`](Self::get) and [`put`](Self::put).
    ///
    /// # Persist order
    /// That of [`compare_exchange`](Self::compare_exchange).
    pub fn fetch_update(
        &self,
        key: impl AsRef<[u8]>,
        mut update: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let key = key.as_ref();
        let mut current = self.get(key)?;
        loop {
            let new = update(current.as_deref());
            match self.compare_exchange(key, current.as_deref(), new.as_deref())? {
                Ok(()) => return Ok(current),
                Err(mismatch) => current = mismatch.current,
            }
        }
    }

    /// Returns a copy of the value that the index has found for `key`.
    pub(crate) fn copied_value(
        &self,
        key: &[u8],
        found: Option<Value>,
        guard: &Guard,
    ) -> Result<Option<Vec<u8>>, Corrupt> {
        found.map(|value| self.value(key, value, guard)).transpose()
    }

    /// Returns `true` if the index has found `expected` as the value of `key`. The guard is the pin
    /// of I2.
    pub(crate) fn is_value(
        &self,
        key: &[u8],
        found: Option<Value>,
        expected: Option<&[u8]>,
        guard: &Guard,
    ) -> Result<bool, Corrupt> {
        let (Some(value), Some(expected)) = (found, expected) else {
            return Ok(found.is_none() && expected.is_none());
        };
        if let Some(inline) = Record::inline(key, expected) {
            return Ok(value == inline);
        }
        let stored = Record::stored(self.pool(), value)?;
        if stored.len() != expected.len() {
            return Ok(false);
        }
        let mut bytes = Vec::new();
        self.copy_stored(key, stored, guard, &mut bytes)?;
        Ok(bytes == expected)
    }

    /// Replaces the value `found` of `key` by `new` and returns `true`. If the index has another
    /// value by now, changes nothing and returns `false`. The guard is the pin of I2.
    fn replace(
        &self,
        key: &[u8],
        found: Option<Value>,
        new: Option<&[u8]>,
        guard: &Guard,
    ) -> Result<bool, TreeError> {
        let new = match new {
            Some(value) => Some(self.new_value(key, value)?),
            None => None,
        };
        let found = if self.compares_stale() { self.index.get_pair(key)? } else { found };
        let replaced = match (found, new) {
            (None, None) => Ok(true),
            (None, Some(new)) => self.index.insert_pair(key, new).map(|found| found.is_none()),
            (Some(old), Some(new)) => self.index.replace_pair(key, old, new),
            (Some(old), None) => self.index.remove_pair_if(key, old),
        };
        self.free_loser(found, new, &replaced, guard)?;
        replaced
    }

    /// Replaces the entry `old` of `key` by `new`, neither with a record, and returns `true`. If
    /// the index has another entry, changes nothing and returns `false`.
    #[inline(always)]
    fn replace_entry(&self, key: &[u8], old: Value, new: Value) -> Result<bool, TreeError> {
        let stale = if self.compares_stale() { self.index.get_pair(key)? } else { None };
        self.index.replace_pair(key, stale.unwrap_or(old), new)
    }

    /// Returns `true` if an exchange is to replace what it finds: a defect.
    #[inline(always)]
    fn compares_stale(&self) -> bool {
        M::INJECTS_DEFECTS && self.pool().medium().injects(Defect::ExchangeStale)
    }

    /// Retires the record of `old` if the index has replaced that by `new`, and otherwise frees the
    /// record of `new`, to which the index never pointed.
    pub(crate) fn free_loser(
        &self,
        old: Option<Value>,
        new: Option<Value>,
        replaced: &Result<bool, TreeError>,
        guard: &Guard,
    ) -> Result<(), TreeError> {
        match replaced {
            Ok(true) => old.into_iter().for_each(|old| self.retire(old, guard)),
            // The leaf is full and cannot split.
            Ok(false) | Err(TreeError::Pool(PoolError::Full { .. })) => {
                new.map_or(Ok(()), |new| self.release(new))?;
            }
            // I4 of `store`: after damage the index may or may not point to the new record.
            Err(_) => {}
        }
        Ok(())
    }
}
