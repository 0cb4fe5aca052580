//! A store on disk and its folder.

use super::folder::Folder;
use crate::error::{LabError, Result};
use crate::system::{MemoryUse, Session, System, used_bytes};
use std::path::Path;

/// The durability of a change when its call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::system::peers) enum Promise {
    /// The change is on disk.
    Durable,
    /// The store decides; the change may be lost with the system or with the process.
    NoSync,
}

impl Promise {
    /// Both promises, the durable one first.
    pub(in crate::system::peers) const ALL: [Self; 2] = [Self::Durable, Self::NoSync];
}

/// A store that can be created in a folder.
pub(super) trait CreateStore: Sized {
    fn create(folder: &Path, promise: Promise) -> Result<Self>;
}

/// A store on disk and its folder.
pub(super) struct OnDisk<S> {
    /// The first field, so that the store has closed its files when the folder is removed.
    store: S,
    folder: Folder,
    /// The memory of the process before the store was created.
    before_bytes: u64,
}

impl<S: CreateStore> OnDisk<S> {
    pub(super) fn create(promise: Promise, requested: Option<&Path>) -> Result<Self> {
        let before_bytes = used_bytes();
        let folder = Folder::create(requested)?;
        Ok(Self { store: S::create(folder.path(), promise)?, folder, before_bytes })
    }
}

impl<S> System for OnDisk<S>
where
    for<'a> &'a S: Session,
{
    type Session<'a>
        = &'a S
    where
        S: 'a;

    fn sessions(&mut self, threads: u64) -> Vec<&S> {
        (0..threads).map(|_| &self.store).collect()
    }
    fn memory(&mut self) -> Result<Option<MemoryUse>> {
        let dram_bytes = used_bytes().saturating_sub(self.before_bytes);
        Ok(Some(MemoryUse { pm_bytes: self.folder.bytes()?, dram_bytes }))
    }
}

/// Returns the conversion of an error of the store called `name`.
pub(super) fn store_error<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    name: &'static str,
) -> impl Fn(E) -> LabError {
    move |error| LabError::Peer { name: name.into(), source: error.into() }
}

/// Returns the key that `bytes` store, or 0 if they are not 8 bytes.
pub(super) fn key_of(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_be_bytes)
}
