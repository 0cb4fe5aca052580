//! The exit codes of errors that only the laboratory has.

use bristlecone_console::exit::{self, DAMAGED, NO, SYSTEM, USAGE};
use bristlecone_lab::LabError;
use bristlecone_pmem::PoolError;
use bristlecone_pmem::medium::MediumError;
use bristlecone_trees::TreeError;
use bristlecone_trees::kv::KvError;
use bristlecone_trees::names::UnknownDesign;
use std::error::Error;

/// Returns the exit code of `cause` alone, or `None` if it has none of its own.
pub(crate) fn code_of(cause: &(dyn Error + 'static)) -> Option<u8> {
    if let Some(error) = cause.downcast_ref::<LabError>() {
        return of_lab(error);
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
    if cause.is::<UnknownDesign>() {
        return Some(USAGE);
    }
    if cause.is::<MediumError>() {
        return Some(SYSTEM);
    }
    exit::code_of(cause)
}

/// Returns the exit code of an error of the laboratory. An error that it passes on keeps the code
/// that it has by itself.
fn of_lab(error: &LabError) -> Option<u8> {
    match error {
        LabError::Design(_)
        | LabError::Asked(_)
        | LabError::Profile(_)
        | LabError::Workload(_)
        | LabError::UnknownPeer { .. }
        | LabError::PeerNotBuilt { .. } => Some(USAGE),
        LabError::Wrong { .. } => Some(NO),
        LabError::Tree(error) | LabError::Kv(KvError::Tree(error)) => code_of(error),
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
    fn errors_of_the_laboratory_have_codes() {
        assert_eq!(code_of(&TreeError::Pool(PoolError::Superblocks)), Some(DAMAGED));
        assert_eq!(code_of(&PoolError::Medium(MediumError::Locked)), Some(SYSTEM));
        assert_eq!(code_of(&LabError::Asked("no records".into())), Some(USAGE));
        assert_eq!(code_of(&exit::UsageError("no".into())), Some(USAGE));
        assert_eq!(code_of(&std::fmt::Error), None);
    }
}
