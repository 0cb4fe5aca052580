//! The work of an open on the journal of the open before: it makes the pool file whole up to the
//! journal's end, and begins a journal of its own.
//!
//! ```text
//! S segments; read the frames from the mark's start, and the ring
//! W frames of what only the ring has; S segments       before this, no page holds it
//! W pages that a record changes; S pages               a crash replays the same again
//! W old mark; S mark                                   the device has what the cache has
//! W stamp of the ring; S ring                          still beside the old mark
//! W mark of this open; S mark                          the old journal means nothing from here on
//! ```

use super::checkpoint::{STEP_PAGES, put_mark, write_pages};
use super::disk::{Breach, Disk, Place};
use super::error::JournalError;
use super::frame::{self, SECTOR_BYTES};
use super::lines::{Journal, expected, write_frame};
use super::mark::{MARK_BYTES, Mark};
use super::pages::{PAGE_BYTES, Pages};
use super::point::{Geometry, Point};
use super::reads::Reads;
use super::ring::Ring;
use crate::error::Corrupt;
use crate::line::{LINE_BYTES, LINE_WORDS};
use crate::medium::{Mapped, Medium, words_at};
use crate::word::{PmPtr, PmWord};
use std::collections::BTreeSet;

/// The size of a read of the pool file, in bytes.
const READ_BYTES: u64 = 1 << 20;

/// The identity of an open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    /// The random number of this open.
    pub(super) nonce: u64,
    /// The id of this boot, if the system tells it.
    pub(super) boot: Option<[u64; 2]>,
    /// The sizes of the journal, if the pool file is whole. Else those of its mark stay.
    pub(super) geometry: Geometry,
    /// `true` if readers wait for what they rely on.
    pub(super) readers_wait: bool,
}

impl<D: Disk> Journal<D> {
    /// Opens the pool on `disk` into `memory`, which is as long as its file and zeroed. `ring` is
    /// stamped as that of this open; of what it holds, nothing is lost that a kill leaves.
    pub(super) fn open(
        disk: D,
        memory: Mapped,
        ring: Ring,
        opening: Opening,
    ) -> Result<Self, JournalError> {
        let mark = make_whole(&disk, &memory, Some(&ring), opening.boot)?;
        let geometry = match &mark {
            Some(mark) if mark.needs => mark.geometry,
            _ => opening.geometry,
        };
        let segments_min = geometry.reserve(ring.slots()) + 2;
        if geometry.segments < segments_min {
            let what = "segments of the journal, which its ring needs";
            let (at, found) = (Mark::SECTORS[0], geometry.segments);
            return Err(Corrupt { at, what, expected: segments_min, found }.into());
        }
        let failed = |e| JournalError::system("write the journal's mark", e);
        if let Some(mark) = mark.filter(Mark::needs_journal) {
            // The cache may have a mark whose sync failed. The stamp names that open, and not the
            // one that the device has.
            put_mark(&disk, &mark).map_err(failed)?;
        }
        let former = mark.map_or(0, |mark| mark.nonce);
        ring.stamp(opening.nonce, opening.boot, former)?;
        let mark = Mark {
            sequence: mark.map_or(0, |mark| mark.sequence + 1),
            nonce: opening.nonce,
            needs: true,
            geometry,
            start: Point::first(opening.nonce),
            needed: 0,
        };
        put_mark(&disk, &mark).map_err(failed)?;
        Ok(Self::new(disk, memory, ring, mark, Reads::new(opening.readers_wait)))
    }
}

/// Reads the pool into `memory`. If it needs its journal, brings memory and the pool file up to the
/// journal's end, durable on return. Returns the mark, which still says what it said.
pub(super) fn make_whole<D: Disk>(
    disk: &D,
    memory: &Mapped,
    ring: Option<&Ring>,
    boot: Option<[u64; 2]>,
) -> Result<Option<Mark>, JournalError> {
    let failed = |e| JournalError::system("read the pool", e);
    let mut page = vec![0; PAGE_BYTES as usize];
    disk.read(Place::Pool, 0, &mut page).map_err(failed)?;
    let mark = Mark::read(&page)?;
    let recovery = Recovery { disk, memory, touched: Pages::default() };
    recovery.load()?;
    if let Some(mark) = &mark
        && mark.needs
    {
        recovery.replay(mark, ring, boot)?;
    }
    Ok(mark)
}

struct Recovery<'a, D> {
    disk: &'a D,
    memory: &'a Mapped,
    /// The pages that records have changed.
    touched: Pages,
}

impl<D: Disk> Recovery<'_, D> {
    fn words(&self, at: u64, count: usize) -> Result<&[PmWord], Corrupt> {
        words_at(self.memory, PmPtr::new(at), count)
    }

    /// Reads the pool file into memory, but for the mark. Memory is zeroed, so only words that are
    /// not zero take some, and long holes are passed over.
    fn load(&self) -> Result<(), JournalError> {
        let failed = |e| JournalError::system("read the pool", e);
        let mut buffer = vec![0; READ_BYTES as usize];
        let mut next = 0;
        while next < self.memory.len() {
            let data = self.disk.end_of_hole(Place::Pool, next).map_err(failed)?;
            let at = data / PAGE_BYTES * PAGE_BYTES;
            if at >= self.memory.len() {
                break;
            }
            let bytes = (self.memory.len() - at).min(READ_BYTES) as usize;
            let buffer = &mut buffer[..bytes];
            self.disk.read(Place::Pool, at, buffer).map_err(failed)?;
            if at == 0 {
                buffer[MARK_BYTES].fill(0);
            }
            let words = self.words(at, bytes / 8)?;
            for (word, bytes) in words.iter().zip(buffer.as_chunks().0) {
                if *bytes != [0; 8] {
                    self.memory.store(word, u64::from_le_bytes(*bytes));
                }
            }
            next = at + buffer.len() as u64;
        }
        Ok(())
    }

    fn apply(&mut self, line: u64, image: &[u64; LINE_WORDS]) -> Result<(), Corrupt> {
        let at = line.saturating_mul(LINE_BYTES as u64);
        for (word, &value) in self.words(at, LINE_WORDS)?.iter().zip(image) {
            self.memory.store(word, value);
        }
        self.touched.mark(at / PAGE_BYTES);
        Ok(())
    }

    fn replay(
        mut self,
        mark: &Mark,
        ring: Option<&Ring>,
        boot: Option<[u64; 2]>,
    ) -> Result<(), JournalError> {
        let failed = |e| JournalError::system("read the journal", e);
        for file in 0..mark.geometry.segments {
            let settled = if self.disk.breaks(Breach::TrustCache) {
                self.disk.sync(Place::Segment(file))
            } else {
                self.disk.settle(Place::Segment(file))
            };
            settled.map_err(failed)?;
        }
        let mut end = mark.start;
        while let Some((count, next, frame)) = self.next_frame(mark, end).map_err(failed)? {
            for (line, image) in frame::records(&frame, count) {
                self.apply(line, &image)?;
            }
            end = next;
        }
        if end.position < mark.needed {
            return Err(JournalError::CutShort { needed: mark.needed, found: end.position });
        }
        if let Some(ring) = ring
            && (ring.is_of(mark.nonce) || self.disk.breaks(Breach::StaleRing))
        {
            self.replay_ring(mark, ring, boot, end)?;
        }
        self.write_pages()
    }

    /// Returns the frame at `at`, or at the beginning of the next segment: the number of its
    /// records, the place behind it, and its bytes.
    fn next_frame(&self, mark: &Mark, at: Point) -> std::io::Result<Option<(u64, Point, Vec<u8>)>> {
        let next = Point { segment: at.segment + 1, offset: 0, ..at };
        for at in [at, next] {
            if let Some(found) = self.frame_at(mark, at)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn frame_at(&self, mark: &Mark, at: Point) -> std::io::Result<Option<(u64, Point, Vec<u8>)>> {
        let Geometry { segment_bytes, segments } = mark.geometry;
        if at.segment - mark.start.segment >= segments || at.offset + SECTOR_BYTES > segment_bytes {
            return Ok(None);
        }
        let place = Place::Segment(mark.geometry.file_of(at.segment));
        let mut frame = vec![0; SECTOR_BYTES as usize];
        self.disk.read(place, at.offset, &mut frame)?;
        let expected = expected(self.disk, mark, at);
        let Some(count) = frame::announced(&frame, expected) else { return Ok(None) };
        let bytes = frame::bytes(count);
        if at.offset + bytes > segment_bytes {
            return Ok(None);
        }
        frame.resize(bytes as usize, 0);
        let rest = &mut frame[SECTOR_BYTES as usize..];
        self.disk.read(place, at.offset + SECTOR_BYTES, rest)?;
        let sum = frame::checked(&frame, count, expected.chain);
        let chain = if self.disk.breaks(Breach::TailByLength) { sum.or(Some(0)) } else { sum };
        Ok(chain.map(|chain| {
            let (offset, position) = (at.offset + bytes, at.position + count);
            (count, Point { offset, position, chain, ..at }, frame)
        }))
    }

    /// Applies what the ring has behind `end`, and appends it to the segments first.
    fn replay_ring(
        &mut self,
        mark: &Mark,
        ring: &Ring,
        boot: Option<[u64; 2]>,
        end: Point,
    ) -> Result<(), JournalError> {
        let head = ring.head();
        if head <= end.position || head - end.position > ring.slots() {
            return Ok(());
        }
        // A slot that its disk has lost ends what counts.
        let lines: Vec<_> = (end.position..head).map_while(|at| ring.checked(at)).collect();
        if !ring.is_of_boot(boot) && end.position + (lines.len() as u64) < head {
            return Ok(()); // The power was cut. An orderly restart loses no slot.
        }
        let (mut at, mut files, mut buffer) = (end, BTreeSet::new(), Vec::new());
        let failed = |e| JournalError::system("write the journal to the device", e);
        for run in lines.chunks(mark.geometry.frame_records() as usize) {
            let run = run.iter().copied();
            let written = write_frame(self.disk, mark, at, run, &mut buffer);
            let (file, next) = written.map_err(failed)?;
            files.insert(file);
            at = next;
        }
        if !self.disk.breaks(Breach::RingUnsynced) {
            for file in files {
                self.disk.sync(Place::Segment(file)).map_err(failed)?;
            }
        }
        for (line, image) in &lines {
            self.apply(*line, image)?;
        }
        Ok(())
    }

    /// Writes the pages that records have changed, durable on return.
    fn write_pages(&self) -> Result<(), JournalError> {
        let failed = |e| JournalError::system("write the pool to the device", e);
        let (mut bytes, mut next) = (Vec::new(), 0);
        while let Some(run) = self.touched.next_run(next..u64::MAX, STEP_PAGES) {
            bytes.resize(((run.end - run.start) * PAGE_BYTES) as usize, 0);
            let words = self.words(run.start * PAGE_BYTES, bytes.len() / 8)?;
            self.memory.copy_out(words, &mut bytes);
            write_pages(self.disk, run.start, &bytes).map_err(failed)?;
            next = run.end;
        }
        if self.disk.breaks(Breach::RecoveryUnsynced) {
            return Ok(());
        }
        self.disk.sync(Place::Pool).map_err(failed)
    }
}

/// Makes the pool on `disk` whole and marks it so: it needs no journal any more. The mark gets a
/// nonce of its own: the pool may be a copy, and its original may need the journal of the old one.
pub(super) fn end_journal<D: Disk>(
    disk: &D,
    memory: &Mapped,
    ring: Option<&Ring>,
    boot: Option<[u64; 2]>,
) -> Result<(), JournalError> {
    let Some(mark) = make_whole(disk, memory, ring, boot)? else { return Ok(()) };
    let mark = Mark { sequence: mark.sequence + 1, nonce: memory.draw(), needs: false, ..mark };
    put_mark(disk, &mark).map_err(|e| JournalError::system("write the journal's mark", e))
}
