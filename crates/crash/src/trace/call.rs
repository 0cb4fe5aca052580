//! The calls of a concurrent execution, and the answers that threads got.

/// What an operation told its caller of the value that it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Nothing.
    Silence,
    /// Whether there was one.
    Presence(bool),
    /// Which it was.
    Value(Option<u64>),
}

impl Answer {
    /// Whether it is right where the operation found `value`.
    pub(crate) fn fits(self, value: Option<u64>) -> bool {
        match self {
            Self::Silence => true,
            Self::Presence(present) => present == value.is_some(),
            Self::Value(told) => told == value,
        }
    }
}

/// An operation under test, as it went. Its number is its place among all, in the order in which
/// they were invoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// The player, counted from 0.
    pub(crate) thread: usize,
    /// Its place in the player's part.
    pub(crate) place: usize,
    pub(crate) invoked: u32,
    /// When it was acknowledged; [`NEVER`](super::NEVER) if it was not.
    pub(crate) returned: u32,
    pub(crate) answer: Answer,
}
