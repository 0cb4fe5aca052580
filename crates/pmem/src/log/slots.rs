//! Log slots: 40 slots of 512 B in the pool's header, which threads lease.
//!
//! | slots | offset | log |
//! | --- | --- | --- |
//! | 0..32 | 0x3000 | redo |
//! | 32..40 | 0x7000 | undo-redo |
//!
//! A slot has eight lines. Its offset decides which log it holds; its contents do not.

use crate::layout::HEADER_BYTES;
use crate::line::{LINE_BYTES, LINE_WORDS};
use crate::medium::{Medium, words_at};
use crate::sync::LatchWord;
use crate::word::{PmPtr, PmWord};
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

/// The offset of the first slot.
pub(super) const AREA: u64 = 0x3000;
/// The word of a line with the transaction number in its upper 48 bits, in both logs: the last one.
pub(super) const SEAL: usize = LINE_WORDS - 1;
/// The number of lines of a slot.
pub(super) const SLOT_LINES: usize = 8;
const SLOT_WORDS: usize = SLOT_LINES * LINE_WORDS;
const SLOT_BYTES: u64 = (SLOT_LINES * LINE_BYTES) as u64;
const SLOTS: usize = 40;
/// The range of all slots.
pub(super) const ALL: Range<usize> = 0..SLOTS;
/// The slots of redo logs.
pub(super) const REDO: Range<usize> = 0..32;
/// The slots of undo-redo logs.
pub(super) const UNDO: Range<usize> = 32..SLOTS;

const _: () = assert!(AREA + SLOTS as u64 * SLOT_BYTES == HEADER_BYTES);

/// The number of bits of a transaction number.
const TXID_BITS: u32 = 48;
/// The number from which on an open clears the slots and counts from 1 again. So 2^47 numbers
/// remain while the pool is open.
pub(super) const TXID_RESTART: u64 = 1 << (TXID_BITS - 1);

/// The number before the first transaction of a new pool that
/// [is aged](crate::Medium::is_aged): numbers begin again soon, at an open.
pub(crate) const AGED_TXID: u64 = TXID_RESTART - 4;

/// The volatile state of the slots: which are leased, and the next transaction number.
#[derive(Debug)]
pub(crate) struct SlotState {
    leased: AtomicU64,
    txid: AtomicU64,
}

impl SlotState {
    /// Returns the state with all slots free and 1 as the next number.
    pub(crate) fn new() -> Self {
        Self { leased: AtomicU64::new(0), txid: AtomicU64::new(1) }
    }

    /// Leases one of the slots in `range`, and waits until one is free.
    pub(super) fn lease(&self, range: Range<usize>) -> Lease<'_> {
        Lease::acquire(&self.leased, range)
    }

    /// Returns a number that no transaction of this pool has had.
    pub(super) fn next_txid(&self) -> u64 {
        let txid = self.txid.fetch_add(1, Ordering::Relaxed);
        assert!(txid < 1 << TXID_BITS, "no transaction number is left: reopen the pool");
        txid
    }

    /// Makes every later number greater than `found`.
    pub(crate) fn resume_above(&self, found: u64) {
        self.txid.fetch_max(found + 1, Ordering::Relaxed);
    }
}

/// A leased slot, returned on drop.
#[derive(Debug)]
pub(super) struct Lease<'p> {
    leased: &'p AtomicU64,
    index: usize,
    kept: bool,
}

impl<'p> Lease<'p> {
    /// Leases one of the slots in `range`, whose bits are in `leased`, and waits until one is free.
    pub(super) fn acquire(leased: &'p AtomicU64, range: Range<usize>) -> Self {
        Self { leased, index: take_slot(leased, range), kept: false }
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// Keeps the slot for good: its transaction still counts, and only a replay may end it.
    pub(super) fn keep(&mut self) {
        self.kept = true;
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if !self.kept {
            return_slot(self.leased, self.index);
        }
    }
}

/// Sets a clear bit of `range` in `leased` and returns its index; waits until there is one. This
/// acquires, so the caller sees that the last holder has truncated its log.
pub(crate) fn take_slot<W: LatchWord>(leased: W, range: Range<usize>) -> usize {
    let within = (u64::MAX >> (64 - range.len())) << range.start;
    let mut spins = 0;
    loop {
        let seen = leased.load();
        let free = !seen & within;
        if free == 0 {
            W::relax(&mut spins);
        } else if leased.replace(seen, seen | (free & free.wrapping_neg())) {
            return free.trailing_zeros() as usize;
        }
    }
}

/// Clears the bit of slot `index`, with release ordering.
pub(crate) fn return_slot<W: LatchWord>(leased: W, index: usize) {
    loop {
        let seen = leased.load();
        debug_assert!(seen & (1 << index) != 0, "a slot is returned once");
        if leased.replace(seen, seen & !(1 << index)) {
            return;
        }
    }
}

/// Returns the offset of slot `index`.
pub(super) fn offset(index: usize) -> u64 {
    AREA + index as u64 * SLOT_BYTES
}

/// Returns the words of slot `index`.
pub(super) fn words<M: Medium>(medium: &M, index: usize) -> &[PmWord] {
    debug_assert!(index < SLOTS);
    words_at(medium, PmPtr::new(offset(index)), SLOT_WORDS).expect("every pool has a whole header")
}
