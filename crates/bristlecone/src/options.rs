//! How a store is created and opened.

use crate::error::Error;
use crate::store::Store;
use bristlecone_pmem::medium::{FileOptions, MediumError};
use bristlecone_pmem::pool::{Opened, POOL_BYTES_MIN, holds_nothing};
use bristlecone_pmem::{Domain, Mapped, Medium, Placement, Pool};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a store is created and opened; made by [`Store::options`].
///
/// ```
/// # fn main() -> Result<(), bristlecone::Error> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("a.pool");
/// let store = bristlecone::Store::options()
///     .initial_bytes(1 << 20)
///     .max_bytes(1 << 30)
///     .open_or_create(&path)?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "options do nothing until a store is opened with them"]
pub struct Options {
    initial_bytes: u64,
    max_bytes: u64,
    file: FileOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self { initial_bytes: 16 << 20, max_bytes: u64::MAX, file: FileOptions::default() }
    }
}

impl Options {
    /// Bytes of a file that is created; it grows by itself as needed. 16 MiB unless said. Space is
    /// allocated on the device before it is used.
    pub fn initial_bytes(mut self, bytes: u64) -> Self {
        self.initial_bytes = bytes;
        self
    }

    /// Bytes to which the file may grow, while it is open with these options. No bound unless said.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Bytes of address space to reserve, beyond which the file cannot grow while it is open.
    /// 256 GiB unless said, and the whole of a file that is larger.
    pub fn reserve_bytes(mut self, bytes: u64) -> Self {
        self.file.reserve_bytes = bytes;
        self
    }

    /// Whether to touch every page of the file at open, so that no later operation waits for one.
    pub fn prefault(mut self, prefault: bool) -> Self {
        self.file.prefault = prefault;
        self
    }

    /// On which NUMA node each stripe of the file belongs, while it is open with these options: a
    /// thread then writes to its own node's while there is room. Nothing of it is in the file.
    pub fn placement(mut self, placement: Placement) -> Self {
        self.file.placement = Some(placement);
        self
    }

    /// The weakest durability domain to accept. Without it, the store takes what the file gives,
    /// and [`Store::stats`] says what that is.
    pub fn require(mut self, domain: Domain) -> Self {
        self.file.require = Some(domain);
        self
    }

    /// Creates a store in a new file at `path`. If that fails, no file is left behind.
    ///
    /// # Errors
    /// The file exists, or the system refuses it; or it cannot give the required domain, or the nodes of
    /// the placement.
    pub fn create(&self, path: impl AsRef<Path>) -> Result<Store, Error> {
        let path = path.as_ref();
        self.check(path)?;
        let medium =
            Mapped::create(path, self.bytes(), &self.file).map_err(|e| self.creating(path, e))?;
        let pool = self.pool(path, medium)?;
        Store::create_in(Arc::clone(&pool), path).and_then(published).inspect_err(|_| {
            // The lock is still ours through `pool`, so nobody else is using the file.
            let _ = std::fs::remove_file(path);
        })
    }

    /// Opens the store at `path`, recovering it if it was not closed: its inner nodes are rebuilt,
    /// O(n), and nothing is lost.
    ///
    /// # Errors
    /// There is no such file, or it is no store, or damaged, cut short, of a newer version, or open
    /// elsewhere; or the system refuses it, or it cannot give the required domain, or the nodes of the
    /// placement.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Store, Error> {
        let path = path.as_ref();
        let (pool, opened) = self.open_pool(path).map_err(|error| unfinished(path, error))?;
        Store::open_in(pool, opened, path)
    }

    /// Opens the store at `path`, or creates it if there is no file, or finishes its creation if
    /// that was cut off.
    ///
    /// # Errors
    /// As [`open`](Self::open) and [`create`](Self::create), but for a file that is missing.
    pub fn open_or_create(&self, path: impl AsRef<Path>) -> Result<Store, Error> {
        let path = path.as_ref();
        match self.open_or_finish(path) {
            Err(Error::NotFound { .. }) => match self.create(path) {
                // Someone else was faster.
                Err(Error::AlreadyExists { .. }) => self.open_or_finish(path),
                created => created,
            },
            opened => opened,
        }
    }

    fn open_or_finish(&self, path: &Path) -> Result<Store, Error> {
        match self.open_pool(path).map_err(|error| unfinished(path, error)) {
            Ok((pool, opened)) => {
                let roots = pool.roots().map_err(|damage| Error::damaged(path, damage))?;
                if !roots.is_empty() {
                    return Store::open_in(pool, opened, path);
                }
                if opened == Opened::Crashed {
                    pool.finish_recovery(); // Without a root nothing is in use.
                }
                Store::create_in(pool, path).and_then(published)
            }
            Err(Error::Unfinished { .. }) => {
                self.check(path)?;
                let medium = Mapped::recreate(path, self.bytes(), &self.file, holds_nothing)
                    .map_err(|e| self.creating(path, e))?;
                Store::create_in(self.pool(path, medium)?, path).and_then(published)
            }
            Err(error) => Err(error),
        }
    }

    fn open_pool(&self, path: &Path) -> Result<(Arc<Pool<Mapped>>, Opened), Error> {
        let medium = Mapped::open(path, &self.file).map_err(|e| Error::from_medium(path, e))?;
        let (pool, opened) = Pool::open(medium).map_err(|e| Error::from_pool(path, e))?;
        pool.limit(self.max_bytes);
        Ok((Arc::new(pool), opened))
    }

    fn pool(&self, path: &Path, medium: Mapped) -> Result<Arc<Pool<Mapped>>, Error> {
        let pool = Pool::create(medium).map_err(|e| Error::from_pool(path, e))?;
        pool.limit(self.max_bytes);
        Ok(Arc::new(pool))
    }

    /// Bytes of a new file.
    fn bytes(&self) -> u64 {
        self.initial_bytes.min(self.max_bytes)
    }

    /// Whether a store can be created with these options at all: before there is a file.
    fn check(&self, path: &Path) -> Result<(), Error> {
        let bytes = self.bytes();
        if bytes < POOL_BYTES_MIN {
            return Err(Error::TooSmall { path: path.into(), bytes, minimum: POOL_BYTES_MIN });
        }
        Ok(())
    }

    /// What went wrong while space for a new file was allocated.
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

/// Whether the system had no room.
fn is_space(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(kind, StorageFull | QuotaExceeded | FileTooLarge)
}

/// Makes the file's name durable too, where its content survives a power cut.
fn published(store: Store) -> Result<Store, Error> {
    if store.pool().medium().domain().covers(Domain::Adr) {
        let path = std::fs::canonicalize(store.path());
        let synced = path.and_then(|path| {
            File::open(&path)?.sync_all()?;
            path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
        });
        let action = "make the file's name durable";
        synced.map_err(|e| Error::from_system(store.path().into(), action, e))?;
    }
    Ok(store)
}

/// Tells a file whose creation was cut off from one that is damaged or foreign.
fn unfinished(path: &Path, error: Error) -> Error {
    let suspicious = matches!(
        error,
        Error::NotAPool { found: 0, .. } | Error::Superblocks { .. } | Error::CutShort { .. }
    );
    let path: PathBuf = path.into();
    if suspicious && File::open(&path).and_then(|file| holds_nothing(&file)).unwrap_or(false) {
        return Error::Unfinished { path };
    }
    error
}

impl Store {
    /// Options, to be changed and then used to create or open a store.
    pub fn options() -> Options {
        Options::default()
    }

    /// Creates a store in a new file at `path`, with the default options.
    ///
    /// # Errors
    /// As [`Options::create`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::options().create(path)
    }

    /// Opens the store at `path`, with the default options.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::options().open(path)
    }

    /// Opens the store at `path`, or creates it, with the default options.
    ///
    /// # Errors
    /// As [`Options::open_or_create`].
    pub fn open_or_create(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::options().open_or_create(path)
    }
}
