//! The error type of a pool.

use crate::error::Corrupt;
use crate::medium::MediumError;
use thiserror::Error;

/// The reason why a pool could not be created, opened, or used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PoolError {
    /// Neither superblock has the magic number.
    #[error("not a Bristlecone pool (found {found:#018x} at offset 0x0); check the path")]
    NotAPool {
        /// The word at offset 0.
        found: u64,
    },
    /// The medium is smaller than the smallest pool.
    #[error("too small for a pool: {bytes} bytes; a pool has at least {minimum}")]
    TooSmall {
        /// The size of the medium, in bytes.
        bytes: u64,
        /// The size of the smallest pool, in bytes.
        minimum: u64,
    },
    /// The header of the medium is not all zero, so no pool is created there.
    #[error("not empty (found {found:#018x} at offset {at:#x}): create the pool in a new file")]
    NotEmpty {
        /// The offset of the first word that is not zero.
        at: u64,
        /// The value of that word.
        found: u64,
    },
    /// A newer version of this library wrote the pool.
    #[error(
        "format version {found} at offset {at:#x} is newer than {supported}; upgrade Bristlecone \
         to open it"
    )]
    Version {
        /// The offset of the version number.
        at: u64,
        /// The format version of the pool.
        found: u32,
        /// The newest format version that this library reads.
        supported: u32,
    },
    /// An older version of this library wrote the pool.
    #[error(
        "format version {found} at offset {at:#x}, which this version no longer reads (it reads \
         {supported}): write the pairs out with `bristlecone dump` of the version that wrote it, \
         and read them into a new store with `bristlecone load` of this one"
    )]
    OldVersion {
        /// The offset of the version number.
        at: u64,
        /// The format version of the pool.
        found: u32,
        /// The format version that this library reads.
        supported: u32,
    },
    /// The pool needs a feature that this library does not know.
    #[error(
        "needs feature {bit} (a bit of the word at offset {at:#x}), which this version does not \
         know; upgrade Bristlecone to open it"
    )]
    Feature {
        /// The offset of the word with the features.
        at: u64,
        /// The number of the lowest unknown bit that must be known.
        bit: u32,
    },
    /// The pool was open when the machine stopped, and its file does not survive that: the file may
    /// be a mixture of pages from different times. Or the device has refused some of its pages:
    /// then `opened_in` has all bits set.
    #[error(
        "was not closed before the machine restarted, or its device refused pages (it was open in \
         boot {opened_in:032x}, this is boot {now:032x}): writes may be missing, new \
         pages may lie beside old ones; restore a backup, copy what can be read with \
         `bristlecone salvage`, or accept the file as it is with open_torn (`--open-torn`), after \
         which answers may be wrong"
    )]
    MayBeTorn {
        /// The id of the boot in which the pool was open.
        opened_in: u128,
        /// The id of this boot.
        now: u128,
    },
    /// The pool was not closed, and was open in another file: this one is a copy. If a process
    /// wrote meanwhile, it mixes pages of different times.
    #[error(
        "a copy of a pool that was not closed (it was open in the file with inode number \
         {original}, this one has {found}; 0: none that lasts): if a process was writing meanwhile, \
         pages of different times lie side by side; close the original and copy it again, copy what \
         can be read with `bristlecone salvage`, or, if no process had it open meanwhile, take this \
         file as it is with open_torn (`--open-torn`)"
    )]
    UnclosedCopy {
        /// The inode number of the file in which the pool was open.
        original: u64,
        /// The inode number of this file.
        found: u64,
    },
    /// The pool was open with a journal and was not closed, so the file alone is not whole.
    #[error("not whole without its journal: open it with the folder of the journal beside it")]
    NeedsJournal,
    /// Both superblocks have wrong checksums.
    #[error(
        "both superblocks are damaged (offsets 0x0 and 0x1000); restore the file from a backup"
    )]
    Superblocks,
    /// The medium is shorter than its superblock says.
    #[error(
        "cut short: the superblock says {expected} bytes, the file has {found}; \
         restore the file from a backup"
    )]
    Truncated {
        /// The size in the superblock, in bytes.
        expected: u64,
        /// The size of the medium, in bytes.
        found: u64,
    },
    /// A part of the pool is damaged.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
    /// The medium could not be mapped, locked or grown.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// The pool has no space for a block and cannot grow.
    #[error("the pool is full: cannot allocate {wanted} more bytes ({reason})")]
    Full {
        /// The size of the requested block, in bytes.
        wanted: u64,
        /// The reason why the pool cannot grow.
        reason: MediumError,
    },
    /// The pool has a root of that name.
    #[error("the pool has a root of that name already")]
    RootExists,
    /// The pool has the largest number of roots, which is given here.
    #[error("the pool has {0} roots already, the largest number")]
    RootsFull(usize),
    /// The name of a root is empty or too long.
    #[error("a root's name has 1 to {maximum} bytes, not {bytes}")]
    RootName {
        /// The length of the name, in bytes.
        bytes: usize,
        /// The length of the longest name, in bytes.
        maximum: usize,
    },
    /// A block was requested before recovery had finished.
    #[error("the pool is in recovery: mark the reachable blocks and finish recovery first")]
    Recovering,
}
