//! A medium that adds a fixed time to each flushed line and each fence.
//!
//! Several of the papers emulate slow memory on DRAM in this way. The medium spins, so the time is
//! accurate to some tens of nanoseconds and the thread keeps the processor.

use super::{Domain, Fenced, Medium, MediumError};
use crate::line::lines;
use crate::numa::Placement;
use crate::word::PmWord;
use core::panic::Location;
use core::ptr::NonNull;
use std::time::{Duration, Instant};

/// A medium that passes all accesses on to `M` and adds time to flushes and fences.
#[derive(Debug)]
pub struct Delay<M> {
    inner: M,
    flush_spins: u64,
    fence_spins: u64,
}

impl<M: Medium> Delay<M> {
    /// Returns a medium on `inner` that adds no time.
    pub fn none(inner: M) -> Self {
        Self { inner, flush_spins: 0, fence_spins: 0 }
    }

    /// Returns a medium on `inner` that adds `flush` to each flushed line and `fence` to each
    /// fence. Calibrates the spin loop first, which takes some milliseconds. If both times are
    /// zero, each flush and fence costs a branch that is never taken.
    pub fn new(inner: M, flush: Duration, fence: Duration) -> Self {
        if (flush + fence).is_zero() {
            return Self::none(inner);
        }
        let spins_per_ns = calibrate();
        #[expect(clippy::cast_sign_loss, reason = "neither factor is negative")]
        let spins = |time: Duration| (time.as_nanos() as f64 * spins_per_ns).round() as u64;
        Self { inner, flush_spins: spins(flush), fence_spins: spins(fence) }
    }
}

/// Returns the number of spins in a nanosecond: the fastest of 16 tries, because interrupts slow
/// the others.
fn calibrate() -> f64 {
    const SPINS: u64 = 20_000;
    let best = (0..16)
        .map(|_| {
            let start = Instant::now();
            spin(SPINS);
            start.elapsed()
        })
        .min()
        .unwrap_or(Duration::from_micros(1));
    SPINS as f64 / (best.as_nanos().max(1) as f64)
}

#[cold]
#[inline(never)]
fn spin(spins: u64) {
    for i in 0..spins {
        core::hint::black_box(i);
    }
}

#[expect(unsafe_code, reason = "Medium is an unsafe trait")]
// SAFETY: every access goes to `inner`, which keeps the contract.
unsafe impl<M: Medium> Medium for Delay<M> {
    const CONTROLS_SCHEDULE: bool = M::CONTROLS_SCHEDULE;

    fn base(&self) -> NonNull<u8> {
        self.inner.base()
    }
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        self.inner.grow(bytes)
    }
    fn grow_between(&self, least: u64, ample: u64) -> Result<u64, MediumError> {
        self.inner.grow_between(least, ample)
    }
    const PREPARES_GROWTH: bool = M::PREPARES_GROWTH;
    fn prepare_growth(&self, bytes: u64) {
        self.inner.prepare_growth(bytes);
    }
    fn sync_length(&self) -> Result<(), MediumError> {
        self.inner.sync_length()
    }
    fn fit_to(&mut self, bytes: u64) -> Result<(), MediumError> {
        self.inner.fit_to(bytes)
    }
    #[inline(always)]
    fn is_inherited(&self) -> bool {
        self.inner.is_inherited()
    }
    fn check_path(&self) -> Result<(), MediumError> {
        self.inner.check_path()
    }
    fn domain(&self) -> Domain {
        self.inner.domain()
    }
    fn sync(&self) -> Result<(), MediumError> {
        self.inner.sync()
    }
    fn write_back_all(&self) -> Result<(), MediumError> {
        self.inner.write_back_all()
    }
    fn sync_front(&self, bytes: u64) -> Result<(), MediumError> {
        self.inner.sync_front(bytes)
    }
    fn finish(&self) -> Result<(), MediumError> {
        self.inner.finish()
    }
    #[inline(always)]
    fn settle_writes(&self) -> Result<(), MediumError> {
        self.inner.settle_writes()
    }
    #[inline(always)]
    fn settle_reads(&self) {
        self.inner.settle_reads();
    }
    #[inline(always)]
    fn note_read(&self, words: &[PmWord]) {
        self.inner.note_read(words);
    }
    #[inline(always)]
    fn flush_for_readers(&self, words: &[PmWord]) {
        self.inner.flush_for_readers(words);
    }
    #[inline(always)]
    fn settle_noted(&self) {
        self.inner.settle_noted();
    }
    fn boot_id(&self) -> [u64; 2] {
        self.inner.boot_id()
    }
    fn draw(&self) -> u64 {
        self.inner.draw()
    }
    fn placement(&self) -> Option<Placement> {
        self.inner.placement()
    }
    #[inline(always)]
    fn load(&self, word: &PmWord) -> u64 {
        self.inner.load(word)
    }
    #[inline(always)]
    fn store(&self, word: &PmWord, value: u64) {
        self.inner.store(word, value);
    }
    #[inline(always)]
    fn cas_transient(&self, word: &PmWord, old: u64, new: u64) -> Result<(), u64> {
        self.inner.cas_transient(word, old, new)
    }
    fn fill(&self, target: &[PmWord], source: &[u8]) {
        self.inner.fill(target, source);
        if self.flush_spins == 0 {
            return;
        }
        let written = &target[..source.len().div_ceil(8)];
        let count = lines(written.as_ptr() as usize, core::mem::size_of_val(written)).count();
        spin(self.flush_spins * count as u64);
    }
    #[inline]
    fn flush(&self, words: &[PmWord]) {
        self.inner.flush(words);
        if self.flush_spins == 0 {
            return;
        }
        let count = lines(words.as_ptr() as usize, core::mem::size_of_val(words)).count();
        spin(self.flush_spins * count as u64);
    }
    #[inline]
    fn fence(&self) -> Fenced {
        let fenced = self.inner.fence();
        if self.fence_spins > 0 {
            spin(self.fence_spins);
        }
        fenced
    }
    #[inline(always)]
    fn prefetch(&self, words: &[PmWord]) {
        self.inner.prefetch(words);
    }
    #[inline(always)]
    fn yield_point() {
        M::yield_point();
    }
    #[inline(always)]
    fn spin_hint() -> bool {
        M::spin_hint()
    }
    #[inline(always)]
    fn skip_validation(at: &'static Location<'static>) -> bool {
        M::skip_validation(at)
    }
}
