//! A growing array that never moves and never shrinks, so that an index once given is good for
//! ever. Entries that are given back are handed out again.

use core::sync::atomic::{AtomicU64, Ordering};
use parking_lot::Mutex;
use std::sync::OnceLock;

/// Segments: four to each doubling, so at most a fifth of the space is ahead of its use.
const SEGMENTS: usize = 4 * 32;
/// The first four segments have 4 entries each.
const BIAS: usize = 16;

/// An arena of `T`, all made by `T::default`.
#[derive(Debug)]
pub(super) struct Arena<T> {
    segments: Box<[OnceLock<Box<[T]>>; SEGMENTS]>,
    bytes: AtomicU64,
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    returned: Vec<usize>,
    next: usize,
}

/// Segment, position in it, and entries of it.
#[inline(always)]
const fn place(index: usize) -> (usize, usize, usize) {
    let biased = index + BIAS;
    let log = biased.ilog2();
    let entries = 1 << (log - 2);
    let segment = (log as usize - 4) * 4 + ((biased >> (log - 2)) & 3);
    (segment, biased & (entries - 1), entries)
}

impl<T: Default> Arena<T> {
    pub(super) fn new() -> Self {
        Self {
            segments: Box::new([const { OnceLock::new() }; SEGMENTS]),
            bytes: AtomicU64::new(0),
            free: Mutex::default(),
        }
    }

    /// The entry at `index`, which was handed out.
    #[inline(always)]
    pub(super) fn get(&self, index: usize) -> &T {
        let (segment, at, _) = place(index);
        match self.segments[segment & (SEGMENTS - 1)].get() {
            Some(entries) => &entries[at],
            None => self.make(index),
        }
    }

    #[cold]
    fn make(&self, index: usize) -> &T {
        let (segment, at, entries) = place(index);
        let made = self.segments[segment].get_or_init(|| {
            let bytes = entries * core::mem::size_of::<T>();
            self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            bristlecone_pmem::sys::boxed_slice(entries)
        });
        &made[at]
    }

    /// An entry that nobody uses.
    pub(super) fn take(&self) -> usize {
        let mut free = self.free.lock();
        free.returned.pop().unwrap_or_else(|| {
            free.next += 1;
            free.next - 1
        })
    }

    /// Gives an entry back.
    pub(super) fn put_back(&self, index: usize) {
        self.free.lock().returned.push(index);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn in_use(&self) -> u64 {
        let free = self.free.lock();
        (free.next - free.returned.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_has_its_own_place() {
        let mut expected = (0, 0);
        for index in 0..100_000 {
            let (segment, at, entries) = place(index);
            assert_eq!((segment, at), expected);
            expected = if at + 1 == entries { (segment + 1, 0) } else { (segment, at + 1) };
        }
    }
}
