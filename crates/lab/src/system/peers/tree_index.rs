//! `scc::TreeIndex`: a B+-tree whose readers take no latch.
//!
//! It has no update. The session looks the key up, then replaces the pair, in one step for readers.
//! If another thread removes the key in between, the update inserts it again.

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
