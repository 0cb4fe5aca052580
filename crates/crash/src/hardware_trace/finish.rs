//! The result of a comparison, and its failures.

use super::compare::{Difference, ExecutedEvent};

/// The result of comparing the traces of one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// All events are equal.
    Agrees,
    /// The traces differ, first at this event.
    Differs(Box<Difference>),
    /// This system does not allow a process to be traced.
    Skipped(String),
    /// The process or the script failed.
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
