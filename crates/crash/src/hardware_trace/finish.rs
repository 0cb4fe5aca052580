//! The result of a comparison, and its failures.

use super::compare::{Difference, ExecutedEvent};

/// The result of comparing the traces of one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Equality of all events.
    Agrees,
    /// A difference, with the first differing event.
    Differs(Box<Difference>),
    /// A system that does not allow tracing, with its reason.
    Skipped(String),
    /// A failure of the process or of the script.
    Failed(String),
}

/// The events of the traced process.
pub(crate) struct Watched {
    pub(crate) happened: Vec<ExecutedEvent>,
    pub(crate) stops: u64,
}

pub(super) fn failed(error: impl core::fmt::Display) -> Finish {
    Finish::Failed(error.to_string())
}
