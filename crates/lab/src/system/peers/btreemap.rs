//! std's `BTreeMap` for both kinds of keys: without a lock for one thread, behind one for several.

use super::scan::read_all;
use super::shared::Shared;
use crate::error::Result;
use crate::system::{MemoryUse, Session, System};
use crate::workload::Render;
use bristlecone_trees::Text;
use core::ops::Bound;
use std::collections::BTreeMap;
use std::collections::btree_map::Range;
use std::sync::RwLock;

/// A map whose byte-string keys are allocations of their own, as in an ordinary program.
type Map<K> = BTreeMap<<K as bristlecone_trees::Key>::Owned, u64>;

/// A key that std's map finds without an allocation.
pub(crate) trait MapKey: Render {
    fn get<'m>(map: &'m Map<Self>, key: Self::Ref<'_>) -> Option<&'m u64>;
    fn get_mut<'m>(map: &'m mut Map<Self>, key: Self::Ref<'_>) -> Option<&'m mut u64>;
    fn remove(map: &mut Map<Self>, key: Self::Ref<'_>) -> Option<u64>;
    /// Returns the pairs from `key` on.
    fn from<'m>(map: &'m Map<Self>, key: Self::Ref<'_>) -> Range<'m, Self::Owned, u64>;
}

impl MapKey for u64 {
    #[inline]
    fn get(map: &Map<Self>, key: u64) -> Option<&u64> {
        map.get(&key)
    }
    #[inline]
    fn get_mut(map: &mut Map<Self>, key: u64) -> Option<&mut u64> {
        map.get_mut(&key)
    }
    #[inline]
    fn remove(map: &mut Map<Self>, key: u64) -> Option<u64> {
        map.remove(&key)
    }
    #[inline]
    fn from(map: &Map<Self>, key: u64) -> Range<'_, u64, u64> {
        map.range(key..)
    }
}

impl MapKey for Text {
    #[inline]
    fn get<'m>(map: &'m Map<Self>, key: &[u8]) -> Option<&'m u64> {
        map.get(key)
    }
    #[inline]
    fn get_mut<'m>(map: &'m mut Map<Self>, key: &[u8]) -> Option<&'m mut u64> {
        map.get_mut(key)
    }
    #[inline]
    fn remove(map: &mut Map<Self>, key: &[u8]) -> Option<u64> {
        map.remove(key)
    }
    #[inline]
    fn from<'m>(map: &'m Map<Self>, key: &[u8]) -> Range<'m, Self::Owned, u64> {
        map.range::<[u8], _>((Bound::Included(key), Bound::Unbounded))
    }
}

/// The map for one thread.
pub(crate) struct Alone<K: MapKey>(Map<K>);

impl<K: MapKey> Default for Alone<K> {
    fn default() -> Self {
        Self(Map::<K>::new())
    }
}

/// The map for several threads, behind one readers-writer lock.
pub(crate) type Locked<K> = Shared<RwLock<Map<K>>>;

impl<K: MapKey> System<K> for Alone<K> {
    type Session<'a> = One<'a, K>;

    fn sessions(&mut self, threads: u64) -> Vec<One<'_, K>> {
        assert_eq!(threads, 1, "std's map has no latches");
        vec![One(&mut self.0)]
    }
    fn memory(&mut self) -> Result<Option<MemoryUse>> {
        Ok(None)
    }
}

/// The session of the only thread.
pub(crate) struct One<'a, K: MapKey>(&'a mut Map<K>);

impl<K: MapKey> Session<K> for One<'_, K> {
    fn get(&mut self, key: K::Ref<'_>) -> Result<Option<u64>> {
        Ok(K::get(self.0, key).copied())
    }
    fn multi_get(&mut self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<()> {
        look_up::<K>(self.0, keys, values);
        Ok(())
    }
    fn insert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool> {
        Ok(self.0.insert(K::to_owned(key), value).is_none())
    }
    fn update(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool> {
        Ok(K::get_mut(self.0, key).map(|place| *place = value).is_some())
    }
    fn remove(&mut self, key: K::Ref<'_>) -> Result<bool> {
        Ok(K::remove(self.0, key).is_some())
    }
    fn scan(&mut self, key: K::Ref<'_>, length: usize) -> Result<usize> {
        Ok(read_on::<K>(self.0, key, length))
    }
}

/// The message of a poisoned lock, which never appears: no code under the lock panics.
const NOT_POISONED: &str = "no code under the lock panics";

impl<K: MapKey> Session<K> for &RwLock<Map<K>> {
    fn get(&mut self, key: K::Ref<'_>) -> Result<Option<u64>> {
        Ok(K::get(&self.read().expect(NOT_POISONED), key).copied())
    }
    fn multi_get(&mut self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<()> {
        look_up::<K>(&self.read().expect(NOT_POISONED), keys, values);
        Ok(())
    }
    fn insert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool> {
        Ok(self.write().expect(NOT_POISONED).insert(K::to_owned(key), value).is_none())
    }
    fn update(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool> {
        let mut map = self.write().expect(NOT_POISONED);
        Ok(K::get_mut(&mut map, key).map(|place| *place = value).is_some())
    }
    fn remove(&mut self, key: K::Ref<'_>) -> Result<bool> {
        Ok(K::remove(&mut self.write().expect(NOT_POISONED), key).is_some())
    }
    fn scan(&mut self, key: K::Ref<'_>, length: usize) -> Result<usize> {
        Ok(read_on::<K>(&self.read().expect(NOT_POISONED), key, length))
    }
}

fn look_up<K: MapKey>(map: &Map<K>, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) {
    for (&key, value) in keys.iter().zip(values) {
        *value = K::get(map, key).copied();
    }
}

fn read_on<K: MapKey>(map: &Map<K>, key: K::Ref<'_>, length: usize) -> usize {
    let pairs = K::from(map, key);
    read_all(pairs.map(|(key, &value)| (K::prefix(K::borrow(key)), value)), length)
}
