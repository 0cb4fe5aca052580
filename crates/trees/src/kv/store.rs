//! The operations of the store. The invariants are those of [the module](super).

use super::layer::KvKey;
use super::value_record::{self, VALUE_BYTES_MAX};
use crate::erased::{BoxedIndex, ErasedDesign};
use crate::index::{Order, TreeError, TreeStats, WriteMode};
use crate::key::{KEY_BYTES_MAX, Key};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::sync::{Guard, Latch, OnDram};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, Pool, PoolError};
use core::fmt;
use core::ops::{Bound, ControlFlow};
use core::sync::atomic::AtomicU64;
use std::sync::Arc;
use thiserror::Error;

/// The error type of [`KvStore`]. After an error no pair has changed, except as [`TreeError`] says.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KvError {
    /// The index failed: most often the pool is full or damaged.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The key is too long.
    #[error("the key has {bytes} B; a key has at most {KEY_BYTES_MAX}")]
    KeyTooLong {
        /// The length of the key in bytes.
        bytes: usize,
    },
    /// The value is too long.
    #[error("the value has {bytes} B; a value has at most {VALUE_BYTES_MAX}")]
    ValueTooLong {
        /// The length of the value in bytes.
        bytes: usize,
    },
    /// The field does not lie within the value.
    #[error("bytes {at}..{end} lie outside the value, which has {bytes} B")]
    NoField {
        /// The offset of the field in the value.
        at: usize,
        /// The end of the field.
        end: usize,
        /// The length of the value in bytes.
        bytes: usize,
    },
}

impl From<Corrupt> for KvError {
    fn from(corrupt: Corrupt) -> Self {
        Self::Tree(corrupt.into())
    }
}

impl From<PoolError> for KvError {
    fn from(error: PoolError) -> Self {
        Self::Tree(error.into())
    }
}

type Result<T> = core::result::Result<T, KvError>;

/// The number of latches that the writers of all keys share.
const LATCHES: usize = 256;

/// A map from byte strings to byte strings in a pool, with any design as its index.
///
/// Every change is durable and failure-atomic when its method returns, if the design is
/// [persistent](crate::Spec::persistent). Any number of threads may call all methods but
/// [`check`](Self::check) and [`close`](Self::close); each operation is linearizable.
///
/// ```
/// use bristlecone_pmem::{Mapped, Pool};
/// use bristlecone_trees::ErasedDesign;
/// use bristlecone_trees::designs::IsleTree;
/// use bristlecone_trees::kv::KvStore;
/// use std::sync::Arc;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Arc::new(Pool::create(Mapped::anonymous(1 << 20)?)?);
/// let store = KvStore::create(&ErasedDesign::of::<IsleTree<512>>(), pool, "trees")?;
/// store.put(b"sequoia", b"3266 years")?;
/// assert!(store.update_field(b"sequoia", 0, b"3267")?);
/// let mut value = Vec::new();
/// assert!(store.get(b"sequoia", &mut value)?);
/// assert_eq!(value, b"3267 years");
/// # Ok(()) }
/// ```
pub struct KvStore<M: Medium> {
    index: BoxedIndex<M, KvKey>,
    /// The latches of I5.
    latches: Box<[AtomicU64]>,
}

impl<M: Medium> fmt::Debug for KvStore<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KvStore").finish_non_exhaustive()
    }
}

impl<M: Medium> KvStore<M> {
    /// Creates an empty store under the root called `root`, with an index of `design`. Durable on
    /// return.
    ///
    /// # Errors
    /// As [`PmIndex::create`](crate::PmIndex::create).
    pub fn create(
        design: &ErasedDesign<M, KvKey>,
        pool: Arc<Pool<M>>,
        root: &str,
    ) -> core::result::Result<Self, TreeError> {
        (design.create)(pool, root).map(Self::over)
    }

    /// Opens the store under the root called `root`. After a crash this marks each key record and
    /// value record that the index reaches, and frees all others.
    ///
    /// # Errors
    /// As [`PmIndex::open`](crate::PmIndex::open). A value record that an entry names is damaged.
    pub fn open(
        design: &ErasedDesign<M, KvKey>,
        pool: Arc<Pool<M>>,
        root: &str,
        opened: Opened,
    ) -> core::result::Result<Self, TreeError> {
        (design.open)(pool, root, opened).map(Self::over)
    }

    fn over(index: BoxedIndex<M, KvKey>) -> Self {
        Self { index, latches: (0..LATCHES).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Returns the pool that holds the store.
    pub fn pool(&self) -> &Arc<Pool<M>> {
        self.index.pool()
    }

    /// Replaces the contents of `value` by the value of `key` and returns `true`. Returns `false`
    /// if the key is absent.
    ///
    /// # Errors
    /// The key is too long, or a node or record on the path to it is damaged.
    pub fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let key = check_key(key)?;
        let _guard = self.pool().pin(); // I2
        let Some(at) = self.index.get(key)? else { return Ok(false) };
        value_record::read(self.pool(), PmPtr::new(at), value)?;
        Ok(true)
    }

    /// Adds `key` with `value` if the key is absent and returns `true`. Otherwise changes nothing
    /// and returns `false`. Durable on return.
    ///
    /// # Errors
    /// Key or value is too long, the pool is full, or a node on the path to the key is damaged.
    ///
    /// # Persist order
    /// ```text
    /// W value record      its lines
    /// F value record |
    /// index.insert: .. |              crash before C: the key is absent; the record is free
    ///   C                 8 B         crash after C: all of `value`
    ///                     -> durable  budget: the index's, the record's lines, 1 fence
    /// ```
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.write(check_key(key)?, value, WriteMode::Insert)
    }

    /// Sets `key` to `value`, whether it is present or not. Durable on return. The persist order is
    /// that of [`insert`](Self::insert), with the index's upsert.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let key = check_key(key)?;
        let _latch = self.latch(key).lock(); // I5
        self.write(key, value, WriteMode::Upsert).map(|_| ())
    }

    /// Replaces the value of `key` by `value` and returns `true`. Returns `false` if the key is
    /// absent. Durable on return. The persist order is that of [`insert`](Self::insert), with the
    /// index's update.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn replace(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        let key = check_key(key)?;
        let _latch = self.latch(key).lock(); // I5
        self.write(key, value, WriteMode::Update)
    }

    /// Replaces the bytes of the value of `key` that begin at `at` by `field`, and returns `true`.
    /// Returns `false` if the key is absent. Durable on return.
    ///
    /// The update is failure-atomic: it writes a new record, with the rest of the value copied from
    /// the old one, and swings the pointer.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), or the field does not lie within the value.
    ///
    /// # Persist order
    /// ```text
    /// W new record        its lines
    /// F new record |
    /// index.update: .. |              crash before C: the old value; the new record is free
    ///   C                 8 B         crash after C: the new value; the old record is free
    ///                     -> durable  budget: the index's, the record's lines, 1 fence
    /// ```
    pub fn update_field(&self, key: &[u8], at: usize, field: &[u8]) -> Result<bool> {
        let key = check_key(key)?;
        let _latch = self.latch(key).lock(); // I5
        let mut value = Vec::new();
        if !self.get(key, &mut value)? {
            return Ok(false);
        }
        let (end, bytes) = (at.saturating_add(field.len()), value.len());
        let Some(target) = value.get_mut(at..end) else {
            return Err(KvError::NoField { at, end, bytes });
        };
        target.copy_from_slice(field);
        self.write(key, &value, WriteMode::Update)
    }

    /// Removes `key` and its value and returns `true`, or returns `false` if it is absent. Durable
    /// on return. A full pool does not make this fail. The persist order is that of the index's
    /// remove.
    ///
    /// # Errors
    /// The key is too long, or a node on the path to it is damaged.
    pub fn delete(&self, key: &[u8]) -> Result<bool> {
        let key = check_key(key)?;
        let _latch = self.latch(key).lock(); // I5
        let guard = self.pool().pin(); // I2
        let removed = self.index.remove(key)?;
        if let Some(at) = removed {
            self.retire(at, &guard);
        }
        Ok(removed.is_some())
    }

    /// Calls `visit` with each pair whose key lies within `bounds`, in `order`, until `visit`
    /// breaks. Each value was current at some moment of the scan; see
    /// [`PmIndex::scan`](crate::PmIndex::scan).
    ///
    /// # Errors
    /// A node or record on the way is damaged; pairs before the damage have been visited.
    pub fn scan(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        order: Order,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let _guard = self.pool().pin(); // I2
        let (mut value, mut damage) = (Vec::new(), None);
        self.index.scan(bounds, order, &mut |key, at| match value_record::read(
            self.pool(),
            PmPtr::new(at),
            &mut value,
        ) {
            Ok(()) => visit(key, &value),
            Err(corrupt) => {
                damage = Some(corrupt);
                ControlFlow::Break(())
            }
        })?;
        damage.map_or(Ok(()), |corrupt| Err(corrupt.into()))
    }

    /// Walks the index, checks its invariants and those of the value records, and returns its size,
    /// in which key and value records count as blocks. No thread may write meanwhile.
    ///
    /// # Errors
    /// The first violation that the walk meets.
    pub fn check(&self) -> Result<TreeStats> {
        Ok(self.index.check()?)
    }

    /// Ends the use of the store and returns its pool, which stays open.
    ///
    /// # Errors
    /// As [`PmIndex::close`](crate::PmIndex::close).
    pub fn close(self) -> core::result::Result<Arc<Pool<M>>, TreeError> {
        self.index.close()
    }

    /// Writes a record of `value` and lets the index name it as `mode` says. Returns `true` if it
    /// does.
    fn write(&self, key: &[u8], value: &[u8], mode: WriteMode) -> Result<bool> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(KvError::ValueTooLong { bytes: value.len() });
        }
        let pool = self.pool();
        let at = value_record::write(pool, value)?;
        if !(M::INJECTS_DEFECTS && pool.medium().injects(Defect::ValueUnfenced)) {
            let _fenced = pool.medium().fence(); // I1
        }
        let guard = pool.pin(); // I2
        let found = match mode {
            WriteMode::Insert => self.index.insert(key, at.offset()),
            WriteMode::Update => self.index.update(key, at.offset()),
            WriteMode::Upsert => self.index.upsert(key, at.offset()),
        };
        let is_unused = match &found {
            Ok(Some(_)) => mode == WriteMode::Insert,
            Ok(None) => mode == WriteMode::Update,
            Err(TreeError::Pool(PoolError::Full { .. })) => true,
            // After damage the index may or may not name the record. I4 frees it if not.
            Err(_) => false,
        };
        if is_unused {
            let (block, bytes) = value_record::block(pool, at)?;
            pool.release(block, bytes);
        } else if let Ok(Some(former)) = found {
            self.retire(former, &guard);
        }
        Ok(found?.is_none() == (mode != WriteMode::Update))
    }

    /// Retires the value record at offset `at`, which the index no longer names. If its length is
    /// damaged, so that it fits no block, recovery frees it (I4).
    fn retire(&self, at: u64, guard: &Guard) {
        let pool = self.pool();
        if let Ok((block, bytes)) = value_record::block(pool, PmPtr::new(at)) {
            if M::INJECTS_DEFECTS && pool.medium().injects(Defect::ValueFreedEarly) {
                pool.release(block, bytes);
            } else {
                pool.retire(block, bytes, guard);
            }
        }
    }

    /// Returns the latch of I5 for `key`. No latch becomes obsolete, so each lock succeeds.
    fn latch(&self, key: &[u8]) -> Latch<OnDram<'_, M>> {
        OnDram::<M>::latch(&self.latches[KvKey::hash(key) as usize % LATCHES])
    }
}

fn check_key(key: &[u8]) -> Result<&[u8]> {
    match key.len() {
        bytes if bytes > KEY_BYTES_MAX => Err(KvError::KeyTooLong { bytes }),
        _ => Ok(key),
    }
}
