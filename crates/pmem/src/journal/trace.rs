//! Recordings of what a journal writes and syncs, and the images that a power cut can leave of it:
//! for tests of whole stores on real files.
//!
//! 1. A sync makes those writes durable that had returned before it began. Whatever was written
//!    later, or at the same time, may be on the device or not.
//! 2. A sector is written whole or not at all, each by itself, and in any order.

use super::frame::SECTOR_BYTES;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;

const SECTOR: usize = SECTOR_BYTES as usize;

/// The contents of a pool file, `None`, and of the segments of its journal, by number.
pub type DiskFiles = BTreeMap<Option<u64>, Vec<u8>>;

/// The writes and syncs of a journal, in their order, as a test sees them. `None` stands for the
/// pool file, a number for a segment.
pub trait DiskTrace: fmt::Debug + Send + Sync {
    /// The trace begins. Everything in the files is on the device.
    fn begin(&self, files: DiskFiles);
    /// These bytes are about to be written. The write fails if this does.
    ///
    /// # Errors
    /// The test lets the device refuse the write; so also for the other methods.
    fn write(&self, file: Option<u64>, at: u64, bytes: &[u8]) -> io::Result<()>;
    /// The last write to the file has returned.
    fn written(&self, file: Option<u64>);
    /// A sync of the file begins. It fails if this does.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn sync(&self, file: Option<u64>) -> io::Result<()>;
    /// The sync of the file has returned.
    fn synced(&self, file: Option<u64>);
    /// The pool file is about to get this length.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn grow(&self, bytes: u64) -> io::Result<()>;
    /// The pool file has this length on the device.
    fn grown(&self, bytes: u64);
}

/// An event. `N` is what the test notes between those of the disk.
#[derive(Debug)]
enum Event<N> {
    Write(Option<u64>, usize, Vec<u8>),
    Written(Option<u64>),
    Sync(Option<u64>),
    Synced(Option<u64>),
    Grow(u64),
    Grown(u64),
    Note(N),
}

/// A trace that keeps everything.
#[derive(Debug)]
pub struct Recording<N> {
    before: Mutex<DiskFiles>,
    events: Mutex<Vec<Event<N>>>,
    calls: AtomicU64,
    /// The number of the write, sync or growth that fails.
    failing: u64,
}

impl<N> Default for Recording<N> {
    fn default() -> Self {
        Self::failing(u64::MAX)
    }
}

impl<N> Recording<N> {
    /// Returns a trace of a device that refuses the write, sync or growth with this number, from 0
    /// on.
    pub fn failing(call: u64) -> Self {
        Self {
            before: Mutex::default(),
            events: Mutex::new(Vec::new()),
            calls: AtomicU64::new(0),
            failing: call,
        }
    }

    /// Returns `true` if the device has refused its call.
    pub fn has_failed(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > self.failing
    }

    fn call(&self) -> io::Result<()> {
        if self.calls.fetch_add(1, Ordering::Relaxed) == self.failing {
            return Err(io::Error::other("the device refuses"));
        }
        Ok(())
    }

    /// Notes something between the events of the disk.
    pub fn note(&self, note: N) {
        self.push(Event::Note(note));
    }

    /// Returns the number of events.
    pub fn len(&self) -> usize {
        self.events.lock().len()
    }

    /// Returns `true` if there is no event.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of marks that were written: two by an open and a close, and one when a
    /// checkpoint lets segments come free.
    pub fn marks(&self) -> usize {
        let is_mark = |event: &&Event<N>| matches!(event, Event::Write(None, 4 | 5, _));
        self.events.lock().iter().filter(is_mark).count()
    }

    fn push(&self, event: Event<N>) {
        self.events.lock().push(event);
    }
}

impl<N: Clone> Recording<N> {
    /// Returns what a power cut after `count` events can leave, and the notes before it. `choose`
    /// draws a number below its argument, for each sector that may have several states: 0 is the
    /// oldest. On a disk that `lies`, a sync does nothing.
    pub fn cut(
        &self,
        count: usize,
        lies: bool,
        mut choose: impl FnMut(usize) -> usize,
    ) -> (DiskFiles, Vec<N>) {
        let events = self.events.lock();
        let mut device = Device { files: self.before.lock().clone(), ..Default::default() };
        let mut notes = Vec::new();
        for event in &events[..count] {
            match event {
                Event::Write(file, first, bytes) => device.write(*file, *first, bytes),
                Event::Written(file) => device.written(*file),
                Event::Sync(file) => device.sync(*file),
                Event::Synced(file) if !lies => device.synced(*file),
                Event::Synced(_) => {}
                Event::Grow(bytes) => device.growing = Some(*bytes),
                Event::Grown(bytes) => device.grown(*bytes),
                Event::Note(note) => notes.push(note.clone()),
            }
        }
        (device.cut(&mut choose), notes)
    }
}

impl<N: fmt::Debug + Send> DiskTrace for Recording<N> {
    fn begin(&self, files: DiskFiles) {
        *self.before.lock() = files;
    }
    fn write(&self, file: Option<u64>, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.push(Event::Write(file, at as usize / SECTOR, bytes.into()));
        self.call()
    }
    fn written(&self, file: Option<u64>) {
        self.push(Event::Written(file));
    }
    fn sync(&self, file: Option<u64>) -> io::Result<()> {
        self.push(Event::Sync(file));
        self.call()
    }
    fn synced(&self, file: Option<u64>) {
        self.push(Event::Synced(file));
    }
    fn grow(&self, bytes: u64) -> io::Result<()> {
        self.push(Event::Grow(bytes));
        self.call()
    }
    fn grown(&self, bytes: u64) {
        self.push(Event::Grown(bytes));
    }
}

/// The states that a sector may have beside the one on the device, the oldest first.
#[derive(Debug, Default)]
struct Versions<'a> {
    bytes: Vec<&'a [u8]>,
    /// The number of those whose write has returned.
    written: usize,
    /// The number of those that the sync under way covers.
    covered: usize,
}

#[derive(Debug, Default)]
struct Device<'a> {
    files: DiskFiles,
    unsynced: BTreeMap<(Option<u64>, usize), Versions<'a>>,
    /// The length that the pool file may have.
    growing: Option<u64>,
}

impl<'a> Device<'a> {
    fn write(&mut self, file: Option<u64>, first: usize, bytes: &'a [u8]) {
        for (sector, bytes) in (first..).zip(bytes.chunks_exact(SECTOR)) {
            self.unsynced.entry((file, sector)).or_default().bytes.push(bytes);
        }
    }

    fn of(&mut self, file: Option<u64>) -> impl Iterator<Item = (usize, &mut Versions<'a>)> {
        let all = (file, 0)..=(file, usize::MAX);
        self.unsynced.range_mut(all).map(|(&(_, sector), versions)| (sector, versions))
    }

    fn written(&mut self, file: Option<u64>) {
        self.of(file).for_each(|(_, versions)| versions.written = versions.bytes.len());
    }

    fn sync(&mut self, file: Option<u64>) {
        self.of(file).for_each(|(_, versions)| versions.covered = versions.written);
    }

    fn synced(&mut self, file: Option<u64>) {
        let mut durable = Vec::new();
        for (sector, versions) in self.of(file) {
            let covered = core::mem::take(&mut versions.covered);
            durable.extend(versions.bytes.drain(..covered).next_back().map(|last| (sector, last)));
            versions.written -= covered;
        }
        for (sector, bytes) in durable {
            self.put(file, sector, bytes);
        }
        self.unsynced.retain(|_, versions| !versions.bytes.is_empty());
    }

    fn grown(&mut self, bytes: u64) {
        self.growing = None;
        let file = self.files.entry(None).or_default();
        file.resize(file.len().max(bytes as usize), 0);
    }

    fn put(&mut self, file: Option<u64>, sector: usize, bytes: &[u8]) {
        let file = self.files.get_mut(&file).expect("a file of the disk");
        file[sector * SECTOR..][..SECTOR].copy_from_slice(bytes);
    }

    fn cut(mut self, choose: &mut impl FnMut(usize) -> usize) -> DiskFiles {
        if let Some(bytes) = self.growing
            && choose(2) == 1
        {
            self.grown(bytes);
        }
        for ((file, sector), versions) in core::mem::take(&mut self.unsynced) {
            let version = choose(versions.bytes.len() + 1);
            if version > 0 {
                self.put(file, sector, versions.bytes[version - 1]);
            }
        }
        self.files
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const SEGMENT: Option<u64> = Some(0);

    /// Returns the states of sector 0 and of the length that a cut now can leave.
    fn states(recording: &Recording<()>) -> BTreeSet<(u8, usize)> {
        let state = |choice: usize| {
            let choose = |below: usize| choice.min(below - 1);
            let (files, _) = recording.cut(recording.len(), false, choose);
            (files[&SEGMENT][0], files[&None].len())
        };
        (0..4).map(state).collect()
    }

    fn recording() -> Recording<()> {
        let recording = Recording::default();
        recording.begin([(SEGMENT, vec![0; SECTOR]), (None, vec![0; SECTOR])].into());
        recording
    }

    #[test]
    fn a_sync_covers_what_had_returned_before_it_began() {
        let recording = recording();
        let write = |value| recording.write(SEGMENT, 0, &[value; SECTOR]).unwrap();
        write(1);
        recording.sync(SEGMENT).unwrap(); // The write has not returned.
        recording.written(SEGMENT);
        recording.synced(SEGMENT);
        let of = |values: &[u8]| values.iter().map(|&value| (value, SECTOR)).collect();
        assert_eq!(states(&recording), of(&[0, 1]));
        recording.sync(SEGMENT).unwrap();
        write(2);
        recording.written(SEGMENT);
        recording.sync(None).unwrap();
        recording.synced(None);
        assert_eq!(states(&recording), of(&[0, 1, 2]));
        recording.synced(SEGMENT);
        assert_eq!(states(&recording), of(&[1, 2]));
        recording.sync(SEGMENT).unwrap();
        recording.synced(SEGMENT);
        assert_eq!(states(&recording), of(&[2]));
        let (files, _) = recording.cut(recording.len(), true, |_| 0);
        assert_eq!(files[&SEGMENT][0], 0, "a disk that lies");
    }

    #[test]
    fn a_file_has_either_length_until_its_growth_is_durable() {
        let recording = recording();
        recording.grow(2 * SECTOR as u64).unwrap();
        assert_eq!(states(&recording), [(0, SECTOR), (0, 2 * SECTOR)].into());
        recording.grown(2 * SECTOR as u64);
        assert_eq!(states(&recording), [(0, 2 * SECTOR)].into());
    }
}
