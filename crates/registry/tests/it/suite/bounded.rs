//! The medium of the suite: it counts, and it bounds each operation.
//!
//! It allows a number of loads and then panics. So a walk around a ring that damage made, or a wait
//! for a latch that no thread will release, fails its test after the same number of steps on every
//! machine.

use bristlecone_pmem::medium::{Count, Counts, MediumError};
use bristlecone_pmem::{Domain, Fenced, Mapped, Medium, PmWord, Simulated};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicI64, Ordering};

/// A mapping that counts accesses and allows a limited number of loads.
#[derive(Debug)]
pub(crate) struct Bounded {
    inner: Count<Mapped>,
    left: AtomicI64,
}

impl Bounded {
    /// Creates a simulated medium over `inner` that allows `steps` loads.
    pub(crate) fn over(inner: Mapped, steps: i64) -> Simulated {
        Simulated::over(Self { inner: Count::new(inner), left: AtomicI64::new(steps) })
    }

    /// Returns the bounded medium behind `medium`.
    pub(crate) fn of(medium: &Simulated) -> &Self {
        medium.simulation_as().expect("the suite runs on bounded media")
    }

    /// Creates a simulated medium over `inner` without a bound.
    pub(crate) fn unbounded(inner: Mapped) -> Simulated {
        Self::over(inner, i64::MAX)
    }

    /// Returns the numbers of flushes, fences and stores since the last call.
    pub(crate) fn take(&self) -> Counts {
        self.inner.take()
    }

    /// Allows `steps` loads from now on.
    pub(crate) fn allow(&self, steps: i64) {
        self.left.store(steps, Ordering::Relaxed);
    }

    fn step(&self) {
        let exhausted = self.left.fetch_sub(1, Ordering::Relaxed) <= 0;
        // A thread that unwinds may still load: it has panicked already.
        assert!(!exhausted || std::thread::panicking(), "hangs; the steps allowed are used up");
    }
}

#[expect(unsafe_code, reason = "Medium is an unsafe trait")]
// SAFETY: everything is passed on to `inner`, which keeps the contract.
unsafe impl Medium for Bounded {
    fn base(&self) -> NonNull<u8> {
        self.inner.base()
    }
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        self.inner.grow(bytes)
    }
    fn domain(&self) -> Domain {
        self.inner.domain()
    }
    fn load(&self, word: &PmWord) -> u64 {
        self.step();
        self.inner.load(word)
    }
    fn store(&self, word: &PmWord, value: u64) {
        self.inner.store(word, value);
    }
    fn store_transient(&self, word: &PmWord, value: u64) {
        self.inner.store_transient(word, value);
    }
    fn cas_transient(&self, word: &PmWord, old: u64, new: u64) -> Result<(), u64> {
        self.step();
        self.inner.cas_transient(word, old, new)
    }
    fn fill(&self, target: &[PmWord], source: &[u8]) {
        self.inner.fill(target, source);
    }
    fn flush(&self, words: &[PmWord]) {
        self.inner.flush(words);
    }
    fn fence(&self) -> Fenced {
        self.inner.fence()
    }
}
