//! What can go wrong with a store.
//!
//! 1. Every message names the file, what is wrong, where, and what to do about it.
//! 2. An operation that fails has changed nothing, in memory or on the medium.

use bristlecone_pmem::medium::MediumError;
use bristlecone_pmem::{Corrupt, Domain, PoolError};
use bristlecone_trees::TreeError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why an operation on a store could not be done. Nothing has changed then.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no file at the path, or no folder for it.
    #[error("{}: no such file or folder; create the store, or its folder, first", path.display())]
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// A store was to be created where a file is.
    #[error("{}: the file exists already; open it, or choose another path", path.display())]
    AlreadyExists {
        /// The file.
        path: PathBuf,
    },
    /// The system does not let this user read and write the file.
    #[error(
        "{}: cannot {action}: {source}; a store needs permission to read and write its file, even to be read",
        path.display()
    )]
    Denied {
        /// The file.
        path: PathBuf,
        /// What was being done.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The store is open in another process, or elsewhere in this one.
    #[error("{}: the store is open elsewhere; close it there first", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file is something else.
    #[error(
        "{}: not a Bristlecone pool (found {found:#018x} at offset 0x0); check the path",
        path.display()
    )]
    NotAPool {
        /// The file.
        path: PathBuf,
        /// The word at offset 0.
        found: u64,
    },
    /// The creation of the store was cut off before it could hold anything.
    #[error(
        "{}: the creation of this store was cut off, and it holds nothing; finish it with open_or_create, or remove the file",
        path.display()
    )]
    Unfinished {
        /// The file.
        path: PathBuf,
    },
    /// The file is shorter than it says, or than any pool.
    #[error(
        "{}: cut short: {expected} bytes are needed, the file has {found}; restore it from a backup",
        path.display()
    )]
    CutShort {
        /// The file.
        path: PathBuf,
        /// Bytes that should be there.
        expected: u64,
        /// Bytes that are there.
        found: u64,
    },
    /// A later version of this library wrote the pool.
    #[error(
        "{}: format version {found} (at offset {at:#x}) is newer than {supported}; upgrade to open it",
        path.display()
    )]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// Offset of the version.
        at: u64,
        /// Version of the pool.
        found: u32,
        /// The newest version that this library reads.
        supported: u32,
    },
    /// Both copies of the superblock fail their checksums.
    #[error(
        "{}: both superblocks are damaged (offsets 0x0 and 0x1000); restore the file from a backup",
        path.display()
    )]
    Superblocks {
        /// The file.
        path: PathBuf,
    },
    /// Something inside the pool cannot be.
    #[error(
        "{}: {damage}; restore the file from a backup, or save what can still be read",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, and at which offset.
        damage: Corrupt,
    },
    /// The pool is whole, but what it holds is no store of this kind.
    #[error(
        "{}: the pool holds something other than this store (kind {found:#x}, expected {expected:#x}); open it with the program that made it",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Kind of root that a store has.
        expected: u64,
        /// Kind of the root that is there.
        found: u64,
    },
    /// There is no room, and the pool may not or cannot grow. Deleting still works.
    #[error(
        "{}: no room for {wanted} more bytes: {source}; delete something, allow the store more, or free space on the device",
        path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// Bytes that were asked for.
        wanted: u64,
        /// What keeps the pool from growing.
        source: MediumError,
    },
    /// The options ask for a pool smaller than any.
    #[error(
        "{}: a pool of {bytes} bytes is too small; give it at least {minimum}",
        path.display()
    )]
    TooSmall {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        bytes: u64,
        /// The smallest size that works.
        minimum: u64,
    },
    /// A durability domain was required that the file cannot give.
    #[error(
        "{}: the file gives durability domain {given}, but {required} is required; put it on a file system mounted with DAX, or require less",
        path.display()
    )]
    Domain {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        required: Domain,
        /// What the file can give.
        given: Domain,
    },
    /// The system does not put the file's pages on a node of the placement.
    #[error(
        "{}: cannot put memory on NUMA node {node}: {source}; leave the node out, or place the file as it lies",
        path.display()
    )]
    Node {
        /// The file.
        path: PathBuf,
        /// The node.
        node: u16,
        /// What the system said.
        source: io::Error,
    },
    /// The key is longer than a store takes.
    #[error("a key of {bytes} bytes is too long: a store takes up to {maximum}")]
    KeyTooLong {
        /// Its length.
        bytes: usize,
        /// The longest there may be.
        maximum: usize,
    },
    /// The value is longer than a store takes.
    #[error("a value of {bytes} bytes is too long: a store takes up to {maximum}")]
    ValueTooLong {
        /// Its length.
        bytes: usize,
        /// The longest there may be.
        maximum: usize,
    },
    /// The system refused for another reason.
    #[error("{}: cannot {action}: {source}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// What was being done.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The index refused for a reason that a store does not expect.
    #[error("{}: {source}", path.display())]
    Index {
        /// The file.
        path: PathBuf,
        /// What the index said.
        source: TreeError,
    },
}

/// Whose move it is after an [`Error`](enum@Error).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller's: what was asked for cannot be.
    Usage,
    /// The owner's of the file: it is damaged, foreign, unfinished, or of a newer version.
    Damaged,
    /// The system's: it refused space, permission, the lock, or there is no such file.
    System,
}

impl ErrorKind {
    /// The exit code that commands end with: 2 for usage, 3 for a pool that is damaged or foreign,
    /// 4 if the system refused.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::Damaged => 3,
            Self::System => 4,
        }
    }
}

impl Error {
    /// Whose move it is.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::TooSmall { .. } | Self::KeyTooLong { .. } | Self::ValueTooLong { .. } => {
                ErrorKind::Usage
            }
            Self::NotAPool { .. }
            | Self::Unfinished { .. }
            | Self::CutShort { .. }
            | Self::NewerVersion { .. }
            | Self::Superblocks { .. }
            | Self::Damaged { .. }
            | Self::Foreign { .. }
            | Self::Index { .. } => ErrorKind::Damaged,
            Self::NotFound { .. }
            | Self::AlreadyExists { .. }
            | Self::Denied { .. }
            | Self::InUse { .. }
            | Self::Full { .. }
            | Self::Domain { .. }
            | Self::Node { .. }
            | Self::System { .. } => ErrorKind::System,
        }
    }

    /// The file that the error is about; none if it is about the arguments alone.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::KeyTooLong { .. } | Self::ValueTooLong { .. } => None,
            Self::NotFound { path }
            | Self::AlreadyExists { path }
            | Self::Denied { path, .. }
            | Self::InUse { path }
            | Self::NotAPool { path, .. }
            | Self::Unfinished { path }
            | Self::CutShort { path, .. }
            | Self::NewerVersion { path, .. }
            | Self::Superblocks { path }
            | Self::Damaged { path, .. }
            | Self::Foreign { path, .. }
            | Self::Full { path, .. }
            | Self::TooSmall { path, .. }
            | Self::Domain { path, .. }
            | Self::Node { path, .. }
            | Self::System { path, .. }
            | Self::Index { path, .. } => Some(path),
        }
    }

    pub(crate) fn from_tree(path: &Path, error: TreeError) -> Self {
        match error {
            TreeError::Pool(error) => Self::from_pool(path, error),
            // No root: the pool was made, but not what it is to hold.
            TreeError::Foreign { found: 0, .. } => Self::Unfinished { path: path.into() },
            TreeError::Foreign { expected, found } => {
                Self::Foreign { path: path.into(), expected, found }
            }
            source => Self::Index { path: path.into(), source },
        }
    }

    pub(crate) fn from_pool(path: &Path, error: PoolError) -> Self {
        let path: PathBuf = path.into();
        match error {
            PoolError::NotAPool { found } => Self::NotAPool { path, found },
            PoolError::TooSmall { bytes, minimum } => {
                Self::CutShort { path, expected: minimum, found: bytes }
            }
            PoolError::Version { at, found, supported } => {
                Self::NewerVersion { path, at, found, supported }
            }
            PoolError::Superblocks => Self::Superblocks { path },
            PoolError::Truncated { expected, found } => Self::CutShort { path, expected, found },
            PoolError::Corrupt(damage) => Self::Damaged { path, damage },
            PoolError::Medium(error) => Self::from_medium(&path, error),
            PoolError::Full { wanted, reason } => Self::Full { path, wanted, source: reason },
            other => Self::Index { path, source: TreeError::Pool(other) },
        }
    }

    pub(crate) fn from_medium(path: &Path, error: MediumError) -> Self {
        let path: PathBuf = path.into();
        match error {
            MediumError::Locked => Self::InUse { path },
            MediumError::Domain { required, given } => Self::Domain { path, required, given },
            MediumError::Node { node, source } => Self::Node { path, node, source },
            MediumError::System { action, source } => Self::from_system(path, action, source),
            MediumError::Limit { wanted, .. } => Self::Full { path, wanted, source: error },
            other => Self::Index { path, source: PoolError::Medium(other).into() },
        }
    }

    pub(crate) fn from_system(path: PathBuf, action: &'static str, source: io::Error) -> Self {
        use io::ErrorKind as Io;
        match source.kind() {
            Io::NotFound => Self::NotFound { path },
            Io::AlreadyExists => Self::AlreadyExists { path },
            Io::PermissionDenied | Io::ReadOnlyFilesystem => Self::Denied { path, action, source },
            _ => Self::System { path, action, source },
        }
    }

    pub(crate) fn damaged(path: &Path, damage: Corrupt) -> Self {
        Self::Damaged { path: path.into(), damage }
    }
}

#[cfg(test)]
mod tests;
