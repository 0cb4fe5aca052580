//! Options, and the creation and opening of stores in files.

use crate::error::Error;
use crate::stats::Stats;
use crate::store::Store;
use crate::whole::make_whole;
use bristlecone_pmem::layout::CHUNK_BYTES;
use bristlecone_pmem::medium::{FileOptions, MediumError};
use bristlecone_pmem::pool::{
    FileState, HEADER_BYTES, Opened, POOL_BYTES_MIN, Root, holds_nothing,
};
use bristlecone_pmem::{Corrupt, Domain, Mapped, Medium, Placement, PmPtr, Pool, PoolError};
use bristlecone_trees::leaf::pairs::LeafBytes;
use std::fs::{File, FileType, TryLockError};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
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
    open_torn: bool,
    file: FileOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            initial_bytes: 16 << 20,
            max_bytes: u64::MAX,
            growth_bytes: 64 << 20,
            open_torn: false,
            file: FileOptions::default(),
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

    /// Sets whether to open a store that [may be torn](Error::MayBeTorn). Default: `false`.
    ///
    /// A machine that restarts while a store is open can lose any of the pages that were written to
    /// a plain file since the last [`close`](Store::close). An open then recovers what the file
    /// has: writes that were acknowledged may be missing, deleted pairs may be back, and a scan and
    /// a get may differ. Only some of that is detected, by [`check`](Store::check) for example.
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
    /// page fault. Default: `false`.
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
    /// match Store::options().require(Domain::Adr).open_or_create(&path) {
    ///     Ok(_store) => println!("writes survive a power cut"),
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

    /// Creates a store in a new file. A drop of the store removes the file, until a close of the
    /// store or [`Mapped::keep_file`] keeps it.
    fn begin(&self, path: &Path) -> Result<Store, Error> {
        self.check(path)?;
        let medium = Mapped::begin(path, POOL_BYTES_MIN, &self.creation());
        let pool = self.pool(path, medium.map_err(|e| self.creating(path, e))?)?;
        self.finish(pool, path)
    }

    /// Opens the store at `path`. If it was not closed, this recovers it: it reads every leaf and
    /// rebuilds the inner nodes in DRAM, O(n) for n pairs.
    ///
    /// # Errors
    /// - [`Error::NotFound`]: there is no file at `path`. [`Error::Denied`]: no permission.
    /// - [`Error::InUse`]: the store is open in another process, or elsewhere in this one, and was
    ///   so for all of the [`wait`](Self::wait).
    /// - [`Error::Full`]: the file has holes, and the device has no space for them.
    /// - [`Error::Domain`], [`Error::Node`]: the file cannot give the required domain or placement.
    /// - [`Error::NotAFile`]: a folder, a device or a pipe. It is not opened.
    /// - [`Error::Empty`], [`Error::Unfinished`]: a file without a store, which
    ///   [`open_or_create`](Self::open_or_create) makes one.
    /// - [`Error::MayBeTorn`]: the machine restarted while the store was open.
    /// - Other errors of kind [`ErrorKind::Damaged`](crate::ErrorKind::Damaged): the file is
    ///   damaged, incomplete, of another version, or not a store.
    /// - [`Error::System`]: the system refused for another reason.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Store, Error> {
        let path = path.as_ref();
        let (pool, opened) = self.open_pool(path)?;
        Store::open_in(pool, opened, path)
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
        match self.open_or_finish(path) {
            Err(Error::NotFound { .. }) => match self.create(path) {
                // Another process created the file after the first look.
                Err(Error::AlreadyExists { .. }) => self.open_or_finish(path),
                created => created,
            },
            opened => opened,
        }
    }

    fn open_or_finish(&self, path: &Path) -> Result<Store, Error> {
        match self.open_pool(path) {
            Ok((pool, opened)) => {
                let roots = pool.roots().map_err(|damage| Error::damaged(path, damage))?;
                if !roots.is_empty() {
                    return Store::open_in(pool, opened, path);
                }
                if opened == Opened::Crashed {
                    pool.finish_recovery(); // No block is in use without a root.
                }
                self.finish(pool, path)
            }
            Err(Error::Empty { .. } | Error::Unfinished { .. }) => {
                self.check(path)?;
                let medium =
                    Mapped::recreate(path, POOL_BYTES_MIN, &self.creation(), holds_nothing);
                let medium = medium.map_err(|e| self.creating(path, e))?;
                self.finish(self.pool(path, medium)?, path)
            }
            Err(error) => Err(error),
        }
    }

    fn open_pool(&self, path: &Path) -> Result<(Arc<Pool<Mapped>>, Opened), Error> {
        look_at(path)?;
        make_whole(path, self.file.wait)?;
        let medium = Mapped::open(path, &self.file).map_err(|e| Error::from_medium(path, e))?;
        let opened = if self.open_torn { Pool::open_torn(medium) } else { Pool::open(medium) };
        let (pool, opened) = opened.map_err(|e| Error::from_pool(path, e))?;
        if pool.roots().is_ok_and(|roots| roots.is_empty()) {
            check_no_pairs(&pool).map_err(|damage| Error::damaged(path, damage))?;
        }
        self.limit(&pool);
        Ok((Arc::new(pool), opened))
    }

    fn pool(&self, path: &Path, medium: Mapped) -> Result<Arc<Pool<Mapped>>, Error> {
        let pool = Pool::create(medium).map_err(|e| Error::from_pool(path, e))?;
        self.limit(&pool);
        Ok(Arc::new(pool))
    }

    /// Gives a pool without roots its size and its index, and syncs the name of its file.
    ///
    /// A new file has the length of the smallest pool until the pool is durable. So an interrupted
    /// creation leaves no longer file without a pool, and a longer one of zeros is none.
    fn finish(&self, pool: Arc<Pool<Mapped>>, path: &Path) -> Result<Store, Error> {
        let bytes = self.bytes() / CHUNK_BYTES * CHUNK_BYTES; // No more than the options allow.
        pool.grow(bytes).map_err(|error| match error {
            PoolError::Medium(error) => self.creating(path, error),
            other => Error::from_pool(path, other),
        })?;
        let store = Store::create_in(pool, path)?;
        sync_folder(path)
            .map_err(|e| Error::from_system(path.into(), "make the file's name durable", e))?;
        Ok(store)
    }

    /// Sets the bounds of a pool's growth.
    pub(crate) fn limit<M: Medium>(&self, pool: &Pool<M>) {
        pool.limit(self.max_bytes);
        pool.set_growth_step(self.growth_bytes);
    }

    pub(crate) fn wait_time(&self) -> Duration {
        self.file.wait
    }

    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.file.reserve_bytes
    }

    /// Returns the options with which a new file is mapped.
    fn creation(&self) -> FileOptions {
        FileOptions { allocate_bytes: self.bytes(), ..self.file }
    }

    fn bytes(&self) -> u64 {
        self.initial_bytes.min(self.max_bytes)
    }

    /// Checks the options before a file is created.
    fn check(&self, path: &Path) -> Result<(), Error> {
        let bytes = self.bytes();
        if bytes < POOL_BYTES_MIN {
            return Err(Error::TooSmall { path: path.into(), bytes, minimum: POOL_BYTES_MIN });
        }
        Ok(())
    }

    /// Returns the error of a failed creation: `Full` if the device had no space for the file.
    fn creating(&self, path: &Path, error: MediumError) -> Error {
        let wanted = self.bytes();
        match error {
            MediumError::System { ref source, .. } if is_space(source.kind()) => {
                Error::Full { path: path.into(), wanted, source: error }
            }
            other => Error::from_medium(path, other),
        }
    }
}

/// Checks that a pool without a root is the rest of an interrupted creation: no leaf in it has
/// pairs.
///
/// # Errors
/// There are pairs, so the pool had a root, and damage has removed it.
fn check_no_pairs(pool: &Pool<Mapped>) -> Result<(), Corrupt> {
    let mut bytes = [0; LeafBytes::BYTES];
    for at in (HEADER_BYTES..pool.medium().len()).step_by(LeafBytes::BYTES) {
        let words = pool.words(PmPtr::new(at), LeafBytes::BYTES / 8)?;
        pool.medium().copy_out(words, &mut bytes);
        let leaf = LeafBytes::new(at, &bytes);
        if leaf.next().is_ok() && leaf.verify().is_ok() && leaf.entries().next().is_some() {
            let what = "root of the store, which is missing beside a leaf with pairs";
            return Err(Corrupt { at: Root::TABLE, what, expected: 1, found: 0 });
        }
    }
    Ok(())
}

/// Returns `true` if the system refused space.
fn is_space(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(kind, StorageFull | QuotaExceeded | FileTooLarge)
}

/// Syncs the folder of a file, so that the file's name survives a power cut. The file itself is
/// synced.
fn sync_folder(path: &Path) -> io::Result<()> {
    let path = std::fs::canonicalize(path)?;
    let Some(folder) = path.parent() else { return Ok(()) };
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Not every user may read the folder, and not every file system syncs one. Those that keep
        // a journal wrote the name with the file.
        Err(error) if is_unsupported(error.kind()) => Ok(()),
        done => done,
    }
}

/// Returns `true` if the system does not let this user sync a folder.
fn is_unsupported(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    matches!(kind, PermissionDenied | InvalidInput | Unsupported)
}

/// Checks that there is a pool at `path`, before it is mapped: reads its first 160 KiB at most, and
/// opens nothing but a file. A file that another process has locked passes, because it may be about
/// to become a pool.
fn look_at(path: &Path) -> Result<(), Error> {
    let failed = |action| move |e| Error::from_system(path.into(), action, e);
    let metadata = std::fs::metadata(path).map_err(failed("read the type of the file"))?;
    if let Some(kind) = kind_of(metadata.file_type()) {
        return Err(Error::NotAFile { path: path.into(), kind });
    }
    let file = File::open(path).map_err(failed("open the file for reading and writing"))?;
    let state = FileState::read(&file).map_err(failed("read the file"))?;
    let path = path.into();
    let error = match state {
        FileState::Pool => return Ok(()),
        FileState::Empty => Error::Empty { path },
        FileState::Unfinished => Error::Unfinished { path },
        FileState::Zeros => Error::Zeros { path, bytes: metadata.len() },
        FileState::Foreign(found) => Error::NotAPool { path, found },
    };
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Ok(()),
        _ => Err(error),
    }
}

/// Returns the name of a kind that no store can be in, or `None` for a file.
pub(crate) fn kind_of(kind: FileType) -> Option<&'static str> {
    match kind {
        _ if kind.is_file() => None,
        _ if kind.is_dir() => Some("a folder"),
        _ if kind.is_fifo() => Some("a pipe (FIFO)"),
        _ if kind.is_char_device() => Some("a character device"),
        _ if kind.is_block_device() => Some("a block device"),
        _ if kind.is_socket() => Some("a socket"),
        _ => Some("no regular file"),
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
