//! Stores that keep their pairs in files, each in a folder of its own that is removed at the end.
//!
//! 1. Each runs in two ways: with a promise like that of our store, every change on the disk when
//!    the call returns, by the means that the store offers for it; and without waiting for the
//!    disk.
//! 2. Everything else is as the store comes: caches, buffers, background threads.
//! 3. Keys are the 8 B of the number, most significant first where the store orders bytes; values
//!    are 8 B.
//! 4. LSM trees do not look whether a key is there before they write, and neither does what stands
//!    in for their `insert` and `update` here, as with our own store's `put`. A removal must say
//!    whether the key was there, so it looks first.

mod fjall;
mod folder;
mod lmdb;
mod on_disk;
mod redb;
#[cfg(feature = "peer-rocksdb")]
mod rocksdb;
mod sled;

use crate::error::Result;
use crate::system::boxed::BoxedSystem;
use on_disk::OnDisk;
pub(super) use on_disk::Promise;
use std::path::Path;

/// What a store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    Lmdb,
    Redb,
    Fjall,
    Sled,
    #[cfg(feature = "peer-rocksdb")]
    RocksDb,
}

impl Engine {
    /// Those that are built in.
    pub(super) const ALL: &[Self] = &[
        Self::Lmdb,
        Self::Redb,
        Self::Fjall,
        Self::Sled,
        #[cfg(feature = "peer-rocksdb")]
        Self::RocksDb,
    ];

    /// Its name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Lmdb => "lmdb",
            Self::Redb => "redb",
            Self::Fjall => "fjall",
            Self::Sled => "sled",
            #[cfg(feature = "peer-rocksdb")]
            Self::RocksDb => "rocksdb",
        }
    }

    /// Creates an empty store in a new folder at `asked`, or in a temporary folder.
    pub(super) fn create(self, promise: Promise, asked: Option<&Path>) -> Result<BoxedSystem<u64>> {
        Ok(match self {
            Self::Lmdb => Box::new(OnDisk::<lmdb::Lmdb>::create(promise, asked)?),
            Self::Redb => Box::new(OnDisk::<redb::Redb>::create(promise, asked)?),
            Self::Fjall => Box::new(OnDisk::<fjall::Fjall>::create(promise, asked)?),
            Self::Sled => Box::new(OnDisk::<sled::Sled>::create(promise, asked)?),
            #[cfg(feature = "peer-rocksdb")]
            Self::RocksDb => Box::new(OnDisk::<rocksdb::RocksDb>::create(promise, asked)?),
        })
    }
}
