//! The key-value store over a design as a design, so that every scenario of an index explores it
//! through its public methods.
//!
//! 1. A key is its bytes. A value begins with its number; its length depends on the number of its
//!    insert or upsert. An update replaces the number alone, as a field.
//! 2. The store returns the presence of a former value, not the value. The value is read before the
//!    operation, or after an insert that found one. Where threads meet it may be another one, and
//!    the oracle ignores it.

use super::store::{bound_of, bytes_of};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Corrupt, Medium, Pool};
use bristlecone_trees::designs::{IsleTree, WbTree};
use bristlecone_trees::kv::{KvError, KvStore};
use bristlecone_trees::{
    Budget, Cost, Design, ErasedDesign, Key, Order, PmIndex, Spec, TreeError, TreeStats,
};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// A design that is explored as the index of the key-value store.
pub(crate) trait KvSubject: fmt::Debug + Send + Sync + 'static {
    /// The name of the subject.
    const NAME: &'static str;
    type Tree: Design;
}

/// The store over a design with inner nodes in DRAM.
#[derive(Debug)]
pub(crate) struct OverIsleTree;

impl KvSubject for OverIsleTree {
    const NAME: &'static str = "kv-isle-tree";
    type Tree = IsleTree<256>;
}

/// The store over a design with all nodes in the pool.
#[derive(Debug)]
pub(crate) struct OverWbTree;

impl KvSubject for OverWbTree {
    const NAME: &'static str = "kv-wb-tree";
    type Tree = WbTree<256>;
}

/// The key-value store over the design of `S`, in the role of a design.
#[derive(Debug)]
pub(crate) struct KvDesign<S>(PhantomData<S>);

/// Returns the greatest cost of a write in the store: that of the index, a value record of
/// two lines, the record of a key, and a fence.
const fn with_records(of_index: Cost) -> Cost {
    Cost::new(of_index.lines + 3, of_index.fences + 1)
}

impl<S: KvSubject> Design for KvDesign<S> {
    const SPEC: Spec = Spec {
        name: S::NAME,
        source: "this project",
        budget: Budget {
            insert: with_records(S::Tree::SPEC.budget.insert),
            update: with_records(S::Tree::SPEC.budget.update),
            remove: S::Tree::SPEC.budget.remove,
        },
        ..S::Tree::SPEC
    };
    type Index<M: Medium, K: Key> = KvIndex<S, M, K>;
}

/// A key-value store with the keys and values of an index.
pub(crate) struct KvIndex<S, M: Medium, K> {
    store: KvStore<M>,
    types: PhantomData<fn() -> (S, K)>,
}

impl<S, M: Medium, K> fmt::Debug for KvIndex<S, M, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

/// The length of a value that has no more than its number, in bytes.
const SHORT_BYTES: usize = 8;
/// The length of a value whose record takes two lines, in bytes.
const LONG_BYTES: usize = 72;
/// The byte that fills a long value.
const FILL: u8 = 0x5A;

/// Returns the bytes of a value.
fn encode(value: u64) -> Vec<u8> {
    let mut bytes = value.to_le_bytes().to_vec();
    if !value.is_multiple_of(3) {
        bytes.resize(LONG_BYTES, FILL);
    }
    bytes
}

/// Returns the value of bytes, or damage if no operation makes them.
fn decode(bytes: &[u8]) -> Result<u64, TreeError> {
    if let Some((number, rest)) = bytes.split_first_chunk()
        && [SHORT_BYTES, LONG_BYTES].contains(&bytes.len())
        && rest.iter().all(|&byte| byte == FILL)
    {
        return Ok(u64::from_le_bytes(*number));
    }
    let what = "bytes of a value that no operation has put";
    Err(Corrupt { at: 0, what, expected: 0, found: bytes.len() as u64 }.into())
}

/// Returns the error that a design would return for the same cause.
fn plain(error: KvError) -> TreeError {
    match error {
        KvError::Tree(error) => error,
        // The rest of a field is missing: the value that was read is no whole one.
        KvError::NoField { bytes, .. } => {
            let what = "length of a value that no operation has put";
            Corrupt { at: 0, what, expected: SHORT_BYTES as u64, found: bytes as u64 }.into()
        }
        other => panic!("the store gives an error that no index has: {other}"),
    }
}

impl<S: KvSubject, M: Medium, K: Key> KvIndex<S, M, K> {
    fn of(store: KvStore<M>) -> Self {
        Self { store, types: PhantomData }
    }
}

impl<S: KvSubject, M: Medium, K: Key> PmIndex<M, K> for KvIndex<S, M, K> {
    fn create(pool: Arc<Pool<M>>, root: &str) -> Result<Self, TreeError> {
        KvStore::create(&ErasedDesign::of::<S::Tree>(), pool, root).map(Self::of)
    }
    fn open(pool: Arc<Pool<M>>, root: &str, opened: Opened) -> Result<Self, TreeError> {
        KvStore::open(&ErasedDesign::of::<S::Tree>(), pool, root, opened).map(Self::of)
    }
    fn pool(&self) -> &Arc<Pool<M>> {
        self.store.pool()
    }
    fn get(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        let mut value = Vec::new();
        let found = self.store.get(&bytes_of::<K>(key), &mut value).map_err(plain)?;
        found.then(|| decode(&value)).transpose()
    }
    fn multi_get(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<(), TreeError> {
        for (value, &key) in values.iter_mut().zip(keys) {
            *value = self.get(key)?;
        }
        Ok(())
    }
    fn insert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        let inserted = self.store.insert(&bytes_of::<K>(key), &encode(value)).map_err(plain)?;
        if inserted { Ok(None) } else { Ok(Some(self.get(key)?.unwrap_or_default())) }
    }
    fn update(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        let former = self.get(key)?;
        let (key, number) = (bytes_of::<K>(key), value.to_le_bytes());
        let found = self.store.update_field(&key, 0, &number).map_err(plain)?;
        Ok(found.then(|| former.unwrap_or_default()))
    }
    fn upsert(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, TreeError> {
        let former = self.get(key)?;
        self.store.put(&bytes_of::<K>(key), &encode(value)).map_err(plain)?;
        Ok(former)
    }
    fn remove(&self, key: K::Ref<'_>) -> Result<Option<u64>, TreeError> {
        let former = self.get(key)?;
        let found = self.store.delete(&bytes_of::<K>(key)).map_err(plain)?;
        Ok(found.then(|| former.unwrap_or_default()))
    }
    fn scan(
        &self,
        (low, high): (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
        order: Order,
        visit: &mut dyn FnMut(K::Ref<'_>, u64) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        let (low, high) = (bound_of::<K>(low), bound_of::<K>(high));
        let bounds = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
        let mut damage = None;
        let scanned = self.store.scan(bounds, order, |bytes, value| {
            let key = K::of_bytes(bytes).ok_or_else(|| {
                let what = "bytes of a key that no operation has put";
                TreeError::from(Corrupt { at: 0, what, expected: 0, found: 0 })
            });
            match key.and_then(|key| Ok((key, decode(value)?))) {
                Ok((key, value)) => visit(K::borrow(&key), value),
                Err(error) => {
                    damage = Some(error);
                    ControlFlow::Break(())
                }
            }
        });
        scanned.map_err(plain)?;
        damage.map_or(Ok(()), Err)
    }
    fn check(&self) -> Result<TreeStats, TreeError> {
        self.store.check().map_err(plain)
    }
    fn close(self: Box<Self>) -> Result<Arc<Pool<M>>, TreeError> {
        self.store.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_in_both_lengths() {
        for value in [0, 1, 2, 3, 255, u64::MAX - 1, u64::MAX] {
            assert_eq!(decode(&encode(value)).unwrap(), value);
        }
        assert_eq!([encode(0).len(), encode(1).len()], [SHORT_BYTES, LONG_BYTES]);
        let torn = [encode(1), vec![FILL]].concat();
        assert!(decode(&torn).is_err() && decode(&[FILL; 7]).is_err() && decode(&[0; 72]).is_err());
    }
}
