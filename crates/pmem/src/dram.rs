//! Words of DRAM that grow in place and never move: the volatile half of a hybrid index.
//!
//! 1. Addresses are reserved at once and memory is put behind them as it is used, on pages of
//!    2 MiB where the system grants them: half of what a lookup waits for is address translation.
//! 2. All words start as zero.

use crate::medium::{MediumError, Range};
use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use parking_lot::Mutex;

/// Addresses that are reserved, in bytes. They cost nothing until they are used.
const RESERVE_BYTES: u64 = 64 << 30;
/// The first growth; later ones double what there is, up to [`STEP_BYTES_MAX`].
const STEP_BYTES_MIN: usize = 64 << 10;
const STEP_BYTES_MAX: usize = 8 << 20;

/// A growing array of blocks of `WORDS` words.
#[derive(Debug)]
pub struct Blocks<const WORDS: usize> {
    base: NonNull<u8>,
    /// Blocks that have memory.
    ready: AtomicUsize,
    range: Mutex<Range>,
}

impl<const WORDS: usize> Blocks<WORDS> {
    const BLOCK_BYTES: usize = WORDS * 8;

    /// An empty array.
    ///
    /// # Errors
    /// The system has no addresses left.
    pub fn new() -> Result<Self, MediumError> {
        let range = Range::reserve(RESERVE_BYTES)?;
        Ok(Self { base: range.base(), ready: AtomicUsize::new(0), range: Mutex::new(range) })
    }

    /// The block at `index`.
    ///
    /// # Panics
    /// There is no such block yet: see [`extend`](Self::extend).
    #[inline(always)]
    pub fn get(&self, index: usize) -> &[AtomicU64; WORDS] {
        assert!(index < self.ready.load(Ordering::Acquire), "a block is used after it was made");
        let at = self.base.as_ptr().wrapping_add(index * Self::BLOCK_BYTES);
        #[expect(unsafe_code, reason = "an index in the range becomes a reference")]
        // SAFETY: `ready` blocks from `base` are mapped readable and writable until the range is
        // dropped with `self`; the index was just checked. Atomics are valid for any bits.
        let block = unsafe { &*at.cast::<[AtomicU64; WORDS]>() };
        block
    }

    /// Makes sure that there is a block at `index`. Where the system has no memory left, that is the
    /// end of the process, as it is for any other volatile memory of a Rust program.
    pub fn extend(&self, index: usize) {
        if index < self.ready.load(Ordering::Acquire) {
            return;
        }
        let range = self.range.lock();
        let old = self.ready.load(Ordering::Acquire) * Self::BLOCK_BYTES;
        let need = (index + 1) * Self::BLOCK_BYTES;
        if need <= old {
            return;
        }
        let new = (old + old.clamp(STEP_BYTES_MIN, STEP_BYTES_MAX)).max(need);
        let new = new.next_multiple_of(STEP_BYTES_MIN);
        if range.extend_anonymous(old as u64, new as u64).is_err() {
            std::alloc::handle_alloc_error(Layout::new::<[AtomicU64; WORDS]>());
        }
        self.ready.store(new / Self::BLOCK_BYTES, Ordering::Release);
    }

    /// Bytes that have memory behind them.
    pub fn bytes(&self) -> u64 {
        (self.ready.load(Ordering::Relaxed) * Self::BLOCK_BYTES) as u64
    }
}

#[expect(unsafe_code, reason = "the pointer is to memory that the value owns")]
// SAFETY: the memory is atomics, and lives and goes with the value.
unsafe impl<const WORDS: usize> Send for Blocks<WORDS> {}
#[expect(unsafe_code, reason = "as for Send")]
// SAFETY: as for Send.
unsafe impl<const WORDS: usize> Sync for Blocks<WORDS> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_zero_apart_and_stay_where_they_are() {
        let blocks = Blocks::<64>::new().unwrap();
        blocks.extend(0);
        let first = blocks.get(0);
        for index in 0..20_000 {
            blocks.extend(index);
            assert!(blocks.get(index).iter().all(|word| word.load(Ordering::Relaxed) == 0));
            blocks.get(index)[63].store(index as u64 + 1, Ordering::Relaxed);
        }
        assert!((0..20_000).all(|i| blocks.get(i)[63].load(Ordering::Relaxed) == i as u64 + 1));
        assert!(core::ptr::eq(first, blocks.get(0)));
    }
}
