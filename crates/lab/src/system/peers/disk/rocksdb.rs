//! `RocksDB`: an LSM tree with a write-ahead log.
//!
//! Durable: each change with `sync`. Not durable: the default, which hands the log to the system
//! before the change returns; the system writes it later. Built without compression.

use super::super::scan::read;
use super::on_disk::{CreateStore, Promise, key_of, store_error};
use crate::error::Result;
use crate::system::Session;
use crate::system::store::value_of_bytes;
use rocksdb::{DB, Direction, IteratorMode, Options, WriteOptions};
use std::path::Path;

pub(super) struct RocksDb {
    pairs: DB,
    promise: Promise,
}

impl CreateStore for RocksDb {
    fn create(folder: &Path, promise: Promise) -> Result<Self> {
        let mut options = Options::default();
        options.create_if_missing(true);
        let pairs = DB::open(&options, folder.join("rocksdb")).map_err(store_error("rocksdb"))?;
        Ok(Self { pairs, promise })
    }
}

impl RocksDb {
    /// Returns the options of a write, by the promise.
    fn how(&self) -> WriteOptions {
        let mut options = WriteOptions::default();
        options.set_sync(self.promise == Promise::Durable);
        options
    }

    fn put(&self, key: u64, value: u64) -> Result<()> {
        let done = self.pairs.put_opt(key.to_be_bytes(), value.to_le_bytes(), &self.how());
        done.map_err(store_error("rocksdb"))
    }
}

impl Session for &RocksDb {
    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let value = self.pairs.get_pinned(key.to_be_bytes()).map_err(store_error("rocksdb"))?;
        Ok(value.map(|value| value_of_bytes(&value)))
    }
    fn multi_get(&mut self, keys: &[u64], values: &mut [Option<u64>]) -> Result<()> {
        let found = self.pairs.multi_get(keys.iter().map(|key| key.to_be_bytes()));
        for (found, value) in found.into_iter().zip(values) {
            *value = found.map_err(store_error("rocksdb"))?.map(|bytes| value_of_bytes(&bytes));
        }
        Ok(())
    }
    fn insert(&mut self, key: u64, value: u64) -> Result<bool> {
        self.put(key, value).map(|()| true)
    }
    fn update(&mut self, key: u64, value: u64) -> Result<bool> {
        self.put(key, value).map(|()| true)
    }
    fn remove(&mut self, key: u64) -> Result<bool> {
        let is_there = Session::get(self, key)?.is_some();
        if is_there {
            let done = self.pairs.delete_opt(key.to_be_bytes(), &self.how());
            done.map_err(store_error("rocksdb"))?;
        }
        Ok(is_there)
    }
    fn scan(&mut self, key: u64, length: usize) -> Result<usize> {
        let from = key.to_be_bytes();
        let pairs = self.pairs.iterator(IteratorMode::From(&from, Direction::Forward));
        let words =
            pairs.map(|pair| pair.map(|(key, value)| (key_of(&key), value_of_bytes(&value))));
        read(words, length).map_err(store_error("rocksdb"))
    }
}
