//! A medium that ends in the middle of an operation: it passes a number of stores on and loses all
//! that follow, as a crash does if it keeps everything before it.
//!
//! Stores to transient words always pass, so that the operation under way does not wait for its own
//! latches.

use bristlecone_pmem::medium::{CallSite, MediumError, Simulation, StoreRole};
use bristlecone_pmem::{Defect, Medium, PmWord, Simulated};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};

/// The number of stores left of a medium that loses none.
const ALL: u32 = u32::MAX;

/// A medium that loses stores once it has been told to.
#[derive(Debug)]
pub(crate) struct Cut {
    inner: Simulated,
    left: AtomicU32,
}

impl Cut {
    /// Returns a medium on `inner` that loses nothing yet.
    pub(crate) fn new(inner: Simulated) -> Self {
        Self { inner, left: AtomicU32::new(ALL) }
    }

    /// Loses every store but the next `stores`.
    pub(crate) fn after(&self, stores: u32) {
        self.left.store(stores, Ordering::Relaxed);
    }

    /// Returns `true` if the next store is kept, and counts it.
    fn keeps(&self) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        if left != ALL && left > 0 {
            self.left.store(left - 1, Ordering::Relaxed);
        }
        left > 0
    }
}

#[expect(unsafe_code, reason = "Simulation is an unsafe trait")]
// SAFETY: every access that is not lost goes to the inner medium, which keeps the three promises.
unsafe impl Simulation for Cut {
    fn base(&self) -> NonNull<u8> {
        Medium::base(&self.inner)
    }

    fn len(&self) -> u64 {
        Medium::len(&self.inner)
    }

    fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        Medium::grow(&self.inner, bytes)
    }

    fn injects(&self, defect: Defect) -> bool {
        Medium::injects(&self.inner, defect)
    }

    fn load(&self, word: &PmWord) -> u64 {
        Medium::load(&self.inner, word)
    }

    fn store(&self, word: &PmWord, value: u64, role: StoreRole, _: CallSite) {
        match role {
            StoreRole::Transient => self.inner.store_transient(word, value),
            StoreRole::Data | StoreRole::Commit => {
                if self.keeps() {
                    Medium::store(&self.inner, word, value);
                }
            }
        }
    }

    fn cas_transient(&self, word: &PmWord, old: u64, new: u64, _: CallSite) -> Result<(), u64> {
        Medium::cas_transient(&self.inner, word, old, new)
    }

    fn fill(&self, target: &[PmWord], source: &[u8], _: CallSite) {
        if self.keeps() {
            Medium::fill(&self.inner, target, source);
        }
    }

    fn flush(&self, words: &[PmWord], _: CallSite) {
        Medium::flush(&self.inner, words);
    }

    fn fence(&self, _: CallSite) {
        let _ = Medium::fence(&self.inner);
    }

    fn hand_over(&self) {
        self.inner.hand_over();
    }
}
