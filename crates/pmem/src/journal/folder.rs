//! The files of a journal: a folder beside the pool file, with the ring and the segments.
//!
//! 1. The folder is made, filled and synced, its parent too, before a mark says that the pool needs
//!    it. Nothing is renamed.
//! 2. The space of a segment is allocated, so that no later write finds the device full. Where a
//!    commit waits for syncs it is filled with zeros, so that no write changes the metadata of the
//!    file.

use super::disk::{Disk, Place};
use super::error::JournalError;
use super::options::JournalOptions;
use super::point::Geometry;
use super::ring::Ring;
use super::trace::{DiskFiles, DiskTrace};
use super::work::DiskWork;
use crate::medium::{MediumError, Storage, check_length, end_of_hole};
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use rustix::io::retry_on_intr;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The name of the ring in the folder.
const RING: &str = "ring";
/// The size of a write of zeros, in bytes.
const ZEROS_BYTES: u64 = 1 << 20;
/// The files of a pool and its journal on a disk.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    pool: File,
    segments: Vec<File>,
    trace: Option<Arc<dyn DiskTrace>>,
    /// The counts of writes and syncs.
    pub(super) work: DiskWork,
}

impl Folder {
    /// Returns the path of the folder beside the pool file to which `pool` leads.
    fn path_of(pool: &Path) -> PathBuf {
        let pool = fs::canonicalize(pool).unwrap_or_else(|_| pool.into());
        let mut name = OsString::from(pool);
        name.push(".journal");
        name.into()
    }

    /// Checks that the file system of `pool` keeps what it has synced.
    pub(super) fn check(pool: &File) -> Result<(), JournalError> {
        match Storage::of_system(pool)? {
            Storage::Memory(kind) | Storage::Unsure(kind) => Err(JournalError::NotOnDisk { kind }),
            Storage::Dax | Storage::Disk => Ok(()),
        }
    }

    /// Makes the folder beside the pool at `path`, which needs none: a ring and segments as the
    /// options say. What an interrupted close or creation left is removed.
    pub(super) fn create(
        path: &Path,
        pool: File,
        options: &JournalOptions,
    ) -> Result<(Self, Ring), JournalError> {
        let folder = Self::path_of(path);
        let failed = |e| JournalError::system("make the folder of the journal", e);
        remove(&folder).map_err(failed)?;
        fs::create_dir(&folder).map_err(failed)?;
        let made = Self::fill(&folder, pool, options);
        if made.is_err() {
            let _ = remove(&folder); // The error that is returned says more.
        }
        made
    }

    fn fill(
        folder: &Path,
        pool: File,
        options: &JournalOptions,
    ) -> Result<(Self, Ring), JournalError> {
        let failed = |e| JournalError::system("make the folder of the journal", e);
        let geometry = options.geometry();
        check_length(geometry.segment_bytes).map_err(|e| failed(e.into()))?;
        let mut segments = Vec::new();
        for index in 0..geometry.segments {
            let path = folder.join(segment_name(index));
            let mut new = OpenOptions::new();
            let file = new.read(true).write(true).create_new(true).open(path).map_err(failed)?;
            reserve(&file, geometry.segment_bytes, options.zeroes_segments()).map_err(failed)?;
            segments.push(file);
        }
        let ring = Ring::create(&folder.join(RING), options.slots())?;
        // The first of these syncs writes most of what the others would.
        for file in &segments {
            file.sync_all().map_err(failed)?;
        }
        for path in [folder, folder.parent().unwrap_or(folder)] {
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            File::open(path).and_then(|file| file.sync_all()).map_err(failed)?;
        }
        let work = DiskWork::default();
        Ok((Self { path: folder.into(), pool, segments, trace: None, work }, ring))
    }

    /// Opens the folder beside the pool at `path`, which needs it.
    pub(super) fn open(
        path: &Path,
        pool: File,
        geometry: Geometry,
    ) -> Result<(Self, Ring), JournalError> {
        let folder = Self::path_of(path);
        let missing = |name: &str| {
            let missing = folder.join(name).display().to_string();
            move |error: io::Error| match error.kind() {
                io::ErrorKind::NotFound => JournalError::Missing { missing },
                _ => JournalError::system("open the journal", error),
            }
        };
        let mut segments = Vec::new();
        for index in 0..geometry.segments {
            let name = segment_name(index);
            let file = OpenOptions::new().read(true).write(true).open(folder.join(&name));
            let file = file.map_err(missing(&name))?;
            let bytes = file.metadata().map_err(missing(&name))?.len();
            if bytes < geometry.segment_bytes {
                return Err(missing(&name)(io::ErrorKind::NotFound.into()));
            }
            segments.push(file);
        }
        fs::metadata(folder.join(RING)).map_err(missing(RING))?;
        let ring = Ring::open(&folder.join(RING))?;
        if ring.slots() == 0 {
            return Err(missing(RING)(io::ErrorKind::NotFound.into()));
        }
        let work = DiskWork::default();
        Ok((Self { path: folder, pool, segments, trace: None, work }, ring))
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

    /// Gives the pool file a length of `bytes` with space on the device, durable on return.
    pub(super) fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        let failed = |e: io::Error| MediumError::system("allocate space for the file", e);
        let old = self.pool.metadata().map_err(failed)?.len();
        if bytes <= old {
            return Ok(());
        }
        let empty = FallocateFlags::empty();
        let reserve = || retry_on_intr(|| fallocate(&self.pool, empty, old, bytes - old));
        let allocate = || match check_length(bytes).and_then(|()| reserve()) {
            Err(rustix::io::Errno::OPNOTSUPP) => self.pool.set_len(bytes),
            other => other.map_err(Into::into),
        };
        let asked = self.trace.as_ref().map_or(Ok(()), |trace| trace.grow(bytes));
        let grown = asked.and_then(|()| allocate()).and_then(|()| self.pool.sync_all());
        if grown.is_err() {
            let _ = self.pool.set_len(old);
        } else if let Some(trace) = &self.trace {
            trace.grown(bytes);
        }
        grown.map_err(failed)
    }

    /// Removes the folder. The pool file is whole.
    pub(super) fn remove(&self) {
        let _ = remove(&self.path); // The next creation removes what is left.
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
        let Some(trace) = &self.trace else { return self.file(place).write_all_at(source, at) };
        trace.write(place.segment(), at, source)?;
        self.file(place).write_all_at(source, at)?;
        trace.written(place.segment());
        Ok(())
    }

    fn sync(&self, place: Place) -> io::Result<()> {
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

    fn settle(&self, place: Place) -> io::Result<()> {
        self.sync(place)?;
        // Advice: the system may keep pages. A page that it could not write it calls clean.
        let _ = fadvise(self.file(place), 0, None, Advice::DontNeed);
        Ok(())
    }
}

/// Gives an empty file `bytes` bytes of space that reads as zeros (I2). With `zeroes` it writes
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

fn segment_name(index: u64) -> String {
    format!("{index:04}")
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
