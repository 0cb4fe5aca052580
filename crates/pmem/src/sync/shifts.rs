//! The shift counter of a node: its parity tells readers without a latch which way entries move.
//!
//! | bits | field |
//! | --- | --- |
//! | 0 | 1: writers move entries to the left; 0: to the right |
//! | 1..40 | number of changes of direction and of range |
//! | 40..64 | low 24 bits of the nonce of the open that the rest belongs to |
//!
//! 1. A writer that holds the node's latch sets the direction before it moves the first entry.
//! 2. A reader that finds the same count before and after its scan has met shifts in one direction
//!    alone. If it scanned in that direction, no entry that was there throughout has escaped it.
//! 3. A word of another nonce is stale and reads as the first count, as in a
//!    [latch](super::Latch). So no recovery repairs a counter.

use super::latch::{LatchBits, LatchWord, NONCE_SHIFT, OnMedium};
use crate::medium::Medium;
use crate::word::PmWord;
use core::panic::Location;

const LEFTWARD: u64 = 1;
const ONE_CHANGE: u64 = 2;
const COUNT: u64 = (1 << NONCE_SHIFT) - 1;

/// The value of a shift counter at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShiftCount(u64);

impl ShiftCount {
    /// Returns `true` if writers move entries to the left.
    #[inline(always)]
    pub fn are_leftward(self) -> bool {
        self.0 & LEFTWARD != 0
    }
}

/// A shift counter in a word of type `W`, with the nonce of the open in which the word is valid.
#[derive(Clone, Copy, Debug)]
pub struct ShiftCounter<W> {
    word: W,
    /// The nonce, at its place in the word.
    nonce: u64,
}

impl<W: LatchWord> ShiftCounter<W> {
    /// Returns the counter in `word`. `nonce` is that of the pool's open.
    #[inline(always)]
    pub fn new(word: W, nonce: u64) -> Self {
        Self { word, nonce: nonce << NONCE_SHIFT }
    }

    /// Returns the count.
    #[inline(always)]
    pub fn read(&self) -> ShiftCount {
        let word = self.word.load();
        let is_current = (word ^ self.nonce) >> NONCE_SHIFT == 0;
        ShiftCount(if is_current { word & COUNT } else { W::first_version(LatchBits::Whole) })
    }

    /// Returns `true` if the count is still `seen`.
    #[inline(always)]
    #[track_caller]
    pub fn validate(&self, seen: ShiftCount) -> bool {
        self.read() == seen || W::skip_validation(Location::caller())
    }

    /// Sets the direction. The caller holds the node's latch.
    #[inline(always)]
    pub fn turn(&self, leftward: bool) {
        let seen = self.read();
        if seen.are_leftward() != leftward {
            self.set(seen.0 + 1);
        }
    }

    /// Counts a change of the node's range, in either direction. The caller holds the latch.
    pub fn advance(&self) {
        self.set(self.read().0 + ONE_CHANGE);
    }

    #[inline(always)]
    fn set(&self, count: u64) {
        self.word.store(self.nonce | count & COUNT);
    }
}

impl<'a, M: Medium> OnMedium<'a, M> {
    /// Returns the shift counter in the transient word `word` of a pool whose open has that nonce.
    #[inline(always)]
    pub fn shift_counter(medium: &'a M, word: &'a PmWord, nonce: u64) -> ShiftCounter<Self> {
        ShiftCounter::new(Self::of(medium, word), nonce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn a_turn_changes_the_count_only_if_the_direction_changes() {
        let word = AtomicU64::new(0);
        let counter = ShiftCounter::new(&word, 3);
        let first = counter.read();
        counter.turn(false);
        assert!(counter.validate(first) && !first.are_leftward());
        counter.turn(true);
        let second = counter.read();
        assert!(!counter.validate(first) && second.are_leftward());
        counter.turn(true);
        assert!(counter.validate(second));
        counter.advance();
        assert!(!counter.validate(second) && counter.read().are_leftward());
    }

    #[test]
    fn a_count_of_another_nonce_is_stale_and_a_count_wraps_within_its_bits() {
        let word = AtomicU64::new(2 << NONCE_SHIFT | 5);
        let counter = ShiftCounter::new(&word, 3);
        assert_eq!(counter.read(), ShiftCount(0));
        word.store(3 << NONCE_SHIFT | COUNT, Ordering::Relaxed);
        counter.turn(false);
        assert_eq!(word.load(Ordering::Relaxed), 3 << NONCE_SHIFT);
    }
}
