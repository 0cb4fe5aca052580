//! The errors of a journal.

use crate::error::Corrupt;
use crate::medium::MediumError;
use std::io;
use thiserror::Error;

/// The reason why a pool could not be opened with its journal.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The pool needs its journal, and a file of it is missing.
    #[error(
        "the pool needs its journal, and {missing} is missing beside it: copy the folder too; beside \
         a pool that took the path of this one it is NAME.journal.left, perhaps with a number"
    )]
    Missing {
        /// The name of the file or folder.
        missing: String,
    },
    /// The journal beside the pool is one of another open: it has nothing of what the pool needs.
    #[error(
        "the pool needs its journal, and {folder} holds that of another pool, or of another time: \
         copy file and folder together, while the store is not open"
    )]
    Foreign {
        /// The folder.
        folder: String,
    },
    /// The journal ends before what the pages of the pool rely on.
    #[error("the journal ends at position {found}, and the pool needs it up to {needed}")]
    CutShort {
        /// The position up to which the pages of the pool need the journal.
        needed: u64,
        /// The position at which the journal ends.
        found: u64,
    },
    /// The mark of the journal, or a record of it, is damaged.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
    /// The file system keeps nothing over a power cut, or does not say whether it does.
    #[error(
        "the file system ({kind}) may keep nothing over a power cut, so a journal there promises \
         nothing; use a local disk, trust_file_system(true), or Durability::Process, which promises \
         no more than that"
    )]
    NotOnDisk {
        /// The name of the kind of the file system.
        kind: &'static str,
    },
    /// The file is mounted by itself, and a journal beside it would lie on another mount.
    #[error(
        "the file is mounted without its folder, so a journal beside it would lie on another mount \
         ({folder}) and may be gone with that; mount the folder, or the folder of the journal too, \
         or use trust_file_system(true) or Durability::Process"
    )]
    MountedAlone {
        /// The folder of the journal.
        folder: String,
    },
    /// The name of the journal is that of a link or a file. Through a link, a copy of the pool
    /// would use up the journal of its original.
    #[error(
        "{path} is a link or a file in place of the journal, which is a folder beside its pool, so \
         that a move or a copy takes both: move the folder to which a link leads there, or what is \
         there away"
    )]
    NotAFolder {
        /// The path of the link or file.
        path: String,
    },
    /// The name of the file leaves no room for that of its journal.
    #[error(
        "a file with a journal needs room for NAME.journal beside it, and its name has {bytes} \
         bytes: use up to {longest}, or Durability::Process"
    )]
    NameTooLong {
        /// The length of the name, in bytes.
        bytes: usize,
        /// The longest name that the file may have, in bytes.
        longest: usize,
    },
    /// The system refused a call.
    #[error(transparent)]
    Medium(#[from] MediumError),
}

impl JournalError {
    pub(super) fn system(action: &'static str, source: io::Error) -> Self {
        Self::Medium(MediumError::system(action, source))
    }
}
