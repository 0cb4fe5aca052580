//! The result of a comparison, and its failures.

use super::compare::{Difference, ExecutedEvent};

/// How it went with a design.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Every event is the same.
    Agrees,
    /// Not every event is.
    Differs(Box<Difference>),
    /// Processes cannot be watched here.
    Skipped(String),
    /// Something else went wrong.
    Failed(String),
}

/// What the process did.
pub(crate) struct Watched {
    pub(crate) happened: Vec<ExecutedEvent>,
    pub(crate) stops: u64,
}

pub(super) fn failed(error: impl core::fmt::Display) -> Finish {
    Finish::Failed(error.to_string())
}
