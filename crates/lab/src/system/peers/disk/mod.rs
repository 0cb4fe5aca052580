//! Stores that keep their pairs in files, each in a folder that is removed at the end.
//!
//! 1. Each store runs in two ways. Durable: every change is on disk when its call returns, by the
//!    means that the store offers. Not durable: no change waits for the disk.
//! 2. Caches, buffers and background threads have the store's defaults.
//! 3. Keys are 8 B, most significant byte first if the store orders bytes. Values are 8 B.
//! 4. LSM trees write without looking the key up, and so do their `insert` and `update` here, as
//!    does `put` of Bristlecone's store. A remove must report whether the key was present, so it
//!    looks the key up first.

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

/// The kind of a store.
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
    /// The stores of this build.
    pub(super) const ALL: &[Self] = &[
        Self::Lmdb,
        Self::Redb,
        Self::Fjall,
        Self::Sled,
        #[cfg(feature = "peer-rocksdb")]
        Self::RocksDb,
    ];

    /// Returns the name without prefix and suffix.
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

    /// Creates an empty store in a new folder at `requested`, or in a temporary folder.
    pub(super) fn create(
        self,
        promise: Promise,
        requested: Option<&Path>,
    ) -> Result<BoxedSystem<u64>> {
        Ok(match self {
            Self::Lmdb => Box::new(OnDisk::<lmdb::Lmdb>::create(promise, requested)?),
            Self::Redb => Box::new(OnDisk::<redb::Redb>::create(promise, requested)?),
            Self::Fjall => Box::new(OnDisk::<fjall::Fjall>::create(promise, requested)?),
            Self::Sled => Box::new(OnDisk::<sled::Sled>::create(promise, requested)?),
            #[cfg(feature = "peer-rocksdb")]
            Self::RocksDb => Box::new(OnDisk::<rocksdb::RocksDb>::create(promise, requested)?),
        })
    }
}
