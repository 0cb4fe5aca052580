//! The rows: one for each leaf, in DRAM, with its latch and the references to the log records that
//! its units do not have yet.
//!
//! | word | bits | field |
//! | --- | --- | --- |
//! | 0 | 0..64 | latch of the leaf and of the row |
//! | 1 | 0..48 | offset of the leaf |
//! | 1 | 48..53 | the number of references |
//! | 1 | 53..59 | of these, those of keys that no unit has: their slots are kept free |
//! | 1 | 59..64 | of these, removes |
//! | 2 | 0..50 | version of the newest write |
//! | 2 | 60..64 | the homes with keys in other units, as bits |
//! | 3..18 | | two positions of log records in each |
//! | 18..22 | | the tags of the references, one byte each: the home in the low two bits |
//!
//! 1. Rows come from an arena and return to it, and their versions only grow. A thread that follows
//!    a stale number detects it when it validates the inner node that held the number.
//! 2. A key has at most one reference: that of its newest write.
//! 3. A row that is returned has no references.

use super::unit::{STAMP_MAX, UNITS, home_of};
use crate::fingerprint;
use crate::inner::{Arena, load, store};
use crate::leaf::slots;
use bristlecone_pmem::sync::{Latch, OnDram};
use bristlecone_pmem::{Medium, PmPtr, PoolError, sys};
use core::sync::atomic::{AtomicU64, Ordering};
use parking_lot::Mutex;

/// The most references of a row.
pub(super) const REFERENCES: usize = 30;

/// The most rows that wait for maintenance workers.
const FULL_MAX: usize = 1 << 10;

const WORDS: usize = 22;
const LATCH: usize = 0;
const PLACE: usize = 1;
const VERSION: usize = 2;
const POSITIONS: usize = 3;
const TAGS: usize = POSITIONS + REFERENCES / 2;
const TAG_WORDS: usize = WORDS - TAGS;

const COUNT_SHIFT: u32 = 48;
const FRESH_SHIFT: u32 = 53;
const REMOVED_SHIFT: u32 = 59;
const LEAF: u64 = (1 << COUNT_SHIFT) - 1;
const SPILLED_SHIFT: u32 = 60;
const VERSIONS: u64 = 2 * STAMP_MAX + 1;

const _: () = assert!(REFERENCES <= 8 * TAG_WORDS && REFERENCES < 32);
const _: () = assert!(VERSIONS < 1 << SPILLED_SHIFT);

/// Returns the tag of a key with this hash.
#[inline(always)]
pub(super) const fn tag_of(hash: u64) -> u8 {
    fingerprint::of(hash) & !(UNITS as u8 - 1) | home_of(hash) as u8
}

/// The rows of all leaves.
#[derive(Debug)]
pub(super) struct Rows {
    arena: Arena<WORDS>,
    /// The number of rows in use, for writers, who take no lock for it.
    count: AtomicU64,
    /// The numbers of rows that have become full, for maintenance workers.
    full: Mutex<Vec<usize>>,
}

impl Rows {
    pub(super) fn new() -> Result<Self, PoolError> {
        Ok(Self { arena: Arena::new()?, count: AtomicU64::new(0), full: Mutex::default() })
    }

    /// Returns the row with this number.
    #[inline(always)]
    pub(super) fn row(&self, number: usize) -> UnitRow<'_> {
        UnitRow { number, words: self.arena.get(number) }
    }

    /// Takes a row for the leaf at `leaf`, in which these homes have keys in other units, and
    /// returns its number.
    pub(super) fn take<M: Medium>(&self, leaf: PmPtr, version: u64, spilled: u64) -> usize {
        let number = self.arena.take();
        self.count.fetch_add(1, Ordering::Relaxed);
        self.row(number).begin::<M>(leaf, version, spilled);
        number
    }

    /// Takes `count` rows with successive numbers, which the caller [begins](UnitRow::begin), and
    /// returns the first number.
    pub(super) fn take_all(&self, count: usize) -> usize {
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        self.arena.take_all(count)
    }

    /// Returns a row that has no references to the arena.
    pub(super) fn put_back(&self, number: usize) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.arena.put_back(number);
    }

    /// Notes that a row is full, unless workers leave many such rows.
    pub(super) fn note_full(&self, row: UnitRow<'_>) {
        let mut full = self.full.lock();
        if full.len() < FULL_MAX {
            full.push(row.number);
        }
    }

    /// Returns a row that was full, and forgets it.
    pub(super) fn take_full(&self) -> Option<UnitRow<'_>> {
        self.full.lock().pop().map(|number| self.row(number))
    }

    /// Returns one more than the greatest number ever taken.
    pub(super) fn end(&self) -> usize {
        self.arena.end()
    }

    /// Returns the number of rows in use.
    pub(super) fn in_use(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.arena.bytes()
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, number: usize) {
        self.arena.prefetch(number);
    }
}

/// The numbers of references of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) count: usize,
    /// Of these, those of keys that no unit has.
    pub(super) fresh: usize,
    /// Of these, removes.
    pub(super) removed: usize,
}

/// A view of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitRow<'a> {
    number: usize,
    words: &'a [AtomicU64; WORDS],
}

impl<'a> UnitRow<'a> {
    /// Makes the row that of the leaf at `leaf`, without references.
    pub(super) fn begin<M: Medium>(self, leaf: PmPtr, version: u64, spilled: u64) {
        store::<M>(&self.words[PLACE], leaf.offset());
        store::<M>(&self.words[VERSION], version | spilled << SPILLED_SHIFT);
    }

    #[inline(always)]
    pub(super) fn latch<M: Medium>(self) -> Latch<OnDram<'a, M>> {
        OnDram::latch(&self.words[LATCH])
    }

    #[inline(always)]
    pub(super) fn leaf<M: Medium>(self) -> PmPtr {
        PmPtr::new(load::<M>(&self.words[PLACE]) & LEAF)
    }

    #[inline(always)]
    pub(super) fn pending<M: Medium>(self) -> Pending {
        let word = load::<M>(&self.words[PLACE]);
        let bits = |shift: u32, bits: u32| (word >> shift & ((1 << bits) - 1)) as usize;
        Pending {
            count: bits(COUNT_SHIFT, FRESH_SHIFT - COUNT_SHIFT).min(REFERENCES),
            fresh: bits(FRESH_SHIFT, REMOVED_SHIFT - FRESH_SHIFT),
            removed: bits(REMOVED_SHIFT, u64::BITS - REMOVED_SHIFT),
        }
    }

    fn set_pending<M: Medium>(self, Pending { count, fresh, removed }: Pending) {
        let counts = [(count, COUNT_SHIFT), (fresh, FRESH_SHIFT), (removed, REMOVED_SHIFT)];
        let leaf = self.leaf::<M>().offset();
        let word = counts.iter().fold(leaf, |word, &(count, shift)| word | (count as u64) << shift);
        store::<M>(&self.words[PLACE], word);
    }

    /// Returns the version of the newest write.
    #[inline(always)]
    pub(super) fn version<M: Medium>(self) -> u64 {
        load::<M>(&self.words[VERSION]) & VERSIONS
    }

    pub(super) fn set_version<M: Medium>(self, version: u64) {
        let spilled = load::<M>(&self.words[VERSION]) & !VERSIONS;
        store::<M>(&self.words[VERSION], spilled | version);
    }

    /// Returns `true` if keys with this home may lie in other units.
    #[inline(always)]
    pub(super) fn is_spilled<M: Medium>(self, home: usize) -> bool {
        load::<M>(&self.words[VERSION]) >> SPILLED_SHIFT >> home & 1 == 1
    }

    /// Notes the homes with keys in other units, as bits, besides those noted before.
    pub(super) fn add_spilled<M: Medium>(self, homes: u64) {
        if homes != 0 {
            let word = load::<M>(&self.words[VERSION]);
            store::<M>(&self.words[VERSION], word | homes << SPILLED_SHIFT);
        }
    }

    #[inline(always)]
    fn tags<M: Medium>(self) -> [u64; TAG_WORDS] {
        core::array::from_fn(|word| load::<M>(&self.words[TAGS + word]))
    }

    /// Returns the numbers of the references with this tag. A writer may run at the same time.
    #[inline(always)]
    pub(super) fn tagged<M: Medium>(self, tag: u8) -> impl Iterator<Item = usize> {
        let all = (1 << self.pending::<M>().count) - 1;
        slots(if all == 0 { 0 } else { fingerprint::matches(self.tags::<M>(), tag) & all })
    }

    /// Returns the numbers of the references of keys with this home, as bits.
    pub(super) fn of_home<M: Medium>(self, home: usize) -> u64 {
        let tags = self.tags::<M>();
        let is_of = |at: usize| (tags[at / 8] >> (8 * (at % 8))) as usize % UNITS == home;
        let count = self.pending::<M>().count;
        (0..count).filter(|&at| is_of(at)).fold(0, |homes, at| homes | 1 << at)
    }

    /// Returns the position of the record of a reference.
    #[inline(always)]
    pub(super) fn position<M: Medium>(self, at: usize) -> u32 {
        (load::<M>(&self.words[POSITIONS + at / 2]) >> (32 * (at % 2))) as u32
    }

    fn set<M: Medium>(self, at: usize, tag: u8, position: u32) {
        set_part::<M>(&self.words[POSITIONS + at / 2], (32 * (at % 2), 32), position.into());
        set_part::<M>(&self.words[TAGS + at / 8], (8 * (at % 8), 8), tag.into());
    }

    /// Makes reference `at` one to `position`.
    pub(super) fn replace<M: Medium>(self, at: usize, position: u32, pending: Pending) {
        set_part::<M>(&self.words[POSITIONS + at / 2], (32 * (at % 2), 32), position.into());
        self.set_pending::<M>(pending);
    }

    /// Adds a reference, for which there is room.
    pub(super) fn add<M: Medium>(self, tag: u8, position: u32, pending: Pending) {
        self.set::<M>(pending.count, tag, position);
        self.set_pending::<M>(Pending { count: pending.count + 1, ..pending });
    }

    /// Drops the references in `dropped`, bits by their numbers. `pending` are the numbers that
    /// stay.
    pub(super) fn drop_all<M: Medium>(self, dropped: u64, pending: Pending) {
        let (tags, before) = (self.tags::<M>(), self.pending::<M>().count);
        let kept = (0..before).filter(|&at| dropped >> at & 1 == 0);
        for (to, from) in kept.enumerate().filter(|(to, from)| to != from) {
            let tag = (tags[from / 8] >> (8 * (from % 8))) as u8;
            self.set::<M>(to, tag, self.position::<M>(from));
        }
        self.set_pending::<M>(pending);
    }

    #[inline(always)]
    pub(super) fn prefetch(self) {
        sys::prefetch(core::ptr::from_ref(self.words) as usize + 8 * TAGS);
    }
}

/// Sets the `bits` bits of a word from `shift` on.
fn set_part<M: Medium>(word: &AtomicU64, (shift, bits): (usize, u32), part: u64) {
    let mask = (u64::MAX >> (u64::BITS - bits)) << shift;
    store::<M>(word, load::<M>(word) & !mask | part << shift);
}
