//! The files of a journal: a folder beside the pool file, with the ring and the segments.
//!
//! 1. The folder is made, filled and synced, its parent too, before a mark says that the pool needs
//!    it.
//! 2. No file is removed but those of a journal that no process has open and that no mark on the
//!    device needs. One that another pool may need is renamed, and stays.
//! 3. The space of a segment is allocated, so that no later write finds the device full. Where a
//!    commit waits for syncs it is filled with zeros, so that no write changes the metadata of the
//!    file.
//! 4. The ring is locked while a process has the journal open, and is made first. So a pool that
//!    takes the path finds the folder in use.

use super::disk::{Disk, Place};
use super::error::JournalError;
use super::frame;
use super::leftovers::{LEFT_BYTES, RING, clear, remove, segment_name};
use super::mark::Mark;
use super::options::JournalOptions;
use super::point::Geometry;
use super::ring::Ring;
use super::trace::{DiskFiles, DiskTrace};
use super::work::DiskWork;
use crate::medium::{
    MediumError, Storage, allocate, check_length, end_of_hole, fill_holes, is_same, mount_of,
    sync_folder, without_links,
};
use parking_lot::Mutex;
use rustix::fs::{Advice, FallocateFlags, Mode, OFlags, fadvise, fallocate, fstatvfs};
use rustix::io::{Errno, retry_on_intr};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The size of a write of zeros, in bytes.
const ZEROS_BYTES: u64 = 1 << 20;
/// What the name of the folder has behind that of the pool file.
const SUFFIX: &str = ".journal";

/// The files of a pool and its journal on a disk.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    pool: File,
    segments: Vec<File>,
    trace: Option<Arc<dyn DiskTrace>>,
    /// `true` if a sync of the pool file has failed. The system tells one caller alone, and there
    /// are two: a checkpoint, and the growth of the file.
    has_pool_failed: Mutex<bool>,
    /// The counts of writes and syncs.
    pub(super) work: DiskWork,
}

impl Folder {
    /// Returns the path of the folder beside `pool`, to which `path` leads.
    fn path_of(path: &Path, pool: &File) -> PathBuf {
        let mut name = OsString::from(without_links(path, pool));
        name.push(SUFFIX);
        name.into()
    }

    /// Returns `true` if nothing lies in the place of the folder.
    pub(super) fn is_absent(path: &Path, pool: &File) -> bool {
        let found = fs::symlink_metadata(Self::path_of(path, pool));
        found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// Checks that the folder of a new pool can be made, and set aside later.
    pub(super) fn check_place(path: &Path, pool: &File) -> Result<(), JournalError> {
        let folder = Self::path_of(path, pool);
        check_kind(&folder)?;
        check_name(&folder, pool, LEFT_BYTES)
    }

    /// Checks that the file system of `pool`, at `path`, keeps what it has synced, and that of the
    /// journal too: a file may be mounted by itself. Then the journal must have a mount of its own.
    pub(super) fn check(path: &Path, pool: &File) -> Result<(), JournalError> {
        let folder = Self::path_of(path, pool);
        let parent = folder.parent().unwrap_or(&folder);
        let beside = if folder.is_dir() { &folder } else { parent };
        // So opened, a folder need not be one that this user may read.
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let [opened, parent] =
            [beside, parent].map(|path| rustix::fs::open(path, flags, Mode::empty()).ok());
        let [opened, parent] = [opened, parent].map(|file| file.map(File::from));
        for file in [Some(pool), opened.as_ref()].into_iter().flatten() {
            if let Storage::Memory(kind) | Storage::Unsure(kind) = Storage::of_system(file)? {
                return Err(JournalError::NotOnDisk { kind });
            }
        }
        let [opened, parent] = [opened, parent].map(|file| mount_of(&file?));
        let pool = mount_of(pool);
        if opened.is_some() && opened == parent && pool.is_some() && pool != parent {
            let folder = folder.display().to_string();
            return Err(JournalError::MountedAlone { folder });
        }
        Ok(())
    }

    /// Makes the folder beside the pool at `path`, which needs none: a ring and segments as the
    /// options say. `former` is the mark of the pool's last journal, which is synced first (I2).
    pub(super) fn create(
        path: &Path,
        pool: File,
        former: Option<&Mark>,
        options: &JournalOptions,
    ) -> Result<(Self, Ring), JournalError> {
        let folder = Self::path_of(path, &pool);
        let failed = |e| JournalError::system("make the folder of the journal", e);
        check_kind(&folder)?;
        check_name(&folder, &pool, 0)?;
        former.map_or(Ok(()), |mark| mark.settle(&pool))?;
        clear(&folder, former.map(|mark| mark.nonce))?;
        let owner = pool.metadata().map_err(failed)?;
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
            made => made
                .and_then(|()| File::open(&folder))
                .and_then(|folder| share(&folder, &owner))
                .map_err(failed)?,
        }
        // I4: first. So what is removed below is of this process.
        let ring = folder.join(RING);
        let ring = Ring::create(&ring, options.slots()).map_err(|error| match error {
            MediumError::System { action, source } => {
                MediumError::system(action, named_if_there(source, &ring))
            }
            other => other,
        });
        let ring = ring.inspect_err(|_| drop(fs::remove_dir(&folder)))?;
        // Where that fails, the error that is returned says more.
        let made = Self::fill(&folder, pool, &owner, options);
        let made = made.inspect_err(|_| drop(remove(&folder)))?;
        Ok((made, ring))
    }

    fn fill(
        folder: &Path,
        pool: File,
        owner: &Metadata,
        options: &JournalOptions,
    ) -> Result<Self, JournalError> {
        let geometry = options.geometry();
        let failed = |error| {
            let error = with_descriptors(error, geometry);
            JournalError::system("make the folder of the journal", error)
        };
        check_length(geometry.segment_bytes).map_err(|e| failed(e.into()))?;
        let mut segments = Vec::new();
        for index in 0..geometry.segments {
            let path = folder.join(segment_name(index));
            let mut new = OpenOptions::new();
            new.read(true).write(true).create_new(true).mode(0o600);
            let file = new.open(&path).map_err(|e| failed(named_if_there(e, &path)))?;
            share(&file, owner).map_err(failed)?;
            reserve(&file, geometry.segment_bytes, options.zeroes_segments()).map_err(failed)?;
            segments.push(file);
        }
        File::open(folder.join(RING)).and_then(|ring| share(&ring, owner)).map_err(failed)?;
        // The first of these syncs writes most of what the others would.
        for file in &segments {
            file.sync_all().map_err(failed)?;
        }
        for path in [folder, folder.parent().unwrap_or(folder)] {
            sync_folder(path, &pool).map_err(failed)?;
        }
        Ok(Self::new(folder.into(), pool, segments))
    }

    /// Opens the folder beside the pool at `path`, which needs it: `mark` says so.
    pub(super) fn open(path: &Path, pool: File, mark: &Mark) -> Result<(Self, Ring), JournalError> {
        let (folder, geometry) = (Self::path_of(path, &pool), mark.geometry);
        let missing = |name: &str| {
            let missing = folder.join(name).display().to_string();
            move |error: io::Error| match error.kind() {
                io::ErrorKind::NotFound => JournalError::Missing { missing },
                _ => JournalError::system("open the journal", with_descriptors(error, geometry)),
            }
        };
        check_kind(&folder)?;
        check_length(geometry.segment_bytes)
            .map_err(|e| JournalError::system("write to the journal", e.into()))?;
        let mut segments = Vec::new();
        for index in 0..geometry.segments {
            let name = segment_name(index);
            let file = OpenOptions::new().read(true).write(true).open(folder.join(&name));
            let file = file.map_err(missing(&name))?;
            let bytes = file.metadata().map_err(missing(&name))?.len();
            if bytes < geometry.segment_bytes {
                return Err(missing(&name)(io::ErrorKind::NotFound.into()));
            }
            fill_holes(&file, geometry.segment_bytes)?; // I3, also of a copy.
            segments.push(file);
        }
        fs::metadata(folder.join(RING)).map_err(missing(RING))?;
        let ring = Ring::open(&folder.join(RING))?;
        if ring.is_cut() {
            return Err(missing(RING)(io::ErrorKind::NotFound.into()));
        }
        if !ring.is_beside(mark.nonce) || is_used_by_later(&segments, &ring, mark)? {
            return Err(JournalError::Foreign { folder: folder.display().to_string() });
        }
        Ok((Self::new(folder, pool, segments), ring))
    }

    fn new(path: PathBuf, pool: File, segments: Vec<File>) -> Self {
        let (work, has_pool_failed) = (DiskWork::default(), Mutex::default());
        Self { path, pool, segments, trace: None, has_pool_failed, work }
    }

    /// Lets `trace` see what is written from now on.
    pub(super) fn set_trace(&mut self, trace: Arc<dyn DiskTrace>) -> Result<(), JournalError> {
        let failed = |e| JournalError::system("read the pool", e);
        let segments = (0..).zip(&self.segments).map(|(index, file)| (Some(index), file));
        let mut files = DiskFiles::new();
        for (place, file) in segments.chain([(None, &self.pool)]) {
            let mut bytes = vec![0; file.metadata().map_err(failed)?.len() as usize];
            file.read_exact_at(&mut bytes, 0).map_err(failed)?;
            files.insert(place, bytes);
        }
        trace.begin(files);
        self.trace = Some(trace);
        Ok(())
    }

    /// Gives the pool file, which has `old` bytes or more, `new` bytes with space on the device. If
    /// that fails, the device has its space again.
    pub(super) fn extend(&self, old: u64, new: u64) -> Result<(), MediumError> {
        self.check_length(old)?;
        let asked = self.trace.as_ref().map_or(Ok(()), |trace| trace.grow(new));
        let extended = asked.and_then(|()| allocate(&self.pool, old, new));
        if extended.is_err() {
            // Some file systems keep what they could allocate.
            let _ = self.pool.set_len(old);
        }
        extended.map_err(|e| MediumError::system("allocate space for the file", e))
    }

    /// Checks that the pool file still has `bytes` bytes. Pages that are not dirty are in the file
    /// alone. A longer file would hide that another program has cut them off.
    pub(super) fn check_length(&self, bytes: u64) -> Result<(), MediumError> {
        let checked = self.check_end(bytes);
        checked.map_err(|e| MediumError::system("use a file that another program has cut", e))
    }

    fn check_end(&self, end: u64) -> io::Result<()> {
        let is_cut = self.pool.metadata()?.len() < end;
        if is_cut { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// Makes the length of `bytes` of the pool file durable.
    pub(super) fn sync_length(&self, bytes: u64) -> io::Result<()> {
        self.sync(Place::Pool)?;
        if let Some(trace) = &self.trace {
            trace.grown(bytes);
        }
        Ok(())
    }

    /// Cuts off what the pool file has past `bytes`, which no pool uses. A longer file is no
    /// damage.
    pub(super) fn cut(&self, bytes: u64) {
        if self.pool.metadata().is_ok_and(|metadata| metadata.len() > bytes) {
            let _ = self.pool.set_len(bytes);
        }
    }

    /// Removes the folder, unless another journal has taken its path (I2). The pool file is whole.
    pub(super) fn remove(&self) {
        if self.is_at_its_path() {
            let _ = remove(&self.path); // The next creation removes what is left.
        }
    }

    /// Returns `true` if the path of the folder still leads to the files of this journal.
    fn is_at_its_path(&self) -> bool {
        self.leads_to(&self.path.join(segment_name(0)), Place::Segment(0)) == Some(true)
    }

    /// Returns `true` if `path` leads to the file of `place`, and `None` if to no file.
    fn leads_to(&self, path: &Path, place: Place) -> Option<bool> {
        let (here, there) = (self.file(place).metadata().ok()?, fs::metadata(path).ok()?);
        Some(is_same(&here, &there))
    }

    /// Returns `true` if no path leads to the first segment any more, and one leads to the pool; or
    /// if another journal is beside the pool in place of this one.
    pub(super) fn is_removed(&self) -> bool {
        let links = |place| self.file(place).metadata().map(|metadata| metadata.nlink());
        let is_gone = matches!((links(Place::Segment(0)), links(Place::Pool)), (Ok(0), Ok(1..)));
        let is_replaced = || {
            let segment = self.path.join(segment_name(0));
            self.leads_to(&segment, Place::Segment(0)) == Some(false)
                && self.leads_to(&self.path.with_extension(""), Place::Pool) == Some(true)
        };
        is_gone || is_replaced()
    }

    fn sync_file(&self, place: Place) -> io::Result<()> {
        if let Some(trace) = &self.trace {
            trace.sync(place.segment())?;
        }
        let start = Instant::now();
        self.file(place).sync_data()?;
        self.work.count_sync(place, start.elapsed());
        if let Some(trace) = &self.trace {
            trace.synced(place.segment());
        }
        Ok(())
    }

    fn file(&self, place: Place) -> &File {
        match place {
            Place::Pool => &self.pool,
            Place::Segment(index) => &self.segments[index as usize],
        }
    }
}

impl Disk for Folder {
    fn read(&self, place: Place, at: u64, target: &mut [u8]) -> io::Result<()> {
        self.file(place).read_exact_at(target, at)
    }

    fn end_of_hole(&self, place: Place, at: u64) -> io::Result<u64> {
        end_of_hole(self.file(place), at)
    }

    fn write(&self, place: Place, at: u64, source: &[u8]) -> io::Result<()> {
        self.work.count_write(place, source.len());
        if place == Place::Pool {
            self.check_end(at + source.len() as u64)?;
        }
        let Some(trace) = &self.trace else { return self.file(place).write_all_at(source, at) };
        trace.write(place.segment(), at, source)?;
        self.file(place).write_all_at(source, at)?;
        trace.written(place.segment());
        Ok(())
    }

    fn sync(&self, place: Place) -> io::Result<()> {
        let mut has_failed = (place == Place::Pool).then(|| self.has_pool_failed.lock());
        if has_failed.as_deref() == Some(&true) {
            return Err(io::Error::other("an earlier sync of the file has failed"));
        }
        let done = self.sync_file(place);
        if let Some(has_failed) = &mut has_failed {
            **has_failed = done.is_err();
        }
        done
    }

    fn settle(&self, place: Place) -> io::Result<()> {
        self.sync(place)?;
        // Advice: the system may keep pages. A page that it could not write it calls clean.
        let _ = fadvise(self.file(place), 0, None, Advice::DontNeed);
        Ok(())
    }
}

/// Says in `error` how many descriptors an open store takes, if this process may have no more.
fn with_descriptors(error: io::Error, geometry: Geometry) -> io::Error {
    /// The descriptors of the pool, of its ring, and of a step that needs one for a moment.
    const OTHERS: u64 = 3;
    if error.raw_os_error() != Some(Errno::MFILE.raw_os_error()) {
        return error;
    }
    let count = geometry.segments + OTHERS;
    let advice = "raise `ulimit -n`, or set a smaller journal_bytes";
    io::Error::other(format!("{error}: an open store takes {count} file descriptors; {advice}"))
}

/// Names the file at `path` in `error` if it is there already: a file of others in the folder.
fn named_if_there(error: io::Error, path: &Path) -> io::Error {
    match error.kind() {
        io::ErrorKind::AlreadyExists => io::Error::other(format!("{}: {error}", path.display())),
        _ => error,
    }
}

/// Checks that what has the name of the journal, if anything has, is a folder. Through a link, a
/// copy of the pool would use up the journal of its original.
fn check_kind(folder: &Path) -> Result<(), JournalError> {
    match fs::symlink_metadata(folder) {
        Ok(found) if !found.is_dir() => {
            Err(JournalError::NotAFolder { path: folder.display().to_string() })
        }
        _ => Ok(()), // What comes next meets any other error too.
    }
}

/// Checks that the name of `folder`, with an end of `more` bytes, is none that the file system of
/// `pool` refuses.
fn check_name(folder: &Path, pool: &File, more: usize) -> Result<(), JournalError> {
    let longest = fstatvfs(pool).map_or(0, |system| system.f_namemax as usize);
    let (bytes, own) = (folder.file_name().map_or(0, OsStr::len), SUFFIX.len());
    let is_told = longest > 0;
    if !is_told || bytes + more <= longest {
        return Ok(());
    }
    let longest = longest.saturating_sub(own + more);
    Err(JournalError::NameTooLong { bytes: bytes - own, longest })
}

/// Returns `true` if the open after that of `mark` has written frames: the pool file is older than
/// its journal, which has lost what that pool needs.
fn is_used_by_later(segments: &[File], ring: &Ring, mark: &Mark) -> Result<bool, JournalError> {
    let (later, Some(first)) = (ring.nonce(), segments.first()) else { return Ok(false) };
    if later == mark.nonce {
        return Ok(false);
    }
    let mut header = [0; frame::HEADER_BYTES];
    let read = first.read_exact_at(&mut header, 0);
    read.map_err(|e| JournalError::system("read the journal", e))?;
    // Each segment begins with a frame, at whatever position.
    Ok(frame::nonce_of(&header) == Some(later))
}

/// Gives an empty file `bytes` bytes of space that reads as zeros (I3). With `zeroes` it writes
/// them.
fn reserve(file: &File, bytes: u64, zeroes: bool) -> io::Result<()> {
    let is_reserved = !zeroes && {
        let empty = FallocateFlags::empty();
        match retry_on_intr(|| fallocate(file, empty, 0, bytes)) {
            Err(rustix::io::Errno::OPNOTSUPP) => false,
            done => done.map(|()| true)?,
        }
    };
    if is_reserved {
        return Ok(());
    }
    let zeros = vec![0; ZEROS_BYTES.min(bytes) as usize];
    for at in (0..bytes).step_by(zeros.len()) {
        let count = (bytes - at).min(zeros.len() as u64) as usize;
        file.write_all_at(&zeros[..count], at)?;
    }
    Ok(())
}

/// Opens a file of a journal, or its folder, to those who may read and write the pool, which holds
/// the same pairs, and to no one else. Who may read the files may enter the folder.
fn share(file: &File, pool: &Metadata) -> io::Result<()> {
    let [user, group] = [pool.uid(), pool.gid()].map(Some);
    // Root alone gives a file to another user, and any other user only to groups of its own.
    let is_given = fchown(file, user, group).or_else(|_| fchown(file, None, group)).is_ok();
    let mode = pool.mode() & if is_given { 0o666 } else { 0o606 } | 0o600;
    let enters = if file.metadata()?.is_dir() { (mode & 0o444) >> 2 } else { 0 };
    file.set_permissions(Permissions::from_mode(mode | enters))
}
