//! `crossbeam-skiplist`: a skip list without latches.
//!
//! 1. The list never changes a value in place. Its documentation advises atomics as values: so
//!    values are `AtomicU64`, and an update is a lookup and a store.
//! 2. An insert does not report whether its key was present. A value that was created for the key
//!    tells it. So if two threads insert one key at once, both may learn that it was absent.

use super::scan::read_all;
use super::shared::Shared;
use crate::error::Result;
use crate::system::Session;
use core::sync::atomic::{AtomicU64, Ordering};
use crossbeam_skiplist::SkipMap;

type Map = SkipMap<u64, AtomicU64>;

pub(super) type SkipList = Shared<Map>;

impl Session for &Map {
    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        Ok(Map::get(self, &key).map(|entry| entry.value().load(Ordering::Acquire)))
    }
    fn multi_get(&mut self, keys: &[u64], values: &mut [Option<u64>]) -> Result<()> {
        for (&key, value) in keys.iter().zip(values) {
            *value = Session::get(self, key)?;
        }
        Ok(())
    }
    fn insert(&mut self, key: u64, value: u64) -> Result<bool> {
        let mut is_new = false;
        self.get_or_insert_with(key, || {
            is_new = true;
            AtomicU64::new(value)
        });
        Ok(is_new)
    }
    fn update(&mut self, key: u64, value: u64) -> Result<bool> {
        let found = Map::get(self, &key);
        Ok(found.map(|entry| entry.value().store(value, Ordering::Release)).is_some())
    }
    fn remove(&mut self, key: u64) -> Result<bool> {
        Ok(Map::remove(self, &key).is_some())
    }
    fn scan(&mut self, key: u64, length: usize) -> Result<usize> {
        let pairs = self.range(key..);
        let words = pairs.map(|pair| (*pair.key(), pair.value().load(Ordering::Acquire)));
        Ok(read_all(words, length))
    }
}
