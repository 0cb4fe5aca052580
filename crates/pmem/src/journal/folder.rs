//! The files of a journal: a folder beside the pool file, with the ring and the segments.
//!
//! 1. The folder is made, filled and synced, its parent too, before a mark says that the pool needs
//!    it. Nothing is renamed.
//! 2. A segment is filled with zeros, so that no later write changes the metadata of its file, and
//!    none of them finds the device full.

use super::disk::{Disk, Place};
use super::error::JournalError;
use super::point::Geometry;
use super::ring::Ring;
use super::trace::{DiskFiles, DiskTrace};
use super::work::DiskWork;
use crate::medium::{MediumError, check_length, end_of_hole};
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate, fstatfs};
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
/// File systems that keep nothing over a power cut, or do not say whether they do, by type.
const REFUSED: [(i64, &str); 5] = [
    (0x0102_1994, "tmpfs"),
    (0x6969, "NFS"),
    (0x6573_5546, "FUSE"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB"),
];

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
        let system = fstatfs(pool)
            .map_err(|e| MediumError::system("read the type of the file system", e))?;
        match REFUSED.iter().find(|&&(kind, _)| kind == system.f_type) {
            Some(&(_, kind)) => Err(JournalError::NotOnDisk { kind }),
            None => Ok(()),
        }
    }

    /// Makes the folder beside the pool at `path`, which needs none: a ring of `slots` and as many
    /// segments as `geometry` says. What an interrupted close or creation left is removed.
    pub(super) fn create(
        path: &Path,
        pool: File,
        geometry: Geometry,
        slots: u64,
    ) -> Result<(Self, Ring), JournalError> {
        let folder = Self::path_of(path);
        let failed = |e| JournalError::system("make the folder of the journal", e);
        remove(&folder).map_err(failed)?;
        fs::create_dir(&folder).map_err(failed)?;
        let made = Self::fill(&folder, pool, geometry, slots);
        if made.is_err() {
            let _ = remove(&folder); // The error that is returned says more.
        }
        made
    }

    fn fill(
        folder: &Path,
        pool: File,
        geometry: Geometry,
        slots: u64,
    ) -> Result<(Self, Ring), JournalError> {
        let failed = |e| JournalError::system("make the folder of the journal", e);
        check_length(geometry.segment_bytes).map_err(|e| failed(e.into()))?;
        let zeros = vec![0; ZEROS_BYTES.min(geometry.segment_bytes) as usize];
        let mut segments = Vec::new();
        for index in 0..geometry.segments {
            let path = folder.join(segment_name(index));
            let mut options = OpenOptions::new();
            let file = options.read(true).write(true).create_new(true).open(path);
            let file = file.map_err(failed)?;
            for at in (0..geometry.segment_bytes).step_by(zeros.len()) {
                let bytes = (geometry.segment_bytes - at).min(zeros.len() as u64) as usize;
                file.write_all_at(&zeros[..bytes], at).map_err(failed)?;
            }
            file.sync_all().map_err(failed)?;
            segments.push(file);
        }
        let ring = Ring::create(&folder.join(RING), slots)?;
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

fn segment_name(index: u64) -> String {
    format!("{index:04}")
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
