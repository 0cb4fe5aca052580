//! Bristlecone's store, measured through its public methods. An integer key is its 8 bytes, most
//! significant first. A value is 8 bytes.

use super::{MemoryUse, OnMedium, Session, System};
use crate::error::Result;
use crate::workload::{BATCH, Render};
use bristlecone::{Order, Store};
use bristlecone_pmem::Medium;
use core::hint::black_box;
use core::ops::ControlFlow;

impl<M: Medium, K: Render> System<K> for Store<M> {
    type Session<'a> = &'a Self;

    fn sessions(&mut self, threads: u64) -> Vec<&Self> {
        (0..threads).map(|_| &*self).collect()
    }

    fn memory(&mut self) -> Result<Option<MemoryUse>> {
        let stats = self.check()?.index;
        Ok(Some(MemoryUse { pm_bytes: stats.pm_bytes, dram_bytes: stats.dram_bytes }))
    }
}

impl<M: Medium> OnMedium for Store<M> {
    type Medium = M;

    fn medium(&self) -> &M {
        self.medium()
    }
    fn close(self) -> Result<()> {
        Ok(Store::close(self)?)
    }
}

/// Returns the value that `bytes` store, or 0 if they are not 8 bytes.
pub(crate) fn value_of_bytes(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

impl<M: Medium, K: Render> Session<K> for &Store<M> {
    #[inline]
    fn get(&mut self, key: K::Ref<'_>) -> Result<Option<u64>> {
        Ok(self.get_with(K::bytes(key), value_of_bytes)?)
    }
    fn multi_get(&mut self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<()> {
        let mut bytes = [K::Bytes::default(); BATCH];
        for (bytes, &key) in bytes.iter_mut().zip(keys) {
            *bytes = K::bytes(key);
        }
        self.multi_get_with(&bytes[..keys.len()], |at, value| {
            values[at] = value.map(value_of_bytes);
        })?;
        Ok(())
    }
    #[inline]
    fn insert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool> {
        self.put(K::bytes(key), value.to_le_bytes())?;
        Ok(true)
    }
    #[inline]
    fn update(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool> {
        self.put(K::bytes(key), value.to_le_bytes())?;
        Ok(true)
    }
    #[inline]
    fn upsert(&mut self, key: K::Ref<'_>, value: u64) -> Result<()> {
        Ok(self.put(K::bytes(key), value.to_le_bytes())?)
    }
    #[inline]
    fn remove(&mut self, key: K::Ref<'_>) -> Result<bool> {
        Ok(self.delete(K::bytes(key))?)
    }
    fn scan(&mut self, key: K::Ref<'_>, length: usize) -> Result<usize> {
        let (mut count, mut sum) = (0, 0_u64);
        self.scan_with(K::bytes(key).., Order::Ascending, |_, value| {
            sum = sum.wrapping_add(value_of_bytes(value));
            count += 1;
            if count < length { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        black_box(sum);
        Ok(count)
    }
}
