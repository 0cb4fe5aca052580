//! How a command ends, and the exit code that says so.

use bristlecone_lab::LabError;
use bristlecone_pmem::PoolError;
use bristlecone_pmem::medium::MediumError;
use bristlecone_trees::TreeError;
use bristlecone_trees::names::UnknownDesign;
use std::io;

/// The answer is no: a key is absent, a violation was found, a write was lost.
pub(crate) const NO: u8 = 1;
const USAGE: u8 = 2;
const DAMAGED: u8 = 3;
const SYSTEM: u8 = 4;

/// What a command that ran to its end answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Done, found, in order.
    Yes,
    /// Absent, violated, lost.
    No,
}

impl Answer {
    /// Yes if `yes`.
    pub(crate) fn from_bool(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

/// A wrong use that the parser of arguments could not see.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Something that was promised does not hold.
#[derive(Debug)]
pub(crate) struct Violation(pub(crate) String);

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

/// Whether `error` is that nobody reads standard output any more.
pub(crate) fn reader_left(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The exit code for `error`: that of the first cause in its chain that has one. What is not known
/// better is the system's refusal.
pub(crate) fn exit_code(error: &anyhow::Error) -> u8 {
    error.chain().find_map(code_of).unwrap_or(SYSTEM)
}

fn code_of(cause: &(dyn std::error::Error + 'static)) -> Option<u8> {
    if cause.is::<Usage>() || cause.is::<UnknownDesign>() {
        return Some(USAGE);
    }
    if cause.is::<Violation>() {
        return Some(NO);
    }
    if let Some(error) = cause.downcast_ref::<bristlecone::Error>() {
        return Some(error.kind().exit_code());
    }
    if let Some(error) = cause.downcast_ref::<TreeError>() {
        return Some(match error {
            TreeError::Pool(error) => of_pool(error),
            _ => DAMAGED,
        });
    }
    if let Some(error) = cause.downcast_ref::<PoolError>() {
        return Some(of_pool(error));
    }
    if let Some(error) = cause.downcast_ref::<LabError>() {
        return of_lab(error);
    }
    (cause.is::<MediumError>() || cause.is::<io::Error>()).then_some(SYSTEM)
}

/// What the laboratory passes on is judged as if it had come by itself.
fn of_lab(error: &LabError) -> Option<u8> {
    match error {
        LabError::Design(_)
        | LabError::Asked(_)
        | LabError::Profile(_)
        | LabError::Workload(_)
        | LabError::UnknownPeer { .. }
        | LabError::PeerNotBuilt { .. } => Some(USAGE),
        LabError::Wrong { .. } => Some(NO),
        LabError::Tree(error) => code_of(error),
        LabError::Store(error) => code_of(error),
        LabError::Pool(error) => code_of(error),
        _ => Some(SYSTEM),
    }
}

fn of_pool(error: &PoolError) -> u8 {
    match error {
        PoolError::Medium(_) | PoolError::Full { .. } => SYSTEM,
        PoolError::RootExists | PoolError::RootName { .. } | PoolError::RootsFull(_) => USAGE,
        _ => DAMAGED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_keep_their_codes_under_context() {
        let usage = anyhow::Error::new(Usage("no".into())).context("while reading");
        assert_eq!(exit_code(&usage), USAGE);
        let damaged = anyhow::Error::new(TreeError::Pool(PoolError::Superblocks));
        assert_eq!(exit_code(&damaged), DAMAGED);
        let locked = anyhow::Error::new(PoolError::Medium(MediumError::Locked));
        assert_eq!(exit_code(&locked), SYSTEM);
        assert_eq!(exit_code(&anyhow::anyhow!("something")), SYSTEM);
    }
}
