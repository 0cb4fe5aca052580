//! The ring: the lines of fences that no segment has yet, in a file that is mapped shared. It
//! survives the death of the process, and a restart of the machine if no page of it is lost (I3).
//!
//! | offset | bytes | field | meaning |
//! | --- | --- | --- | --- |
//! | 0 | 8 | magic | `BRSTLCR2`; 0 while the ring is stamped |
//! | 8 | 8 | nonce | the random number of the open |
//! | 16 | 16 | boot | the id of the boot; 0: not known |
//! | 32 | 8 | slots | their number |
//! | 40 | 8 | former | the nonce of the open before; 0: none |
//! | 512 | 8 | head | the position behind the last record, doubled; the lowest bit is the lock |
//! | 4096 | 72 each | slots | number of a line and, above bit 41, a sum; the line |
//!
//! 1. Slots at or beyond the head do not exist.
//! 2. A slot is used again after a segment has its record.
//! 3. After a power cut the slots are of different times, and those of earlier opens may be there.
//!    The sum of a slot has its position and the nonce. So in another boot the ring counts if no
//!    sum is wrong: its records are those of the open, in their order. Where the system does not
//!    tell this boot from another, the records before the first wrong sum count, but for a chance
//!    of 2^-23.
//! 4. The stamp is synced before a mark names its nonce. So a pool that needs its folder has a ring
//!    there with the nonce of the mark, as its own or as the former one, whatever has crashed.

use crate::line::{LINE_WORDS, lines};
use crate::medium::{Mapped, Medium, MediumError, words_at};
use crate::sys::prefetch_for_store;
use crate::word::{PmPtr, PmWord};
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::path::Path;

const MAGIC: u64 = u64::from_le_bytes(*b"BRSTLCR2");
const STAMP_WORDS: usize = 6;
/// The places of the fields in the stamp.
const NONCE: usize = 1;
const BOOT: usize = 2;
const SLOTS: usize = 4;
const FORMER: usize = 5;
/// The stamp of a boot that the system has not told.
const UNKNOWN_BOOT: [u64; 2] = [0; 2];
const HEAD_AT: u64 = 512;
/// The size of stamp and head, in bytes.
pub(super) const HEADER_BYTES: usize = HEAD_AT as usize + 8;
const SLOTS_AT: u64 = 4096;
const SLOT_WORDS: usize = LINE_WORDS + 1;
/// The grant of a closed ring: it is below every position.
const CLOSED: i64 = -1;
/// The bits of a slot's first word that number the line. The sum is above them.
const LINE_BITS: u32 = 41;
/// The largest part of the ring that one hold of the lock bit may fill, as a divisor.
const RUN_DIVISOR: u64 = 8;
/// The size of the slots that most fences fill, in bytes.
const PREFETCHED_BYTES: usize = 3 * 8 * SLOT_WORDS;
/// The number of tries for the lock bit after which a thread yields its processor.
const SPINS: u32 = 64;

/// The ring of a journal, a file mapped shared.
#[derive(Debug)]
pub(super) struct Ring {
    file: Mapped,
    slots: u64,
    /// The nonce of the stamp, which the sums of slots have.
    seed: AtomicU64,
    /// The head may not pass this position. Zero: no line may enter. [`CLOSED`]: none ever will.
    granted: AtomicI64,
}

impl Ring {
    /// Returns the size of the file of a ring of `slots`, in bytes.
    pub(super) fn file_bytes(slots: u64) -> u64 {
        SLOTS_AT + (slots * 8 * SLOT_WORDS as u64).next_multiple_of(SLOTS_AT)
    }

    /// Returns the ring in `file`: as many slots, a power of two, as fit.
    pub(super) fn new(file: Mapped) -> Self {
        let fit = file.len().saturating_sub(SLOTS_AT) / (8 * SLOT_WORDS as u64);
        let slots = if fit == 0 { 0 } else { 1 << fit.ilog2() };
        let ring = Self { file, slots, seed: AtomicU64::new(0), granted: AtomicI64::new(0) };
        if slots > 0 {
            ring.seed.store(ring.nonce(), Ordering::Relaxed);
        }
        ring
    }

    /// Creates the ring of `slots` at `path`.
    pub(super) fn create(path: &Path, slots: u64) -> Result<Self, MediumError> {
        let options = Self::file_options(slots);
        Mapped::create(path, Self::file_bytes(slots), &options).map(Self::new)
    }

    /// Opens the ring at `path`. Allocates the holes that a copy may have.
    pub(super) fn open(path: &Path) -> Result<Self, MediumError> {
        let mut file = Mapped::open(path, &Self::file_options(0))?;
        file.fit_to(file.len())?;
        Ok(Self::new(file))
    }

    fn file_options(slots: u64) -> crate::medium::FileOptions {
        let reserve_bytes = Self::file_bytes(slots);
        crate::medium::FileOptions { reserve_bytes, ..Default::default() }
    }

    /// Returns the file.
    pub(super) fn file(&self) -> &Mapped {
        &self.file
    }

    /// Returns the number of slots.
    pub(super) fn slots(&self) -> u64 {
        self.slots
    }

    /// Returns the largest number of lines that may enter at once.
    pub(super) fn run_max(&self) -> u64 {
        (self.slots / RUN_DIVISOR).max(1)
    }

    #[inline(always)]
    fn words(&self, at: u64, count: usize) -> &[PmWord] {
        let words = words_at(&self.file, PmPtr::new(at), count);
        words.expect("a ring has the words of its header and its slots")
    }

    #[inline(always)]
    fn head_word(&self) -> &AtomicU64 {
        self.words(HEAD_AT, 1)[0].cell()
    }

    #[inline(always)]
    fn slot(&self, position: u64) -> &[PmWord] {
        let index = position & (self.slots - 1);
        self.words(SLOTS_AT + index * 8 * SLOT_WORDS as u64, SLOT_WORDS)
    }

    /// Empties the ring and stamps it as that of an open; `former` is the nonce of the open before.
    /// A kill at any point leaves a ring that does not count, or the new one. The stamp survives a
    /// power cut on return.
    ///
    /// ```text
    /// W 0 magic, 0 head, former
    ///                                crash here: no record counts; the old nonce is there
    /// W nonce, boot, slots           crash here: the old nonce is the former one (I4)
    /// W magic S                      -> durable
    /// ```
    ///
    /// # Errors
    /// The system could not write the stamp.
    pub(super) fn stamp(
        &self,
        nonce: u64,
        boot: Option<[u64; 2]>,
        former: u64,
    ) -> Result<(), MediumError> {
        let boot = boot.unwrap_or(UNKNOWN_BOOT);
        let words = self.words(0, STAMP_WORDS);
        let store = |at: usize, value| self.file.store(&words[at], value);
        store(0, 0);
        self.head_word().store(0, Ordering::Release);
        store(FORMER, former);
        for (at, value) in (NONCE..).zip([nonce, boot[0], boot[1], self.slots]) {
            store(at, value);
        }
        self.seed.store(nonce, Ordering::Relaxed);
        store(0, MAGIC);
        self.file.sync()
    }

    fn stamped(&self) -> [u64; STAMP_WORDS] {
        let words = self.words(0, STAMP_WORDS);
        core::array::from_fn(|i| self.file.load(&words[i]))
    }

    /// Returns `true` if the file ends before the last of the slots with which it was stamped.
    pub(super) fn is_cut(&self) -> bool {
        self.slots == 0 || self.slots < self.stamped()[SLOTS]
    }

    /// Returns `true` if the ring is that of the open with `nonce`.
    pub(super) fn is_of(&self, nonce: u64) -> bool {
        let stamp = self.stamped();
        let is_whole = self.slots > 0 && [stamp[0], stamp[SLOTS]] == [MAGIC, self.slots];
        is_whole && stamp[NONCE] == nonce
    }

    /// Returns `true` if the ring was not stamped in another boot than `boot`, as far as the system
    /// tells (I3).
    pub(super) fn is_of_boot(&self, boot: Option<[u64; 2]>) -> bool {
        let stamp = self.stamped();
        let stamped = [stamp[BOOT], stamp[BOOT + 1]];
        boot.is_none_or(|boot| boot == stamped) || stamped == UNKNOWN_BOOT
    }

    /// Returns the nonce of the open that has stamped the ring.
    pub(super) fn nonce(&self) -> u64 {
        self.stamped()[NONCE]
    }

    /// Returns `true` if the ring lies in the folder of the open with `nonce`, in any boot (I4).
    pub(super) fn is_beside(&self, nonce: u64) -> bool {
        let stamp = self.stamped();
        let has_our_sums = [0, MAGIC].contains(&stamp[0]);
        has_our_sums && [stamp[NONCE], stamp[FORMER]].contains(&nonce)
    }

    /// Sets the position that the head may not pass, unless the ring is closed.
    pub(super) fn grant(&self, end: u64) {
        let granted = |granted| (granted != CLOSED).then_some(end.cast_signed());
        // Refused, it stays closed.
        let _ = self.granted.fetch_update(Ordering::Release, Ordering::Relaxed, granted);
    }

    /// Lets no line enter from now on, whatever is granted.
    pub(super) fn close(&self) {
        self.granted.store(CLOSED, Ordering::Release);
    }

    /// Returns the position behind the last record.
    #[inline(always)]
    pub(super) fn head(&self) -> u64 {
        self.head_word().load(Ordering::Acquire) >> 1
    }

    /// Takes the lock bit and returns the head, if `count` lines may enter. The caller puts them
    /// and calls [`end`](Self::end).
    #[inline]
    pub(super) fn begin(&self, count: u64) -> Option<u64> {
        let word = self.head_word();
        let mut tries = 0;
        let head = loop {
            let head = word.load(Ordering::Relaxed);
            let is_free = head & 1 == 0;
            if is_free
                && word
                    .compare_exchange_weak(head, head | 1, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                break head;
            }
            tries += 1;
            if tries % SPINS == 0 {
                std::thread::yield_now();
            } else {
                core::hint::spin_loop();
            }
        };
        let position = head >> 1;
        if (position + count).cast_signed() > self.granted.load(Ordering::Acquire) {
            word.store(head, Ordering::Release);
            return None;
        }
        Some(position)
    }

    /// Copies a line into the slot of `position`. The caller holds the lock bit.
    #[inline]
    pub(super) fn put(&self, position: u64, line: u64, words: &[u64; LINE_WORDS]) {
        let slot = self.slot(position);
        slot[0].cell().store(line | self.sum_of(position, line, words), Ordering::Relaxed);
        for (target, &word) in slot[1..].iter().zip(words) {
            target.cell().store(word, Ordering::Relaxed);
        }
    }

    /// Sets the head to `position` and releases the lock bit.
    #[inline]
    pub(super) fn end(&self, position: u64) {
        self.head_word().store(position << 1, Ordering::Release);
    }

    /// Prefetches the slots of the next fence, from `position` on: the last drain has read them on
    /// another processor.
    #[inline(always)]
    pub(super) fn prefetch(&self, position: u64) {
        let first = self.slot(position).as_ptr() as usize;
        for line in lines(first, PREFETCHED_BYTES) {
            prefetch_for_store(line);
        }
    }

    /// Returns the line at `position`, which is before the head and was put by this process.
    #[inline]
    pub(super) fn get(&self, position: u64) -> (u64, [u64; LINE_WORDS]) {
        let (first, words) = self.read(position);
        (line_of(first), words)
    }

    /// Returns the line at `position`, which is before the head, or `None` if its sum is wrong: the
    /// disk of the ring lost it.
    pub(super) fn checked(&self, position: u64) -> Option<(u64, [u64; LINE_WORDS])> {
        let (first, words) = self.read(position);
        let line = line_of(first);
        if first == 0 && words == [0; LINE_WORDS] {
            return None; // never written: line 0 has a magic number
        }
        (first == line | self.sum_of(position, line, &words)).then_some((line, words))
    }

    /// Returns the sum of a record of this open.
    #[inline(always)]
    fn sum_of(&self, position: u64, line: u64, words: &[u64; LINE_WORDS]) -> u64 {
        sum_of(position ^ self.seed.load(Ordering::Relaxed), line, words)
    }

    #[inline]
    fn read(&self, position: u64) -> (u64, [u64; LINE_WORDS]) {
        let slot = self.slot(position);
        let words = core::array::from_fn(|i| slot[i + 1].cell().load(Ordering::Relaxed));
        (slot[0].cell().load(Ordering::Relaxed), words)
    }
}

/// Returns the nonces of the stamp in the first bytes of a ring, that of its open first, and the
/// head.
pub(super) fn read_header(bytes: &[u8; HEADER_BYTES]) -> ([u64; 2], u64) {
    let (words, _) = bytes.as_chunks();
    let word = |at: usize| u64::from_le_bytes(words[at]);
    ([NONCE, FORMER].map(word), word(HEAD_AT as usize / 8) >> 1)
}

/// Returns the number of the line in the first word of a slot.
#[inline]
fn line_of(first: u64) -> u64 {
    first & ((1 << LINE_BITS) - 1)
}

/// Returns a sum of 23 bits of a record, above the number of the line.
#[inline(always)]
fn sum_of(number: u64, line: u64, words: &[u64; LINE_WORDS]) -> u64 {
    const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
    // Each rotation is one of its own, so that none waits for another.
    let mut fold = (number.wrapping_mul(MIX) ^ line).rotate_left(7 * LINE_WORDS as u32);
    for (index, word) in words.iter().enumerate() {
        fold ^= word.rotate_left(7 * (LINE_WORDS - 1 - index) as u32);
    }
    (fold.wrapping_mul(MIX) >> LINE_BITS) << LINE_BITS
}
