//! A medium with faults: corrupted contents, unreadable words, refused allocations.
//!
//! 1. One thread at a time uses it. Clones share it.
//! 2. Stores after [`FaultMedium::mark`] are journaled, so [`FaultMedium::restore`] costs as much
//!    as the case changed.
//! 3. A run that takes more loads than allowed counts as one that never ends. A load of a poisoned
//!    word ends the run too, like the signal of a real medium.

use crate::medium::arena::{Arena, words_of};
use crate::medium::lazy_image::access::StepsExhausted;
use crate::trace::{CallSite, StoreRole};
use bristlecone_pmem::medium::{MediumError, Simulation};
use bristlecone_pmem::{Defect, PmWord, Simulated};
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use parking_lot::Mutex;
use std::sync::Arc;

/// The payload of a run that a poisoned word ended: the offset of the word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Poisoned(pub(crate) u64);

/// The allocations that are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The allocation of this number, counted from 0.
    Once(u32),
    /// The allocation of this number and all after it, and all growth.
    From(u32),
}

/// A medium with faults.
#[derive(Clone, Debug)]
pub(crate) struct FaultMedium {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    arena: Arena,
    steps_left: AtomicI64,
    /// The number of allocations until the refused one.
    granted: AtomicI64,
    /// Set if the later allocations are refused too.
    for_good: AtomicBool,
    refused: AtomicU64,
    /// The range of words that cannot be read.
    poisoned: [AtomicU64; 2],
    /// The words that changed since the mark, with their former values.
    journal: Mutex<Vec<(u32, u64)>>,
    journaling: AtomicBool,
    /// Set for each word that was read since the mark.
    is_read: Vec<AtomicBool>,
    /// The defect in the code that uses the medium.
    defect: Mutex<Option<Defect>>,
}

impl FaultMedium {
    /// Returns a zeroed medium of `bytes` that can grow to `reserve_bytes`.
    pub(crate) fn blank(bytes: u64, reserve_bytes: u64) -> Self {
        let arena = Arena::new(bytes, reserve_bytes);
        let is_read = arena.cells().iter().map(|_| AtomicBool::new(false)).collect();
        let shared = Shared {
            arena,
            steps_left: AtomicI64::new(i64::MAX),
            granted: AtomicI64::new(i64::MAX),
            for_good: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            poisoned: [AtomicU64::new(0), AtomicU64::new(0)],
            journal: Mutex::new(Vec::new()),
            journaling: AtomicBool::new(false),
            is_read,
            defect: Mutex::new(None),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Sets the allocations to refuse from now on; `None` for none.
    pub(crate) fn refuse(&self, refusal: Option<Refusal>) {
        let (granted, for_good) = match refusal {
            None => (i64::MAX, false),
            Some(Refusal::Once(number)) => (i64::from(number), false),
            Some(Refusal::From(number)) => (i64::from(number), true),
        };
        self.shared.granted.store(granted, Relaxed);
        self.shared.for_good.store(for_good, Relaxed);
        self.shared.refused.store(0, Relaxed);
    }

    /// Returns the number of allocations refused since the last call of [`refuse`](Self::refuse).
    pub(crate) fn refused(&self) -> u64 {
        self.shared.refused.load(Relaxed)
    }

    /// Injects `defect` into the code that uses the medium from now on; `None` for none.
    pub(crate) fn inject(&self, defect: Option<Defect>) {
        *self.shared.defect.lock() = defect;
    }

    /// Allows `steps` loads from now on.
    pub(crate) fn allow(&self, steps: i64) {
        self.shared.steps_left.store(steps, Relaxed);
    }

    /// Returns the contents up to the length of the medium.
    pub(crate) fn image(&self) -> Vec<u64> {
        let words = (self.shared.arena.len() / 8) as usize;
        (0..words).map(|index| self.shared.arena.get(index)).collect()
    }

    /// Starts to journal changes, for [`restore`](Self::restore), and to note the words that are
    /// read.
    pub(crate) fn mark(&self) {
        self.shared.journal.lock().clear();
        self.shared.journaling.store(true, Relaxed);
        self.shared.is_read.iter().for_each(|word| word.store(false, Relaxed));
    }

    /// Undoes every change since the mark: contents, length, poison.
    pub(crate) fn restore(&self, bytes: u64) {
        for (index, word) in self.shared.journal.lock().drain(..).rev() {
            self.shared.arena.set(index as usize, word);
        }
        self.shared.arena.set_len(bytes);
        self.poison(0..0);
    }

    /// Returns `true` for each word that was read since the mark.
    pub(crate) fn words_read(&self) -> Vec<bool> {
        self.shared.is_read.iter().map(|word| word.load(Relaxed)).collect()
    }

    /// Changes a word without the knowledge of the code that uses the medium.
    pub(crate) fn corrupt(&self, index: usize, value: u64) {
        self.shared.put(index, value);
    }

    /// Truncates the medium, or extends it by zeros.
    pub(crate) fn cut(&self, bytes: u64) {
        self.shared.arena.set_len(bytes);
    }

    /// Makes these words unreadable.
    pub(crate) fn poison(&self, words: Range<usize>) {
        self.shared.poisoned[0].store(words.start as u64, Relaxed);
        self.shared.poisoned[1].store(words.end as u64, Relaxed);
    }
}

impl Shared {
    fn put(&self, index: usize, value: u64) {
        if self.journaling.load(Relaxed) {
            self.journal.lock().push((index as u32, self.arena.get(index)));
        }
        self.arena.set(index, value);
    }

    fn step(&self, index: usize) {
        self.is_read[index].store(true, Relaxed);
        let left = self.steps_left.load(Relaxed) - 1;
        self.steps_left.store(left, Relaxed);
        // An unwinding run may still read: it was stopped already.
        if std::thread::panicking() {
            return;
        }
        if left < 0 {
            std::panic::resume_unwind(Box::new(StepsExhausted));
        }
        let at = index as u64;
        if (self.poisoned[0].load(Relaxed)..self.poisoned[1].load(Relaxed)).contains(&at) {
            std::panic::resume_unwind(Box::new(Poisoned(at * 8)));
        }
    }
}

#[expect(unsafe_code, reason = "Simulation is an unsafe trait")]
// SAFETY: 1. The arena aligns its base to a page, never moves, and holds its reserve from the
// start, so words behind a truncated end stay mapped; the length changes only between two uses. 2.
// Its words are initialised, and it is private to the process. 3. Words are atomics, stored with
// release and loaded with acquire ordering.
unsafe impl Simulation for Shared {
    fn injects(&self, defect: Defect) -> bool {
        *self.defect.lock() == Some(defect)
    }

    fn base(&self) -> NonNull<u8> {
        self.arena.base()
    }

    fn len(&self) -> u64 {
        self.arena.len()
    }

    fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        if self.for_good.load(Relaxed) {
            return Err(MediumError::Limit { wanted: bytes, limit: self.len() });
        }
        self.arena.grow(bytes)
    }

    fn admits_allocation(&self, _bytes: u64) -> bool {
        let granted = self.granted.load(Relaxed);
        let refuses = granted == 0 || (granted < 0 && self.for_good.load(Relaxed));
        self.granted.store(granted.saturating_sub(1), Relaxed);
        self.refused.fetch_add(u64::from(refuses), Relaxed);
        !refuses
    }

    fn load(&self, word: &PmWord) -> u64 {
        self.step(self.arena.index(word));
        self.arena.load(word)
    }

    fn store(&self, word: &PmWord, value: u64, _: StoreRole, _: CallSite) {
        self.put(self.arena.index(word), value);
    }

    fn cas_transient(&self, word: &PmWord, old: u64, new: u64, _: CallSite) -> Result<(), u64> {
        let index = self.arena.index(word);
        self.step(index);
        match self.arena.get(index) {
            found if found == old => {
                self.put(index, new);
                Ok(())
            }
            found => Err(found),
        }
    }

    fn fill(&self, target: &[PmWord], source: &[u8], _: CallSite) {
        assert!(source.len() <= target.len() * 8, "a fill must fit its target");
        let Some(first) = target.first() else { return };
        let first = self.arena.index(first);
        for (index, word) in (first..).zip(words_of(source)) {
            self.put(index, word);
        }
    }

    fn flush(&self, _: &[PmWord], _: CallSite) {}

    fn fence(&self, _: CallSite) {}
}

impl From<&FaultMedium> for Simulated {
    fn from(medium: &FaultMedium) -> Self {
        Self::new(medium.shared.clone())
    }
}
