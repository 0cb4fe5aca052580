//! redb: a B-tree in a file, with copy-on-write and one writer at a time.
//!
//! Durable: a transaction for each change, with `Durability::Immediate`. Not durable: the same with
//! `Durability::None`. A lookup is a transaction too, a batch one for all of its keys.

use super::super::scan::read;
use super::on_disk::{CreateStore, Promise, store_error};
use crate::error::Result;
use crate::system::Session;
use redb::{Database, Durability, ReadableDatabase, TableDefinition};
use std::path::Path;

const PAIRS: TableDefinition<'_, u64, u64> = TableDefinition::new("pairs");

type Table<'a> = redb::Table<'a, u64, u64>;
type Answer<T> = core::result::Result<T, redb::Error>;

pub(super) struct Redb {
    database: Database,
    durability: Durability,
}

impl CreateStore for Redb {
    fn create(folder: &Path, promise: Promise) -> Result<Self> {
        let durability = match promise {
            Promise::Durable => Durability::Immediate,
            Promise::NoSync => Durability::None,
        };
        let open = || -> Answer<Self> {
            let redb = Self { database: Database::create(folder.join("redb"))?, durability };
            // Creates the table: lookups fail without it.
            redb.change(|_| Ok(true))?;
            Ok(redb)
        };
        open().map_err(store_error("redb"))
    }
}

impl Redb {
    /// Calls `change` and commits if it returns `true`.
    fn change(&self, change: impl FnOnce(&mut Table<'_>) -> Answer<bool>) -> Answer<bool> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(self.durability)?;
        let is_done = change(&mut transaction.open_table(PAIRS)?)?;
        if is_done {
            transaction.commit()?;
        } else {
            transaction.abort()?;
        }
        Ok(is_done)
    }

    fn lookup(&self, keys: &[u64], values: &mut [Option<u64>]) -> Answer<()> {
        let table = self.database.begin_read()?.open_table(PAIRS)?;
        for (key, value) in keys.iter().zip(values) {
            *value = table.get(key)?.map(|guard| guard.value());
        }
        Ok(())
    }

    fn read_on(&self, key: u64, length: usize) -> Answer<usize> {
        let table = self.database.begin_read()?.open_table(PAIRS)?;
        let pairs = table.range(key..)?;
        Ok(read(pairs.map(|pair| pair.map(|(key, value)| (key.value(), value.value()))), length)?)
    }
}

impl Session for &Redb {
    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let mut values = [None];
        self.lookup(&[key], &mut values).map_err(store_error("redb"))?;
        Ok(values[0])
    }
    fn multi_get(&mut self, keys: &[u64], values: &mut [Option<u64>]) -> Result<()> {
        self.lookup(keys, values).map_err(store_error("redb"))
    }
    fn insert(&mut self, key: u64, value: u64) -> Result<bool> {
        self.change(|table| Ok(table.insert(key, value)?.is_none())).map_err(store_error("redb"))
    }
    fn update(&mut self, key: u64, value: u64) -> Result<bool> {
        let update = |table: &mut Table<'_>| {
            let found = table.get_mut(key)?.map(|mut place| place.insert(value)).transpose()?;
            Ok(found.is_some())
        };
        self.change(update).map_err(store_error("redb"))
    }
    fn remove(&mut self, key: u64) -> Result<bool> {
        self.change(|table| Ok(table.remove(key)?.is_some())).map_err(store_error("redb"))
    }
    fn scan(&mut self, key: u64, length: usize) -> Result<usize> {
        self.read_on(key, length).map_err(store_error("redb"))
    }
}
