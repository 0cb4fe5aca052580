//! Options, and the creation and opening of stores in files.

use crate::error::Error;
use crate::stats::Stats;
use crate::store::Store;
use bristlecone_pmem::journal::JournalOptions;
use bristlecone_pmem::medium::FileOptions;
use bristlecone_pmem::pool::POOL_BYTES_MIN;
use bristlecone_pmem::{Domain, Durability, Medium, Placement, Pool};
use std::path::Path;
use std::time::Duration;

/// The options with which a store is created or opened; [`Store::options`] returns the defaults.
///
/// The file stores none of them: set them at each open.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("trees.pool");
/// let store = bristlecone::Store::options()
///     .initial_bytes(1 << 20)
///     .max_bytes(1 << 30)
///     .open_or_create(&path)?;
/// # Ok::<(), bristlecone::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "options do nothing until a store is opened with them"]
pub struct Options {
    initial_bytes: u64,
    max_bytes: u64,
    growth_bytes: u64,
    pub(crate) open_torn: bool,
    pub(crate) file: FileOptions,
    pub(crate) durability: Option<Durability>,
    pub(crate) journal: JournalOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            initial_bytes: 16 << 20,
            max_bytes: u64::MAX,
            growth_bytes: 64 << 20,
            open_torn: false,
            file: FileOptions::default(),
            durability: None,
            journal: JournalOptions::default(),
        }
    }
}

impl Options {
    /// Sets the size of a file that is created, in whole chunks of 32 KiB. Default: 16 MiB, or
    /// `max_bytes` if that is less.
    ///
    /// The file grows as needed. The system allocates space on the device before the store uses it.
    pub fn initial_bytes(mut self, bytes: u64) -> Self {
        self.initial_bytes = bytes;
        self
    }

    /// Limits the file to `bytes` bytes. Default: no limit. Not stored in the file: set it at each
    /// open.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets the largest step by which the file grows, in bytes. Default: 64 MiB.
    ///
    /// The file grows by half of its size, but by at least 1 MiB and at most a step. A thread of
    /// the store prepares the next step before the last one is used up, so the file may be longer
    /// than the store by up to a step while it is open. A larger step serves a writer that overruns
    /// that thread; a smaller one takes less space.
    pub fn growth_bytes(mut self, bytes: u64) -> Self {
        self.growth_bytes = bytes;
        self
    }

    /// Sets whether to open a store that [may be torn](Error::MayBeTorn), or is a
    /// [copy](Error::UnclosedCopy) of one that was not closed. Default: `false`.
    ///
    /// A machine that restarts while a store is open with
    /// [`Durability::Process`] can lose any of the pages that were written to
    /// a plain file since the last [`close`](Store::close). An open then recovers what the file
    /// has: writes that were acknowledged may be missing, deleted pairs may be back, and a scan and
    /// a get may differ. Only some of that is detected, by [`check`](Store::check) for example. The
    /// same holds for a copy that was made while a process wrote. One that was made after the
    /// process had died is whole, with its journal.
    ///
    /// After the open the store counts as whole. Copy the file first.
    pub fn open_torn(mut self, open_torn: bool) -> Self {
        self.open_torn = open_torn;
        self
    }

    /// Sets how long an open waits while the store is open elsewhere. Default: not at all.
    ///
    /// It tries again after 1 ms, then after pauses that grow to 50 ms. If the store is still open
    /// elsewhere at the end of `duration`, the open fails with [`Error::InUse`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("trees.pool");
    /// use std::time::Duration;
    /// let options = bristlecone::Store::options().wait(Duration::from_secs(5));
    /// let store = options.open_or_create(&path)?;
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    pub fn wait(mut self, duration: Duration) -> Self {
        self.file.wait = duration;
        self
    }

    /// Reserves `bytes` bytes of address space. The file cannot grow beyond that while it is open.
    /// Default: 256 GiB, or the size of the file if that is larger.
    pub fn reserve_bytes(mut self, bytes: u64) -> Self {
        self.file.reserve_bytes = bytes;
        self
    }

    /// Sets whether the open touches every page of the file, so that no later operation takes the
    /// page fault. Default: `false`. A file with a journal is read at the open in any case.
    pub fn prefault(mut self, prefault: bool) -> Self {
        self.file.prefault = prefault;
        self
    }

    /// Sets the NUMA node of each stripe of the file while it is open. A thread then writes to the
    /// stripes of its own node while they have space. Default: no placement.
    pub fn placement(mut self, placement: Placement) -> Self {
        self.file.placement = Some(placement);
        self
    }

    /// Sets the weakest persistence domain to accept. Default: any; [`Store::stats`] returns the
    /// domain in force.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("trees.pool");
    /// use bristlecone::{Domain, Error, Store};
    /// match Store::options().require(Domain::Disk).open_or_create(&path) {
    ///     Ok(_store) => println!("the store survives a power cut"),
    ///     Err(Error::Domain { given, .. }) => println!("this file survives less: {given}"),
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok::<(), Error>(())
    /// ```
    pub fn require(mut self, domain: Domain) -> Self {
        self.file.require = Some(domain);
        self
    }

    /// Creates a store in a new file at `path`. If that fails, it removes the file. On return the
    /// empty store is synced, and so is the folder, so it survives a power cut on a plain file too.
    ///
    /// # Errors
    /// - [`Error::AlreadyExists`]: there is a file at `path`.
    /// - [`Error::NotFound`]: the folder does not exist. [`Error::Denied`]: no permission.
    /// - [`Error::Full`]: the device has no space. [`Error::TooSmall`]: the options allow too few
    ///   bytes.
    /// - [`Error::Domain`], [`Error::Node`]: the file cannot give the required domain or placement.
    /// - [`Error::Journal`]: the file system may keep nothing over a power cut.
    /// - [`Error::System`]: the system refused for another reason.
    pub fn create(&self, path: impl AsRef<Path>) -> Result<Store, Error> {
        let store = self.begin(path.as_ref())?;
        store.medium().keep_file();
        Ok(store)
    }

    /// Creates a store in a new file at `path`, and closes it. If either fails, it removes the
    /// file. Returns what [`Store::stats`] said before the close.
    ///
    /// # Errors
    /// The errors of [`create`](Self::create) and of [`Store::close`].
    pub fn create_closed(&self, path: impl AsRef<Path>) -> Result<Stats, Error> {
        let store = self.begin(path.as_ref())?;
        let stats = store.stats();
        store.close()?; // Its last step keeps the file.
        Ok(stats)
    }

    /// Opens the store at `path`. If it was not closed, this recovers it: it reads every leaf and
    /// rebuilds the inner nodes in DRAM, O(n) for n pairs.
    ///
    /// # Errors
    /// - [`Error::NotFound`]: there is no file at `path`. [`Error::Denied`]: no permission.
    /// - [`Error::InUse`]: the store is open in another process, or elsewhere in this one, and was
    ///   so for all of the [`wait`](Self::wait).
    /// - [`Error::Full`]: the file has holes, and the device has no space for them; it has none for
    ///   a journal; or the file takes more than the [`memory_bytes`](Self::memory_bytes).
    /// - [`Error::Journal`]: the file needs a journal that is missing, or the file system may keep
    ///   nothing over a power cut.
    /// - [`Error::Domain`], [`Error::Node`]: the file cannot give the required domain or placement.
    /// - [`Error::NotAFile`]: a folder, a device or a pipe. It is not opened.
    /// - [`Error::Empty`], [`Error::Unfinished`]: a file without a store, which
    ///   [`open_or_create`](Self::open_or_create) makes one.
    /// - [`Error::MayBeTorn`]: the machine restarted while the store was open with
    ///   [`Durability::Process`].
    /// - [`Error::UnclosedCopy`]: the file is a copy of a store that was not closed.
    /// - Other errors of kind [`ErrorKind::Damaged`](crate::ErrorKind::Damaged): the file is
    ///   damaged, incomplete, of another version, or not a store.
    /// - [`Error::System`]: the system refused for another reason.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Store, Error> {
        self.open_file(path.as_ref(), false)
    }

    /// Opens the store at `path`, or creates one if there is no file or an empty one. If a crash
    /// interrupted an earlier creation, this finishes it. It never makes a new store of a file that
    /// held another, not even of one whose bytes were lost and read as [zeros](Error::Zeros).
    ///
    /// # Errors
    /// The errors of [`open`](Self::open) and [`create`](Self::create), except
    /// [`Error::AlreadyExists`], [`Error::Empty`] and [`Error::Unfinished`]. [`Error::NotFound`]
    /// then means that the folder does not exist.
    pub fn open_or_create(&self, path: impl AsRef<Path>) -> Result<Store, Error> {
        let path = path.as_ref();
        match self.open_file(path, true) {
            Err(Error::NotFound { .. }) => match self.create(path) {
                // Another process created the file after the first look.
                Err(Error::AlreadyExists { .. }) => self.open_file(path, true),
                created => created,
            },
            opened => opened,
        }
    }

    /// Sets the bounds of a pool's growth.
    pub(crate) fn limit<M: Medium>(&self, pool: &Pool<M>) {
        pool.limit(self.max_bytes);
        pool.set_growth_step(self.growth_bytes);
    }

    /// Returns the size of a new file, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.initial_bytes.min(self.max_bytes)
    }

    /// Checks the options before a file is created.
    pub(crate) fn check(&self, path: &Path) -> Result<(), Error> {
        let bytes = self.bytes();
        if bytes < POOL_BYTES_MIN {
            return Err(Error::TooSmall { path: path.into(), bytes, minimum: POOL_BYTES_MIN });
        }
        Ok(())
    }
}

impl Store {
    /// Opens the store at `path`, or creates one if there is no file.
    ///
    /// After a crash this reads every leaf and rebuilds the inner nodes in DRAM: O(n) for n pairs.
    /// After [`close`](Self::close) it loads them instead. A new file has 16 MiB and grows as
    /// needed; [`options`](Self::options) sets sizes and the required [`Domain`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("trees.pool");
    /// let store = bristlecone::Store::open_or_create(&path)?; // creates it
    /// store.put("sequoia", "3266 years")?;
    /// drop(store);
    /// let store = bristlecone::Store::open_or_create(&path)?; // opens it
    /// assert!(store.contains("sequoia")?);
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::InUse`]: the store is open in another process, or elsewhere in this one.
    /// - [`Error::NotFound`]: the folder does not exist. [`Error::Denied`]: no permission.
    /// - [`Error::Full`]: the device has no space for a new file.
    /// - Errors of kind [`ErrorKind::Damaged`](crate::ErrorKind::Damaged): the file is damaged,
    ///   of another version, not a store, or [may be torn](Error::MayBeTorn) by a restart.
    /// - [`Error::System`]: the system refused for another reason.
    pub fn open_or_create(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::options().open_or_create(path)
    }

    /// Opens the store at `path`, which must exist.
    ///
    /// Recovery and cost are those of [`open_or_create`](Self::open_or_create).
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("trees.pool");
    /// use bristlecone::{Error, Store};
    /// assert!(matches!(Store::open(&path), Err(Error::NotFound { .. })));
    /// Store::create(&path)?.close()?;
    /// Store::open(&path)?;
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Options::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::options().open(path)
    }

    /// Creates a store in a new file of 16 MiB at `path`. If that fails, it removes the file.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("trees.pool");
    /// use bristlecone::{Error, Store};
    /// Store::create(&path)?.close()?;
    /// assert!(matches!(Store::create(&path), Err(Error::AlreadyExists { .. })));
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Options::create`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::options().create(path)
    }

    /// Returns the default [`Options`], for an open with other sizes or a required [`Domain`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("trees.pool");
    /// let store = bristlecone::Store::options().max_bytes(64 << 20).create(&path)?;
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    pub fn options() -> Options {
        Options::default()
    }
}
