//! Corruption: contents that no correct run writes.

use thiserror::Error;

/// Contents of a pool that cannot be: damage, or a file that something else wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("damaged at offset {at:#x}: {what} (expected {expected:#x}, found {found:#x})")]
pub struct Corrupt {
    /// Offset in the pool, in bytes.
    pub at: u64,
    /// What is wrong.
    pub what: &'static str,
    /// What should be there, or the bound that is broken.
    pub expected: u64,
    /// What is there.
    pub found: u64,
}
