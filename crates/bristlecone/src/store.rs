//! The store: an index whose value words name records, and the life of those records.
//!
//! 1. A record holds a key and its value. It is written and fenced before the index points to it,
//!    never changes after that, and is retired when the index has stopped pointing to it. So a
//!    reader sees one whole pair, and a value of any length is replaced by one store of 8 B.
//! 2. Whoever takes a value word out of the index is pinned before, and stays pinned until it is
//!    done with the record.
//! 3. A record is owned by whoever the index gave its word to: exactly one writer is told that it
//!    displaced or removed it, and that one retires it.
//! 4. A record that nothing points to (a crash, or damage, came between) is found by the next
//!    recovery: nothing leaks for good.

use crate::error::Error;
use crate::{Index, KEY_BYTES_MAX, ROOT, VALUE_BYTES_MAX};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::sync::{Guard, collect, pin};
use bristlecone_pmem::{Corrupt, Mapped, Medium, PmWord, Pool, PoolError};
use bristlecone_trees::{PmIndex, Record, TreeError};
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

/// What a write does where the key is present.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Present {
    Replace,
    Keep,
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
const STACK_BYTES: usize = 1024;

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

    pub(crate) fn create_in(pool: Arc<Pool<M>>, path: &Path) -> Result<Self, Error> {
        let index = Index::create(pool, ROOT).map_err(|e| Error::from_tree(path, e))?;
        Ok(Self { index, path: path.into(), recovered: false })
    }

    pub(crate) fn open_in(pool: Arc<Pool<M>>, opened: Opened, path: &Path) -> Result<Self, Error> {
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

    pub(crate) fn pool(&self) -> &Pool<M> {
        self.index.pool()
    }

    /// Sets `key` to `value`, whatever it was. Durable at return.
    ///
    /// ```text
    /// N record            its lines     crash before C: the former value, or none; the record is free
    /// |
    /// index.upsert: .. C  8 B           crash after C: the new value, wholly
    ///                     -> durable    budget: the record's lines and a fence, and the index's upsert
    /// ```
    ///
    /// # Errors
    /// The store is full, or damaged on the way to the key; the key or the value is too long.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        self.write(key.as_ref(), value.as_ref(), Present::Replace).map(|_| ())
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
        self.write(key, value, Present::Keep)
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// The store is damaged on the way to the key; the key is too long.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
        let key = check_key(key.as_ref())?;
        let guard = pin();
        match self.index.get(key).map_err(|e| self.error(e))? {
            Some(word) => self.value(word, &guard).map(Some).map_err(|e| self.damaged(e)),
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
        let Some(word) = self.index.get(key).map_err(|e| self.error(e))? else { return Ok(None) };
        let (words, length) = self.value_words(word).map_err(|e| self.damaged(e))?;
        let mut short = [0; STACK_BYTES];
        let mut long = Vec::new();
        let bytes = if length <= STACK_BYTES {
            &mut short[..length]
        } else {
            long.resize(length, 0);
            &mut long[..]
        };
        self.pool().medium().copy_out(words, bytes);
        drop(guard);
        Ok(Some(read(bytes)))
    }

    /// Whether `key` is present.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let key = check_key(key.as_ref())?;
        Ok(self.index.get(key).map_err(|e| self.error(e))?.is_some())
    }

    /// The values of `keys`, in their order. Several lookups are in flight at once, so this is
    /// faster than one [`get`](Self::get) after the other; each is atomic by itself.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let keys: Vec<&[u8]> =
            keys.iter().map(|key| check_key(key.as_ref())).collect::<Result<_, _>>()?;
        let mut words = vec![None; keys.len()];
        let guard = pin();
        self.index.multi_get(&keys, &mut words).map_err(|e| self.error(e))?;
        let value = |word: &Option<u64>| word.map(|word| self.value(word, &guard)).transpose();
        words.iter().map(value).collect::<Result<_, _>>().map_err(|e| self.damaged(e))
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
        let former = self.index.remove(key).map_err(|e| self.error(e))?;
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
        let Self { index, path, .. } = self;
        let pool = index.close().map_err(|e| Error::from_tree(&path, e))?;
        // The index is gone, and a scan cannot outlive its store: we are the only owner.
        let pool = Arc::into_inner(pool).ok_or_else(|| Error::InUse { path: path.clone() })?;
        pool.close().map_err(|e| Error::from_pool(&path, e))
    }

    /// Writes a record and makes the index point to it; says whether the key was absent. If the
    /// pool is full, it is tried again for as long as blocks wait for readers.
    fn write(&self, key: &[u8], value: &[u8], present: Present) -> Result<bool, Error> {
        let key = check_key(key)?;
        check_value(value)?;
        let mut done = self.try_write(key, value, present);
        for round in 0..RECLAIM_ROUNDS {
            if !matches!(done, Err(TreeError::Pool(PoolError::Full { .. }))) {
                break;
            }
            // What waited a moment ago may be free by now: the last attempt comes after the look.
            let waits = self.reclaim(round);
            done = self.try_write(key, value, present);
            if !waits {
                break;
            }
        }
        done.map_err(|e| self.error(e))
    }

    fn try_write(&self, key: &[u8], value: &[u8], present: Present) -> Result<bool, TreeError> {
        let pool = self.pool();
        let guard = pin(); // I2
        let record = Record::write(pool, key, value)?;
        let _ = pool.medium().fence(); // I1
        let found = match present {
            Present::Replace => self.index.upsert(key, record),
            Present::Keep => self.index.insert(key, record),
        };
        let unused = match &found {
            Ok(Some(_)) => present == Present::Keep,
            Err(TreeError::Pool(PoolError::Full { .. })) => true,
            // After damage nobody can say what points to the record: I4.
            Ok(None) | Err(_) => false,
        };
        if unused {
            let (block, bytes) = Record::extent(pool, record)?;
            pool.release(block, bytes);
        } else if let Ok(Some(former)) = found {
            self.retire(former, &guard);
        }
        Ok(found?.is_none())
    }

    /// Frees the record that `word` names once its readers are gone. The index no longer points to
    /// it. If damage has changed its lengths, so that they fit no block, it is left to recovery.
    fn retire(&self, word: u64, guard: &Guard) {
        let pool = self.pool();
        if let Ok((block, bytes)) = Record::extent(pool, word)
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

    /// The value in the record that `word` names; the guard is the one that [I2](self) asks for.
    pub(crate) fn value(&self, word: u64, _guard: &Guard) -> Result<Vec<u8>, Corrupt> {
        let (words, length) = self.value_words(word)?;
        let mut bytes = vec![0; length];
        self.pool().medium().copy_out(words, &mut bytes);
        Ok(bytes)
    }

    pub(crate) fn value_words(&self, word: u64) -> Result<(&[PmWord], usize), Corrupt> {
        let (words, length) = Record::value(self.pool(), word)?;
        if length > VALUE_BYTES_MAX {
            let (what, expected) = ("value length", VALUE_BYTES_MAX as u64);
            return Err(Corrupt { at: word, what, expected, found: length as u64 });
        }
        Ok((words, length))
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
