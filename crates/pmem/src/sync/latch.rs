//! The optimistic latch: one word with a version, which readers validate and a writer locks.
//!
//! | bits | field |
//! | --- | --- |
//! | 0 | held by a writer |
//! | 1 | obsolete: the node is unlinked and will be freed |
//! | 2..40 | version, one more after each writer |
//! | 40..64 | low 24 bits of the nonce of the open that the rest belongs to |
//!
//! While the latch is held, bits 2..40 are the holder's: they may have a [note](note_held).
//!
//! In a word that a latch shares with a node's link ([`LatchBits::BesideLink`]):
//!
//! | bits | field |
//! | --- | --- |
//! | 0, 1 | as above |
//! | 2..22 | version |
//! | 22..35 | low 13 bits of the nonce |
//! | 35..64 | the link, in units of at least 64 B; the latch never changes it |
//!
//! 1. A word of another nonce is stale and reads as free: no thread of that open is left. So
//!    recovery need not repair a latch that was held at a crash. An open draws its nonce at random.
//!    So no word that a file holds, from whatever time and in whatever mixture, looks held, except
//!    by a chance of 2^-24 for each word.
//! 2. If all loads between [`Latch::read`] and a successful [`Latch::validate`] acquire, the reader
//!    has seen a state that no writer was changing.
//! 3. A writer releases the latch after its last fence, so no reader sees a value that a crash
//!    could undo.
//! 4. The holder alone changes a link beside its latch. A word whose link lies outside the medium
//!    is damage and reads as free, so that the short nonce does not make a thread wait for it.
//!    After a crash the owner [resets](Latch::reset) every such latch.

use crate::defect::Defect;
use crate::line::LINE_BYTES;
use crate::medium::Medium;
use crate::word::PmWord;
use core::convert::Infallible;
use core::marker::PhantomData;
use core::panic::Location;
use core::sync::atomic::{AtomicU64, Ordering};

const HELD: u64 = 1;
const OBSOLETE: u64 = 2;
const ONE_VERSION: u64 = 4;
const VERSION_SHIFT: u32 = 2;
pub(super) const NONCE_SHIFT: u32 = 40;

/// The bits of its word that a latch owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatchBits {
    /// All bits of the word.
    Whole,
    /// The low 35 bits; a node's link has the others.
    BesideLink,
}

impl LatchBits {
    /// The lowest bit of a link beside a latch.
    pub const LINK_SHIFT: u32 = 35;
    const SHORT_NONCE_SHIFT: u32 = 22;

    #[inline(always)]
    const fn nonce_shift(self) -> u32 {
        match self {
            Self::Whole => NONCE_SHIFT,
            Self::BesideLink => Self::SHORT_NONCE_SHIFT,
        }
    }

    /// Returns the mask of the bits that belong to the link.
    #[inline(always)]
    pub const fn link(self) -> u64 {
        match self {
            Self::Whole => 0,
            Self::BesideLink => !0 << Self::LINK_SHIFT,
        }
    }

    /// Returns the mask of the version, which is also that of a wrapped sum of versions.
    #[inline(always)]
    const fn version(self) -> u64 {
        (1 << self.nonce_shift()) - 1
    }
}

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
    /// Returns the bits of the word that the latch owns. [`store`](Self::store) keeps the others.
    #[inline(always)]
    fn bits(self) -> LatchBits {
        LatchBits::Whole
    }
    /// Returns `false` if the bits beside the latch hold what no thread has stored.
    #[inline(always)]
    fn is_plausible(self, _word: u64) -> bool {
        true
    }
    /// Returns `true` if the word is also the latch of nodes to come. Then
    /// [`obsolete`](Exclusive::obsolete) only releases it.
    #[inline(always)]
    fn outlives_node(self) -> bool {
        false
    }
    /// Returns the version at which a stale word begins: 0, or the last one before the bits wrap if
    /// the pool [is aged](Medium::is_aged).
    #[inline(always)]
    fn first_version(_bits: LatchBits) -> u64 {
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
    bits: LatchBits,
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
        match self.bits {
            LatchBits::Whole => self.medium.load_transient(self.word),
            LatchBits::BesideLink => self.medium.load_beside(self.word, self.bits.link()),
        }
    }
    #[inline(always)]
    fn store(self, value: u64) {
        let link = match self.bits {
            LatchBits::Whole => 0,
            LatchBits::BesideLink => {
                let kept = self.bits.link();
                self.medium.load_beside(self.word, kept) & kept
            }
        };
        self.medium.store_transient(self.word, value | link);
    }
    #[inline(always)]
    fn replace(self, old: u64, new: u64) -> bool {
        match self.bits {
            LatchBits::Whole => self.medium.cas_transient(self.word, old, new).is_ok(),
            LatchBits::BesideLink => {
                self.medium.cas_beside(self.word, old, new, self.bits.link()).is_ok()
            }
        }
    }
    #[inline(always)]
    fn bits(self) -> LatchBits {
        self.bits
    }
    #[inline(always)]
    fn is_plausible(self, word: u64) -> bool {
        self.bits == LatchBits::Whole
            || word >> LatchBits::LINK_SHIFT < self.medium.len() / LINE_BYTES as u64
    }
    #[inline(always)]
    fn first_version(bits: LatchBits) -> u64 {
        if M::is_aged() { bits.version() + 1 - ONE_VERSION } else { 0 }
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

/// The number of bits of the note that a held latch can have.
pub const HELD_NOTE_BITS: u32 = NONCE_SHIFT - VERSION_SHIFT;

/// Stores `note` in the word of a latch that this thread holds. Threads that wait for the latch do
/// not read it; the release replaces it. It is ordered with this thread's other stores to the line,
/// so recovery finds the note of a write there which a crash has interrupted.
#[inline(always)]
pub fn note_held<M: Medium>(medium: &M, word: &PmWord, note: u64) {
    let held = medium.load_transient(word);
    debug_assert!(held & (HELD | OBSOLETE) == HELD && note >> HELD_NOTE_BITS == 0);
    medium.store_transient(word, held >> NONCE_SHIFT << NONCE_SHIFT | note << VERSION_SHIFT | HELD);
}

/// Returns the note in a latch word of a crash image, or `None` if no thread held the latch. A
/// latch without a note gives its version; the caller must tell.
#[inline(always)]
pub const fn held_note(word: u64) -> Option<u64> {
    let note = word >> VERSION_SHIFT & ((1 << HELD_NOTE_BITS) - 1);
    if word & HELD == 0 { None } else { Some(note) }
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
        let bits = word.bits();
        Self { word, nonce: nonce << bits.nonce_shift() & !bits.link() }
    }

    #[inline(always)]
    fn is_current(&self, word: u64) -> bool {
        let bits = self.word.bits();
        ((word ^ self.nonce) & !bits.link()) >> bits.nonce_shift() == 0
            && self.word.is_plausible(word)
    }

    /// Waits until no writer holds the latch, and returns the version; `None` if the node is
    /// obsolete.
    #[inline(always)]
    pub fn read(&self) -> Option<Version> {
        let Ok(version) = self.read_checked(|| Ok::<_, Infallible>(()));
        version
    }

    /// Reads the version as [`read`](Self::read) does. Before it waits it calls `check`, which
    /// fails if no latch can have that word.
    ///
    /// # Errors
    /// The latch is not free, and `check` fails.
    #[inline(always)]
    pub fn read_checked<E>(
        &self,
        check: impl FnOnce() -> Result<(), E>,
    ) -> Result<Option<Version>, E> {
        let word = self.word.load();
        if word & (HELD | OBSOLETE) == 0 || !self.is_current(word) {
            return Ok(Some(Version(word)));
        }
        check()?;
        Ok(self.wait())
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

    /// Returns the word of the latch.
    #[inline(always)]
    pub const fn word(&self) -> W {
        self.word
    }

    /// Returns this latch with `wrap` of its word.
    #[inline(always)]
    pub fn map<V: LatchWord>(self, wrap: impl FnOnce(W) -> V) -> Latch<V> {
        Latch { word: wrap(self.word), nonce: self.nonce }
    }

    /// Returns `true` if `seen` has another nonce. Then no thread has changed the node, or
    /// [adopted](Self::adopt) its word, since the pool was opened.
    #[inline(always)]
    pub fn is_stale(&self, seen: Version) -> bool {
        !self.is_current(seen.0)
    }

    /// Returns `true` if the word is stale now: no thread has taken the latch since the pool was
    /// opened.
    #[inline(always)]
    pub fn is_untouched(&self) -> bool {
        !self.is_current(self.word.load())
    }

    /// Sets the word to the current nonce, free, if it is still the stale `seen`.
    pub fn adopt(&self, seen: Version) {
        self.word.replace(seen.0, self.nonce | seen.0 & self.word.bits().link());
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
        let bits = self.word.bits();
        let stale = self.nonce | W::first_version(bits) | seen.0 & bits.link();
        let free = if self.is_current(seen.0) { seen.0 } else { stale };
        let next = self.nonce | free.wrapping_add(ONE_VERSION) & bits.version();
        self.word.replace(seen.0, free | HELD).then(|| Exclusive { word: self.word, next })
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
        if !self.word.outlives_node() {
            self.next |= OBSOLETE;
        }
    }

    /// Returns the version that the word will have after the release, if a link beside it stays.
    pub fn released(&self) -> Version {
        Version(self.next | self.word.load() & self.word.bits().link())
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
        Self { medium, word, bits: LatchBits::Whole }
    }

    /// Returns the latch in the transient word `word` of a pool whose open has that nonce.
    #[inline(always)]
    pub fn latch(medium: &'a M, word: &'a PmWord, nonce: u64) -> Latch<Self> {
        Self::latch_in(medium, word, LatchBits::Whole, nonce)
    }

    /// Returns the latch in `bits` of the word `word` of a pool whose open has that nonce.
    #[inline(always)]
    pub fn latch_in(medium: &'a M, word: &'a PmWord, bits: LatchBits, nonce: u64) -> Latch<Self> {
        let kept = M::INJECTS_DEFECTS && medium.injects(Defect::LatchKept);
        Latch::new(Self { medium, word, bits }, if kept { 0 } else { nonce })
    }
}

impl<'a, M: Medium> OnDram<'a, M> {
    /// Returns `true` if this and `other` are the same word.
    pub fn is_same(&self, other: &OnDram<'_, M>) -> bool {
        core::ptr::eq(self.word, other.word)
    }

    /// Returns the latch in `word`. It has no nonce, because the word does not outlive the process.
    #[inline(always)]
    pub fn latch(word: &'a AtomicU64) -> Latch<Self> {
        Latch::new(Self { word, medium: PhantomData }, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::words_at;
    use crate::{Mapped, PmPtr};

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
    fn a_held_latch_keeps_a_note_until_its_release() {
        let medium = Mapped::anonymous(1 << 20).unwrap();
        let word = &words_at(&medium, PmPtr::new(64), 1).unwrap()[0];
        let latch = OnMedium::latch(&medium, word, u64::MAX);
        let most = (1 << HELD_NOTE_BITS) - 1;
        for note in [0, 1, most] {
            let seen = latch.read().unwrap();
            let held = latch.upgrade(seen).unwrap();
            note_held(&medium, word, note);
            assert_eq!(held_note(medium.load(word)), Some(note));
            assert_eq!(latch.is_held(), Some(true));
            assert!(!latch.validate(seen) && latch.try_lock().is_none());
            let after = held.released();
            drop(held);
            assert!(latch.validate(after) && !latch.validate(seen) && !latch.is_stale(after));
            assert_eq!(held_note(medium.load(word)), None);
        }
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

    /// A latch takes, releases, adopts and resets its bits of a word with a link, and keeps the
    /// link, also if its holder changes it.
    #[test]
    fn a_latch_beside_a_link_keeps_the_link() {
        let medium = Mapped::anonymous(1 << 20).unwrap();
        let word = &words_at(&medium, PmPtr::new(64), 1).unwrap()[0];
        let link = |units: u64| units << LatchBits::LINK_SHIFT;
        let latch = OnMedium::latch_in(&medium, word, LatchBits::BesideLink, u64::MAX);
        medium.store(word, link(3));
        let seen = latch.read().unwrap();
        assert!(latch.is_stale(seen));
        let held = latch.upgrade(seen).unwrap();
        assert_eq!(
            (medium.load(word) & LatchBits::BesideLink.link(), latch.is_held()),
            (link(3), Some(true))
        );
        medium.store(word, medium.load(word) & !LatchBits::BesideLink.link() | link(5));
        let after = held.released();
        drop(held);
        assert!(!latch.validate(seen) && latch.validate(after) && !latch.is_stale(after));
        assert_eq!(medium.load(word) & LatchBits::BesideLink.link(), link(5));
        latch.lock().unwrap().obsolete();
        assert!(latch.read().is_none());
        latch.reset();
        assert_eq!(medium.load(word), link(5));
        latch.adopt(latch.read().unwrap());
        let adopted = latch.read().unwrap();
        assert!(!latch.is_stale(adopted) && medium.load(word) >> LatchBits::LINK_SHIFT == 5);
    }

    /// The short nonce of a latch beside a link is guessed by one damaged word in 8192. Most of
    /// these have a link that lies outside the medium.
    #[test]
    fn a_damaged_link_makes_no_latch_look_held() {
        let medium = Mapped::anonymous(1 << 20).unwrap();
        let word = &words_at(&medium, PmPtr::new(64), 1).unwrap()[0];
        let latch = OnMedium::latch_in(&medium, word, LatchBits::BesideLink, 7);
        drop(latch.lock().unwrap());
        let current = medium.load(word) | HELD;
        for (units, is_held) in [(0, true), ((1 << 14) - 1, true), (1 << 14, false)] {
            medium.store(word, current | units << LatchBits::LINK_SHIFT);
            assert_eq!(latch.is_held(), Some(is_held), "{units}");
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
