//! Arrays of DRAM words that grow in place and never move: the volatile half of a hybrid index.
//!
//! 1. An array reserves its addresses at once and maps memory as it grows, with pages of 2 MiB
//!    where the system grants them. With small pages, half of the time that a lookup waits for
//!    memory is address translation.
//! 2. All words start as zero.
//! 3. When a small array is dropped, its thread keeps the range for its next array. A test, or an
//!    exploration of crashes, makes many small indexes, and mapping a range takes longer than such
//!    an index lives.

use crate::medium::{MediumError, Range};
use crate::sys;
use core::alloc::Layout;
use core::cell::RefCell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use parking_lot::Mutex;

/// The address space that an array reserves, in bytes. Addresses without memory cost nothing.
const RESERVE_BYTES: u64 = 64 << 30;
/// The smallest step of growth, in bytes. Each later step doubles the array, up to
/// [`STEP_BYTES_MAX`].
const STEP_BYTES_MIN: usize = 64 << 10;
const STEP_BYTES_MAX: usize = 8 << 20;

/// The number of ranges that a thread keeps for its next arrays.
const SPARE_MAX: usize = 8;

thread_local! {
    /// Ranges for reuse. Each has exactly [`STEP_BYTES_MIN`] of memory, and all of it is zero.
    static SPARE: RefCell<Vec<Range>> = const { RefCell::new(Vec::new()) };
}

/// A growing array of blocks of `WORDS` words each.
#[derive(Debug)]
pub struct Blocks<const WORDS: usize> {
    base: NonNull<u8>,
    /// The number of blocks that [`Blocks::get`] accepts.
    made: AtomicUsize,
    /// The number of blocks that have memory. Never less than `made`.
    ready: AtomicUsize,
    /// `Some` until the array is dropped. The lock serialises growth.
    range: Mutex<Option<Range>>,
}

impl<const WORDS: usize> Blocks<WORDS> {
    const BLOCK_BYTES: usize = {
        assert!(WORDS * 8 < STEP_BYTES_MIN, "a block is smaller than a step");
        WORDS * 8
    };

    /// Returns an empty array.
    ///
    /// # Errors
    /// The system has no address space left.
    pub fn new() -> Result<Self, MediumError> {
        // A thread that ends has no spare list any more.
        let spare = SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten();
        let ready = if spare.is_some() { STEP_BYTES_MIN / Self::BLOCK_BYTES } else { 0 };
        let range = spare.map_or_else(|| Range::reserve(RESERVE_BYTES), Ok)?;
        let base = range.base();
        let [made, ready] = [0, ready].map(AtomicUsize::new);
        Ok(Self { base, made, ready, range: Mutex::new(Some(range)) })
    }

    /// Returns the block at `index`.
    ///
    /// # Panics
    /// There is no block at `index` yet: see [`extend`](Self::extend).
    #[inline(always)]
    pub fn get(&self, index: usize) -> &[AtomicU64; WORDS] {
        assert!(
            index < self.made.load(Ordering::Acquire),
            "no block at this index: extend the array first"
        );
        let at = self.base.as_ptr().wrapping_add(index * Self::BLOCK_BYTES);
        #[expect(unsafe_code, reason = "an index in the range becomes a reference")]
        // SAFETY: `made` blocks from `base` are mapped readable and writable until the range is
        // dropped with `self`; the index was just checked. Atomics are valid for any bits.
        let block = unsafe { &*at.cast::<[AtomicU64; WORDS]>() };
        block
    }

    /// Prefetches the first line of the block at `index`, which need not exist.
    #[inline(always)]
    pub fn prefetch(&self, index: usize) {
        let offset = index.wrapping_mul(Self::BLOCK_BYTES);
        sys::prefetch(self.base.as_ptr().wrapping_add(offset) as usize);
    }

    /// Grows the array until it has a block at `index`. If the system has no memory left, this
    /// aborts the process, like any other failed allocation of a Rust program.
    pub fn extend(&self, index: usize) {
        if index < self.made.load(Ordering::Acquire) {
            return;
        }
        self.map_up_to(index);
        self.made.fetch_max(index + 1, Ordering::AcqRel);
    }

    fn map_up_to(&self, index: usize) {
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
        let extended = range.as_ref().map(|range| range.extend_anonymous(old as u64, new as u64));
        if !matches!(extended, Some(Ok(()))) {
            std::alloc::handle_alloc_error(Layout::new::<[AtomicU64; WORDS]>());
        }
        self.ready.store(new / Self::BLOCK_BYTES, Ordering::Release);
    }

    /// Returns the size of the mapped memory, in bytes: whole steps, whose last block may not fit.
    pub fn bytes(&self) -> u64 {
        let blocks = self.ready.load(Ordering::Relaxed) * Self::BLOCK_BYTES;
        blocks.next_multiple_of(STEP_BYTES_MIN) as u64
    }
}

impl<const WORDS: usize> Drop for Blocks<WORDS> {
    fn drop(&mut self) {
        if self.bytes() != STEP_BYTES_MIN as u64 {
            return;
        }
        for index in 0..*self.made.get_mut() {
            for word in self.get(index) {
                word.store(0, Ordering::Relaxed);
            }
        }
        let range = self.range.get_mut().take();
        // A thread that exits has no spare list any more; then the range is unmapped here.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < SPARE_MAX {
                spare.extend(range);
            }
        });
    }
}

#[expect(unsafe_code, reason = "the pointer is to memory that the value owns")]
// SAFETY: the memory consists of atomics and lives exactly as long as the value.
unsafe impl<const WORDS: usize> Send for Blocks<WORDS> {}
#[expect(unsafe_code, reason = "as for Send")]
// SAFETY: as for Send.
unsafe impl<const WORDS: usize> Sync for Blocks<WORDS> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_zero_do_not_overlap_and_never_move() {
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

    fn reuses<const WORDS: usize>() {
        let mut first = None;
        for _ in 0..3 {
            let blocks = Blocks::<WORDS>::new().unwrap();
            blocks.extend(5);
            assert!(blocks.get(5).iter().all(|word| word.load(Ordering::Relaxed) == 0));
            blocks.get(5)[7].store(7, Ordering::Relaxed);
            let at = core::ptr::from_ref(blocks.get(5));
            assert_eq!(*first.get_or_insert(at), at, "the range is reused");
        }
    }

    #[test]
    fn a_reused_range_is_zero() {
        reuses::<64>();
    }

    /// Such arrays were once mapped anew: recoveries of `btree-ls` took a third longer.
    #[test]
    fn a_range_is_reused_in_which_blocks_do_not_fill_a_step() {
        reuses::<12>();
        reuses::<24>();
    }
}
