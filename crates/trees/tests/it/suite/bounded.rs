//! The suite's medium: it counts, and it ends what does not end by itself.
//!
//! It allows a number of loads and then panics. So a walk around a ring that damage made, or a wait
//! for a latch that nobody will release, fails its test after a bounded number of steps, on a fast
//! machine and on a slow one alike.

use bristlecone_pmem::medium::{Count, Counts, MediumError};
use bristlecone_pmem::{Domain, Fenced, Mapped, Medium, PmWord};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicI64, Ordering};

/// A mapping that counts, with a number of steps left.
#[derive(Debug)]
pub(crate) struct Bounded {
    inner: Count<Mapped>,
    left: AtomicI64,
}

impl Bounded {
    /// `inner`, with `steps` steps to take.
    pub(crate) fn new(inner: Mapped, steps: i64) -> Self {
        Self { inner: Count::new(inner), left: AtomicI64::new(steps) }
    }

    /// `inner`, with as many steps as anybody wants.
    pub(crate) fn unbounded(inner: Mapped) -> Self {
        Self::new(inner, i64::MAX)
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
// Nothing is inlined: a tree has hundreds of accesses, and each tree at each node size is compiled for this.
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
    #[inline(never)]
    fn load(&self, word: &PmWord) -> u64 {
        self.step();
        self.inner.load(word)
    }
    #[inline(never)]
    fn store(&self, word: &PmWord, value: u64) {
        self.inner.store(word, value);
    }
    #[inline(never)]
    fn store_transient(&self, word: &PmWord, value: u64) {
        self.inner.store_transient(word, value);
    }
    #[inline(never)]
    fn cas_transient(&self, word: &PmWord, old: u64, new: u64) -> Result<(), u64> {
        self.step();
        self.inner.cas_transient(word, old, new)
    }
    #[inline(never)]
    fn fill(&self, target: &[PmWord], source: &[u8]) {
        self.inner.fill(target, source);
    }
    #[inline(never)]
    fn flush(&self, words: &[PmWord]) {
        self.inner.flush(words);
    }
    #[inline(never)]
    fn fence(&self) -> Fenced {
        self.inner.fence()
    }
}
