//! The shared latch: one word that either any number of readers hold, or one writer.
//!
//! | bits | field |
//! | --- | --- |
//! | 0 | held by a writer, or wanted by one that waits for the readers to leave |
//! | 1 | obsolete: the node is unlinked and will be freed |
//! | 2..40 | number of readers |
//! | 40..64 | low 24 bits of the nonce of the open that the rest belongs to |
//!
//! 1. A word of another nonce is stale and reads as free, as in an optimistic
//!    [latch](super::Latch): a crash leaves no latch held.
//! 2. A writer sets its bit first and then waits for the readers to leave. No reader enters
//!    meanwhile, so readers cannot keep a writer waiting for ever.
//! 3. A writer releases the latch after its last fence, so no reader sees a value that a crash
//!    could undo.

use super::latch::{LatchWord, NONCE_SHIFT, OnMedium};
use crate::medium::Medium;
use crate::word::PmWord;

const HELD: u64 = 1;
const OBSOLETE: u64 = 2;
const ONE_READER: u64 = 4;
const READERS: u64 = (1 << NONCE_SHIFT) - ONE_READER;

/// A shared latch in a word of type `W`, with the nonce of the open in which the word is valid.
#[derive(Clone, Copy, Debug)]
pub struct SharedLatch<W> {
    word: W,
    /// The nonce, at its place in the word.
    nonce: u64,
}

impl<W: LatchWord> SharedLatch<W> {
    /// Returns the latch in `word`. `nonce` is that of the pool's open.
    #[inline(always)]
    pub fn new(word: W, nonce: u64) -> Self {
        Self { word, nonce: nonce << NONCE_SHIFT }
    }

    /// Returns what `word` says in this open: a stale word says that the latch is free.
    #[inline(always)]
    fn current(&self, word: u64) -> u64 {
        if (word ^ self.nonce) >> NONCE_SHIFT == 0 { word } else { self.nonce }
    }

    /// Waits until no writer holds the latch and sets `bits`. Returns `None` if the node is
    /// obsolete.
    #[inline]
    fn enter(&self, change: impl Fn(u64) -> u64) -> Option<()> {
        let mut spins = 0;
        loop {
            let seen = self.word.load();
            let word = self.current(seen);
            if word & OBSOLETE != 0 {
                return None;
            }
            if word & HELD != 0 {
                W::relax(&mut spins);
            } else if self.word.replace(seen, change(word)) {
                return Some(());
            }
        }
    }

    /// Waits for the latch and takes it for reading. Returns `None` if the node is obsolete.
    #[inline]
    pub fn share(&self) -> Option<Shared<W>> {
        self.enter(|word| word + ONE_READER)?;
        Some(Shared { word: self.word })
    }

    /// Waits for the latch and takes it for writing. Returns `None` if the node is obsolete.
    #[inline]
    pub fn lock(&self) -> Option<Unshared<W>> {
        self.enter(|word| word | HELD)?;
        let mut spins = 0;
        while self.word.load() & READERS != 0 {
            W::relax(&mut spins);
        }
        Some(Unshared { word: self.word, next: self.nonce })
    }
}

/// The guard of a latch held for reading.
#[derive(Debug)]
#[must_use = "the latch is released when this is dropped"]
pub struct Shared<W: LatchWord> {
    word: W,
}

impl<W: LatchWord> Drop for Shared<W> {
    #[inline]
    fn drop(&mut self) {
        loop {
            let seen = self.word.load();
            // Damage may have changed the word meanwhile; then there is no count to lower.
            if seen & READERS == 0 || self.word.replace(seen, seen - ONE_READER) {
                return;
            }
        }
    }
}

/// The guard of a latch held for writing.
#[derive(Debug)]
#[must_use = "the latch is released when this is dropped"]
pub struct Unshared<W: LatchWord> {
    word: W,
    next: u64,
}

impl<W: LatchWord> Unshared<W> {
    /// Releases the latch and marks the node as unlinked. A thread that reaches the node later
    /// restarts.
    pub fn obsolete(mut self) {
        self.next |= OBSOLETE;
    }
}

impl<W: LatchWord> Drop for Unshared<W> {
    #[inline(always)]
    fn drop(&mut self) {
        self.word.store(self.next);
    }
}

impl<'a, M: Medium> OnMedium<'a, M> {
    /// Returns the shared latch in the transient word `word` of a pool whose open has that nonce.
    #[inline(always)]
    pub fn shared(medium: &'a M, word: &'a PmWord, nonce: u64) -> SharedLatch<Self> {
        SharedLatch::new(Self::of(medium, word), nonce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    #[test]
    fn readers_share_and_a_writer_waits_for_them() {
        let word = AtomicU64::new(0);
        let latch = SharedLatch::new(&word, 5);
        let readers = [latch.share().unwrap(), latch.share().unwrap()];
        let entered = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let held = latch.lock().unwrap();
                entered.store(true, Ordering::Release);
                drop(held);
            });
            while word.load(Ordering::Acquire) & HELD == 0 {
                std::thread::yield_now();
            }
            assert!(!entered.load(Ordering::Acquire), "a writer entered beside readers");
            drop(readers);
        });
        assert!(entered.load(Ordering::Acquire));
        latch.lock().unwrap().obsolete();
        assert!(latch.share().is_none() && latch.lock().is_none());
    }

    #[test]
    fn a_shared_latch_of_another_nonce_reads_as_free() {
        for bits in [HELD, OBSOLETE, 3 * ONE_READER, READERS | HELD] {
            let word = AtomicU64::new(1 << NONCE_SHIFT | bits);
            let latch = SharedLatch::new(&word, 2);
            drop(latch.share().unwrap());
            assert_eq!(word.load(Ordering::Relaxed), 2 << NONCE_SHIFT);
            drop(latch.lock().unwrap());
            assert_eq!(word.load(Ordering::Relaxed), 2 << NONCE_SHIFT);
        }
    }
}
