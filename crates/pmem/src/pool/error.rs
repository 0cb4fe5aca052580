//! The errors of a pool.

use crate::error::Corrupt;
use crate::medium::MediumError;
use thiserror::Error;

/// Why a pool could not be created, opened, or used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PoolError {
    /// Neither superblock carries the magic number.
    #[error(
        "not a Bristlecone pool (found {found:#018x} at offset 0x0); if it was being created when the machine stopped, remove it and create it again"
    )]
    NotAPool {
        /// The word at offset 0.
        found: u64,
    },
    /// The file is smaller than any pool.
    #[error("too small for a pool: {bytes} bytes, at least {minimum} are needed")]
    TooSmall {
        /// Its size.
        bytes: u64,
        /// The smallest size that works.
        minimum: u64,
    },
    /// A pool was to be created where something is already.
    #[error("not empty (found {found:#018x} at offset {at:#x}): create the pool in a new file")]
    NotEmpty {
        /// Offset of the first word that is not zero.
        at: u64,
        /// The word.
        found: u64,
    },
    /// A later version of this library wrote it.
    #[error(
        "format version {found} at offset {at:#x} is newer than {supported}: upgrade to open it"
    )]
    Version {
        /// Offset of the version.
        at: u64,
        /// Version of the pool.
        found: u32,
        /// The newest version that this library reads.
        supported: u32,
    },
    /// Both superblocks fail their checksums.
    #[error(
        "both superblocks are damaged (offsets 0x0 and 0x1000): restore the file from a backup"
    )]
    Superblocks,
    /// The file is shorter than its superblock says.
    #[error(
        "cut short: the superblock says {expected} bytes, the file has {found}: restore it from a backup"
    )]
    Truncated {
        /// Bytes that the superblock records.
        expected: u64,
        /// Bytes that are there.
        found: u64,
    },
    /// Something inside the pool cannot be.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
    /// The medium refused.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// There is no room, and the pool may not or cannot grow.
    #[error("the pool is full: {wanted} more bytes are needed, and it cannot grow ({reason})")]
    Full {
        /// Bytes that were asked for.
        wanted: u64,
        /// What keeps it from growing.
        reason: MediumError,
    },
    /// A root of that name exists.
    #[error("a root of that name exists")]
    RootExists,
    /// All places for roots are taken.
    #[error("all {0} roots of the pool are in use")]
    RootsFull(usize),
    /// A root's name is empty or too long.
    #[error("a root's name has 1 to {maximum} bytes, not {bytes}")]
    RootName {
        /// Its length.
        bytes: usize,
        /// The longest allowed.
        maximum: usize,
    },
    /// A block was asked for before recovery had finished.
    #[error("the pool is still being recovered: mark what the roots reach and finish first")]
    Recovering,
}
