//! LMDB, through `heed`: a B+-tree in a mapped file, with copy-on-write and one writer at a time.
//!
//! Durable: a transaction for each change, which LMDB syncs at its commit. Not durable: the same
//! with `MDB_NOSYNC`. A lookup is a transaction too, a batch one for all of its keys.

#![expect(unsafe_code, reason = "opening an environment is unsafe: it maps files")]

use super::super::scan::read;
use super::on_disk::{CreateStore, Promise, store_error};
use crate::error::Result;
use crate::system::Session;
use core::convert::Infallible;
use heed::byteorder::{BigEndian, LittleEndian};
use heed::types::U64;
use heed::{CommitOrAbort, EnvFlags, EnvOpenOptions, RwTxn};
use std::path::Path;

type Pairs = heed::Database<'static, U64<BigEndian>, U64<LittleEndian>>;

pub(super) struct Lmdb {
    environment: heed::Env,
    pairs: Pairs,
}

/// The greatest size of the file. LMDB reserves addresses for it, not memory.
const MAP_BYTES: usize = 1 << 38;
/// The greatest number of readers: the threads of a run, and the one that opened the environment.
const READERS_MAX: u32 = 1025;

impl CreateStore for Lmdb {
    fn create(folder: &Path, promise: Promise) -> Result<Self> {
        Self::open(folder, promise).map_err(store_error("lmdb"))
    }
}

impl Lmdb {
    fn open(folder: &Path, promise: Promise) -> heed::Result<Self> {
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP_BYTES).max_readers(READERS_MAX);
        if promise == Promise::NoSync {
            // SAFETY: without syncs, a crash of the system may tear the file; it is not opened
            // again.
            unsafe { options.flags(EnvFlags::NO_SYNC) };
        }
        // SAFETY: the folder is new and private, so no other process changes the mapped files.
        let environment = unsafe { options.open(folder) }?;
        let pairs = environment
            .create_databases_and_commit(environment.write_txn()?, |opener, change| {
                opener.create_database(change, None).map(CommitOrAbort::<_, Infallible>::Commit)
            })?
            .unwrap_commit();
        Ok(Self { environment, pairs })
    }

    /// Calls `change` and commits if it returns `true`.
    fn change(
        &self,
        change: impl FnOnce(&mut RwTxn<'_>, &Pairs) -> heed::Result<bool>,
    ) -> heed::Result<bool> {
        let mut transaction = self.environment.write_txn()?;
        let is_done = change(&mut transaction, &self.pairs)?;
        if is_done {
            transaction.commit()?;
        }
        Ok(is_done)
    }

    fn lookup(&self, keys: &[u64], values: &mut [Option<u64>]) -> heed::Result<()> {
        let transaction = self.environment.read_txn()?;
        for (key, value) in keys.iter().zip(values) {
            *value = self.pairs.get(&transaction, key)?;
        }
        Ok(())
    }

    fn read_on(&self, key: u64, length: usize) -> heed::Result<usize> {
        let transaction = self.environment.read_txn()?;
        read(self.pairs.range(&transaction, &(key..))?, length)
    }
}

impl Session for &Lmdb {
    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let mut values = [None];
        self.lookup(&[key], &mut values).map_err(store_error("lmdb"))?;
        Ok(values[0])
    }
    fn multi_get(&mut self, keys: &[u64], values: &mut [Option<u64>]) -> Result<()> {
        self.lookup(keys, values).map_err(store_error("lmdb"))
    }
    fn insert(&mut self, key: u64, value: u64) -> Result<bool> {
        let insert = |transaction: &mut RwTxn<'_>, pairs: &Pairs| {
            Ok(pairs.get_or_put(transaction, &key, &value)?.is_none())
        };
        self.change(insert).map_err(store_error("lmdb"))
    }
    fn update(&mut self, key: u64, value: u64) -> Result<bool> {
        let update = |transaction: &mut RwTxn<'_>, pairs: &Pairs| {
            if pairs.get(transaction, &key)?.is_none() {
                return Ok(false);
            }
            pairs.put(transaction, &key, &value)?;
            Ok(true)
        };
        self.change(update).map_err(store_error("lmdb"))
    }
    fn remove(&mut self, key: u64) -> Result<bool> {
        let remove = |transaction: &mut RwTxn<'_>, pairs: &Pairs| pairs.delete(transaction, &key);
        self.change(remove).map_err(store_error("lmdb"))
    }
    fn scan(&mut self, key: u64, length: usize) -> Result<usize> {
        self.read_on(key, length).map_err(store_error("lmdb"))
    }
}
