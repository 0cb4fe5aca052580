//! `bristlecone`: the store itself, measured like the designs, through the methods that everybody
//! calls. Its keys are the 8 B of the number, most significant first, its values 8 B as well.

use super::subject::{Actor, Counted, Memory, Subject};
use super::workload::BATCH;
use anyhow::Result;
use bristlecone::Store;
use bristlecone_pmem::Medium;
use bristlecone_pmem::medium::{Count, Counts};
use core::hint::black_box;

impl<M: Medium> Subject for Store<M> {
    type Actor<'a> = &'a Self;

    fn actors(&mut self, threads: u64) -> Vec<&Self> {
        (0..threads).map(|_| &*self).collect()
    }

    fn memory(&mut self) -> Result<Option<Memory>> {
        let census = self.check()?.index;
        Ok(Some(Memory { pm_bytes: census.pm_bytes, dram_bytes: census.dram_bytes }))
    }
}

impl<M: Medium> Counted for Store<Count<M>> {
    fn take(&self) -> Counts {
        self.medium().take()
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

impl<M: Medium> Actor for &Store<M> {
    #[inline]
    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        Ok(self.get_with(key.to_be_bytes(), number)?)
    }
    fn multi_get(&mut self, keys: &[u64], values: &mut [Option<u64>]) -> Result<()> {
        let mut bytes = [[0; 8]; BATCH];
        for (bytes, key) in bytes.iter_mut().zip(keys) {
            *bytes = key.to_be_bytes();
        }
        self.multi_get_with(&bytes[..keys.len()], |at, value| values[at] = value.map(number))?;
        Ok(())
    }
    #[inline]
    fn insert(&mut self, key: u64, value: u64) -> Result<bool> {
        self.put(key.to_be_bytes(), value.to_le_bytes())?;
        Ok(true)
    }
    #[inline]
    fn update(&mut self, key: u64, value: u64) -> Result<bool> {
        self.put(key.to_be_bytes(), value.to_le_bytes())?;
        Ok(true)
    }
    #[inline]
    fn remove(&mut self, key: u64) -> Result<bool> {
        Ok(self.delete(key.to_be_bytes())?)
    }
    fn scan(&mut self, key: u64, length: usize) -> Result<usize> {
        let (mut count, mut sum) = (0, 0_u64);
        for pair in Store::scan(self, key.to_be_bytes()..).take(length) {
            sum = sum.wrapping_add(number(&pair?.1));
            count += 1;
        }
        black_box(sum);
        Ok(count)
    }
}
