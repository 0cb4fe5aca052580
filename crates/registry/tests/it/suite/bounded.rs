//! The suite's medium: it counts, and it ends what does not end by itself.
//!
//! It allows a number of loads and then panics. So a walk around a ring that damage made, or a wait
//! for a latch that no thread will release, fails its test after a bounded number of steps, on a
//! fast machine and on a slow one alike.

use bristlecone_pmem::medium::{Count, Counts, MediumError};
use bristlecone_pmem::{Domain, Fenced, Mapped, Medium, PmWord, Simulated};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicI64, Ordering};

/// A mapping that counts, with a number of steps left.
#[derive(Debug)]
pub(crate) struct Bounded {
    inner: Count<Mapped>,
    left: AtomicI64,
}

impl Bounded {
    /// Creates a simulated medium over `inner` that allows `steps` steps.
    pub(crate) fn over(inner: Mapped, steps: i64) -> Simulated {
        Simulated::over(Self { inner: Count::new(inner), left: AtomicI64::new(steps) })
    }

    /// Returns the bounded medium that `medium` is.
    pub(crate) fn of(medium: &Simulated) -> &Self {
        medium.simulation_as().expect("the suite runs on bounded media")
    }

    /// Creates a simulated medium over `inner` without a bound.
    pub(crate) fn unbounded(inner: Mapped) -> Simulated {
        Self::over(inner, i64::MAX)
    }

    /// What was flushed, fenced and stored since the last call.
    pub(crate) fn take(&self) -> Counts {
        self.inner.take()
    }

    /// From now on `steps` steps are allowed.
    pub(crate) fn allow(&self, steps: i64) {
        self.left.store(steps, Ordering::Relaxed);
    }

    fn step(&self) {
        let exhausted = self.left.fetch_sub(1, Ordering::Relaxed) <= 0;
        // What unwinds may still read; it has been told already.
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
