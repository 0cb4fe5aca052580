//! The errors of a store.
//!
//! 1. Every message names the file, the cause, its place and a remedy.
//! 2. An operation that fails has changed no pair, with one exception: a write that meets damage
//!    after it has split a leaf may have written its own pair.

use bristlecone_pmem::journal::JournalError;
use bristlecone_pmem::medium::MediumError;
use bristlecone_pmem::{Corrupt, Domain, PoolError};
use bristlecone_trees::TreeError;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The error type of [`Store`](crate::Store) and [`Options`](crate::Options). After an error no
/// pair has changed, with one exception: a write that ends with [`Damaged`](Self::Damaged) after it
/// has split a leaf may have written its own pair.
///
/// The message names file, cause and remedy; [`kind`](Self::kind) says what can help:
///
/// | kind | cause | action |
/// | --- | --- | --- |
/// | `Usage` | an argument is out of range, or a fork | correct the call |
/// | `Damaged` | the file is damaged, torn, of another version, or not a store | see the message |
/// | `System` | the system refused space, permission or the lock | remove the cause, retry |
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// use bristlecone::{Error, ErrorKind, Store};
///
/// let error = Store::open(dir.path().join("trees.pool")).unwrap_err();
/// assert!(matches!(error, Error::NotFound { .. }));
/// assert_eq!(error.kind(), ErrorKind::System);
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The file does not exist, or the folder of a new file does not.
    #[error("{}: no such file or folder; create the store, or its folder, first", path.display())]
    NotFound {
        /// The path of the store.
        path: PathBuf,
    },
    /// The path of a store to create has a file already.
    #[error("{}: the file exists already; open it, or choose another path", path.display())]
    AlreadyExists {
        /// The path of the store.
        path: PathBuf,
    },
    /// The system refuses this user permission to read and write the file.
    #[error(
        "{}: cannot {action}: {source}; a store needs permission to read and write its file, even to be read",
        path.display()
    )]
    Denied {
        /// The path of the store.
        path: PathBuf,
        /// The action that the system refused, as a verb phrase.
        action: &'static str,
        /// The error that the system returned.
        source: io::Error,
    },
    /// The store is open in another process, or elsewhere in this one.
    #[error("{}: the store is open elsewhere; close it there first", path.display())]
    InUse {
        /// The path of the store.
        path: PathBuf,
    },
    /// A child of `fork` cannot use a store that its parent opened: no operation had any effect.
    #[error(
        "{}: this process was forked while the store was open, and cannot use it; open the store after the fork, in one of the processes",
        path.display()
    )]
    ForkedChild {
        /// The path of the store.
        path: PathBuf,
    },
    /// The file was removed while the store was open. The store is closed, and its pairs are lost
    /// as soon as `file` is dropped: copy it first.
    #[error(
        "{}: the file was removed while the store was open; its pairs are lost unless /proc/{}/fd/{} is copied before the process ends",
        path.display(),
        std::process::id(),
        file.as_raw_fd()
    )]
    Removed {
        /// The path that the store had.
        path: PathBuf,
        /// The file without a path.
        file: File,
    },
    /// The file was moved, or replaced by another, while the store was open. The store is closed,
    /// and whole under its new path.
    #[error(
        "{}: the file was moved or replaced while the store was open; the store is whole, under another path",
        path.display()
    )]
    Moved {
        /// The path that the store had.
        path: PathBuf,
    },
    /// The file is not a pool: its first word is not the magic number.
    #[error(
        "{}: not a Bristlecone pool (found {found:#018x} at offset 0x0); check the path",
        path.display()
    )]
    NotAPool {
        /// The path of the store.
        path: PathBuf,
        /// The word at offset 0 of the file.
        found: u64,
    },
    /// The path leads to something that is no file. It was not opened.
    #[error("{}: {kind}; a store lies in a regular file, so check the path", path.display())]
    NotAFile {
        /// The path of the store.
        path: PathBuf,
        /// The name of what is there, with its article.
        kind: &'static str,
    },
    /// The file has no bytes.
    #[error(
        "{}: an empty file, and so no store; open_or_create (`bristlecone load`) makes one of it",
        path.display()
    )]
    Empty {
        /// The path of the store.
        path: PathBuf,
    },
    /// The header of the file is zero, but its length or the rest is not that of an interrupted
    /// creation. It may have been a store whose contents are lost.
    #[error(
        "{}: the first 32 KiB of this file of {bytes} bytes are zeros, so it is no store; if it was one, restore it from a backup; for a new store choose another path",
        path.display()
    )]
    Zeros {
        /// The path of the store.
        path: PathBuf,
        /// The length of the file, in bytes.
        bytes: u64,
    },
    /// A crash interrupted the creation of the store; it holds no pair.
    #[error(
        "{}: no store yet: the creation of one was interrupted, and the file holds nothing; open_or_create (`bristlecone load`) finishes it",
        path.display()
    )]
    Unfinished {
        /// The path of the store.
        path: PathBuf,
    },
    /// The file is shorter than its superblock states, or than the smallest pool.
    #[error(
        "{}: cut short: {expected} bytes are needed, the file has {found}; restore it from a backup",
        path.display()
    )]
    CutShort {
        /// The path of the store.
        path: PathBuf,
        /// The number of bytes that the file needs.
        expected: u64,
        /// The number of bytes that the file has.
        found: u64,
    },
    /// An earlier version of this library wrote the pool.
    #[error(
        "{}: format version {found} (at offset {at:#x}), which this release no longer reads (it reads {supported}); write the pairs out with `bristlecone dump` of the release that wrote it, and read them into a new store with `bristlecone load` of this one",
        path.display()
    )]
    OldVersion {
        /// The path of the store.
        path: PathBuf,
        /// The offset of the version in the file.
        at: u64,
        /// The format version of the file.
        found: u32,
        /// The version that this library reads.
        supported: u32,
    },
    /// The pool uses a feature that this library does not know.
    #[error(
        "{}: needs feature {bit} (a bit of the word at offset {at:#x}), which this release does not know; upgrade to open it",
        path.display()
    )]
    Feature {
        /// The path of the store.
        path: PathBuf,
        /// The offset of the word with the features.
        at: u64,
        /// The number of the lowest bit that is not known.
        bit: u32,
    },
    /// The machine restarted while the store was open without a journal. On a plain file that can
    /// lose any page that was written since the last [`close`](crate::Store::close), so the file
    /// may mix pages of different times. A copy of an open store that came from another machine
    /// looks the same, and so does a store whose device refused pages: then `opened_in` has all
    /// bits set.
    #[error(
        "{}: was not closed before the machine restarted, or its device refused pages, and a plain file does not survive that: writes may be missing, and old pages may lie beside new ones; restore a backup, or copy what can be read with `bristlecone salvage {} INTO`, or take the file as it is with open_torn (`--open-torn`): answers may then be wrong",
        path.display(),
        path.display()
    )]
    MayBeTorn {
        /// The path of the store.
        path: PathBuf,
        /// The id of the boot in which the store was open.
        opened_in: u128,
        /// The id of this boot.
        now: u128,
    },
    /// The file is a copy of a store that was not closed. If a process wrote while it was copied,
    /// it mixes pages of different times. A copy of a closed store opens. A copy that was made
    /// after the process had died is whole; nothing tells it from the others.
    #[error(
        "{}: a copy of a store that was not closed (it was open in the file with inode number {original}, this one has {found}; 0: none that lasts): if a process was writing meanwhile, pages of different times lie side by side; close the original and copy it again, copy what can be read with `bristlecone salvage {} INTO`, or, if no process had it open meanwhile, take this file as it is with open_torn (`--open-torn`)",
        path.display(),
        path.display()
    )]
    UnclosedCopy {
        /// The path of the copy.
        path: PathBuf,
        /// The inode number of the file in which the store was open.
        original: u64,
        /// The inode number of the copy.
        found: u64,
    },
    /// A later version of this library wrote the pool.
    #[error(
        "{}: format version {found} (at offset {at:#x}) is newer than {supported}; upgrade to open it",
        path.display()
    )]
    NewerVersion {
        /// The path of the store.
        path: PathBuf,
        /// The offset of the version in the file.
        at: u64,
        /// The format version of the file.
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
        /// The path of the store.
        path: PathBuf,
    },
    /// The pool has contents that no correct run writes.
    #[error(
        "{}: {damage}; restore the file from a backup, or copy what can still be read with `bristlecone salvage {} INTO`",
        path.display(),
        path.display()
    )]
    Damaged {
        /// The path of the store.
        path: PathBuf,
        /// The damage, with its offset in the file.
        damage: Corrupt,
    },
    /// The pool is sound, but holds something other than a store.
    #[error(
        "{}: the pool holds something other than this store (kind {found:#x}, expected {expected:#x}); open it with the program that made it",
        path.display()
    )]
    Foreign {
        /// The path of the store.
        path: PathBuf,
        /// The kind number of the root of a store.
        expected: u64,
        /// The kind number of the root in the file.
        found: u64,
    },
    /// The pool has no space and cannot grow. [`Store::delete`](crate::Store::delete) still works.
    #[error(
        "{}: full: cannot allocate {wanted} more bytes ({source}); delete pairs one at a time, raise max_bytes or reserve_bytes, or free space on the device",
        path.display()
    )]
    Full {
        /// The path of the store.
        path: PathBuf,
        /// The number of bytes that could not be allocated.
        wanted: u64,
        /// The reason why the pool cannot grow.
        source: MediumError,
    },
    /// The device has no space for the journal. The store is as it was.
    #[error(
        "{}: no space for a journal of {wanted} bytes ({source}); free space on the device, set a smaller journal_bytes, or open the store without a journal (durability process)",
        path.display()
    )]
    NoJournalSpace {
        /// The path of the store.
        path: PathBuf,
        /// The size of the journal, in bytes.
        wanted: u64,
        /// The reason of the system.
        source: MediumError,
    },
    /// The options allow a new file, or the medium has, fewer bytes than the smallest pool has.
    #[error(
        "{}: a pool of {bytes} bytes is too small; give it at least {minimum}",
        path.display()
    )]
    TooSmall {
        /// The path of the store.
        path: PathBuf,
        /// The size that the options allow, or that the medium has, in bytes.
        bytes: u64,
        /// The size of the smallest pool, in bytes.
        minimum: u64,
    },
    /// The file cannot give the persistence domain that the options require.
    #[error(
        "{}: the file gives persistence domain {given}, but {required} is required; put it on a file system mounted with DAX, or require less",
        path.display()
    )]
    Domain {
        /// The path of the store.
        path: PathBuf,
        /// The domain that the options require.
        required: Domain,
        /// The domain that the file can give.
        given: Domain,
    },
    /// The system refuses to put pages of the file on a NUMA node of the placement.
    #[error(
        "{}: cannot put memory on NUMA node {node}: {source}; leave the node out, or use Placement::as_it_lies",
        path.display()
    )]
    Node {
        /// The path of the store.
        path: PathBuf,
        /// The number of the NUMA node.
        node: u16,
        /// The error that the system returned.
        source: io::Error,
    },
    /// The key is longer than [`KEY_BYTES_MAX`](crate::KEY_BYTES_MAX).
    #[error("a key of {bytes} bytes is too long: a store takes up to {maximum}")]
    KeyTooLong {
        /// The length that was passed, in bytes.
        bytes: usize,
        /// The greatest length that a store takes, in bytes.
        maximum: usize,
    },
    /// The value is longer than [`VALUE_BYTES_MAX`](crate::VALUE_BYTES_MAX).
    #[error("a value of {bytes} bytes is too long: a store takes up to {maximum}")]
    ValueTooLong {
        /// The length that was passed, in bytes.
        bytes: usize,
        /// The greatest length that a store takes, in bytes.
        maximum: usize,
    },
    /// The store was open with a journal, which is missing or incomplete; or the file system keeps
    /// nothing over a power cut; or the file is mounted without its folder; or its journal cannot
    /// have its name.
    #[error("{}: {source}", path.display())]
    Journal {
        /// The path of the store.
        path: PathBuf,
        /// The error of the journal.
        source: JournalError,
    },
    /// A write of the journal has failed before. Reads go on; no write is taken until the store is
    /// opened again, and what was not synced may be lost. The same follows if another program
    /// removes the journal, or puts another in its place; then nothing is lost.
    #[error(
        "{}: a write of the journal has failed, or the journal was removed or replaced, so writes have ended: \
         open the store again",
        path.display()
    )]
    WritesEnded {
        /// The path of the store.
        path: PathBuf,
    },
    /// The system refused the action for another reason.
    #[error("{}: cannot {action}: {source}", path.display())]
    System {
        /// The path of the store.
        path: PathBuf,
        /// The action that the system refused, as a verb phrase.
        action: &'static str,
        /// The error that the system returned.
        source: io::Error,
    },
    /// The index failed in a way that a store does not expect.
    #[error("{}: {source}", path.display())]
    Index {
        /// The path of the store.
        path: PathBuf,
        /// The error that the index returned.
        source: TreeError,
    },
}

/// The class of an [`Error`](enum@Error): the remedy lies with the call, the file or the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument is out of range, or a child of `fork` uses a store of its parent: correct the
    /// call.
    Usage,
    /// The file is damaged, incomplete, of another version, or not a store: see the message.
    Damaged,
    /// The system refused space, permission or the lock, or has no such file: remove the cause.
    System,
}

impl ErrorKind {
    /// Returns the exit code of a command that fails with this kind: 2 for `Usage`, 3 for
    /// `Damaged`, 4 for `System`.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::Damaged => 3,
            Self::System => 4,
        }
    }
}

impl Error {
    /// Returns the class of the error, which says what can help.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::TooSmall { .. }
            | Self::Journal { source: JournalError::NameTooLong { .. }, .. }
            | Self::ForkedChild { .. }
            | Self::KeyTooLong { .. }
            | Self::ValueTooLong { .. } => ErrorKind::Usage,
            Self::NotAPool { .. }
            | Self::Empty { .. }
            | Self::Unfinished { .. }
            | Self::Zeros { .. }
            | Self::MayBeTorn { .. }
            | Self::UnclosedCopy { .. }
            | Self::OldVersion { .. }
            | Self::Feature { .. }
            | Self::CutShort { .. }
            | Self::NewerVersion { .. }
            | Self::Superblocks { .. }
            | Self::Damaged { .. }
            | Self::Foreign { .. }
            | Self::Journal {
                source:
                    JournalError::Missing { .. }
                    | JournalError::Foreign { .. }
                    | JournalError::CutShort { .. },
                ..
            }
            | Self::Index { .. } => ErrorKind::Damaged,
            Self::NotFound { .. }
            | Self::AlreadyExists { .. }
            | Self::Denied { .. }
            | Self::InUse { .. }
            | Self::Removed { .. }
            | Self::Moved { .. }
            | Self::NotAFile { .. }
            | Self::Full { .. }
            | Self::NoJournalSpace { .. }
            | Self::Domain { .. }
            | Self::Node { .. }
            | Self::Journal { .. }
            | Self::WritesEnded { .. }
            | Self::System { .. } => ErrorKind::System,
        }
    }

    /// Returns the path of the file; `None` if the error concerns the arguments alone.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::KeyTooLong { .. } | Self::ValueTooLong { .. } => None,
            Self::NotFound { path }
            | Self::AlreadyExists { path }
            | Self::Denied { path, .. }
            | Self::InUse { path }
            | Self::ForkedChild { path }
            | Self::Removed { path, .. }
            | Self::Moved { path }
            | Self::NotAPool { path, .. }
            | Self::NotAFile { path, .. }
            | Self::Empty { path }
            | Self::Unfinished { path }
            | Self::Zeros { path, .. }
            | Self::MayBeTorn { path, .. }
            | Self::UnclosedCopy { path, .. }
            | Self::OldVersion { path, .. }
            | Self::Feature { path, .. }
            | Self::CutShort { path, .. }
            | Self::NewerVersion { path, .. }
            | Self::Superblocks { path }
            | Self::Damaged { path, .. }
            | Self::Foreign { path, .. }
            | Self::Full { path, .. }
            | Self::NoJournalSpace { path, .. }
            | Self::TooSmall { path, .. }
            | Self::Domain { path, .. }
            | Self::Node { path, .. }
            | Self::Journal { path, .. }
            | Self::WritesEnded { path }
            | Self::System { path, .. }
            | Self::Index { path, .. } => Some(path),
        }
    }

    pub(crate) fn from_tree(path: &Path, error: TreeError) -> Self {
        match error {
            TreeError::Pool(error) => Self::from_pool(path, error),
            // No root: the crash came after the pool was created and before its index.
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
            PoolError::TooSmall { bytes, minimum } => Self::TooSmall { path, bytes, minimum },
            PoolError::MayBeTorn { opened_in, now } => Self::MayBeTorn { path, opened_in, now },
            PoolError::UnclosedCopy { original, found } => {
                Self::UnclosedCopy { path, original, found }
            }
            PoolError::OldVersion { at, found, supported } => {
                Self::OldVersion { path, at, found, supported }
            }
            PoolError::Feature { at, bit } => Self::Feature { path, at, bit },
            PoolError::Version { at, found, supported } => {
                Self::NewerVersion { path, at, found, supported }
            }
            PoolError::Superblocks => Self::Superblocks { path },
            PoolError::Truncated { expected, found } => Self::CutShort { path, expected, found },
            PoolError::Corrupt(damage) => Self::Damaged { path, damage },
            PoolError::Medium(error) => Self::from_medium(&path, error),
            // A device that fails, or is read-only, has no more space after a deletion.
            PoolError::Full { reason: reason @ MediumError::System { .. }, .. }
                if !reason.is_full() =>
            {
                Self::from_medium(&path, reason)
            }
            PoolError::Full { wanted, reason } => Self::Full { path, wanted, source: reason },
            other => Self::Index { path, source: TreeError::Pool(other) },
        }
    }

    pub(crate) fn from_medium(path: &Path, error: MediumError) -> Self {
        let path: PathBuf = path.into();
        match error {
            MediumError::Locked => Self::InUse { path },
            MediumError::Inherited => Self::ForkedChild { path },
            MediumError::Removed { file } => Self::Removed { path, file },
            MediumError::Moved => Self::Moved { path },
            MediumError::Poisoned => Self::WritesEnded { path },
            MediumError::Holes { missing, .. } => {
                Self::Full { path, wanted: missing, source: error }
            }
            MediumError::Domain { required, given } => Self::Domain { path, required, given },
            MediumError::Node { node, source } => Self::Node { path, node, source },
            MediumError::System { action, source } => Self::from_system(path, action, source),
            MediumError::Limit { wanted, .. } | MediumError::Memory { wanted, .. } => {
                Self::Full { path, wanted, source: error }
            }
            other => Self::Index { path, source: PoolError::Medium(other).into() },
        }
    }

    pub(crate) fn from_journal(path: &Path, error: JournalError) -> Self {
        match error {
            JournalError::Medium(error) => Self::from_medium(path, error),
            JournalError::Corrupt(damage) => Self::damaged(path, damage),
            source => Self::Journal { path: path.into(), source },
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

    /// Returns the error of a store that is open already. It had all permissions, so a refusal is a
    /// fault of the device: a file system that becomes read-only loses what was not synced.
    #[must_use]
    pub(crate) fn while_open(self) -> Self {
        match self {
            Self::Denied { path, action, source } => Self::System { path, action, source },
            other => other,
        }
    }

    pub(crate) fn damaged(path: &Path, damage: Corrupt) -> Self {
        Self::Damaged { path: path.into(), damage }
    }
}

#[cfg(test)]
mod tests;
