//! The optimistic latch: one word with a version, which readers validate and a writer locks.
//!
//! | bits | field |
//! | --- | --- |
//! | 0 | held by a writer |
//! | 1 | obsolete: the node is unlinked and will be freed |
//! | 2..40 | version, one more after each writer |
//! | 40..64 | low 24 bits of the nonce of the open that the rest belongs to |
//!
//! 1. A word of another nonce is stale and reads as free: no thread of that open is left. So
//!    recovery need not repair a latch that was held at a crash. An open draws its nonce at random.
//!    So no word that a file holds, from whatever time and in whatever mixture, looks held, except
//!    by a chance of 2^-24 for each word.
//! 2. If all loads between [`Latch::read`] and a successful [`Latch::validate`] acquire, the reader
//!    has seen a state that no writer was changing.
//! 3. A writer releases the latch after its last fence, so no reader sees a value that a crash
//!    could undo.

use crate::defect::Defect;
use crate::medium::Medium;
use crate::word::PmWord;
use core::marker::PhantomData;
use core::panic::Location;
use core::sync::atomic::{AtomicU64, Ordering};

const HELD: u64 = 1;
const OBSOLETE: u64 = 2;
const ONE_VERSION: u64 = 4;
pub(super) const NONCE_SHIFT: u32 = 40;
/// The first version in an [aged](Medium::is_aged) pool: the last one before the bits wrap.
const AGED_VERSION: u64 = (1 << NONCE_SHIFT) - ONE_VERSION;

/// The word of a latch: an atomic in DRAM, or a transient word of a pool.
pub trait LatchWord: Copy {
    /// Loads the word with acquire ordering.
    fn load(self) -> u64;
    /// Stores the word with release ordering.
    fn store(self, value: u64);
    /// Replaces `old` by `new`, or returns `false` if the word is not `old`.
    fn replace(self, old: u64, new: u64) -> bool;
    /// Waits for a moment while another thread holds the latch. `spins` counts the calls.
    fn relax(spins: &mut u32) {
        relax(spins);
    }
    /// Returns the version at which a stale word begins: 0, or near the bound if the pool
    /// [is aged](Medium::is_aged).
    #[inline(always)]
    fn first_version() -> u64 {
        0
    }
    /// Returns `true` if the version check at call site `at` must succeed: see
    /// [`Medium::skip_validation`].
    #[inline(always)]
    fn skip_validation(_at: &'static Location<'static>) -> bool {
        false
    }
}

impl LatchWord for &AtomicU64 {
    #[inline(always)]
    fn load(self) -> u64 {
        AtomicU64::load(self, Ordering::Acquire)
    }
    #[inline(always)]
    fn store(self, value: u64) {
        AtomicU64::store(self, value, Ordering::Release);
    }
    #[inline(always)]
    fn replace(self, old: u64, new: u64) -> bool {
        self.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// A latch word in a pool, on a medium of type `M`.
#[derive(Debug)]
pub struct OnMedium<'a, M> {
    medium: &'a M,
    word: &'a PmWord,
}

impl<M> Clone for OnMedium<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M> Copy for OnMedium<'_, M> {}

impl<M: Medium> LatchWord for OnMedium<'_, M> {
    #[inline(always)]
    fn load(self) -> u64 {
        self.medium.load_transient(self.word)
    }
    #[inline(always)]
    fn store(self, value: u64) {
        self.medium.store_transient(self.word, value);
    }
    #[inline(always)]
    fn replace(self, old: u64, new: u64) -> bool {
        self.medium.cas_transient(self.word, old, new).is_ok()
    }
    #[inline(always)]
    fn first_version() -> u64 {
        if M::is_aged() { AGED_VERSION } else { 0 }
    }
    #[inline(always)]
    fn relax(spins: &mut u32) {
        if !M::spin_hint() {
            relax(spins);
        }
    }
    #[inline(always)]
    fn skip_validation(at: &'static Location<'static>) -> bool {
        M::CONTROLS_SCHEDULE && M::skip_validation(at)
    }
}

/// A latch word in DRAM. It is not on the medium, but each access is a yield point of `M`.
#[derive(Debug)]
pub struct OnDram<'a, M> {
    word: &'a AtomicU64,
    medium: PhantomData<fn() -> M>,
}

impl<M> Clone for OnDram<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M> Copy for OnDram<'_, M> {}

impl<M: Medium> LatchWord for OnDram<'_, M> {
    #[inline(always)]
    fn load(self) -> u64 {
        M::yield_point();
        LatchWord::load(self.word)
    }
    #[inline(always)]
    fn store(self, value: u64) {
        M::yield_point();
        LatchWord::store(self.word, value);
    }
    #[inline(always)]
    fn replace(self, old: u64, new: u64) -> bool {
        M::yield_point();
        self.word.replace(old, new)
    }
    #[inline(always)]
    fn relax(spins: &mut u32) {
        if !M::spin_hint() {
            relax(spins);
        }
    }
    #[inline(always)]
    fn skip_validation(at: &'static Location<'static>) -> bool {
        M::CONTROLS_SCHEDULE && M::skip_validation(at)
    }
}

/// Returns the low 24 bits of a nonce, which a latch word carries.
#[inline(always)]
pub const fn nonce_of(word: u64) -> u64 {
    word >> NONCE_SHIFT
}

/// The value of a latch word while the latch is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(u64);

/// A latch in a word of type `W`, with the nonce of the open in which the word is valid.
#[derive(Clone, Copy, Debug)]
pub struct Latch<W> {
    word: W,
    /// The nonce, at its place in the word.
    nonce: u64,
}

impl<W: LatchWord> Latch<W> {
    /// Returns the latch in `word`. `nonce` is that of the pool's open, or 0 for a latch in DRAM.
    #[inline(always)]
    pub fn new(word: W, nonce: u64) -> Self {
        Self { word, nonce: nonce << NONCE_SHIFT }
    }

    #[inline(always)]
    fn is_current(&self, word: u64) -> bool {
        (word ^ self.nonce) >> NONCE_SHIFT == 0
    }

    /// Waits until no writer holds the latch, and returns the version; `None` if the node is
    /// obsolete.
    #[inline(always)]
    pub fn read(&self) -> Option<Version> {
        let word = self.word.load();
        if word & (HELD | OBSOLETE) == 0 || !self.is_current(word) {
            return Some(Version(word));
        }
        self.wait()
    }

    #[cold]
    fn wait(&self) -> Option<Version> {
        let mut spins = 0;
        loop {
            let word = self.word.load();
            if !self.is_current(word) || word & (HELD | OBSOLETE) == 0 {
                return Some(Version(word));
            }
            if word & OBSOLETE != 0 {
                return None;
            }
            W::relax(&mut spins);
        }
    }

    /// Returns `true` if the word is still `seen`: no writer has changed the node since.
    #[inline(always)]
    #[track_caller]
    pub fn validate(&self, seen: Version) -> bool {
        self.word.load() == seen.0 || W::skip_validation(Location::caller())
    }

    /// Returns `true` if `seen` has another nonce. Then no thread has changed the node, or
    /// [adopted](Self::adopt) its word, since the pool was opened.
    #[inline(always)]
    pub fn is_stale(&self, seen: Version) -> bool {
        !self.is_current(seen.0)
    }

    /// Sets the word to the current nonce, free, if it is still the stale `seen`.
    pub fn adopt(&self, seen: Version) {
        self.word.replace(seen.0, self.nonce);
    }

    /// Takes the latch if the word is still `seen`, else returns `None`.
    #[inline(always)]
    #[track_caller]
    pub fn upgrade(&self, seen: Version) -> Option<Exclusive<W>> {
        if W::skip_validation(Location::caller()) {
            return self.lock();
        }
        self.replace(seen)
    }

    #[inline(always)]
    fn replace(&self, seen: Version) -> Option<Exclusive<W>> {
        let stale = self.nonce | W::first_version();
        let free = if self.is_current(seen.0) { seen.0 } else { stale };
        self.word
            .replace(seen.0, free | HELD)
            .then(|| Exclusive { word: self.word, next: self.nonce | Self::after(free) })
    }

    /// Returns the version bits after `free`, within their 38 bits.
    #[inline(always)]
    fn after(free: u64) -> u64 {
        (free + ONE_VERSION) & ((1 << NONCE_SHIFT) - 1)
    }

    /// Takes the latch if it is free. Returns `None` if it is held or the node is obsolete.
    #[inline]
    pub fn try_lock(&self) -> Option<Exclusive<W>> {
        let word = self.word.load();
        let free = word & (HELD | OBSOLETE) == 0 || !self.is_current(word);
        if free { self.replace(Version(word)) } else { None }
    }

    /// Returns whether a writer holds the latch, without waiting; `None` if the node is obsolete.
    #[inline(always)]
    pub fn is_held(&self) -> Option<bool> {
        let word = self.word.load();
        if !self.is_current(word) {
            return Some(false);
        }
        (word & OBSOLETE == 0).then_some(word & HELD != 0)
    }

    /// Frees the latch unconditionally; a stale word is free as it is. Only for recovery, before
    /// any other thread can reach the node. Damage may have made the word look held under this
    /// nonce, and a thread would wait for it forever.
    pub fn reset(&self) {
        if self.is_current(self.word.load()) {
            self.word.store(0);
        }
    }

    /// Waits for the latch and takes it. Returns `None` if the node is obsolete.
    #[inline]
    pub fn lock(&self) -> Option<Exclusive<W>> {
        loop {
            let seen = self.read()?;
            if let Some(held) = self.replace(seen) {
                return Some(held);
            }
        }
    }
}

/// Spins, and yields the processor at every 64th call, because the holder may not be running.
#[cold]
fn relax(spins: &mut u32) {
    *spins += 1;
    if spins.is_multiple_of(64) {
        std::thread::yield_now();
    } else {
        core::hint::spin_loop();
    }
}

/// The guard of a held latch. Dropping it releases the latch and increments the version.
#[derive(Debug)]
#[must_use = "the latch is released when this is dropped"]
pub struct Exclusive<W: LatchWord> {
    word: W,
    next: u64,
}

impl<W: LatchWord> Exclusive<W> {
    /// Releases the latch and marks the node as unlinked. A thread that reaches the node later
    /// restarts.
    pub fn obsolete(mut self) {
        self.next |= OBSOLETE;
    }

    /// Returns the version that the word will have after the release.
    pub fn released(&self) -> Version {
        Version(self.next)
    }
}

impl<W: LatchWord> Drop for Exclusive<W> {
    #[inline(always)]
    fn drop(&mut self) {
        self.word.store(self.next);
    }
}

impl<'a, M: Medium> OnMedium<'a, M> {
    #[inline(always)]
    pub(super) fn of(medium: &'a M, word: &'a PmWord) -> Self {
        Self { medium, word }
    }

    /// Returns the latch in the transient word `word` of a pool whose open has that nonce.
    #[inline(always)]
    pub fn latch(medium: &'a M, word: &'a PmWord, nonce: u64) -> Latch<Self> {
        if M::INJECTS_DEFECTS && medium.injects(Defect::LatchKept) {
            return Latch::new(Self { medium, word }, 0);
        }
        Latch::new(Self { medium, word }, nonce)
    }
}

impl<'a, M: Medium> OnDram<'a, M> {
    /// Returns the latch in `word`. It has no nonce, because the word does not outlive the process.
    #[inline(always)]
    pub fn latch(word: &'a AtomicU64) -> Latch<Self> {
        Latch::new(Self { word, medium: PhantomData }, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_invalidate_readers_and_each_other() {
        let word = AtomicU64::new(0);
        let latch = Latch::new(&word, 0);
        let seen = latch.read().unwrap();
        assert_eq!(latch.is_held(), Some(false));
        let held = latch.upgrade(seen).unwrap();
        assert!(!latch.validate(seen));
        assert_eq!(latch.is_held(), Some(true));
        assert!(latch.upgrade(seen).is_none());
        let after = held.released();
        drop(held);
        assert!(!latch.validate(seen) && latch.validate(after));
        latch.lock().unwrap().obsolete();
        assert!(latch.read().is_none() && latch.lock().is_none() && latch.is_held().is_none());
    }

    #[test]
    fn a_latch_of_another_nonce_reads_as_free() {
        let word = AtomicU64::new(0);
        word.store(1 << NONCE_SHIFT | HELD, Ordering::Relaxed);
        assert_eq!(word.load(Ordering::Relaxed) & HELD, HELD);
        let later = Latch::new(&word, 2);
        let seen = later.read().unwrap();
        let held = later.upgrade(seen).unwrap();
        drop(held);
        assert_eq!(word.load(Ordering::Relaxed), 2 << NONCE_SHIFT | ONE_VERSION);
    }

    #[test]
    fn a_reset_frees_a_word_of_this_nonce_and_leaves_a_stale_one() {
        for bits in [0, HELD, OBSOLETE, HELD | OBSOLETE] {
            for nonce in [1, 2] {
                let word = AtomicU64::new(nonce << NONCE_SHIFT | ONE_VERSION | bits);
                let latch = Latch::new(&word, 2);
                let stale = word.load(Ordering::Relaxed);
                latch.reset();
                let expected = if nonce == 2 { 0 } else { stale };
                assert_eq!(word.load(Ordering::Relaxed), expected);
                assert!(latch.try_lock().is_some());
            }
        }
    }

    #[test]
    fn a_stale_word_is_adopted_unless_another_thread_changed_it() {
        let word = AtomicU64::new(1 << NONCE_SHIFT | HELD);
        let latch = Latch::new(&word, 2);
        let seen = latch.read().unwrap();
        assert!(latch.is_stale(seen));
        latch.adopt(seen);
        let fresh = latch.read().unwrap();
        assert!(!latch.is_stale(fresh) && !latch.validate(seen));
        drop(latch.lock().unwrap());
        let changed = latch.read().unwrap();
        latch.adopt(fresh);
        assert!(latch.validate(changed) && changed != fresh);
    }
}
