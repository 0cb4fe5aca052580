//! One medium for everything that is not memory of this machine: counters, device models, the media
//! of the crash explorer.
//!
//! 1. A tree is compiled once for [`Simulated`] and runs on every [`Simulation`]. An access costs
//!    an indirect call, which is little beside the work of a simulation. Every [`Medium`] is a
//!    simulation too, such as a counter or a device model over memory.
//! 2. An access carries its call site, the source line that made it. By the call site the crash
//!    explorer tells one flush from another.
//! 3. The scheduling methods of [`Medium`] go to the [`schedule`] of the thread.

use super::schedule::{self, CallSite};
use super::{Domain, Fenced, Medium, MediumError};
use crate::defect::Defect;
use crate::numa::Placement;
use crate::word::PmWord;
use core::any::Any;
use core::fmt;
use core::panic::Location;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::Arc;

/// The role of a store in its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreRole {
    /// A store of contents.
    Data,
    /// A store of a latch or a version, which recovery never relies on.
    Transient,
    /// A commit store, which makes a change visible to recovery.
    Commit,
}

/// The copies of lines for which a thread waits, on a disk with a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Awaited {
    /// All copies that fences have made.
    All,
    /// The copies that the thread relies on: see [`Medium::note_read`].
    Noted,
}

/// Memory that a program simulates.
///
/// # Safety
///
/// Implementations keep the three promises of [`Medium`]: the mapping stays, nothing else writes
/// it, and loads return the newest store.
#[expect(unsafe_code, reason = "a simulation promises that its mapping stays")]
pub unsafe trait Simulation: Any + Send + Sync + fmt::Debug {
    /// Returns the address of the first byte, as [`Medium::base`].
    fn base(&self) -> NonNull<u8>;
    /// Returns the number of mapped bytes, as [`Medium::len`].
    fn len(&self) -> u64;
    /// Extends the mapping to `bytes` bytes, as [`Medium::grow`].
    ///
    /// # Errors
    /// The simulated device is full, or `bytes` is over its limit.
    fn grow(&self, bytes: u64) -> Result<(), MediumError>;
    /// Returns the simulated persistence domain. Default: ADR.
    fn domain(&self) -> Domain {
        Domain::Adr
    }
    /// Makes all stores and the length survive a power cut, as [`Medium::sync`]. Default: nothing.
    ///
    /// # Errors
    /// The simulated device refuses it.
    fn sync(&self) -> Result<(), MediumError> {
        Ok(())
    }
    /// Makes the length durable, as [`Medium::sync_length`]. Default: nothing, for a simulation
    /// whose length is durable at once.
    ///
    /// # Errors
    /// The simulated device refuses it.
    fn sync_length(&self, at: CallSite) -> Result<(), MediumError> {
        let _ = at;
        Ok(())
    }
    /// Makes the first `bytes` survive a power cut, as [`Medium::sync_front`]. Default: nothing.
    ///
    /// # Errors
    /// The simulated device refuses it.
    fn sync_front(&self, bytes: u64) -> Result<(), MediumError> {
        let _ = bytes;
        Ok(())
    }
    /// Returns the id of the simulated boot, as [`Medium::boot_id`]. Default: zeros, not known.
    fn boot_id(&self) -> [u64; 2] {
        [0; 2]
    }
    /// Returns a random number, as [`Medium::draw`]. Default: 0, so that runs are reproducible.
    fn draw(&self) -> u64 {
        0
    }
    /// Returns the NUMA placement, as [`Medium::placement`].
    fn placement(&self) -> Option<Placement> {
        None
    }
    /// Returns `false` to make the pool refuse an allocation of `bytes` bytes.
    fn admits_allocation(&self, bytes: u64) -> bool {
        let _ = bytes;
        true
    }
    /// Returns `true` if the code under test must show `defect`.
    fn injects(&self, defect: Defect) -> bool {
        let _ = defect;
        false
    }
    /// Loads a word, as [`Medium::load`].
    fn load(&self, word: &PmWord) -> u64;
    /// Loads a latch word, as [`Medium::load_transient`]. Default: as [`load`](Self::load).
    fn load_transient(&self, word: &PmWord) -> u64 {
        self.load(word)
    }
    /// Loads a word with a latch beside the bits `kept`, as [`Medium::load_beside`]. Default: as
    /// [`load`](Self::load).
    fn load_beside(&self, word: &PmWord, kept: u64) -> u64 {
        let _ = kept;
        self.load(word)
    }
    /// Copies the bytes of consecutive words, which it loads in their order, as
    /// [`Medium::copy_out`].
    fn copy_out(&self, source: &[PmWord], target: &mut [u8]) {
        super::copy_words(source, target, |word| self.load(word));
    }
    /// Stores a word, as [`Medium::store`].
    fn store(&self, word: &PmWord, value: u64, role: StoreRole, at: CallSite);
    /// Replaces a transient word by `new` if it is `old`.
    ///
    /// # Errors
    /// The word was not `old`; its value is the error.
    fn cas_transient(&self, word: &PmWord, old: u64, new: u64, at: CallSite) -> Result<(), u64>;
    /// Replaces a word with a latch beside the bits `kept` by `new` if it is `old`. Default: as
    /// [`cas_transient`](Self::cas_transient).
    ///
    /// # Errors
    /// The word was not `old`; its value is the error.
    fn cas_beside(
        &self,
        word: &PmWord,
        old: u64,
        new: u64,
        kept: u64,
        at: CallSite,
    ) -> Result<(), u64> {
        let _ = kept;
        self.cas_transient(word, old, new, at)
    }
    /// Writes fresh words, durable after the next fence, as [`Medium::fill`].
    fn fill(&self, target: &[PmWord], source: &[u8], at: CallSite);
    /// Starts to write back the lines of `words`.
    fn flush(&self, words: &[PmWord], at: CallSite);
    /// Waits for the flushes and fills of this thread.
    fn fence(&self, at: CallSite);
    /// Notes that this thread relies on what it has read in `words`, as [`Medium::note_read`].
    /// Default: nothing.
    fn note_read(&self, words: &[PmWord]) {
        let _ = words;
    }
    /// Flushes `words` for those who read them, as [`Medium::flush_for_readers`]. Default: nothing.
    fn flush_for_readers(&self, words: &[PmWord], at: CallSite) {
        let _ = (words, at);
    }
    /// Waits until the copies that are `awaited` are on the disk, as [`Medium::settle_writes`].
    /// Default: nothing, for a simulation whose fences do that.
    fn settle(&self, awaited: Awaited) {
        let _ = awaited;
    }
    /// Returns `true` if the simulation has a cache, and so wants to know of prefetches.
    fn has_cache(&self) -> bool {
        false
    }
    /// Loads the lines of `words` into the simulated cache.
    fn prefetch(&self, words: &[PmWord]) {
        let _ = words;
    }
    /// Attributes all later accesses of this thread to another thread, so that its fences guarantee
    /// no earlier flush.
    fn hand_over(&self) {}
}

#[expect(unsafe_code, reason = "Simulation is an unsafe trait")]
// SAFETY: every access goes to the same medium, which keeps the three promises.
unsafe impl<M: Medium + fmt::Debug> Simulation for M {
    fn base(&self) -> NonNull<u8> {
        Medium::base(self)
    }
    fn len(&self) -> u64 {
        Medium::len(self)
    }
    fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        Medium::grow(self, bytes)
    }
    fn domain(&self) -> Domain {
        Medium::domain(self)
    }
    fn sync(&self) -> Result<(), MediumError> {
        Medium::sync(self)
    }
    fn sync_length(&self, _: CallSite) -> Result<(), MediumError> {
        Medium::sync_length(self)
    }
    fn sync_front(&self, bytes: u64) -> Result<(), MediumError> {
        Medium::sync_front(self, bytes)
    }
    fn boot_id(&self) -> [u64; 2] {
        Medium::boot_id(self)
    }
    fn draw(&self) -> u64 {
        Medium::draw(self)
    }
    fn placement(&self) -> Option<Placement> {
        Medium::placement(self)
    }
    fn admits_allocation(&self, bytes: u64) -> bool {
        Medium::admits_allocation(self, bytes)
    }
    fn injects(&self, defect: Defect) -> bool {
        Medium::injects(self, defect)
    }
    fn load(&self, word: &PmWord) -> u64 {
        Medium::load(self, word)
    }
    fn load_transient(&self, word: &PmWord) -> u64 {
        Medium::load_transient(self, word)
    }
    fn copy_out(&self, source: &[PmWord], target: &mut [u8]) {
        Medium::copy_out(self, source, target);
    }
    fn store(&self, word: &PmWord, value: u64, role: StoreRole, at: CallSite) {
        self.note_site(at);
        match role {
            StoreRole::Data | StoreRole::Commit => Medium::store(self, word, value),
            StoreRole::Transient => self.store_transient(word, value),
        }
    }
    fn cas_transient(&self, word: &PmWord, old: u64, new: u64, _: CallSite) -> Result<(), u64> {
        Medium::cas_transient(self, word, old, new)
    }
    fn fill(&self, target: &[PmWord], source: &[u8], at: CallSite) {
        self.note_site(at);
        Medium::fill(self, target, source);
    }
    fn flush(&self, words: &[PmWord], at: CallSite) {
        self.note_site(at);
        Medium::flush(self, words);
    }
    fn fence(&self, at: CallSite) {
        self.note_site(at);
        let _ = Medium::fence(self);
    }
    fn has_cache(&self) -> bool {
        true
    }
    fn prefetch(&self, words: &[PmWord]) {
        Medium::prefetch(self, words);
    }
}

/// A medium that passes every access on to a [`Simulation`]. Clones share the simulation.
pub struct Simulated {
    simulation: Arc<dyn Simulation>,
    /// The address of the first byte, which a simulation never changes.
    base: AtomicPtr<u8>,
    /// The largest length that the simulation has told so far, in bytes. A mapping never shrinks.
    known_len: AtomicU64,
    has_cache: bool,
}

impl Simulated {
    /// Returns a medium on `simulation`.
    pub fn new(simulation: Arc<dyn Simulation>) -> Self {
        let base = AtomicPtr::new(simulation.base().as_ptr());
        let known_len = AtomicU64::new(simulation.len());
        let has_cache = simulation.has_cache();
        Self { simulation, base, known_len, has_cache }
    }

    /// Returns a medium that owns `simulation`; [`simulation_as`](Self::simulation_as) gives access
    /// to it.
    pub fn over(simulation: impl Simulation) -> Self {
        Self::new(Arc::new(simulation))
    }

    /// Returns the simulation if it is of type `S`.
    pub fn simulation_as<S: Simulation>(&self) -> Option<&S> {
        let simulation: &dyn Any = &*self.simulation;
        simulation.downcast_ref()
    }

    #[cold]
    #[inline(never)]
    fn holds_now(&self, end: u64) -> bool {
        let len = self.simulation.len();
        self.known_len.store(len, Ordering::Relaxed);
        end <= len
    }

    /// Calls [`Simulation::hand_over`] of the simulation.
    pub fn hand_over(&self) {
        self.simulation.hand_over();
    }
}

impl Clone for Simulated {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.simulation))
    }
}

impl fmt::Debug for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.simulation.fmt(f)
    }
}

#[expect(unsafe_code, reason = "Medium is an unsafe trait")]
// SAFETY: every access goes to the simulation, which keeps the three promises.
unsafe impl Medium for Simulated {
    const INJECTS_DEFECTS: bool = true;
    const COMPACT: bool = true;
    const CONTROLS_SCHEDULE: bool = true;

    fn injects(&self, defect: Defect) -> bool {
        self.simulation.injects(defect)
    }
    #[inline]
    fn base(&self) -> NonNull<u8> {
        NonNull::new(self.base.load(Ordering::Relaxed)).expect("the base of a mapping is not null")
    }
    fn len(&self) -> u64 {
        self.simulation.len()
    }
    #[inline]
    fn holds(&self, end: u64) -> bool {
        end <= self.known_len.load(Ordering::Relaxed) || self.holds_now(end)
    }
    fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        self.simulation.grow(bytes)
    }
    fn admits_allocation(&self, bytes: u64) -> bool {
        self.simulation.admits_allocation(bytes)
    }
    fn domain(&self) -> Domain {
        self.simulation.domain()
    }
    fn sync(&self) -> Result<(), MediumError> {
        self.simulation.sync()
    }
    #[inline(never)]
    #[track_caller]
    fn sync_length(&self) -> Result<(), MediumError> {
        self.simulation.sync_length(Location::caller())
    }
    fn sync_front(&self, bytes: u64) -> Result<(), MediumError> {
        self.simulation.sync_front(bytes)
    }
    fn settle_writes(&self) -> Result<(), MediumError> {
        self.simulation.settle(Awaited::All);
        Ok(())
    }
    fn settle_reads(&self) {
        self.simulation.settle(Awaited::All);
    }
    fn note_read(&self, words: &[PmWord]) {
        self.simulation.note_read(words);
    }
    #[track_caller]
    fn flush_for_readers(&self, words: &[PmWord]) {
        self.simulation.flush_for_readers(words, Location::caller());
    }
    fn settle_noted(&self) {
        self.simulation.settle(Awaited::Noted);
    }
    fn boot_id(&self) -> [u64; 2] {
        self.simulation.boot_id()
    }
    fn draw(&self) -> u64 {
        self.simulation.draw()
    }
    fn placement(&self) -> Option<Placement> {
        self.simulation.placement()
    }
    #[inline]
    fn load(&self, word: &PmWord) -> u64 {
        self.simulation.load(word)
    }
    #[inline]
    fn load_transient(&self, word: &PmWord) -> u64 {
        self.simulation.load_transient(word)
    }
    #[inline]
    fn load_beside(&self, word: &PmWord, kept: u64) -> u64 {
        self.simulation.load_beside(word, kept)
    }
    fn copy_out(&self, source: &[PmWord], target: &mut [u8]) {
        self.simulation.copy_out(source, target);
    }
    #[inline(never)]
    #[track_caller]
    fn store(&self, word: &PmWord, value: u64) {
        self.simulation.store(word, value, StoreRole::Data, Location::caller());
    }
    #[inline(never)]
    #[track_caller]
    fn store_transient(&self, word: &PmWord, value: u64) {
        self.simulation.store(word, value, StoreRole::Transient, Location::caller());
    }
    #[inline(never)]
    #[track_caller]
    fn cas_transient(&self, word: &PmWord, old: u64, new: u64) -> Result<(), u64> {
        self.simulation.cas_transient(word, old, new, Location::caller())
    }
    #[inline(never)]
    #[track_caller]
    fn cas_beside(&self, word: &PmWord, old: u64, new: u64, kept: u64) -> Result<(), u64> {
        self.simulation.cas_beside(word, old, new, kept, Location::caller())
    }
    #[inline(never)]
    #[track_caller]
    fn fill(&self, target: &[PmWord], source: &[u8]) {
        self.simulation.fill(target, source, Location::caller());
    }
    #[inline(never)]
    #[track_caller]
    fn flush(&self, words: &[PmWord]) {
        self.simulation.flush(words, Location::caller());
    }
    #[inline(never)]
    #[track_caller]
    fn fence(&self) -> Fenced {
        self.simulation.fence(Location::caller());
        Fenced::after_fence()
    }
    #[inline(never)]
    #[track_caller]
    fn persist(&self, words: &[PmWord]) -> Fenced {
        self.simulation.flush(words, Location::caller());
        self.simulation.fence(Location::caller());
        Fenced::after_fence()
    }
    #[inline(never)]
    #[track_caller]
    fn commit(&self, word: &PmWord, value: u64, _published: Fenced) {
        self.simulation.store(word, value, StoreRole::Commit, Location::caller());
    }
    #[inline]
    fn prefetch(&self, words: &[PmWord]) {
        if self.has_cache {
            self.simulation.prefetch(words);
        }
    }
    #[inline(always)]
    fn yield_point() {
        schedule::yield_point();
    }
    #[inline(never)]
    fn spin_hint() -> bool {
        schedule::spin_hint()
    }
    #[inline(never)]
    fn scheduled_thread() -> usize {
        schedule::thread()
    }
    #[inline(never)]
    fn has_small_scale() -> bool {
        schedule::conditions().small_scale
    }
    #[inline(never)]
    fn is_aged() -> bool {
        schedule::conditions().aged
    }
    #[inline(never)]
    fn skip_validation(at: CallSite) -> bool {
        schedule::skip_validation(at)
    }
}
