//! The options of a benchmark that hold for all its systems.

use super::room::room_bytes;
use crate::error::{LabError, Result};
use crate::system::{PoolFile, Target, default_path, disk_path};
use crate::workload::Recipe;
use bristlecone_pmem::journal::{Durability, JournalOptions, Journaled};
use bristlecone_pmem::medium::MediumError;
use bristlecone_pmem::medium::{Delay, FileOptions};
use bristlecone_pmem::{Domain, FileMedium, Mapped, Placement};
use bristlecone_registry::Memory;
use std::path::PathBuf;
use std::time::Duration;

/// Latencies that are added to those of the memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delays {
    /// The latency added to each line flushed.
    pub flush: Duration,
    /// The latency added to each fence.
    pub fence: Duration,
}

impl Delays {
    /// Returns `medium` with these latencies added.
    pub fn on(self, medium: impl Into<FileMedium>) -> Memory {
        Delay::new(medium.into(), self.flush, self.fence)
    }
}

/// The instructions that write lines back and order them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flushing {
    /// The fastest that the processor has, such as `clwb` and `sfence`.
    #[default]
    Fastest,
    /// `clflush` and `mfence`, as in papers from before `clwb`: a line after the other, evicted.
    Serial,
}

impl Flushing {
    /// Returns the name by which an option and a row have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fastest => "fastest",
            Self::Serial => "serial",
        }
    }

    /// Returns `medium` with the instructions of `domain`, so flushed.
    ///
    /// # Errors
    /// The processor has no such instruction.
    pub fn emulate(
        self,
        medium: Mapped,
        domain: Domain,
    ) -> core::result::Result<Mapped, MediumError> {
        let medium = medium.emulate(domain)?;
        match self {
            Self::Fastest => Ok(medium),
            Self::Serial => medium.flush_serially(),
        }
    }
}

/// The options of a benchmark that hold for all its systems.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The path of the pool file, which is removed at the end. `None`: a file in shared memory.
    pub pool: Option<PathBuf>,
    /// The domain whose flushes and fences are executed.
    pub domain: Domain,
    /// The instructions of these.
    pub flushing: Flushing,
    /// Latencies that are added.
    pub delays: Delays,
    /// The moment from which a write survives a power cut, in the domain of a disk.
    pub durability: Durability,
    /// The NUMA node of each stripe of the pool.
    pub placement: Option<Placement>,
}

impl Bench {
    /// Returns the path of the pool file: in memory, or on a disk where it has a journal.
    pub(super) fn pool_path(&self) -> PathBuf {
        let path = || if self.domain == Domain::Disk { disk_path() } else { default_path() };
        self.pool.clone().unwrap_or_else(path)
    }

    /// Creates a pool file with room for the keys of `recipe`, all of its pages present. The medium
    /// stays usable after the file is removed. A run that opens the file once therefore removes it
    /// at once, so that no end of the run leaves it behind.
    pub(super) fn medium(
        &self,
        target: &Target,
        recipe: &Recipe,
    ) -> Result<(FileMedium, PoolFile)> {
        let path = self.pool_path();
        let bytes = room_bytes(target, recipe);
        let is_mapped = self.domain != Domain::Disk;
        let placement = self.placement.filter(|_| is_mapped);
        let options = FileOptions { prefault: is_mapped, placement, ..FileOptions::default() };
        let medium = Mapped::create(&path, bytes, &options)
            .map_err(|source| LabError::PoolFile { path: path.clone(), source })?;
        let file = PoolFile::at(path);
        if is_mapped {
            return Ok((self.flushing.emulate(medium, self.domain)?.into(), file));
        }
        drop(medium);
        Ok((self.reopened(&file)?, file))
    }

    /// Opens a pool file that is closed, or that a crash may have left.
    pub(super) fn reopened(&self, file: &PoolFile) -> Result<FileMedium> {
        if self.domain == Domain::Disk {
            let (durability, placement) = (self.durability, self.placement);
            let options = JournalOptions { durability, placement, ..JournalOptions::default() };
            return Ok(Journaled::open(file.path(), &options)?.into());
        }
        let options = FileOptions { placement: self.placement, ..FileOptions::default() };
        let medium = Mapped::open(file.path(), &options)?;
        Ok(self.flushing.emulate(medium, self.domain)?.into())
    }
}
