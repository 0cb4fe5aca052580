//! Corruption: contents that no correct run writes.

use thiserror::Error;

/// A place in a pool whose contents no correct run writes: damage, or a file of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("damaged at offset {at:#x}: {what} (expected {expected:#x}, found {found:#x})")]
pub struct Corrupt {
    /// The offset of the wrong contents in the pool, in bytes.
    pub at: u64,
    /// A short name of the part that is wrong, such as "root entry's checksum".
    pub what: &'static str,
    /// The value that should be there, or the bound that is broken.
    pub expected: u64,
    /// The value that is there.
    pub found: u64,
}
