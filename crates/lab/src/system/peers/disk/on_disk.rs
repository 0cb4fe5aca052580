//! A store on disk and its folder.

use super::folder::Folder;
use crate::error::{LabError, Result};
use crate::system::{MemoryUse, Session, System, used_bytes};
use std::path::Path;

/// What a store promises when a change returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::system::peers) enum Promise {
    /// It is on the disk.
    Durable,
    /// It is not lost with the process, or not even that: the store decides.
    NoSync,
}

impl Promise {
    /// Both of them.
    pub(in crate::system::peers) const ALL: [Self; 2] = [Self::Durable, Self::NoSync];
}

/// A store that can be put into a folder.
pub(super) trait CreateStore: Sized {
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

impl<S: CreateStore> OnDisk<S> {
    pub(super) fn create(promise: Promise, asked: Option<&Path>) -> Result<Self> {
        let before_bytes = used_bytes();
        let folder = Folder::create(asked)?;
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

/// What to make of an error of the store called `name`.
pub(super) fn refused<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    name: &'static str,
) -> impl Fn(E) -> LabError {
    move |error| LabError::Peer { name: name.into(), source: error.into() }
}

/// The key that `bytes` are.
pub(super) fn key_of(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_be_bytes)
}
