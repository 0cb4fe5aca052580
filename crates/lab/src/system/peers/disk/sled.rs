//! sled: a tree of pages in a log.
//!
//! Durable: `flush` after each change. Not durable: the default, a thread that flushes twice in a
//! second.
//!
//! An update is an insert that reports the old value; it is not conditional.

use super::super::scan::read;
use super::on_disk::{CreateStore, Promise, key_of, store_error};
use crate::error::Result;
use crate::system::Session;
use crate::system::store::value_of_bytes;
use sled::Db;
use std::path::Path;

pub(super) struct Sled {
    pairs: Db,
    promise: Promise,
}

impl CreateStore for Sled {
    fn create(folder: &Path, promise: Promise) -> Result<Self> {
        let pairs = sled::open(folder.join("sled")).map_err(store_error("sled"))?;
        Ok(Self { pairs, promise })
    }
}

impl Sled {
    /// Makes the last change as durable as promised.
    fn keep(&self) -> sled::Result<()> {
        match self.promise {
            Promise::Durable => self.pairs.flush().map(|_bytes| ()),
            Promise::NoSync => Ok(()),
        }
    }

    /// Puts the pair. Returns `true` if the key was present.
    fn put(&self, key: u64, value: u64) -> sled::Result<bool> {
        let old = self.pairs.insert(key.to_be_bytes(), &value.to_le_bytes())?;
        self.keep()?;
        Ok(old.is_some())
    }
}

impl Session for &Sled {
    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let value = self.pairs.get(key.to_be_bytes()).map_err(store_error("sled"))?;
        Ok(value.map(|value| value_of_bytes(&value)))
    }
    fn multi_get(&mut self, keys: &[u64], values: &mut [Option<u64>]) -> Result<()> {
        for (&key, value) in keys.iter().zip(values) {
            *value = Session::get(self, key)?;
        }
        Ok(())
    }
    fn insert(&mut self, key: u64, value: u64) -> Result<bool> {
        self.put(key, value).map(|was_there| !was_there).map_err(store_error("sled"))
    }
    fn update(&mut self, key: u64, value: u64) -> Result<bool> {
        self.put(key, value).map_err(store_error("sled"))
    }
    fn remove(&mut self, key: u64) -> Result<bool> {
        let old = self.pairs.remove(key.to_be_bytes()).map_err(store_error("sled"))?;
        self.keep().map_err(store_error("sled"))?;
        Ok(old.is_some())
    }
    fn scan(&mut self, key: u64, length: usize) -> Result<usize> {
        let pairs = self.pairs.range(key.to_be_bytes()..).map(|pair| {
            let (key, value) = pair?;
            Ok((key_of(&key), value_of_bytes(&value)))
        });
        read(pairs, length).map_err(store_error::<sled::Error>("sled"))
    }
}
