//! The calls of a concurrent execution, and the answers that threads got.

/// The part of its result that an operation returned to its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// An answer of an operation that returns nothing.
    Silence,
    /// The presence of a value under the key.
    Presence(bool),
    /// The value that the operation found, if any.
    Value(Option<u64>),
    /// A full pool. The operation has no effect.
    Refused,
}

impl Answer {
    /// Returns `true` if this answer is right for an operation that found `value`.
    pub(crate) fn fits(self, value: Option<u64>) -> bool {
        match self {
            Self::Silence | Self::Refused => true,
            Self::Presence(present) => present == value.is_some(),
            Self::Value(told) => told == value,
        }
    }
}

/// A call of an operation under test. Calls are numbered in the order of their invocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// The calling thread, counted from 0.
    pub(crate) thread: usize,
    /// The position of the operation in the thread's list.
    pub(crate) place: usize,
    /// The key of an operation on several, by its position among them.
    pub(crate) part: usize,
    pub(crate) invoked: u32,
    /// The time of the acknowledgement, or [`NEVER`](super::NEVER) for a call that has not
    /// returned.
    pub(crate) returned: u32,
    pub(crate) answer: Answer,
}
