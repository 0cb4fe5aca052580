//! The one medium that everything under the explorer is compiled for.
//!
//! 1. It is one of four, chosen when it is made. Each access so costs a branch, which is nothing
//!    beside what the four do; and each design is compiled once for each kind of key instead of four
//!    times, which is most of the time that it takes to build the explorer.
//! 2. Places are those of the caller: the recorder tells one flush from the other by them.

use crate::frail::Frail;
use crate::recorder::Recorder;
use crate::refiner::Refiner;
use crate::tape::Place;
use crate::threads::{Stage, stage};
use bristlecone_pmem::medium::MediumError;
use bristlecone_pmem::{Defect, Domain, Fenced, Medium, PmWord};
use core::ptr::NonNull;

/// One of the media of the explorer. Clones share it.
#[derive(Clone, Debug)]
pub(crate) enum Lab {
    /// Writes down what is done to it.
    Recorder(Recorder),
    /// Is decided where it is looked at.
    Refiner(Refiner),
    /// Is shared by threads whose turns are scheduled.
    Stage(Stage),
    /// Goes wrong.
    Frail(Frail),
}

/// Does the same with whichever it is.
macro_rules! each {
    ($lab:expr, $medium:ident => $call:expr) => {
        match $lab {
            Lab::Recorder($medium) => $call,
            Lab::Refiner($medium) => $call,
            Lab::Stage($medium) => $call,
            Lab::Frail($medium) => $call,
        }
    };
}

impl Lab {
    #[inline(never)]
    fn load_other(&self, word: &PmWord) -> u64 {
        each!(self, medium => medium.load(word))
    }

    /// Leaves what comes next to another thread, where threads are told apart.
    pub(crate) fn hand_over(&self) {
        if let Self::Recorder(recorder) = self {
            recorder.hand_over();
        }
    }
}

macro_rules! from {
    ($($medium:ident),*) => {$(
        impl From<&$medium> for Lab {
            fn from(medium: &$medium) -> Self {
                Self::$medium(medium.clone())
            }
        }
    )*};
}

from!(Recorder, Refiner, Stage, Frail);

#[expect(unsafe_code, reason = "Medium is an unsafe trait")]
// SAFETY: Every call is passed on to the same medium, which keeps the three promises.
unsafe impl Medium for Lab {
    const INJECTS_DEFECTS: bool = true;
    /// Outside a play [`turn`](Self::turn) does nothing.
    const CONTROLS_SCHEDULE: bool = true;

    fn injects(&self, defect: Defect) -> bool {
        each!(self, medium => medium.injects(defect))
    }

    fn base(&self) -> NonNull<u8> {
        each!(self, medium => medium.base())
    }

    fn len(&self) -> u64 {
        each!(self, medium => medium.len())
    }

    fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        each!(self, medium => medium.grow(bytes))
    }

    fn admits_allocation(&self, bytes: u64) -> bool {
        each!(self, medium => medium.admits_allocation(bytes))
    }

    fn domain(&self) -> Domain {
        each!(self, medium => medium.domain())
    }

    #[inline]
    fn load(&self, word: &PmWord) -> u64 {
        // Most loads are of recoveries.
        if let Self::Refiner(medium) = self { medium.load(word) } else { self.load_other(word) }
    }

    #[inline(never)]
    #[track_caller]
    fn store(&self, word: &PmWord, value: u64) {
        each!(self, medium => medium.store(word, value));
    }

    #[inline(never)]
    #[track_caller]
    fn store_transient(&self, word: &PmWord, value: u64) {
        each!(self, medium => medium.store_transient(word, value));
    }

    #[inline(never)]
    #[track_caller]
    fn cas_transient(&self, word: &PmWord, old: u64, new: u64) -> Result<(), u64> {
        each!(self, medium => medium.cas_transient(word, old, new))
    }

    #[inline(never)]
    #[track_caller]
    fn fill(&self, target: &[PmWord], source: &[u8]) {
        each!(self, medium => medium.fill(target, source));
    }

    #[inline(never)]
    #[track_caller]
    fn flush(&self, words: &[PmWord]) {
        each!(self, medium => medium.flush(words));
    }

    #[inline(never)]
    #[track_caller]
    fn fence(&self) -> Fenced {
        each!(self, medium => medium.fence())
    }

    #[inline(never)]
    #[track_caller]
    fn persist(&self, words: &[PmWord]) -> Fenced {
        each!(self, medium => medium.persist(words))
    }

    #[track_caller]
    fn commit(&self, word: &PmWord, value: u64, published: Fenced) {
        each!(self, medium => medium.commit(word, value, published));
    }

    fn yield_point() {
        stage::access();
    }

    fn spin_hint() -> bool {
        stage::spin_hint()
    }

    fn skip_validation(at: Place) -> bool {
        stage::skip_validation(at)
    }
}
