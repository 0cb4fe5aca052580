//! The trace of an execution: its accesses to a medium, in order.
//!
//! 1. The time of an event is its position in the trace; the first event has time 0.
//! 2. An event carries its call site, the source line that called the medium.
//! 3. Events before [`Trace::begin`] are the setup. No crash is tried there, but a store of the
//!    setup that no fence guaranteed may be lost in a later crash.

pub(crate) mod call;
pub(crate) mod mutation;

use bristlecone_pmem::Defect;
use bristlecone_pmem::line::LINE_WORDS;
pub(crate) use bristlecone_pmem::medium::{Awaited, CallSite, StoreRole};

/// The contents of freed blocks in every other line: no pointer into the pool, no small number, and
/// no latch word of a pool that simulations use.
pub(crate) const POISON: u64 = 0xDEAD_BEEF_DEAD_BEEF;

/// Returns what a word of a freed block gets: [`POISON`], and in odd lines its complement. So code
/// that takes a bit of a word for a flag finds it in both states.
pub(crate) const fn poison(word: u32) -> u64 {
    if (word / LINE_WORDS as u32).is_multiple_of(2) { POISON } else { !POISON }
}

/// A time after every event.
pub(crate) const NEVER: u32 = u32::MAX;

/// An access of a thread to the medium, or a mark of the operation that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A store of one word of 8 B.
    Store { word: u32, old: u64, new: u64, role: StoreRole },
    /// Stores of consecutive words without order among them, each flushed.
    Fill { first: u32, new: Vec<u64> },
    /// A flush of `lines` consecutive lines.
    Flush { first: u32, lines: u32 },
    /// A fence of the thread.
    Fence,
    /// The free words of a block that no reader holds any more get [`poison`], durable at once.
    Poison { first: u32, words: u32 },
    /// Growth of the medium to `bytes`. Durable at the next [`SyncLength`](Self::SyncLength); until
    /// then every crash image has the old length.
    Grow { bytes: u64 },
    /// The guarantee that the length of the medium is durable.
    SyncLength,
    /// One more copy of `lines` consecutive lines at the thread's next fence, for readers: see
    /// [`Medium::flush_for_readers`](bristlecone_pmem::Medium::flush_for_readers).
    Renew { first: u32, lines: u32 },
    /// The note of the thread that it relies on what it has read in `lines` consecutive lines.
    Rely { first: u32, lines: u32 },
    /// The end of a wait of the thread for the copies of a [journal](crate::model).
    Await(Awaited),
    /// The invocation of an operation under test.
    Invoke { operation: u32 },
    /// The acknowledgement of an operation under test.
    Return { operation: u32 },
}

/// An event, with the thread that caused it and its call site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceEntry {
    pub(crate) thread: u32,
    pub(crate) at: CallSite,
    pub(crate) event: Event,
}

/// All events of a medium, from its first byte on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    /// The length of the medium at the beginning, in bytes.
    pub(crate) bytes: u64,
    pub(crate) entries: Vec<TraceEntry>,
    /// The time at which the operations under test begin.
    pub(crate) begin: u32,
    /// The defect that was injected into them, which may be one of the journal below.
    pub(crate) defect: Option<Defect>,
}

impl Trace {
    /// Returns `true` if the operations under test stored anything, latches and versions included.
    pub(crate) fn has_stored(&self) -> bool {
        let mut tested = self.entries[self.begin as usize..].iter();
        tested.any(|entry| matches!(entry.event, Event::Store { .. } | Event::Fill { .. }))
    }

    /// Returns `true` if the operations under test stored anything other than latches and versions.
    pub(crate) fn has_changed(&self) -> bool {
        let mut tested = self.entries[self.begin as usize..].iter();
        tested.any(|entry| entry.event.stored().is_some())
    }
}

impl Event {
    /// Returns `true` for an event that only a disk with a journal knows.
    pub(crate) fn is_of_journal(&self) -> bool {
        matches!(self, Self::Renew { .. } | Self::Rely { .. } | Self::Await(_))
    }

    /// Returns the words that a store of data changes.
    pub(crate) fn stored(&self) -> Option<core::ops::Range<u32>> {
        match self {
            Self::Store { role: StoreRole::Transient, .. } => None,
            Self::Store { old, new, .. } if old == new => None,
            Self::Store { word, .. } => Some(*word..word + 1),
            Self::Fill { first, new } => Some(*first..first + new.len() as u32),
            _ => None,
        }
    }
}
