//! What a recorder writes down.
//!
//! 1. The time of an event is its position on the tape: time 0 is the first.
//! 2. An event knows the place in the code that it came from, as the medium's caller.
//! 3. What lies before [`Tape::begin`] is setup: no crash is tried there, but what it stored and
//!    did not make durable stays as uncertain as it is.

pub(crate) mod call;
pub(crate) mod mutation;

pub(crate) use bristlecone_pmem::medium::{CallSite, StoreRole};

/// A time after every event.
pub(crate) const NEVER: u32 = u32::MAX;

/// Something that a thread did to the medium, or a mark of the operation that it did it for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A store of one word.
    Store { word: u32, old: u64, new: u64, role: StoreRole },
    /// Stores of consecutive words in no order, flushed.
    Fill { first: u32, new: Vec<u64> },
    /// A flush of so many lines.
    Flush { first: u32, lines: u32 },
    /// A fence.
    Fence,
    /// The medium grew, and is durably so.
    Grow { bytes: u64 },
    /// The operation under test of that number begins.
    Invoke { operation: u32 },
    /// It is acknowledged.
    Return { operation: u32 },
}

/// An event and the thread that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceEntry {
    pub(crate) thread: u32,
    pub(crate) at: CallSite,
    pub(crate) event: Event,
}

/// All that happened to a medium, from its first byte on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    /// Bytes of the medium at the beginning.
    pub(crate) bytes: u64,
    /// The events.
    pub(crate) entries: Vec<TraceEntry>,
    /// Time at which the operations under test begin.
    pub(crate) begin: u32,
}

impl Trace {
    /// Whether the operations under test stored anything, latches and versions too.
    pub(crate) fn has_stored(&self) -> bool {
        let mut tested = self.entries[self.begin as usize..].iter();
        tested.any(|entry| matches!(entry.event, Event::Store { .. } | Event::Fill { .. }))
    }

    /// Whether they changed anything but latches and versions.
    pub(crate) fn has_changed(&self) -> bool {
        let mut tested = self.entries[self.begin as usize..].iter();
        tested.any(|entry| entry.event.stored().is_some())
    }
}

impl Event {
    /// The words that the event stores, if it stores data.
    pub(super) fn stored(&self) -> Option<core::ops::Range<u32>> {
        match self {
            Self::Store { role: StoreRole::Transient, .. } => None,
            Self::Store { old, new, .. } if old == new => None,
            Self::Store { word, .. } => Some(*word..word + 1),
            Self::Fill { first, new } => Some(*first..first + new.len() as u32),
            _ => None,
        }
    }
}
