//! The places of the logs: 40 slots of 512 B in the pool's header, leased by whoever needs one.
//!
//! | slots | offset | log |
//! | --- | --- | --- |
//! | 0..32 | 0x3000 | sealed |
//! | 32..40 | 0x7000 | undo-redo |
//!
//! A slot is eight lines. Which log it holds follows from its place, never from its content.

use crate::layout::HEADER_BYTES;
use crate::line::{LINE_BYTES, LINE_WORDS};
use crate::medium::{Medium, words_at};
use crate::sync::LatchWord;
use crate::word::{PmPtr, PmWord};
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

/// Offset of the first slot.
pub(super) const AREA: u64 = 0x3000;
/// In both logs the last word of a line says whose the line is, its number in the upper 48 bits.
pub(super) const SEAL: usize = LINE_WORDS - 1;
/// Lines of a slot.
pub(super) const SLOT_LINES: usize = 8;
const SLOT_WORDS: usize = SLOT_LINES * LINE_WORDS;
const SLOT_BYTES: u64 = (SLOT_LINES * LINE_BYTES) as u64;
const SLOTS: usize = 40;
/// Every slot.
pub(super) const ALL: Range<usize> = 0..SLOTS;
/// The slots of sealed logs.
pub(super) const REDO: Range<usize> = 0..32;
/// The slots of undo-redo logs.
pub(super) const UNDO: Range<usize> = 32..SLOTS;

const _: () = assert!(AREA + SLOTS as u64 * SLOT_BYTES == HEADER_BYTES);

/// Bits of a transaction's number.
const TXID_BITS: u32 = 48;
/// From this number on an open wipes the slots and counts from 1 again, so that numbers never run
/// out while a pool is open.
pub(super) const TXID_RENEW: u64 = 1 << (TXID_BITS - 1);

/// Which slots are leased, and the next transaction's number. Volatile.
#[derive(Debug)]
pub(crate) struct Slots {
    leased: AtomicU64,
    txid: AtomicU64,
}

impl Slots {
    /// All slots free; numbers from 1.
    pub(crate) fn new() -> Self {
        Self { leased: AtomicU64::new(0), txid: AtomicU64::new(1) }
    }

    /// Leases one of the slots in `range`, waiting until one is free.
    pub(super) fn lease(&self, range: Range<usize>) -> Lease<'_> {
        Lease::of(&self.leased, range)
    }

    /// A number that no transaction of this pool has had.
    pub(super) fn draw(&self) -> u64 {
        let txid = self.txid.fetch_add(1, Ordering::Relaxed);
        assert!(txid < 1 << TXID_BITS, "2^47 transactions since the pool was opened");
        txid
    }

    /// Makes every later number greater than `found`.
    pub(super) fn resume_above(&self, found: u64) {
        self.txid.fetch_max(found + 1, Ordering::Relaxed);
    }
}

/// A leased slot, returned when dropped.
#[derive(Debug)]
pub(super) struct Lease<'p> {
    leased: &'p AtomicU64,
    index: usize,
    kept: bool,
}

impl<'p> Lease<'p> {
    /// Leases one of the slots in `range`, by their bits in `leased`, waiting until one is free.
    pub(super) fn of(leased: &'p AtomicU64, range: Range<usize>) -> Self {
        Self { leased, index: take(leased, range), kept: false }
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// Never returns the slot: its content still counts, and only a replay may end it.
    pub(super) fn keep(&mut self) {
        self.kept = true;
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if !self.kept {
            give_back(self.leased, self.index);
        }
    }
}

/// Takes a clear bit of `range`, waiting until there is one. Acquires: whoever had the slot before
/// has truncated its log.
pub(crate) fn take<W: LatchWord>(leased: W, range: Range<usize>) -> usize {
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

/// Clears the bit of a slot, releasing.
pub(crate) fn give_back<W: LatchWord>(leased: W, index: usize) {
    loop {
        let seen = leased.load();
        debug_assert!(seen & (1 << index) != 0, "a slot is returned once");
        if leased.replace(seen, seen & !(1 << index)) {
            return;
        }
    }
}

/// Offset of a slot.
pub(super) fn offset(index: usize) -> u64 {
    AREA + index as u64 * SLOT_BYTES
}

/// The words of a slot.
pub(super) fn words<M: Medium>(medium: &M, index: usize) -> &[PmWord] {
    debug_assert!(index < SLOTS);
    words_at(medium, PmPtr::new(offset(index)), SLOT_WORDS).expect("every pool has a whole header")
}
