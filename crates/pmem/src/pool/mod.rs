//! The pool: a medium with a superblock, named roots, log slots and a heap.
//!
//! 1. Whatever the roots reach is live, everything else is free. So after a crash the owners of the
//!    roots [`mark`](Pool::mark) what they reach, and [`finish_recovery`](Pool::finish_recovery)
//!    frees the rest.
//! 2. Nothing is reserved before recovery has finished.
//! 3. A clean close saves the free map; the next open takes it only if no crash came between.
//! 4. Every byte of the file is hostile: it is checked before it is used, and what is wrong becomes
//!    a [`Corrupt`] that names the offset.

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
pub use superblock::holds_nothing;

/// Version of the format that this library writes, and the newest that it reads.
pub const FORMAT_VERSION: u32 = 1;
