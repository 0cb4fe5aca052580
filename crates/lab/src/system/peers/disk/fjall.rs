//! fjall: an LSM tree with a journal.
//!
//! Durable: `persist(SyncAll)` after each change. Not durable: the default, which hands the journal
//! to the system before the change returns; the system writes it later.

use super::super::scan::read;
use super::on_disk::{CreateStore, Promise, key_of, store_error};
use crate::error::Result;
use crate::system::Session;
use crate::system::store::value_of_bytes;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use std::path::Path;

pub(super) struct Fjall {
    database: Database,
    pairs: Keyspace,
    promise: Promise,
}

impl CreateStore for Fjall {
    fn create(folder: &Path, promise: Promise) -> Result<Self> {
        let open = || {
            let database = Database::builder(folder.join("fjall")).open()?;
            let pairs = database.keyspace("pairs", KeyspaceCreateOptions::default)?;
            Ok(Self { database, pairs, promise })
        };
        open().map_err(store_error::<fjall::Error>("fjall"))
    }
}

impl Fjall {
    /// Makes the last change as durable as promised.
    fn keep(&self) -> fjall::Result<()> {
        match self.promise {
            Promise::Durable => self.database.persist(PersistMode::SyncAll),
            Promise::NoSync => Ok(()),
        }
    }

    fn put(&self, key: u64, value: u64) -> fjall::Result<()> {
        self.pairs.insert(key.to_be_bytes(), value.to_le_bytes())?;
        self.keep()
    }

    fn remove_found(&self, key: u64) -> fjall::Result<bool> {
        let is_there = self.pairs.contains_key(key.to_be_bytes())?;
        if is_there {
            self.pairs.remove(key.to_be_bytes())?;
            self.keep()?;
        }
        Ok(is_there)
    }
}

impl Session for &Fjall {
    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let value = self.pairs.get(key.to_be_bytes()).map_err(store_error("fjall"))?;
        Ok(value.map(|value| value_of_bytes(&value)))
    }
    fn multi_get(&mut self, keys: &[u64], values: &mut [Option<u64>]) -> Result<()> {
        for (&key, value) in keys.iter().zip(values) {
            *value = self.get(key)?;
        }
        Ok(())
    }
    fn insert(&mut self, key: u64, value: u64) -> Result<bool> {
        self.put(key, value).map(|()| true).map_err(store_error("fjall"))
    }
    fn update(&mut self, key: u64, value: u64) -> Result<bool> {
        self.put(key, value).map(|()| true).map_err(store_error("fjall"))
    }
    fn remove(&mut self, key: u64) -> Result<bool> {
        self.remove_found(key).map_err(store_error("fjall"))
    }
    fn scan(&mut self, key: u64, length: usize) -> Result<usize> {
        let pairs = self.pairs.range(key.to_be_bytes()..).map(|pair| {
            let (key, value) = pair.into_inner()?;
            Ok((key_of(&key), value_of_bytes(&value)))
        });
        read(pairs, length).map_err(store_error::<fjall::Error>("fjall"))
    }
}
