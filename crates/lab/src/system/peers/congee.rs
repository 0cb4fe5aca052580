//! `congee`: an adaptive radix tree with optimistic latches.
//!
//! 1. Keys and values are `usize`, which has 64 bits on all machines that have pools.
//! 2. A scan fills a buffer, which each session keeps. It excludes its upper bound, so the greatest
//!    key needs a lookup of its own.

use super::scan::read_all;
use crate::error::{LabError, Result};
use crate::system::{MemoryUse, Session, System};

type Map = congee::Congee<usize, usize>;

/// The tree, empty by default.
#[derive(Default)]
pub(super) struct Congee(Map);

/// A session with the buffer of its scans.
pub(super) struct CongeeSession<'a> {
    map: &'a Map,
    pairs: Vec<(usize, usize)>,
}

impl System for Congee {
    type Session<'a> = CongeeSession<'a>;

    fn sessions(&mut self, threads: u64) -> Vec<CongeeSession<'_>> {
        (0..threads).map(|_| CongeeSession { map: &self.0, pairs: Vec::new() }).collect()
    }
    fn memory(&mut self) -> Result<Option<MemoryUse>> {
        Ok(None)
    }
}

impl Session for CongeeSession<'_> {
    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let value = self.map.get(&(key as usize), &self.map.pin());
        Ok(value.map(|value| value as u64))
    }
    fn multi_get(&mut self, keys: &[u64], values: &mut [Option<u64>]) -> Result<()> {
        let guard = self.map.pin();
        for (&key, value) in keys.iter().zip(values) {
            *value = self.map.get(&(key as usize), &guard).map(|value| value as u64);
        }
        Ok(())
    }
    fn insert(&mut self, key: u64, value: u64) -> Result<bool> {
        let old = self.map.insert(key as usize, value as usize, &self.map.pin());
        old.map(|old| old.is_none()).map_err(|error| LabError::Peer {
            name: "congee".into(),
            // The type of this error is not exported.
            source: format!("{error:?}").into(),
        })
    }
    fn update(&mut self, key: u64, value: u64) -> Result<bool> {
        let new = |_| Some(value as usize);
        Ok(self.map.compute_if_present(&(key as usize), new, &self.map.pin()).is_some())
    }
    fn remove(&mut self, key: u64) -> Result<bool> {
        Ok(self.map.remove(&(key as usize), &self.map.pin()).is_some())
    }
    fn scan(&mut self, key: u64, length: usize) -> Result<usize> {
        if self.pairs.len() < length {
            self.pairs.resize(length, (0, 0));
        }
        let guard = self.map.pin();
        let mut count =
            self.map.range(&(key as usize), &usize::MAX, &mut self.pairs[..length], &guard);
        if count < length
            && let Some(value) = self.map.get(&usize::MAX, &guard)
        {
            self.pairs[count] = (usize::MAX, value);
            count += 1;
        }
        let pairs = self.pairs[..count].iter();
        Ok(read_all(pairs.map(|&(key, value)| (key as u64, value as u64)), length))
    }
}
