//! The systems under test: designs, the store, and peers, behind one interface.
//!
//! A `System` hands out one `Session` for each thread. Code that measures is generic over both
//! and is compiled once for each variant of `AnySystem` and kind of key. An operation of a design
//! or a peer is one indirect call; an operation of the store is a direct call.
//!
//! | module | contents |
//! | --- | --- |
//! | `target` | names, and the one match from a name to a system |
//! | `design` | a tree of the registry |
//! | `store` | Bristlecone's store |
//! | `peers` | maps, stores and libraries that others have made |
//! | `floor` | the least accesses of an operation, without an index |
//! | `memory` | the memory that a system takes for each key |
//! | `pool_file` | a pool file that is removed at the end |
//! | `boxed` | systems behind a trait object |

mod boxed;
mod design;
mod floor;
mod memory;
mod peers;
mod pool_file;
mod store;
mod target;

pub use design::DesignTree;
pub use floor::Overlap;
pub(crate) use floor::{BASE_ROOM_BYTES, KEY_ROOM_BYTES};
pub use memory::BytesPerKey;
pub(crate) use memory::{used_bytes, weigh};
pub use peers::Peer;
pub(crate) use peers::Site;
#[cfg(feature = "peers")]
pub(crate) use pool_file::{DISK_FOLDER, leftover_prefix};
pub use pool_file::{LEFTOVER_KIND, temporary_folders, temporary_pool};
pub(crate) use pool_file::{PoolFile, default_path, disk_path, temporary_path};
pub(crate) use target::{AnySystem, SystemKey, bytes_refused};
pub use target::{Target, design, parse};

use crate::error::{LabError, Result};
use bristlecone_pmem::Medium;
use bristlecone_trees::{Key, Maintainer};

/// One thread's access to a system. A change returns `true` if the key was as expected: absent for
/// an insert, present for an update and a remove.
pub(crate) trait Session<K: Key = u64>: Send {
    fn get(&mut self, key: K::Ref<'_>) -> Result<Option<u64>>;
    fn multi_get(&mut self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<()>;
    fn insert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool>;
    fn update(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool>;
    /// Inserts `key` or changes its value. By default an update, then an insert if the key is
    /// absent.
    fn upsert(&mut self, key: K::Ref<'_>, value: u64) -> Result<()> {
        if !self.update(key, value)? {
            self.insert(key, value)?;
        }
        Ok(())
    }
    fn remove(&mut self, key: K::Ref<'_>) -> Result<bool>;
    /// Reads up to `length` pairs from `key` on and returns their number.
    fn scan(&mut self, key: K::Ref<'_>, length: usize) -> Result<usize>;
    /// Registers this thread as a maintenance worker, or returns `None` if the system defers no
    /// work.
    fn maintainer(&self) -> Option<Maintainer> {
        None
    }
    /// Runs one step of deferred work. Returns `false` if no work is due.
    fn run_maintenance_step(&mut self) -> Result<bool> {
        Ok(false)
    }
}

/// An ordered map from keys to 64-bit words.
pub(crate) trait System<K: Key = u64> {
    type Session<'a>: Session<K>
    where
        Self: 'a;
    /// Returns one session for each of `threads` threads.
    fn sessions(&mut self, threads: u64) -> Vec<Self::Session<'_>>;
    /// Returns `true` if the system defers work that maintenance workers can do.
    fn defers_work(&self) -> bool {
        false
    }
    /// Fills the empty system with `pairs`, which are in key order, and its nodes to
    /// `fill_percent`.
    fn bulk_load(
        &mut self,
        _pairs: &mut dyn Iterator<Item = (K::Owned, u64)>,
        _fill_percent: u32,
    ) -> Result<()> {
        Err(LabError::Asked("a bulk load (--fill) needs a design".to_owned()))
    }
    /// Returns the memory that the system takes, or `None` if it keeps no account of it.
    fn memory(&mut self) -> Result<Option<MemoryUse>>;
}

/// A system in a pool.
pub(crate) trait OnMedium: Sized {
    type Medium: Medium;
    fn medium(&self) -> &Self::Medium;
    /// Closes the system and its pool, so that the next open is a clean one.
    fn close(self) -> Result<()>;
}

/// The memory that a system takes, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryUse {
    pub(crate) pm_bytes: u64,
    pub(crate) dram_bytes: u64,
}
