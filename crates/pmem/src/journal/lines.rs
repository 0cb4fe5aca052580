//! The journal of one pool: fences, drains and syncs.

use super::commits::Commits;
use super::disk::{Breach, Disk, Place};
use super::frame::{self, Expected};
use super::mark::Mark;
use super::noted;
use super::pages::{PAGE_BYTES, Pages};
use super::point::{Checkpoint, Point};
use super::reads::{self, Reads};
use super::ring::Ring;
use super::sweep::Sweep;
use super::work::Work;
use crate::line::{LINE_BYTES, LINE_WORDS};
use crate::medium::{Mapped, Medium, MediumError, words_at};
use crate::word::{PmPtr, PmWord};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;

/// The journal of a pool that is open.
#[derive(Debug)]
pub(super) struct Journal<D> {
    pub(super) disk: D,
    pub(super) memory: Mapped,
    pub(super) ring: Ring,
    /// The lock of syncs and checkpoints, taken before that of the writer. So lines are drained
    /// while the device is at work.
    pub(super) syncer: Mutex<Syncer>,
    pub(super) writer: Mutex<Writer>,
    /// The position up to which the records survive a power cut, and what readers wait for.
    pub(super) reads: Arc<Reads>,
    pub(super) commits: Commits,
    /// `true` if nothing is written any more: a write has failed (I8), or the journal was closed.
    has_ended: AtomicBool,
    /// The head of the ring at which the thread of the journal should drain it.
    drain_at: AtomicU64,
    /// The work that threads have done, in numbers.
    pub(super) work: Work,
}

/// The state of syncs and checkpoints, under their lock.
#[derive(Debug)]
pub(super) struct Syncer {
    pub(super) checkpoint: Option<Checkpoint>,
    pub(super) sweep: Sweep,
    /// The copies of the pages of a step. They stay allocated, so that no step maps their memory.
    pub(super) copies: Vec<u8>,
}

/// The state of drains, under their lock.
#[derive(Debug)]
pub(super) struct Writer {
    /// The mark on the disk. Only a thread with the lock of the syncer changes it.
    pub(super) mark: Mark,
    /// The place behind the last frame.
    pub(super) end: Point,
    /// The files of segments that were written since the last sync.
    pub(super) unsynced: Vec<u64>,
    /// The pages that the records before `end` have changed since their last checkpoint.
    pub(super) dirty: Pages,
    pub(super) buffer: Vec<u8>,
}

impl Writer {
    /// Returns the number of segments that no replay needs.
    fn free_segments(&self) -> u64 {
        self.mark.geometry.segments - (self.end.segment - self.mark.start.segment + 1)
    }

    /// Returns `true` if so few segments are free that no line may enter a ring of `slots` (I7).
    fn is_tight(&self, slots: u64) -> bool {
        self.free_segments() < self.mark.geometry.reserve(slots)
    }
}

impl<D: Disk> Journal<D> {
    /// Returns the journal of an open whose `mark` is on the disk. The ring is stamped.
    pub(super) fn new(disk: D, memory: Mapped, ring: Ring, mark: Mark, reads: Reads) -> Self {
        let sweep = Sweep::new(mark.start);
        let writer = Writer {
            mark,
            end: mark.start,
            unsynced: Vec::new(),
            dirty: Pages::default(),
            buffer: Vec::new(),
        };
        let journal = Self {
            disk,
            memory,
            ring,
            syncer: Mutex::new(Syncer { checkpoint: None, sweep, copies: Vec::new() }),
            writer: Mutex::new(writer),
            commits: Commits::default(),
            reads: Arc::new(reads),
            has_ended: AtomicBool::new(false),
            drain_at: AtomicU64::new(0),
            work: Work::default(),
        };
        journal.grant(&journal.writer.lock());
        journal
    }

    /// Copies the lines that this thread has noted into the ring.
    #[inline]
    pub(super) fn fence(&self) {
        let base = self.memory.base().as_ptr() as usize;
        noted::take(base, self.memory.len() as usize, |ranges, lines| {
            if lines > 0 {
                self.enter(base, ranges, lines);
            }
        });
    }

    /// Returns `true` once when a quarter of the ring is full. After a drain meanwhile it does not:
    /// there may be nothing left that would set the next head.
    #[inline]
    pub(super) fn wants_drain(&self) -> bool {
        let at = self.drain_at.load(Ordering::Relaxed);
        let taken =
            || self.drain_at.compare_exchange(at, u64::MAX, Ordering::Relaxed, Ordering::Relaxed);
        self.ring.head() >= at && taken().is_ok()
    }

    /// Copies the `count` lines of `ranges` into the ring, in runs.
    #[inline]
    fn enter(&self, base: usize, ranges: &[(usize, usize)], count: u64) {
        let mut waiting = count;
        // The place of the next line in the run that holds the lock bit, and the end of the run.
        let (mut position, mut end) = (0, 0);
        for &(first, lines) in ranges {
            let first = ((first - base) / LINE_BYTES) as u64;
            for (line, words) in (first..).zip(self.lines(first, lines)) {
                if position == end {
                    if waiting < count {
                        self.ring.end(position);
                    }
                    let run = waiting.min(self.ring.run_max());
                    let Some(begin) = self.begin(run) else { return };
                    (position, end) = (begin, begin + run);
                    waiting -= run;
                }
                self.ring.put(position, line, &copy_of(words));
                position += 1;
                if !self.disk.breaks(Breach::ReadsUnnoted) {
                    self.reads.enter(line, position);
                }
            }
        }
        self.ring.end(position);
        self.ring.prefetch(position);
    }

    /// Takes the lock bit of the ring when `run` lines may enter, or returns `None` if nothing is
    /// written any more.
    #[inline]
    fn begin(&self, run: u64) -> Option<u64> {
        loop {
            if let Some(position) = self.ring.begin(run) {
                return Some(position);
            }
            if self.make_room().is_err() {
                return None; // I8: the store reports it.
            }
        }
    }

    /// Returns the words of lines of working memory that lie side by side.
    #[inline(always)]
    pub(super) fn lines(&self, first: u64, count: usize) -> &[[PmWord; LINE_WORDS]] {
        let at = PmPtr::new(first * LINE_BYTES as u64);
        let words = words_at(&self.memory, at, count * LINE_WORDS);
        words.expect("a line that was flushed is in working memory").as_chunks().0
    }

    /// Returns an error if writing has ended.
    #[inline]
    pub(super) fn check(&self) -> Result<(), MediumError> {
        if self.has_ended.load(Ordering::Acquire) { Err(MediumError::Poisoned) } else { Ok(()) }
    }

    /// Ends all writing (I8) if `done` is an error.
    pub(super) fn checked<T>(&self, done: io::Result<T>) -> Result<T, MediumError> {
        done.map_err(|error| {
            if !self.disk.breaks(Breach::RetrySync) {
                self.end_writing();
            }
            MediumError::system("write the journal to the device", error)
        })
    }

    /// Lets no line enter the ring and nothing go to the disk any more.
    pub(super) fn end_writing(&self) {
        self.has_ended.store(true, Ordering::Release);
        self.ring.close();
    }

    /// Writes what is in the ring to the segments. If the segments are nearly full, no line may
    /// enter the ring until a checkpoint has freed some.
    pub(super) fn drain(&self, writer: &mut Writer) -> Result<(), MediumError> {
        self.check()?;
        let head = self.ring.head();
        while writer.end.position < head {
            let records = (head - writer.end.position).min(writer.mark.geometry.frame_records());
            let end = writer.end.position + records;
            let Writer { mark, end: at, dirty, buffer, .. } = &mut *writer;
            let lines = (at.position..end).map(|position| {
                let (line, words) = self.ring.get(position);
                dirty.mark(line * LINE_BYTES as u64 / PAGE_BYTES);
                (line, words)
            });
            let (file, next) = self.checked(write_frame(&self.disk, mark, *at, lines, buffer))?;
            debug_assert_eq!(next.position, end, "a frame holds the records that it was given");
            writer.end = next;
            if !writer.unsynced.contains(&file) {
                writer.unsynced.push(file);
            }
            self.grant(writer);
        }
        Ok(())
    }

    /// Grants the ring as much as it may hold: its slots, or nothing if few segments are free (I7).
    pub(super) fn grant(&self, writer: &Writer) {
        let is_tight = writer.is_tight(self.ring.slots());
        let quarter = self.ring.slots() / 4;
        self.drain_at.store(writer.end.position + quarter, Ordering::Relaxed);
        // If a sync fails meanwhile, the ring is closed and stays so (I8).
        self.ring.grant(if is_tight { 0 } else { writer.end.position + self.ring.slots() });
    }

    /// Makes all records of the ring survive a power cut, and wakes the threads that wait for that.
    pub(super) fn sync(&self, syncer: &mut Syncer) -> Result<(), MediumError> {
        let done = self.sync_records(syncer, |_| ());
        self.commits.wake_all();
        done
    }

    /// Makes all records of the ring survive a power cut. Calls `begin` with the position behind
    /// them before the sync. The writer is free while the device is at work.
    fn sync_records(&self, _: &mut Syncer, begin: impl FnOnce(u64)) -> Result<(), MediumError> {
        let mut writer = self.writer.lock();
        self.drain(&mut writer)?;
        let (files, end) = (std::mem::take(&mut writer.unsynced), writer.end.position);
        drop(writer);
        begin(end);
        if self.disk.breaks(Breach::AcknowledgeBeforeSync) {
            self.reads.synced.store(end, Ordering::Release);
        }
        for file in files {
            self.checked(self.disk.sync(Place::Segment(file)))?;
        }
        let is_wrong = self.disk.breaks(Breach::CountLaterDrains);
        let end = if is_wrong { self.writer.lock().end.position } else { end };
        self.reads.synced.store(end, Ordering::Release);
        Ok(())
    }

    /// Waits until the records before `position` survive a power cut.
    #[inline]
    pub(super) fn sync_to(&self, position: u64) -> Result<(), MediumError> {
        if self.reads.synced.load(Ordering::Acquire) >= position {
            return Ok(());
        }
        self.wait_for(position)
    }

    /// Waits as [`sync_to`](Self::sync_to). One of the threads that wait syncs for all of them; if
    /// that fails, each of them tries in its turn, and finds that writing has ended.
    #[inline(never)]
    fn wait_for(&self, position: u64) -> Result<(), MediumError> {
        while self.reads.synced.load(Ordering::Acquire) < position {
            if self.commits.lead() {
                let done = self.sync_as_leader(position);
                let others = self.commits.end_lead(done.is_ok());
                self.work.count_group(others + 1);
                return done;
            }
            self.commits.wait(position, &self.reads.synced);
        }
        Ok(())
    }

    /// Notes that this thread relies on `words`, if no sync has covered them.
    #[inline]
    pub(super) fn note_read(&self, words: &[PmWord]) {
        self.reads.note(self.memory.base(), words);
    }

    /// Waits until what this thread has noted survives a power cut.
    #[inline]
    pub(super) fn settle_noted(&self) {
        let position = reads::take(self.memory.base().as_ptr() as usize);
        if position > 0 {
            // A note that an error left may be of another journal, whose memory was here. Reads go
            // on when writing has ended.
            let _ = self.sync_to(position.min(self.ring.head()));
        }
    }

    fn sync_as_leader(&self, position: u64) -> Result<(), MediumError> {
        let mut syncer = self.syncer.lock();
        if self.reads.synced.load(Ordering::Acquire) >= position {
            return Ok(());
        }
        if self.disk.breaks(Breach::AcknowledgeBeforeSync) {
            return self.drain(&mut self.writer.lock());
        }
        self.sync_records(&mut syncer, |end| self.commits.begin_group(end))
    }

    /// Drains the ring, and takes a step of a checkpoint if the segments are nearly full.
    #[cold]
    fn make_room(&self) -> Result<(), MediumError> {
        self.work.stalls.fetch_add(1, Ordering::Relaxed);
        let drained = || {
            let mut writer = self.writer.lock();
            self.drain(&mut writer).map(|()| !writer.is_tight(self.ring.slots()))
        };
        if drained()? {
            return Ok(());
        }
        let mut syncer = self.syncer.lock();
        // Another thread may have freed segments meanwhile.
        if !drained()? {
            self.checkpoint_step(&mut syncer)?;
        }
        Ok(())
    }
}

/// Returns a state that a line had: two readings that agree (I3).
#[inline]
pub(super) fn copy_of(line: &[PmWord; LINE_WORDS]) -> [u64; LINE_WORDS] {
    let mut copy: [u64; LINE_WORDS] =
        core::array::from_fn(|i| line[i].cell().load(Ordering::Acquire));
    loop {
        // A comparison of the arrays would be a call, for which both lie in memory.
        let mut difference = 0;
        for (word, copy) in line.iter().zip(&mut copy) {
            let again = word.cell().load(Ordering::Acquire);
            difference |= again ^ *copy;
            *copy = again;
        }
        if difference == 0 {
            return copy;
        }
    }
}

/// Writes a frame of `lines` at `at`, or in the next segment if it does not fit. Returns the file
/// and the place behind the frame.
pub(super) fn write_frame<D: Disk>(
    disk: &D,
    mark: &Mark,
    at: Point,
    lines: impl Iterator<Item = (u64, [u64; LINE_WORDS])>,
    buffer: &mut Vec<u8>,
) -> io::Result<(u64, Point)> {
    buffer.clear();
    buffer.resize(frame::HEADER_BYTES, 0);
    let mut records = 0;
    for (line, words) in lines {
        frame::push(buffer, line, words);
        records += 1;
    }
    let expected = expected(disk, mark, at);
    let chain = frame::seal(buffer, expected);
    let mut at = at;
    if at.offset + buffer.len() as u64 > mark.geometry.segment_bytes {
        (at.segment, at.offset) = (at.segment + 1, 0);
    }
    if at.segment - mark.start.segment >= mark.geometry.segments {
        return Err(io::Error::other("the journal has no segment left"));
    }
    let file = mark.geometry.file_of(at.segment);
    disk.write(Place::Segment(file), at.offset, buffer)?;
    let offset = at.offset + buffer.len() as u64;
    Ok((file, Point { offset, position: at.position + records, chain, ..at }))
}

/// Returns what a reader knows of the frame at `at`.
pub(super) fn expected<D: Disk>(disk: &D, mark: &Mark, at: Point) -> Expected {
    if disk.breaks(Breach::Unchained) {
        return Expected { nonce: 0, position: at.position, chain: 0 };
    }
    Expected { nonce: mark.nonce, position: at.position, chain: at.chain }
}
