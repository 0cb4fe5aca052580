//! Stores that survive a power cut on a plain file: options, opening, syncs.

use crate::error::Error;
use crate::options::Options;
use crate::store::Store;
use crate::whole::needs_journal;
use bristlecone_pmem::journal::{DiskTrace, JournalOptions, Journaled};
use bristlecone_pmem::{Durability, Pool};
use std::path::Path;
use std::sync::Arc;

/// A store on a plain file with a journal. Made by [`DurableOptions`].
pub type DurableStore = Store<Journaled>;

/// The options of a store that survives a power cut on a plain file;
/// [`Options::durable`] returns them.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("trees.pool");
/// use bristlecone::{Durability, Store};
/// let options = Store::options().durable(Durability::Commit);
/// # let options = options.trust_file_system(true);
/// let store = options.open_or_create(&path)?;
/// store.put("sequoia", "3266 years")?; // a power cut from here on does not lose it
/// store.close()?;
/// # Ok::<(), bristlecone::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "options do nothing until a store is opened with them"]
pub struct DurableOptions {
    options: Options,
    journal: JournalOptions,
}

impl Options {
    /// Returns options with which a store on a plain file survives a power cut too, as `durability`
    /// says. The store keeps a journal in a folder beside its file, `NAME.journal`, and all of the
    /// file in memory. Its [`close`](Store::close) removes the folder.
    ///
    /// Of these options, prefault, placement and the required domain have no effect there.
    pub fn durable(&self, durability: Durability) -> DurableOptions {
        let (wait, reserve_bytes) = (self.wait_time(), self.reserved_bytes());
        let journal = JournalOptions { durability, wait, reserve_bytes, ..Default::default() };
        DurableOptions { options: self.clone(), journal }
    }
}

impl DurableOptions {
    /// Sets the size of the journal, in bytes. A journal that is in use keeps its size. Default: 64
    /// MiB.
    pub fn journal_bytes(mut self, bytes: u64) -> Self {
        self.journal.journal_bytes = bytes;
        self
    }

    /// Sets whether to accept a file system that may keep nothing over a power cut: in memory, on a
    /// network, in user space. Default: `false`.
    pub fn trust_file_system(mut self, trust: bool) -> Self {
        self.journal.trust_file_system = trust;
        self
    }

    /// Creates a store in a new file at `path`. If only its journal cannot be made, the empty store
    /// stays, without one.
    ///
    /// # Errors
    /// The errors of [`Options::create`], and [`Error::Journal`].
    pub fn create(&self, path: impl AsRef<Path>) -> Result<DurableStore, Error> {
        let path = path.as_ref();
        self.check_place(path)?;
        self.options.create_closed(path)?;
        self.open_closed(path)
    }

    /// Opens the store at `path`, with or without a journal. One that was not closed is recovered.
    ///
    /// # Errors
    /// The errors of [`Options::open`], and [`Error::Journal`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<DurableStore, Error> {
        let path = path.as_ref();
        if !needs_journal(path)? {
            self.options.open(path)?.close()?;
        }
        self.open_closed(path)
    }

    /// Opens the store at `path`, or creates one as [`Options::open_or_create`] does.
    ///
    /// # Errors
    /// The errors of [`Options::open_or_create`], and [`Error::Journal`].
    pub fn open_or_create(&self, path: impl AsRef<Path>) -> Result<DurableStore, Error> {
        let path = path.as_ref();
        if !needs_journal(path)? {
            if !path.exists() {
                self.check_place(path)?;
            }
            self.options.open_or_create(path)?.close()?;
        }
        self.open_closed(path)
    }

    fn check_place(&self, path: &Path) -> Result<(), Error> {
        Journaled::check_place(path, &self.journal).map_err(|e| Error::from_journal(path, e))
    }

    /// Opens a store that a close left whole, or that has its journal.
    fn open_closed(&self, path: &Path) -> Result<DurableStore, Error> {
        self.open_traced(path, None)
    }

    /// Opens a store like that, and lets a test see what is written.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    #[doc(hidden)]
    pub fn open_traced(
        &self,
        path: &Path,
        trace: Option<Arc<dyn DiskTrace>>,
    ) -> Result<DurableStore, Error> {
        let medium = Journaled::open_traced(path, &self.journal, trace);
        let medium = medium.map_err(|e| Error::from_journal(path, e))?;
        let (pool, opened) = Pool::open(medium).map_err(|e| Error::from_pool(path, e))?;
        self.options.limit(&pool);
        Store::open_in(Arc::new(pool), opened, path)
    }
}

impl Store<Journaled> {
    /// Makes every write that has returned survive a power cut. Under
    /// [`Durability::Commit`] all of them do.
    ///
    /// # Errors
    /// [`Error::WritesEnded`], [`Error::System`]: the device refused a write, now or before.
    pub fn sync(&self) -> Result<(), Error> {
        self.check_process()?;
        self.medium().sync_all().map_err(|e| Error::from_medium(self.path(), e))
    }

    /// Returns when a write survives a power cut.
    pub fn durability(&self) -> Durability {
        self.medium().durability()
    }

    /// Returns the number of bytes that writes have changed and that a power cut could lose now, in
    /// whole lines of 64 B.
    pub fn unsynced_bytes(&self) -> u64 {
        64 * self.medium().unsynced_lines()
    }
}
