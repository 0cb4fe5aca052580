//! `bristlecone`: the store itself, measured like the designs, through the methods that everybody
//! calls. A key that is a number is its 8 B, most significant first; values are 8 B as well.

use super::subject::{Actor, Counted, MemoryUse, Subject, counter};
use crate::error::Result;
use crate::workload::{BATCH, Render};
use bristlecone::{Order, Store};
use bristlecone_pmem::medium::Counts;
use bristlecone_pmem::{Medium, Simulated};
use core::hint::black_box;
use core::ops::ControlFlow;

impl<M: Medium, K: Render> Subject<K> for Store<M> {
    type Actor<'a> = &'a Self;

    fn actors(&mut self, threads: u64) -> Vec<&Self> {
        (0..threads).map(|_| &*self).collect()
    }

    fn memory(&mut self) -> Result<Option<MemoryUse>> {
        let census = self.check()?.index;
        Ok(Some(MemoryUse { pm_bytes: census.pm_bytes, dram_bytes: census.dram_bytes }))
    }
}

impl<K: Render> Counted<K> for Store<Simulated> {
    fn take(&self) -> Counts {
        counter(self.medium()).take()
    }
}

/// The number that `bytes` are, as values are stored; 0 where they are no number.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

impl<M: Medium, K: Render> Actor<K> for &Store<M> {
    #[inline]
    fn get(&mut self, key: K::Ref<'_>) -> Result<Option<u64>> {
        Ok(self.get_with(K::bytes(key), number)?)
    }
    fn multi_get(&mut self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<()> {
        let mut bytes = [K::Bytes::default(); BATCH];
        for (bytes, &key) in bytes.iter_mut().zip(keys) {
            *bytes = K::bytes(key);
        }
        self.multi_get_with(&bytes[..keys.len()], |at, value| values[at] = value.map(number))?;
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
            sum = sum.wrapping_add(number(value));
            count += 1;
            if count < length { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        black_box(sum);
        Ok(count)
    }
}
