//! The creation and opening of stores in files: which medium a file gets, and in which order.
//!
//! 1. The file stays locked from the first look at its contents until the store is dropped.
//! 2. A journal begins on a file that a close has left whole. So a store without one that was not
//!    closed is first mapped, recovered and closed. A new one gets its root with the journal: a
//!    power cut before that leaves a pool without a root, which the next creation finishes.
//! 3. A file that needs its journal is opened with it, or made whole before it is mapped.
//! 4. The journal of a newer version is left to it.
//! 5. A copy of a store that was not closed is refused before the journal beside it is used: the
//!    original may need it.
//! 6. Nothing syncs a mapped store that was not closed before its pool is open, which marks it as
//!    torn if that fails: the system tells one caller alone.

use crate::error::Error;
use crate::options::Options;
use crate::store::Store;
use bristlecone_pmem::journal::{DiskTrace, JournalError, JournalOptions, Journaled};
use bristlecone_pmem::layout::CHUNK_BYTES;
use bristlecone_pmem::medium::{FileOptions, LockedFile, MediumError, Storage, sync_name};
use bristlecone_pmem::pool::{
    FileState, HEADER_BYTES, Opened, POOL_BYTES_MIN, Root, check_original, check_version,
    holds_nothing, is_closed,
};
use bristlecone_pmem::{
    Corrupt, Domain, Durability, FileMedium, Mapped, Medium, PmPtr, Pool, PoolError,
};
use bristlecone_trees::designs::cell_tree::LeafBytes;
use std::fs::{File, FileType, TryLockError};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

type FilePool = Pool<FileMedium>;

impl Options {
    /// Creates a store in a new file. A drop of the store removes the file, until a close of the
    /// store or [`FileMedium::keep_file`] keeps it.
    pub(crate) fn begin(&self, path: &Path) -> Result<Store, Error> {
        self.check(path)?;
        let locked = LockedFile::create(path).map_err(|e| self.creating(path, e))?;
        let journal = self.new_journal_on(&locked, path)?;
        let options = self.creation(journal.is_some());
        let medium = Mapped::begin_on(locked, POOL_BYTES_MIN, &options);
        self.fill(medium.map_err(|e| self.creating(path, e))?, journal.as_ref(), path)
    }

    /// Opens the store at `path`. With `finishes`, makes one of a file that holds nothing, and
    /// finishes an interrupted creation.
    pub(crate) fn open_file(&self, path: &Path, finishes: bool) -> Result<Store, Error> {
        match look_at(path) {
            Err(Error::Empty { .. } | Error::Unfinished { .. }) if finishes => {
                return self.recreate(path);
            }
            looked => looked?,
        }
        let locked = self.lock(path)?;
        let journal = self.journal_on(&locked, path)?;
        check_version(locked.file()).map_err(|e| Error::from_pool(path, e))?; // I4
        let needs = Journaled::is_needed_by(locked.file());
        let needs = needs.map_err(|e| Error::from_journal(path, e))?;
        let is_closed = is_closed(locked.file());
        let is_closed =
            is_closed.map_err(|e| Error::from_system(path.into(), "read the file", e))?;
        if needs || is_closed {
            if !self.open_torn {
                check_original(&locked).map_err(|e| Error::from_pool(path, e))?; // I5
            }
            if let Some(journal) = &journal {
                return self.open_journaled(locked, journal, None, path, finishes);
            }
            let made = Journaled::make_whole(&locked, &self.journal); // I3, I6
            made.map_err(|e| Error::from_journal(path, e))?;
        }
        let options = self.mapping(journal.is_some());
        let medium = Mapped::on(locked, &options).map_err(|e| Error::from_medium(path, e))?;
        let store = self.open_on(medium.into(), journal.as_ref(), path, finishes)?;
        self.add_journal(store, journal.as_ref(), path)
    }

    /// Opens a store with a journal, which a close left whole, and lets a test see what is written.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    #[doc(hidden)]
    pub fn open_traced(&self, path: &Path, trace: Arc<dyn DiskTrace>) -> Result<Store, Error> {
        let locked = self.lock(path)?;
        let journal = self.journal_on(&locked, path)?.unwrap_or_default();
        self.open_journaled(locked, &journal, Some(trace), path, false)
    }

    fn lock(&self, path: &Path) -> Result<LockedFile, Error> {
        LockedFile::open_within(path, self.file.wait).map_err(|e| Error::from_medium(path, e))
    }

    /// Makes a store of a file that holds nothing.
    fn recreate(&self, path: &Path) -> Result<Store, Error> {
        self.check(path)?;
        let locked = self.lock(path)?;
        let journal = self.new_journal_on(&locked, path)?;
        let options = self.creation(journal.is_some());
        let medium = Mapped::recreate(locked, POOL_BYTES_MIN, &options, holds_nothing);
        self.fill(medium.map_err(|e| self.creating(path, e))?, journal.as_ref(), path)
    }

    /// Returns the options of the journal that the file gets, or `None` if it is to be mapped.
    ///
    /// # Errors
    /// The file system may keep nothing over a power cut, or the domain is weaker than required.
    fn journal_on(&self, file: &LockedFile, path: &Path) -> Result<Option<JournalOptions>, Error> {
        let storage = file.storage().map_err(|e| Error::from_medium(path, e))?;
        let has_journal = match storage {
            Storage::Dax => false,
            Storage::Memory(_) if self.durability.is_none() => false,
            _ => self.durability != Some(Durability::Process),
        };
        let given = if has_journal { Domain::Disk } else { storage.domain() };
        if let (true, Storage::Memory(kind) | Storage::Unsure(kind)) = (has_journal, storage)
            && !self.journal.trust_file_system
        {
            return Err(Error::from_journal(path, JournalError::NotOnDisk { kind }));
        }
        match self.file.require {
            Some(required) if !given.covers(required) => {
                Err(Error::Domain { path: path.into(), required, given })
            }
            _ => Ok(has_journal.then_some(JournalOptions {
                durability: self.durability.unwrap_or(Durability::DEFAULT),
                reserve_bytes: self.file.reserve_bytes,
                placement: self.file.placement,
                ..self.journal
            })),
        }
    }

    /// Returns the options of the journal of a new store, as [`journal_on`](Self::journal_on), if
    /// that can be made.
    fn new_journal_on(
        &self,
        file: &LockedFile,
        path: &Path,
    ) -> Result<Option<JournalOptions>, Error> {
        let journal = self.journal_on(file, path)?;
        if journal.is_some() {
            Journaled::check_place(file).map_err(|e| Error::from_journal(path, e))?;
        }
        Ok(journal)
    }

    /// Makes a store in a mapping without a pool.
    fn fill(
        &self,
        medium: Mapped,
        journal: Option<&JournalOptions>,
        path: &Path,
    ) -> Result<Store, Error> {
        let pool = Pool::create(medium.into()).map_err(|e| Error::from_pool(path, e))?;
        self.limit(&pool);
        self.finish(pool, journal, path)
    }

    /// Closes a store that is mapped and opens it with a journal, if there is to be one.
    fn add_journal(
        &self,
        store: Store,
        journal: Option<&JournalOptions>,
        path: &Path,
    ) -> Result<Store, Error> {
        let (Some(journal), Some(mapped)) = (journal, store.medium().mapped()) else {
            return Ok(store);
        };
        let recovered = store.was_recovered();
        let locked = mapped.hand_over().map_err(|e| Error::from_medium(path, e))?; // I1
        store.close()?; // I2
        let store = self.open_journaled(locked, journal, None, path, false)?;
        Ok(Store { recovered: store.recovered || recovered, ..store })
    }

    fn open_journaled(
        &self,
        locked: LockedFile,
        journal: &JournalOptions,
        trace: Option<Arc<dyn DiskTrace>>,
        path: &Path,
        finishes: bool,
    ) -> Result<Store, Error> {
        // If the file needs its journal, that is there, of whatever size.
        let is_new = matches!(Journaled::is_needed_by(locked.file()), Ok(false));
        let medium = Journaled::on_traced(locked, journal, trace).map_err(|error| match error {
            JournalError::Medium(source) if is_new && source.is_full() => {
                Error::NoJournalSpace { path: path.into(), wanted: journal.journal_bytes, source }
            }
            other => Error::from_journal(path, other),
        });
        self.open_on(medium?.into(), Some(journal), path, finishes)
    }

    fn open_on(
        &self,
        medium: FileMedium,
        journal: Option<&JournalOptions>,
        path: &Path,
        finishes: bool,
    ) -> Result<Store, Error> {
        let opened = if self.open_torn { Pool::open_torn(medium) } else { Pool::open(medium) };
        let (pool, opened) = opened.map_err(|e| Error::from_pool(path, e))?;
        let damaged = |damage| Error::damaged(path, damage);
        let is_empty = pool.roots().is_ok_and(|roots| roots.is_empty());
        if is_empty {
            check_no_pairs(&pool).map_err(damaged)?;
        }
        self.limit(&pool);
        if !finishes || !pool.roots().map_err(damaged)?.is_empty() {
            return Store::open_in(Arc::new(pool), opened, path);
        }
        if opened == Opened::Crashed {
            pool.finish_recovery(); // No block is in use without a root.
        }
        self.finish(pool, journal, path)
    }

    /// Gives a pool without roots its journal, if there is to be one (I2), its size and its index,
    /// and syncs the name of its file.
    ///
    /// A new file has the length of the smallest pool until the pool is durable. So an interrupted
    /// creation leaves no longer file without a pool, and a longer one of zeros is none.
    fn finish(
        &self,
        pool: FilePool,
        journal: Option<&JournalOptions>,
        path: &Path,
    ) -> Result<Store, Error> {
        if let (Some(journal), Some(mapped)) = (journal, pool.medium().mapped()) {
            let locked = mapped.hand_over().map_err(|e| Error::from_medium(path, e))?; // I1
            pool.close().map_err(|e| Error::from_pool(path, e))?;
            return self.open_journaled(locked, journal, None, path, true);
        }
        let bytes = self.bytes() / CHUNK_BYTES * CHUNK_BYTES; // No more than the options allow.
        pool.grow(bytes).map_err(|error| match error {
            PoolError::Medium(error) => self.creating(path, error),
            other => Error::from_pool(path, other),
        })?;
        let store = Store::create_in(Arc::new(pool), path)?;
        store.sync()?;
        sync_name(path)
            .map_err(|e| Error::from_system(path.into(), "make the file's name durable", e))?;
        Ok(store)
    }

    /// Returns the options with which a file is mapped: for good, or until its journal begins.
    fn mapping(&self, gets_journal: bool) -> FileOptions {
        let file = FileOptions { require: None, ..self.file };
        if gets_journal { FileOptions { prefault: false, placement: None, ..file } } else { file }
    }

    /// Returns the options with which a new file is mapped.
    fn creation(&self, gets_journal: bool) -> FileOptions {
        FileOptions { allocate_bytes: self.bytes(), ..self.mapping(gets_journal) }
    }

    /// Returns the error of a failed creation: `Full` if the device had no space for the file.
    fn creating(&self, path: &Path, error: MediumError) -> Error {
        if error.is_full() {
            return Error::Full { path: path.into(), wanted: self.bytes(), source: error };
        }
        Error::from_medium(path, error)
    }
}

/// Checks that a pool without a root is the rest of an interrupted creation: no leaf in it has a
/// cell with pairs and a right sum.
///
/// # Errors
/// There are pairs, so the pool had a root, and damage has removed it.
fn check_no_pairs(pool: &FilePool) -> Result<(), Corrupt> {
    let mut bytes = [0; LeafBytes::BYTES];
    for at in (HEADER_BYTES..pool.medium().len()).step_by(LeafBytes::BYTES) {
        let words = pool.words(PmPtr::new(at), LeafBytes::BYTES / 8)?;
        pool.medium().copy_out(words, &mut bytes);
        let leaf = LeafBytes::new(at, &bytes);
        if (leaf.low().is_ok() || leaf.next().is_ok()) && leaf.has_entries() {
            let what = "root of the store, which is missing beside a leaf with pairs";
            return Err(Corrupt { at: Root::TABLE, what, expected: 1, found: 0 });
        }
    }
    Ok(())
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
