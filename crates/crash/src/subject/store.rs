//! The store as a design, so that every scenario of an index explores it through its public
//! methods.
//!
//! 1. A key is its bytes. A value has one of three forms, chosen by its number: 8 B, fewer, or some
//!    dozens. So pairs move between leaf and record as they are updated.
//! 2. A put or delete returns the presence of a former value, not the value. The value is read
//!    before the operation, or after an insert that found one. Where threads meet it may be another
//!    one, and the oracle ignores it.
//! 3. A design with `EXCHANGES` writes by the methods that depend on a value: `compare_exchange`,
//!    `swap`, `fetch_update`, and batches that require all former values. They return the former
//!    value, and the oracle relies on it. So two threads that both replace one value are a
//!    violation.

use crate::config::STORE;
use bristlecone::{Batch, Error, Store};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Medium, Pool, PoolError};
use bristlecone_trees::{
    Budget, Cost, Design, Key, Order, PmIndex, Spec, TreeError, TreeStats, designs,
};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::Arc;

/// The size of the leaves, the least that an index has: a store in a file has larger ones.
pub(crate) const LEAF_BYTES: usize = 256;

/// The store in the role of a design.
#[derive(Debug)]
pub(crate) struct StoreDesign<const EXCHANGES: bool>;

impl<const EXCHANGES: bool> Design for StoreDesign<EXCHANGES> {
    const SPEC: Spec = Spec {
        name: STORE,
        source: "this project",
        budget: Budget {
            // The longest record has two lines.
            insert: Cost::new(3, 2),
            update: Cost::new(3, 2),
            remove: Cost::new(1, 1),
        },
        ..designs::CellTree::<LEAF_BYTES>::SPEC
    };
    type Index<M: Medium, K: Key> = StoreIndex<M, K, EXCHANGES>;
}

/// A store with the keys and values of an index.
pub(crate) struct StoreIndex<M: Medium, K, const EXCHANGES: bool> {
    store: Store<M, LEAF_BYTES>,
    key: PhantomData<fn() -> K>,
}

impl<M: Medium, K, const EXCHANGES: bool> fmt::Debug for StoreIndex<M, K, EXCHANGES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

/// A value whose bytes take more than a chunk of the pool.
pub(crate) const LONG_VALUE: u64 = 0x1046_0000_0002;
const LONG_BYTES: usize = 33_000;

/// The first of the values of which four fill a chunk of the pool.
pub(crate) const QUARTER_VALUE: u64 = 0x0A27_0000_0000;
const QUARTER_VALUES: u64 = 64;
const QUARTER_BYTES: usize = 7_500;

/// Returns the bytes of a value.
fn encode(value: u64) -> Vec<u8> {
    let mut bytes = value.to_le_bytes().to_vec();
    match value % 3 {
        _ if value == LONG_VALUE => bytes.resize(LONG_BYTES, value as u8),
        _ if (QUARTER_VALUE..QUARTER_VALUE + QUARTER_VALUES).contains(&value) => {
            bytes.resize(QUARTER_BYTES, value as u8);
        }
        0 => {}
        1 => bytes.truncate(8 - value.leading_zeros() as usize / 8),
        _ => bytes.resize(8 + (value % 64) as usize, value as u8),
    }
    bytes
}

/// Returns the value of bytes, or damage if [`encode`] does not make them.
fn decode(bytes: &[u8]) -> Result<u64, TreeError> {
    let mut word = [0; 8];
    let length = bytes.len().min(8);
    word[..length].copy_from_slice(&bytes[..length]);
    let value = u64::from_le_bytes(word);
    if encode(value) == bytes {
        return Ok(value);
    }
    let what = "bytes of a value that nobody has put";
    Err(Corrupt { at: 0, what, expected: 0, found: value }.into())
}

/// Returns the error that a design would return for the same cause.
fn plain(error: Error) -> TreeError {
    match error {
        Error::Full { wanted, source, .. } => PoolError::Full { wanted, reason: source }.into(),
        Error::Damaged { damage, .. } => damage.into(),
        other => panic!("the store gives an error that no index has: {other}"),
    }
}

/// Returns the bytes of a key.
pub(super) fn bytes_of<K: Key>(key: K::Ref<'_>) -> Vec<u8> {
    K::with_bytes(key, <[u8]>::to_vec)
}

/// Returns a bound as bytes.
pub(super) fn bound_of<K: Key>(bound: Bound<K::Ref<'_>>) -> Bound<Vec<u8>> {
    match bound {
        Bound::Included(key) => Bound::Included(bytes_of::<K>(key)),
        Bound::Excluded(key) => Bound::Excluded(bytes_of::<K>(key)),
        Bound::Unbounded => Bound::Unbounded,
    }
}

pub(crate) fn no_path() -> &'static Path {
    Path::new("(no file)")
}

impl<M: Medium, K: Key, const EXCHANGES: bool> StoreIndex<M, K, EXCHANGES> {
    fn of(store: Store<M, LEAF_BYTES>) -> Self {
        Self { store, key: PhantomData }
    }

    /// Sets the value of `key` to what `update` returns for its presence. Returns the former value.
    fn fetch_update(
        &self,
        key: K::Ref<'_>,
        update: impl Fn(bool) -> Option<u64>,
    ) -> Result<Option<u64>, TreeError> {
        let former = self
            .store
            .fetch_update(bytes_of::<K>(key), |value| update(value.is_some()).map(encode));
        former.map_err(plain)?.as_deref().map(decode).transpose()
    }
}

impl<M: Medium, K: Key, const EXCHANGES: bool> PmIndex<M, K> for StoreIndex<M, K, EXCHANGES> {
    fn create(pool: Arc<Pool<M>>, _root: &str) -> Result<Self, TreeError> {
        Store::create_in(pool, no_path()).map(Self::of).map_err(plain)
    }
    fn open(pool: Arc<Pool<M>>, _root: &str, opened: Opened) -> Result<Self, TreeError> {
        Store::open_in(pool, opened, no_path()).map(Self::of).map_err(|error| match error {
            Error::Unfinished { .. } => TreeError::Foreign { expected: 1, found: 0 },
            other => plain(other),
        })
    }
    fn pool(&self) -> &Arc<Pool<M>> {
        self.store.pool()
    }
    fn get(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        let value = self.store.get(bytes_of::<K>(key)).map_err(plain)?;
        value.as_deref().map(decode).transpose()
    }
    fn multi_get(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<(), TreeError> {
        let keys: Vec<_> = keys.iter().map(|&key| bytes_of::<K>(key)).collect();
        for (value, found) in values.iter_mut().zip(self.store.multi_get(&keys).map_err(plain)?) {
            *value = found.as_deref().map(decode).transpose()?;
        }
        Ok(())
    }
    fn insert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        if EXCHANGES {
            let (key, value) = (bytes_of::<K>(key), encode(value));
            let exchanged = self.store.compare_exchange(key, None, Some(&value)).map_err(plain)?;
            return exchanged.err().and_then(|m| m.current).as_deref().map(decode).transpose();
        }
        let inserted = self.store.insert(bytes_of::<K>(key), encode(value)).map_err(plain)?;
        if inserted { Ok(None) } else { Ok(Some(self.get(key)?.unwrap_or_default())) }
    }
    fn update(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        if EXCHANGES {
            return self.fetch_update(key, |is_present| is_present.then_some(value));
        }
        let former = self.get(key)?;
        let found = self.store.update(bytes_of::<K>(key), encode(value)).map_err(plain)?;
        Ok(found.then(|| former.unwrap_or_default()))
    }
    fn upsert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        if EXCHANGES {
            let former = self.store.swap(bytes_of::<K>(key), encode(value)).map_err(plain)?;
            return former.as_deref().map(decode).transpose();
        }
        let former = self.get(key)?;
        self.store.put(bytes_of::<K>(key), encode(value)).map_err(plain)?;
        Ok(former)
    }
    fn remove(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        if EXCHANGES {
            return self.fetch_update(key, |_| None);
        }
        let former = self.get(key)?;
        let found = self.store.delete(bytes_of::<K>(key)).map_err(plain)?;
        Ok(found.then(|| former.unwrap_or_default()))
    }
    fn commit(&self, changes: &[(K::Ref<'_>, Option<u64>)]) -> Result<Vec<Option<u64>>, TreeError> {
        loop {
            let (mut batch, mut formers) = (Batch::new(), Vec::new());
            for &(key, value) in changes {
                let former = self.get(key)?;
                let key = bytes_of::<K>(key);
                if EXCHANGES {
                    batch = batch.require(&key, former.map(encode).as_deref());
                }
                batch = match value {
                    Some(value) => batch.put(key, encode(value)),
                    None => batch.delete(key),
                };
                formers.push(former);
            }
            match self.store.commit(&batch).map_err(plain)? {
                Ok(()) => return Ok(formers),
                Err(unmet) => assert!(EXCHANGES, "no condition is refused: {unmet}"),
            }
        }
    }
    fn scan(
        &self,
        (low, high): (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
        order: Order,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        let mut scan = self.store.scan((bound_of::<K>(low), bound_of::<K>(high)));
        let mut next = || match order {
            Order::Ascending => scan.next(),
            Order::Descending => scan.next_back(),
        };
        while let Some(pair) = next() {
            let (bytes, value) = pair.map_err(plain)?;
            let Some(key) = K::of_bytes(&bytes) else {
                let what = "bytes of a key that nobody has put";
                return Err(Corrupt { at: 0, what, expected: 0, found: 0 }.into());
            };
            if visit(K::borrow(&key), decode(&value)?).is_break() {
                break;
            }
        }
        Ok(())
    }
    fn check(&self) -> Result<TreeStats, TreeError> {
        self.store.inspect().map(|report| report.index).map_err(plain)
    }
    /// Compacts the store: all of the work that the store can defer.
    fn run_maintenance_step(&self) -> Result<bool, TreeError> {
        self.store.compact().map_err(plain)?;
        Ok(false)
    }
    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError> {
        self.store.close_in().map_err(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_and_take_every_form() {
        let values = [0, 1, 2, 3, 4, 5, 255, 256, 257, u64::MAX - 2, u64::MAX - 1, u64::MAX];
        for value in values {
            assert_eq!(decode(&encode(value)).unwrap(), value);
        }
        let lengths = values.map(|value| encode(value).len());
        assert!(lengths.contains(&8) && lengths.contains(&1) && lengths.iter().any(|&n| n > 8));
        assert!(decode(&[3, 0, 0]).is_err());
        for (value, length) in [(LONG_VALUE, LONG_BYTES), (QUARTER_VALUE + 7, QUARTER_BYTES)] {
            let bytes = encode(value);
            assert_eq!((bytes.len(), decode(&bytes).unwrap()), (length, value));
        }
    }
}
