//! The pool: a medium with superblocks, named roots, log slots and a heap.
//!
//! 1. A block is live if the roots reach it, and free otherwise. So after a crash, the owners of
//!    the roots [`mark`](Pool::mark) every block that they reach, and
//!    [`finish_recovery`](Pool::finish_recovery) frees the rest.
//! 2. No block is reserved before recovery has finished.
//! 3. A clean close saves the free map. The next open uses the map and marks the pool as not clean,
//!    so no later open uses it. On a file of the page cache, both are synced: see
//!    [`Pool::open`] and [`Pool::close`].
//! 4. No byte of the file is trusted: each is checked before use, and damage becomes a [`Corrupt`]
//!    with the offset.

mod error;
mod file;
mod logs;
mod root;
mod superblock;

pub use crate::error::Corrupt;
pub use crate::layout::{HEADER_BYTES, POOL_BYTES_MAX, POOL_BYTES_MIN};
pub use error::PoolError;
pub use file::{Opened, Pool};
pub use root::Root;
pub use superblock::{FileState, check_original, check_version, holds_nothing, is_closed};

/// The format version that this library writes, and the only one that it reads.
pub const FORMAT_VERSION: u32 = 3;
