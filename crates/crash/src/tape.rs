//! What a recorder writes down.
//!
//! 1. The time of an event is its position on the tape: time 0 is the first.
//! 2. What lies before [`Tape::begin`] is setup: no crash is tried there, but what it stored and
//!    did not make durable stays as uncertain as it is.

/// What a store was said to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A store as any other.
    Data,
    /// The store that decides.
    Commit,
    /// A latch or a version: recovery never relies on it.
    Transient,
}

/// Something that a thread did to the medium, or a mark of the operation that it did it for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A store of one word.
    Store { word: u32, old: u64, new: u64, role: Role },
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
pub(crate) struct Entry {
    pub(crate) thread: u32,
    pub(crate) event: Event,
}

/// All that happened to a medium, from its first byte on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tape {
    /// Words that the medium began with; zero past their end.
    pub(crate) initial: Vec<u64>,
    /// Bytes of the medium at the beginning.
    pub(crate) bytes: u64,
    /// The events.
    pub(crate) entries: Vec<Entry>,
    /// Time at which the operations under test begin.
    pub(crate) begin: u32,
}

/// A defect put into what is recorded: an ordering step of the operations under test that is not
/// written down, as if the code left it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// The flush of that number is left out.
    SkipFlush(u32),
    /// The fence of that number is left out.
    SkipFence(u32),
}

/// How many ordering steps the operations under test took: how many defects can be seeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sites {
    /// Calls that flush.
    pub flushes: u32,
    /// Fences.
    pub fences: u32,
}

impl Sites {
    /// Every way in which one of the steps can be left out.
    pub fn sabotages(self) -> impl Iterator<Item = Sabotage> {
        let flushes = (0..self.flushes).map(Sabotage::SkipFlush);
        flushes.chain((0..self.fences).map(Sabotage::SkipFence))
    }
}
