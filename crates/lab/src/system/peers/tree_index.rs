//! `scc::TreeIndex`: a B+-tree whose readers take no latch.
//!
//! It has no update: what stands in for it looks whether the key is there and then puts the new
//! pair in the place of the old one, in one step for whoever reads. Of an update and a removal of
//! one key at once, the update may bring the key back.

use super::scan::read_all;
use super::shared::Shared;
use crate::error::Result;
use crate::system::Session;
use scc::Guard;

type Map = scc::TreeIndex<u64, u64>;

pub(super) type TreeIndex = Shared<Map>;

impl Session for &Map {
    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        Ok(self.peek_with(&key, |_, &value| value))
    }
    fn multi_get(&mut self, keys: &[u64], values: &mut [Option<u64>]) -> Result<()> {
        let guard = Guard::new();
        for (key, value) in keys.iter().zip(values) {
            *value = self.peek(key, &guard).copied();
        }
        Ok(())
    }
    fn insert(&mut self, key: u64, value: u64) -> Result<bool> {
        Ok(self.insert_sync(key, value).is_ok())
    }
    fn update(&mut self, key: u64, value: u64) -> Result<bool> {
        let is_there = self.contains(&key);
        if is_there {
            self.upsert_sync(key, value);
        }
        Ok(is_there)
    }
    fn remove(&mut self, key: u64) -> Result<bool> {
        Ok(self.remove_sync(&key))
    }
    fn scan(&mut self, key: u64, length: usize) -> Result<usize> {
        let guard = Guard::new();
        let pairs = self.range(key.., &guard);
        Ok(read_all(pairs.map(|(&key, &value)| (key, value)), length))
    }
}
