//! The store: an index of pairs, and the life of the records that its entries name.
//!
//! 1. A short pair lies in a leaf. Any other is a record of key and value, which is durable before
//!    the index points to it, never changes after that, and is retired when the index has stopped
//!    pointing to it. So a reader sees one whole pair, and a value of any length is replaced by one
//!    store of 8 B.
//! 2. Whoever takes a value out of the index is pinned before, and stays pinned until it is done
//!    with the record.
//! 3. A record is owned by whoever the index gave its word to: exactly one writer is told that it
//!    displaced or removed it, and that one retires it.
//! 4. A record that nothing points to (a crash, or damage, came between) is found by the next
//!    recovery: nothing leaks for good.

use crate::error::Error;
use crate::{Index, KEY_BYTES_MAX, ROOT, VALUE_BYTES_MAX};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::sync::{Guard, collect, pin};
use bristlecone_pmem::{Corrupt, Mapped, Medium, Pool, PoolError};
use bristlecone_trees::key::{Stored, Value};
use bristlecone_trees::{PmIndex, Record, TreeError, WriteMode};
use core::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// An ordered map from byte strings to byte strings in a file; every change is durable when the
/// method that makes it returns.
///
/// A store is used by any number of threads at once, by reference or in an [`Arc`]; each operation
/// is atomic, and what one thread has been told, no crash takes back. Dropping a store is like a
/// crash, which loses nothing; [`close`](Self::close) makes the next open fast.
pub struct Store<M: Medium = Mapped> {
    pub(crate) index: Index<M>,
    path: PathBuf,
    recovered: bool,
}

/// After a record of at least so many bytes was retired, what waits is collected at once: a few
/// dozen of the largest that wait for company would be a gigabyte.
const COLLECT_BYTES: u64 = 64 << 10;
/// Rounds of collecting before a pool is called full while something still waits. One is enough
/// when nobody else is pinned.
const RECLAIM_ROUNDS: u32 = 64;
/// Rounds after which others are given more than a turn: a reader that lost its processor while it
/// was pinned needs it back.
const PATIENT_ROUNDS: u32 = 16;
/// How long that is, a round.
const PATIENCE: Duration = Duration::from_millis(1);
/// Values up to this length are shown from the stack.
const STACK_BYTES: usize = 256;
/// Keys that [`Store::multi_get_with`] has in flight at once.
const BATCH_KEYS: usize = 32;

impl<M: Medium> Store<M> {
    /// Makes an empty store of all of `medium`, which must be zeroed: for media other than files,
    /// such as those that count or that record for the crash explorer.
    ///
    /// # Errors
    /// The medium is too small.
    pub fn create_on(medium: M) -> Result<Self, Error> {
        let path = Path::new(NO_FILE);
        let pool = Pool::create(medium).map_err(|e| Error::from_pool(path, e))?;
        Self::create_in(Arc::new(pool), path)
    }

    /// Opens the store on `medium`, recovering it after a crash.
    ///
    /// # Errors
    /// There is no store, or it is damaged.
    pub fn open_on(medium: M) -> Result<Self, Error> {
        let path = Path::new(NO_FILE);
        let (pool, opened) = Pool::open(medium).map_err(|e| Error::from_pool(path, e))?;
        Self::open_in(Arc::new(pool), opened, path)
    }

    /// Makes an empty store in a pool that has none: for those who look at the pool itself.
    ///
    /// # Errors
    /// The pool is too small.
    #[doc(hidden)]
    pub fn create_in(pool: Arc<Pool<M>>, path: &Path) -> Result<Self, Error> {
        let index = Index::create(pool, ROOT).map_err(|e| Error::from_tree(path, e))?;
        Ok(Self { index, path: path.into(), recovered: false })
    }

    /// Opens the store of a pool.
    ///
    /// # Errors
    /// There is no store, or it is damaged.
    #[doc(hidden)]
    pub fn open_in(pool: Arc<Pool<M>>, opened: Opened, path: &Path) -> Result<Self, Error> {
        let index = Index::open(pool, ROOT, opened).map_err(|e| Error::from_tree(path, e))?;
        Ok(Self { index, path: path.into(), recovered: opened == Opened::Crashed })
    }

    /// The file that the store is in.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this open found a store that was not closed, and recovered it.
    pub fn was_recovered(&self) -> bool {
        self.recovered
    }

    /// The medium that the store is on.
    pub fn medium(&self) -> &M {
        self.pool().medium()
    }

    /// The pool that the store is in.
    #[doc(hidden)]
    pub fn pool(&self) -> &Arc<Pool<M>> {
        self.index.pool()
    }

    /// Sets `key` to `value`, whatever it was. Durable at return.
    ///
    /// ```text
    /// N record            its lines     unless the pair is short; crash before C: it is free
    /// index.upsert: .. |                before C: the former value, or none
    ///   C                 8 B           crash after C: the new value, wholly
    ///                     -> durable    budget: the record's lines, and the index's upsert
    /// ```
    ///
    /// # Errors
    /// The store is full, or damaged on the way to the key; the key or the value is too long.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        self.write(key.as_ref(), value.as_ref(), WriteMode::Upsert).map(|_| ())
    }

    /// Adds `key` with `value` if it is absent, and says whether it was; else changes nothing.
    /// Durable at return, in the order of [`put`](Self::put).
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool, Error> {
        let (key, value) = (key.as_ref(), value.as_ref());
        if self.contains(key)? {
            return check_value(value).map(|()| false);
        }
        self.write(key, value, WriteMode::Insert)
    }

    /// Changes the value of `key` if it is present, and says whether it was; else changes nothing.
    /// Durable at return, in the order of [`put`](Self::put).
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn update(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool, Error> {
        let (key, value) = (key.as_ref(), value.as_ref());
        if !self.contains(key)? {
            return check_value(value).map(|()| false);
        }
        self.write(key, value, WriteMode::Update)
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// The store is damaged on the way to the key; the key is too long.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
        let key = check_key(key.as_ref())?;
        let guard = pin();
        match self.index.get_pair(key).map_err(|e| self.error(e))? {
            Some(value) => self.value(key, value, &guard).map(Some).map_err(|e| self.damaged(e)),
            None => Ok(None),
        }
    }

    /// Shows the value of `key` to `read`, and gives what that makes of it. Short values cost no
    /// allocation. `read` may use the store.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        let key = check_key(key.as_ref())?;
        let guard = pin();
        let Some(value) = self.index.get_pair(key).map_err(|e| self.error(e))? else {
            return Ok(None);
        };
        self.show(key, value, guard, read).map(Some).map_err(|e| self.damaged(e))
    }

    /// Shows the value that is held for `key` to `read`, unpinned.
    #[inline(always)]
    fn show<R>(
        &self,
        key: &[u8],
        value: Value,
        guard: Guard,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, Corrupt> {
        let stored = Record::stored(self.pool(), value)?;
        if let Stored::Inline(bytes, length) = stored {
            drop(guard);
            return Ok(read(&bytes[..length]));
        }
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

    /// Whether `key` is present.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let key = check_key(key.as_ref())?;
        Ok(self.index.get_pair(key).map_err(|e| self.error(e))?.is_some())
    }

    /// The values of `keys`, in their order. Several lookups are in flight at once, so this is
    /// faster than one [`get`](Self::get) after the other; each is atomic by itself.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mut values = Vec::with_capacity(keys.len());
        self.multi_get_with(keys, |_, value| values.push(value.map(<[u8]>::to_vec)))?;
        Ok(values)
    }

    /// Shows the value of each of `keys` to `read`, with its index, in their order; `None` where the
    /// key is absent. As [`multi_get`](Self::multi_get), but short values cost no allocation. `read` may
    /// use the store.
    ///
    /// # Errors
    /// As [`get`](Self::get); values before the one that failed were shown.
    pub fn multi_get_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut read: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Error> {
        for (batch, keys) in keys.chunks(BATCH_KEYS).enumerate() {
            let mut bytes = [&[][..]; BATCH_KEYS];
            for (bytes, key) in bytes.iter_mut().zip(keys) {
                *bytes = check_key(key.as_ref())?;
            }
            let bytes = &bytes[..keys.len()];
            let mut values = [None; BATCH_KEYS];
            let _guard = pin(); // I2
            self.index
                .multi_get_pairs(bytes, &mut |at, value| values[at] = value)
                .map_err(|e| self.error(e))?;
            for (at, (&key, value)) in bytes.iter().zip(values).enumerate() {
                let at = batch * BATCH_KEYS + at;
                match value {
                    Some(value) => self
                        .show(key, value, pin(), |value| read(at, Some(value)))
                        .map_err(|e| self.damaged(e))?,
                    None => read(at, None),
                }
            }
        }
        Ok(())
    }

    /// Takes `key` out, and says whether it was present. Works in a full store. Durable at return.
    ///
    /// ```text
    /// index.remove: C  8 B              crash before C: the pair is there; after: it is not
    ///                  -> durable       budget: the index's remove
    /// ```
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let key = check_key(key.as_ref())?;
        let guard = pin(); // I2
        let former = self.index.remove_pair(key).map_err(|e| self.error(e))?;
        if let Some(former) = former {
            self.retire(former, &guard);
        }
        Ok(former.is_some())
    }

    /// Ends the use of the store, so that the next open needs no recovery. Durable at return.
    ///
    /// # Errors
    /// There is no room for what makes that open fast. The store is then as a crash would leave it,
    /// which loses nothing.
    pub fn close(self) -> Result<(), Error> {
        let path = self.path.clone();
        let pool = self.close_in()?;
        // The index is gone, and a scan cannot outlive its store: we are the only owner.
        let pool = Arc::into_inner(pool).ok_or_else(|| Error::InUse { path: path.clone() })?;
        pool.close().map_err(|e| Error::from_pool(&path, e))
    }

    /// Saves what makes the next open fast, and gives the pool, which is open still.
    ///
    /// # Errors
    /// As [`close`](Self::close).
    #[doc(hidden)]
    pub fn close_in(self) -> Result<Arc<Pool<M>>, Error> {
        let Self { index, path, .. } = self;
        Box::new(index).close().map_err(|e| Error::from_tree(&path, e))
    }

    /// Makes the index hold the pair, with a record where it needs one; says whether it did what was asked. If the
    /// pool is full, it is tried again for as long as blocks wait for readers.
    fn write(&self, key: &[u8], value: &[u8], mode: WriteMode) -> Result<bool, Error> {
        let key = check_key(key)?;
        check_value(value)?;
        let mut done = self.try_write(key, value, mode);
        for round in 0..RECLAIM_ROUNDS {
            if !matches!(done, Err(TreeError::Pool(PoolError::Full { .. }))) {
                break;
            }
            // What waited a moment ago may be free by now: the last attempt comes after the look.
            let waits = self.reclaim(round);
            done = self.try_write(key, value, mode);
            if !waits {
                break;
            }
        }
        done.map_err(|e| self.error(e))
    }

    #[inline(always)]
    fn try_write(&self, key: &[u8], value: &[u8], mode: WriteMode) -> Result<bool, TreeError> {
        let guard = pin(); // I2
        let value = match Record::inline(key, value) {
            Some(inline) => inline,
            None => Record::write(self.pool(), key, value)?,
        };
        let found = match mode {
            WriteMode::Upsert => self.index.upsert_pair(key, value),
            WriteMode::Insert => self.index.insert_pair(key, value),
            WriteMode::Update => self.index.update_pair(key, value),
        };
        let unused = match &found {
            Ok(Some(_)) => mode == WriteMode::Insert,
            Ok(None) => mode == WriteMode::Update,
            Err(TreeError::Pool(PoolError::Full { .. })) => true,
            // After damage nobody can say what points to the record: I4.
            Err(_) => false,
        };
        if unused {
            if let Some((block, bytes)) = Record::extent(self.pool(), value)? {
                self.pool().release(block, bytes);
            }
        } else if let Ok(Some(former)) = found {
            self.retire(former, &guard);
        }
        Ok(found?.is_none() == (mode != WriteMode::Update))
    }

    /// Frees the record that `value` names, if it names one, once its readers are gone. The index no
    /// longer points to it. If damage has changed its lengths, so that they fit no block, it is left
    /// to recovery.
    #[inline(always)]
    fn retire(&self, value: Value, guard: &Guard) {
        let pool = self.pool();
        if let Ok(Some((block, bytes))) = Record::extent(pool, value)
            && pool.try_retire(block, bytes, guard).is_ok()
            && bytes >= COLLECT_BYTES
        {
            collect();
        }
    }

    /// Frees what was retired, as far as readers allow; says whether there was anything.
    #[cold]
    fn reclaim(&self, round: u32) -> bool {
        let waits = self.pool().usage().waiting_blocks > 0;
        if waits {
            collect();
            if round < PATIENT_ROUNDS {
                std::thread::yield_now();
            } else {
                std::thread::sleep(PATIENCE);
            }
            collect();
        }
        waits
    }

    /// The value that is held for `key`; the guard is the one that [I2](self) asks for.
    pub(crate) fn value(
        &self,
        key: &[u8],
        value: Value,
        guard: &Guard,
    ) -> Result<Vec<u8>, Corrupt> {
        let mut bytes = Vec::new();
        self.copy_stored(key, Record::stored(self.pool(), value)?, guard, &mut bytes)?;
        Ok(bytes)
    }

    /// Makes `bytes` the value that is stored for `key`; the guard is the one that [I2](self) asks for.
    pub(crate) fn copy_stored(
        &self,
        key: &[u8],
        stored: Stored<'_>,
        _guard: &Guard,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Corrupt> {
        if let Stored::Record { at, bytes, .. } = stored
            && bytes > VALUE_BYTES_MAX
        {
            let (what, expected) = ("value length", VALUE_BYTES_MAX as u64);
            return Err(Corrupt { at, what, expected, found: bytes as u64 });
        }
        bytes.clear();
        bytes.resize(stored.len(), 0);
        stored.copy_out(self.pool(), key, bytes)
    }

    #[cold]
    pub(crate) fn error(&self, error: TreeError) -> Error {
        Error::from_tree(&self.path, error)
    }

    #[cold]
    pub(crate) fn damaged(&self, damage: Corrupt) -> Error {
        Error::Damaged { path: self.path.clone(), damage }
    }
}

/// Stands for the path of a store that is in no file.
const NO_FILE: &str = "(no file)";

fn check_key(key: &[u8]) -> Result<&[u8], Error> {
    match key.len() {
        bytes if bytes > KEY_BYTES_MAX => Err(Error::KeyTooLong { bytes, maximum: KEY_BYTES_MAX }),
        _ => Ok(key),
    }
}

fn check_value(value: &[u8]) -> Result<(), Error> {
    match value.len() {
        bytes if bytes > VALUE_BYTES_MAX => {
            Err(Error::ValueTooLong { bytes, maximum: VALUE_BYTES_MAX })
        }
        _ => Ok(()),
    }
}

impl<M: Medium> fmt::Debug for Store<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.path).finish_non_exhaustive()
    }
}
