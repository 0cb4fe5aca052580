//! The store: an index of pairs, and the life cycle of the records that its entries name.
//!
//! 1. A short pair lies in a leaf. Any other is a record of key and value. The record is durable
//!    before the index points to it, and never changes after that. So a reader sees one whole pair,
//!    and one store of 8 B replaces a value of any length.
//! 2. A thread pins its epoch before it takes a value out of the index, and unpins after it has
//!    read the record. A record is retired after the index has stopped pointing to it. So no thread
//!    reads a record that was freed.
//! 3. The index returns a displaced or removed word to exactly one writer. That writer owns the
//!    record and retires it.
//! 4. A crash, or damage, can leave a record that the index does not point to. The next recovery
//!    finds it and frees it, so no leak outlives an open.

use crate::error::Error;
use crate::{Index, KEY_BYTES_MAX, VALUE_BYTES_MAX};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Defect, FileMedium, Medium, Pool, PoolError};
use bristlecone_trees::key::{Stored, Value};
use bristlecone_trees::{PmIndex, Record, TreeError, WriteMode};
use core::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// An ordered map from byte strings to byte strings, in one file.
///
/// When its method has returned, no kill of the process can undo a write, nor a value that
/// [`get`](Self::get) has returned. On persistent memory no power cut can either. On a disk that is
/// the choice of [`Options::durability`](crate::Options::durability): by default a power cut
/// undoes nothing that a thread has synced, which it does every 100 ms.
///
/// All threads of one process may use a store at once, by reference or in an [`Arc`]. Each method
/// that takes one key is atomic, [`fetch_update`](Self::fetch_update) too. Several writes together
/// are atomic in a [`Batch`](crate::Batch).
///
/// Dropping a store leaves it as a kill of the process would: no pair is lost, and the next open
/// recovers it in O(n), with the journal that lies beside its file. [`close`](Self::close) makes
/// the next open fast.
///
/// # Limits
///
/// - A child of `fork` cannot use the store: its methods return [`Error::ForkedChild`], reads too,
///   and dropping it changes nothing for the parent. Fork first and open then, or open again in the
///   child once the parent has closed. A child has no mapping of the file, so other code that reads
///   the pool there ends with SIGSEGV.
/// - Do not remove or replace the file while the store is open: writes still return `Ok`, and are
///   lost at the end of the process. [`close`](Self::close) reports it. A copy of a file that is
///   open may be damaged, and so is one without its journal of a store that was not closed.
/// - All of a file with a journal is in memory while it is open
///   ([`Options::memory_bytes`](crate::Options::memory_bytes)).
/// - If another program truncates the file while it is open, or the medium cannot read a page of
///   it, the system sends SIGBUS. A program may call
///   [`install_fault_message`](crate::install_fault_message) to end with a message that names the
///   file. Holes of a copied file cause no SIGBUS: an open allocates them, or fails with
///   [`Error::Full`]. On a file system without `fallocate` it cannot, and there a full device ends
///   the process.
/// - While one thread reads inside [`scan_with`](Self::scan_with) or
///   [`multi_get_with`](Self::multi_get_with), this store cannot reuse freed space, and its file
///   may grow. Other stores of the process can.
///
/// `LEAF_BYTES` is the size of the leaves of the index. A store in a file has the default; the
/// crash explorer takes the smallest.
pub struct Store<M: Medium = FileMedium, const LEAF_BYTES: usize = 1024> {
    pub(crate) index: Index<M, LEAF_BYTES>,
    pub(crate) path: PathBuf,
    pub(crate) recovered: bool,
}

/// The number of collection rounds before a write to a full pool fails while blocks still wait for
/// readers. One round is enough if no other thread is pinned.
const RECLAIM_ROUNDS: u32 = 64;
/// The number of rounds that only yield; each later round sleeps. A reader that lost its processor
/// while it was pinned needs it back.
const YIELD_ROUNDS: u32 = 16;
/// The duration of the sleep in each later round.
const RECLAIM_PAUSE: Duration = Duration::from_millis(1);

impl<M: Medium, const LEAF_BYTES: usize> Store<M, LEAF_BYTES> {
    /// Returns a copy of the value of `key`, or `None` if the key is absent.
    ///
    /// The read is atomic: it finds the old or the new value of a write that runs meanwhile. It
    /// takes no lock and writes nothing to the file, and it retries while another thread changes
    /// the same leaf. It allocates memory for the value; [`get_with`](Self::get_with) avoids that
    /// for values of up to 256 B.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// store.put("sequoia", "3266 years")?;
    /// assert_eq!(store.get("sequoia")?.as_deref(), Some(&b"3266 years"[..]));
    /// assert_eq!(store.get("larch")?, None);
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::KeyTooLong`]: the key is over 4 KiB.
    /// - [`Error::Damaged`]: a node on the path to `key`, or its record, is damaged.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
        self.check_process()?;
        let key = check_key(key.as_ref())?;
        let guard = self.pool().pin();
        let found = self.index.get_pair(key).map_err(|e| self.error(e))?;
        self.settle_lookups();
        match found {
            Some(value) => self.value(key, value, &guard).map(Some).map_err(|e| self.damaged(e)),
            None => Ok(None),
        }
    }

    /// Sets `key` to `value`, replacing any old value. Durable on return.
    ///
    /// Readers, and recovery after a crash that the file's [`Domain`](crate::Domain) covers, find
    /// the old state or all of `value`. Two writers of one leaf wait for each other; readers do not
    /// wait for a record to be written. A pair of up to 8 B + 8 B lies in a leaf; any other takes a
    /// block of at least 64 B.
    ///
    /// The file grows as needed, in [steps](crate::Options::growth_bytes) that a thread of the
    /// store prepares. A `put` that overruns that thread waits until the system has allocated some
    /// MiB. If the file cannot grow, this may wait some 50 ms for readers to release freed space.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// store.put("sequoia", "3200 years")?;
    /// store.put("sequoia", "3266 years")?; // replaces the value
    /// assert_eq!(store.len()?, 1);
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// No pair has changed.
    /// - [`Error::KeyTooLong`], [`Error::ValueTooLong`]: over 4 KiB, over 16 MiB.
    /// - [`Error::Full`]: the file cannot grow. [`delete`](Self::delete) still works.
    /// - [`Error::Damaged`]: a node on the path to `key` is damaged.
    ///
    /// After this one the pair may have changed:
    /// - [`Error::WritesEnded`], [`Error::System`]: the device refused a write of the journal, now
    ///   or before.
    ///
    /// # Persist order
    /// `N` fills a fresh block, `|` is a fence, `C` the 8 B store that makes the pair visible to
    /// recovery.
    /// ```text
    /// N record            its lines   not for a pair of up to 8 B + 8 B
    /// index.upsert: ..                crash before C: the old state; the record is free
    ///   |                             only with a record
    ///   C                 8 B         crash after C: all of `value` -> durable
    ///                                 budget: the record's lines, a fence for it, the upsert's
    /// ```
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        self.write(key.as_ref(), value.as_ref(), WriteMode::Upsert).map(|_| ())
    }

    /// Removes `key` and its value. Returns `true` if the key was present. Durable on return.
    ///
    /// Readers, and recovery after a crash that the file's [`Domain`](crate::Domain) covers, find
    /// the pair whole or not at all. This needs no free space, so it works in a full store. Later
    /// writes use the space again, once no reader can still hold it; the file does not shrink.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// store.put("sequoia", "3266 years")?;
    /// assert!(store.delete("sequoia")?);
    /// assert!(!store.delete("sequoia")?); // it is absent now
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// No pair has changed.
    /// - [`Error::KeyTooLong`]: the key is over 4 KiB.
    /// - [`Error::Damaged`]: a node on the path to `key` is damaged.
    ///
    /// # Persist order
    /// ```text
    /// index.remove: C     8 B         crash before C: the pair is present; after C: absent
    ///                     -> durable  budget: the index's remove
    /// ```
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.check_process()?;
        let key = check_key(key.as_ref())?;
        let guard = self.pool().pin(); // I2
        let former = self.index.remove_pair(key).map_err(|e| self.error(e))?;
        if let Some(former) = former {
            self.retire(former, &guard);
        }
        self.settle_writes()?;
        Ok(former.is_some())
    }

    /// Returns `true` if `key` is present.
    ///
    /// Like [`get`](Self::get), but copies no value and allocates nothing.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// store.put("sequoia", "3266 years")?;
    /// assert!(store.contains("sequoia")?);
    /// assert!(!store.contains("larch")?);
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`get`](Self::get).
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.check_process()?;
        let key = check_key(key.as_ref())?;
        let found = self.index.get_pair(key).map_err(|e| self.error(e))?;
        self.settle_lookups();
        Ok(found.is_some())
    }

    /// Adds `key` with `value` if the key is absent, and returns `true`. Otherwise changes nothing
    /// and returns `false`. Durable on return.
    ///
    /// Test and write are one atomic step: of several threads that insert one absent key, exactly
    /// one gets `true`. Waiting, space and persist order are those of [`put`](Self::put).
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// assert!(store.insert("sequoia", "3266 years")?);
    /// assert!(!store.insert("sequoia", "1 year")?); // present: nothing changes
    /// assert_eq!(store.get("sequoia")?.as_deref(), Some(&b"3266 years"[..]));
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`put`](Self::put). A value that is too long is an error also if the key is
    /// present.
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool, Error> {
        let (key, value) = (key.as_ref(), value.as_ref());
        // Without a record there is nothing to write in vain.
        if Record::inline(key, value).is_none() && self.contains(key)? {
            return check_value(value).map(|()| false);
        }
        self.write(key, value, WriteMode::Insert)
    }

    /// Replaces the value of `key` if the key is present, and returns `true`. Otherwise changes
    /// nothing and returns `false`. Durable on return.
    ///
    /// Test and write are one atomic step. It replaces any value;
    /// [`compare_exchange`](Self::compare_exchange) only the one that is expected. Waiting, space
    /// and persist order are those of [`put`](Self::put).
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// assert!(!store.update("sequoia", "1 year")?); // absent: nothing changes
    /// store.put("sequoia", "3200 years")?;
    /// assert!(store.update("sequoia", "3266 years")?);
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`put`](Self::put). A value that is too long is an error also if the key is
    /// absent.
    pub fn update(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool, Error> {
        let (key, value) = (key.as_ref(), value.as_ref());
        if Record::inline(key, value).is_none() && !self.contains(key)? {
            return check_value(value).map(|()| false);
        }
        self.write(key, value, WriteMode::Update)
    }

    /// Applies `mode` to the pair, with a record where it needs one. Returns `true` if the pair was
    /// written.
    fn write(&self, key: &[u8], value: &[u8], mode: WriteMode) -> Result<bool, Error> {
        self.check_process()?;
        let key = check_key(key)?;
        check_value(value)?;
        self.complete_write(|| self.try_write(key, value, mode))
    }

    /// Returns the result of `attempt`, a write, once it is as durable as the medium promises. If
    /// the pool is full, calls it again while retired blocks wait for readers or records can move
    /// together.
    #[inline(always)]
    pub(crate) fn complete_write<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, TreeError>,
    ) -> Result<T, Error> {
        let mut done = attempt();
        let mut freed_too_little = false;
        for round in 0..RECLAIM_ROUNDS {
            if !matches!(done, Err(TreeError::Pool(PoolError::Full { .. }))) {
                break;
            }
            // Blocks may have come free before this round looked, so one more attempt follows it.
            let (waits, has_freed) = self.reclaim(round);
            // While others write, blocks may wait in every round.
            let has_moved = (!waits || freed_too_little) && self.compact_some(|| true);
            freed_too_little = has_freed;
            done = attempt();
            if !waits && !has_moved {
                break;
            }
        }
        if self.pool().is_sparse() {
            self.compact_some(|| self.pool().is_sparse());
        }
        let done = done.map_err(|e| self.error(e))?;
        self.settle_writes()?;
        Ok(done)
    }

    #[inline(always)]
    fn try_write(&self, key: &[u8], value: &[u8], mode: WriteMode) -> Result<bool, TreeError> {
        let guard = self.pool().pin(); // I2
        let value = self.new_value(key, value)?;
        let found = match mode {
            WriteMode::Upsert => self.index.upsert_pair(key, value),
            WriteMode::Insert => self.index.insert_pair(key, value),
            WriteMode::Update => self.index.update_pair(key, value),
        };
        let unused = match &found {
            Ok(Some(_)) => mode == WriteMode::Insert,
            Ok(None) => mode == WriteMode::Update,
            Err(TreeError::Pool(PoolError::Full { .. })) => true,
            // I4: after damage the index may or may not point to the record.
            Err(_) => false,
        };
        if unused {
            self.release(value)?;
        } else if let Ok(Some(former)) = found {
            self.retire(former, &guard);
        }
        Ok(found?.is_none() == (mode != WriteMode::Update))
    }

    /// Returns the value part of an entry for the pair, with a record where it needs one. That is
    /// durable after the next fence.
    #[inline(always)]
    pub(crate) fn new_value(&self, key: &[u8], value: &[u8]) -> Result<Value, PoolError> {
        match Record::inline(key, value) {
            Some(inline) => Ok(inline),
            None => Record::write(self.pool(), key, value),
        }
    }

    /// Frees the record that `value` names, if it names one. The index never pointed to it.
    pub(crate) fn release(&self, value: Value) -> Result<(), Corrupt> {
        if let Some((block, bytes)) = Record::extent(self.pool(), value)? {
            self.pool().release(block, bytes);
        }
        Ok(())
    }

    /// Retires the record that `value` names, if it names one. The index no longer points to it. If
    /// damage has changed its lengths, so that they fit no block, recovery frees it (I4).
    #[inline(always)]
    pub(crate) fn retire(&self, value: Value, guard: &Guard) {
        let pool = self.pool();
        if let Ok(Some((block, bytes))) = Record::extent(pool, value) {
            let _ = pool.try_retire(block, bytes, guard);
        }
    }

    /// Frees retired blocks, as far as readers allow. Returns whether any were waiting, and whether
    /// it freed any.
    #[cold]
    fn reclaim(&self, round: u32) -> (bool, bool) {
        let waits = self.pool().waiting_blocks() > 0;
        let mut has_freed = false;
        if waits {
            has_freed = self.pool().collect();
            if round < YIELD_ROUNDS {
                std::thread::yield_now();
            } else {
                std::thread::sleep(RECLAIM_PAUSE);
            }
            has_freed |= self.pool().collect();
        }
        (waits, has_freed)
    }

    /// Returns a copy of the value of `key`. `guard` is the pin of I2.
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

    /// Copies the stored value of `key` into `bytes`, replacing its contents. The guard is the pin
    /// of I2.
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

    /// Returns the pool that the store is in.
    #[doc(hidden)]
    pub fn pool(&self) -> &Arc<Pool<M>> {
        self.index.pool()
    }

    /// Checks that this process opened the store, with one load.
    #[inline(always)]
    pub(crate) fn check_process(&self) -> Result<(), Error> {
        if self.pool().medium().is_inherited() { Err(self.forked()) } else { Ok(()) }
    }

    /// Waits until what this thread has written is as durable as the medium promises.
    #[inline(always)]
    pub(crate) fn settle_writes(&self) -> Result<(), Error> {
        if M::INJECTS_DEFECTS && self.pool().medium().injects(Defect::WriteUnsettled) {
            return Ok(());
        }
        let settled = self.pool().medium().settle_writes();
        settled.map_err(|e| Error::from_medium(&self.path, e).while_open())
    }

    /// Waits until the leaves that a scan of this thread has copied are as durable as the medium
    /// promises; for no more. A scan calls this before it hands pairs over, and at its end.
    #[inline(always)]
    pub(crate) fn settle_scanned(&self) {
        if !(M::INJECTS_DEFECTS && self.pool().medium().injects(Defect::ScanUnsettled)) {
            self.pool().medium().settle_noted();
        }
    }

    /// Waits until what this thread has looked up is as durable as the medium promises; for no
    /// more.
    #[inline(always)]
    pub(crate) fn settle_lookups(&self) {
        if !(M::INJECTS_DEFECTS && self.pool().medium().injects(Defect::LookupUnsettled)) {
            self.pool().medium().settle_noted();
        }
    }

    #[cold]
    fn forked(&self) -> Error {
        Error::ForkedChild { path: self.path.clone() }
    }

    #[cold]
    pub(crate) fn error(&self, error: TreeError) -> Error {
        Error::from_tree(&self.path, error).while_open()
    }

    #[cold]
    pub(crate) fn damaged(&self, damage: Corrupt) -> Error {
        Error::Damaged { path: self.path.clone(), damage }
    }
}

pub(crate) fn check_key(key: &[u8]) -> Result<&[u8], Error> {
    match key.len() {
        bytes if bytes > KEY_BYTES_MAX => Err(Error::KeyTooLong { bytes, maximum: KEY_BYTES_MAX }),
        _ => Ok(key),
    }
}

pub(crate) fn check_value(value: &[u8]) -> Result<(), Error> {
    match value.len() {
        bytes if bytes > VALUE_BYTES_MAX => {
            Err(Error::ValueTooLong { bytes, maximum: VALUE_BYTES_MAX })
        }
        _ => Ok(()),
    }
}

impl<M: Medium, const LEAF_BYTES: usize> fmt::Debug for Store<M, LEAF_BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.path).finish_non_exhaustive()
    }
}
