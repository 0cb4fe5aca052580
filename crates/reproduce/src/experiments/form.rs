//! The forms of designs that experiments use.

use bristlecone_lab::{LabError, Result};
use bristlecone_pmem::Simulated;
use bristlecone_trees::ErasedDesign;

/// Returns the form of the design called `name` for integer keys on a simulated medium.
///
/// # Errors
/// No design has this name, or it has no such form with nodes of `node_bytes` bytes.
pub(super) fn integer_form(name: &str, node_bytes: usize) -> Result<ErasedDesign<Simulated, u64>> {
    let entry = bristlecone_registry::with_size(name, node_bytes)?;
    entry.simulated.numbers.ok_or_else(|| {
        LabError::Asked(format!("{name} of {node_bytes} B is not compiled for a simulated medium"))
    })
}

/// Returns the error for variants of the design called `name` that this build does not have.
pub(super) fn variants_missing(name: &str) -> LabError {
    LabError::Asked(format!(
        "the variants of {name} are not in this build; `cargo lab` builds and runs \
         `bristlecone-lab` with them"
    ))
}
