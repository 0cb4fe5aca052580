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
mod redb;
#[cfg(feature = "peer-rocksdb")]
mod rocksdb;
mod sled;

use super::peer::Visitor;
use crate::bench::{Actor, MemoryUse, Subject, used_bytes};
use crate::error::{LabError, Result};
use folder::Folder;
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

/// What a store promises when a change returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// It is on the disk.
    Durable,
    /// It is not lost with the process, or not even that: the store decides.
    NoSync,
}

impl Promise {
    /// Both of them.
    pub(super) const ALL: [Self; 2] = [Self::Durable, Self::NoSync];
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

    /// Calls `visitor` with a new store, in a folder at `asked` or a temporary one.
    pub(super) fn with<V: Visitor>(
        self,
        promise: Promise,
        asked: Option<&Path>,
        visitor: V,
    ) -> Result<V::Output> {
        match self {
            Self::Lmdb => visitor.visit(OnDisk::<lmdb::Lmdb>::create(promise, asked)?),
            Self::Redb => visitor.visit(OnDisk::<redb::Redb>::create(promise, asked)?),
            Self::Fjall => visitor.visit(OnDisk::<fjall::Fjall>::create(promise, asked)?),
            Self::Sled => visitor.visit(OnDisk::<sled::Sled>::create(promise, asked)?),
            #[cfg(feature = "peer-rocksdb")]
            Self::RocksDb => visitor.visit(OnDisk::<rocksdb::RocksDb>::create(promise, asked)?),
        }
    }
}

/// A store that can be put into a folder.
pub(super) trait Create: Sized {
    fn create(folder: &Path, promise: Promise) -> Result<Self>;
}

/// A store and its folder.
pub(super) struct OnDisk<S> {
    /// First, so that it has let go of its files when the folder is removed.
    store: S,
    folder: Folder,
    /// MemoryUse of the process before there was a store.
    before_bytes: u64,
}

impl<S: Create> OnDisk<S> {
    pub(super) fn create(promise: Promise, asked: Option<&Path>) -> Result<Self> {
        let before_bytes = used_bytes();
        let folder = Folder::create(asked)?;
        Ok(Self { store: S::create(folder.path(), promise)?, folder, before_bytes })
    }
}

impl<S> Subject for OnDisk<S>
where
    for<'a> &'a S: Actor,
{
    type Actor<'a>
        = &'a S
    where
        S: 'a;

    fn actors(&mut self, threads: u64) -> Vec<&S> {
        (0..threads).map(|_| &self.store).collect()
    }
    fn memory(&mut self) -> Result<Option<MemoryUse>> {
        let dram_bytes = used_bytes().saturating_sub(self.before_bytes);
        Ok(Some(MemoryUse { pm_bytes: self.folder.bytes()?, dram_bytes }))
    }
}

/// What to make of an error of the store called `name`.
fn refused<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    name: &'static str,
) -> impl Fn(E) -> LabError {
    move |error| LabError::Peer { name: name.into(), source: error.into() }
}

/// The key that `bytes` are.
fn key_of(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_be_bytes)
}
