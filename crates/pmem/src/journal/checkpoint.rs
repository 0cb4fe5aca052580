//! Checkpoints: pages of working memory go to the pool file, so that segments come free. One writes
//! a part of the pool, or all of it.
//!
//! ```text
//! begin: drain; from here on records may be missing in the pages
//! step:  clear the marks of some pages, copy them; read the head; sync the segments up to it;
//!        write the pages
//! end:   if a segment comes free: S pages; W mark where the oldest part began; S mark
//! ```
//!
//! A crash before the mark is on the disk replays from the old start over pages that are old, new
//! or torn at a sector: a line is one or the other, and the replay ends no earlier than what a page
//! holds.

use super::disk::{Breach, Disk, Place};
use super::lines::{Journal, Syncer, Writer, copy_of};
use super::mark::{MARK_BYTES, Mark};
use super::pages::PAGE_BYTES;
use super::point::{Checkpoint, Point};
use super::sweep::{PARTS, part_bytes};
use crate::line::LINE_BYTES;
use crate::medium::MediumError;
use core::ops::Range;
use core::sync::atomic::Ordering;

/// The number of lines in a page.
const PAGE_LINES: u64 = PAGE_BYTES / LINE_BYTES as u64;
/// The number of pages that a step copies before it syncs.
pub(super) const STEP_PAGES: u64 = 256;

impl<D: Disk> Journal<D> {
    /// Returns `true` if a checkpoint is under way, or the next part has its turn: as much of the
    /// journal was written since the last turn, or since the oldest, as is between them.
    pub(super) fn wants_checkpoint(&self, syncer: &Syncer) -> bool {
        let Writer { mark: Mark { geometry, .. }, end, .. } = *self.writer.lock();
        let between = part_bytes(geometry, self.ring.slots());
        let sweep = &syncer.sweep;
        syncer.checkpoint.is_some()
            || geometry.distance(sweep.last_start(), end) >= between
            || geometry.distance(sweep.start(), end) >= PARTS * between
    }

    /// Takes a step of the checkpoint, and begins that of the next part if there is none. Returns
    /// `true` if it is done.
    pub(super) fn checkpoint_step(&self, syncer: &mut Syncer) -> Result<bool, MediumError> {
        // The step before may have failed (I8): its pages are marked as copied, and not written.
        self.check()?;
        if syncer.checkpoint.is_none() {
            let pages = syncer.sweep.next_part(self.writer.lock().dirty.end());
            self.begin_checkpoint(syncer, pages)?;
        }
        if self.disk.breaks(Breach::HeadBeforeCopy) {
            self.sync(syncer)?;
        }
        let runs = self.copy_pages(syncer);
        if runs.is_empty() {
            return self.end_checkpoint(syncer).map(|()| true);
        }
        // I5: the head that `sync` reads is one after the copies.
        if !self.disk.breaks(Breach::HeadBeforeCopy) && !self.disk.breaks(Breach::PageBeforeSync) {
            self.sync(syncer)?;
        }
        let mut copies = &syncer.copies[..];
        for run in &runs {
            let (pages, others) = copies.split_at(bytes_of(run));
            self.checked(write_pages(&self.disk, run.start, pages))?;
            copies = others;
        }
        if self.disk.breaks(Breach::ClearAfterWrite) {
            self.sync(syncer)?;
            runs.into_iter().flatten().for_each(|page| self.writer.lock().dirty.clear(page));
        }
        Ok(false)
    }

    fn begin_checkpoint(&self, syncer: &mut Syncer, pages: Range<u64>) -> Result<(), MediumError> {
        let mut writer = self.writer.lock();
        self.drain(&mut writer)?;
        let start = writer.end;
        drop(writer);
        syncer.checkpoint = Some(Checkpoint { start, next_page: pages.start, pages });
        if self.disk.breaks(Breach::MarkFirst) {
            self.write_mark(start, true)?;
        }
        Ok(())
    }

    /// Writes all pages that records have changed before this call, and a mark that needs none of
    /// those records.
    pub(super) fn checkpoint(&self, syncer: &mut Syncer) -> Result<(), MediumError> {
        // The pages of one under way are written; they are synced with those of this one.
        self.begin_checkpoint(syncer, Checkpoint::ALL)?;
        while !self.checkpoint_step(syncer)? {}
        Ok(())
    }

    /// Makes the pool file whole, so that it needs no journal. No thread uses the pool any more.
    ///
    /// ```text
    /// checkpoint; S pages; W mark "whole"; S mark
    /// ```
    pub(super) fn finish(&self) -> Result<(), MediumError> {
        let mut syncer = self.syncer.lock();
        self.sync(&mut syncer)?;
        let end = || self.writer.lock().end;
        if self.disk.breaks(Breach::WholeBeforePages) {
            return self.write_mark(end(), false);
        }
        self.checkpoint(&mut syncer)?;
        self.write_mark(end(), false)?;
        self.end_writing();
        Ok(())
    }

    /// Copies the pages of a step, and returns the runs in which they lie side by side.
    fn copy_pages(&self, syncer: &mut Syncer) -> Vec<Range<u64>> {
        let checkpoint = syncer.checkpoint.as_mut().expect("a checkpoint has begun");
        let (mut runs, mut left) = (Vec::new(), STEP_PAGES);
        let mut writer = self.writer.lock();
        let end = checkpoint.pages.end;
        while let Some(run) = writer.dirty.next_run(checkpoint.next_page..end, left) {
            checkpoint.next_page = run.end;
            left -= run.end - run.start;
            // A record that is drained from here on marks it again.
            if !self.disk.breaks(Breach::ClearAfterWrite) {
                run.clone().for_each(|page| writer.dirty.clear(page));
            }
            runs.push(run);
        }
        drop(writer);
        syncer.copies.clear();
        for run in &runs {
            let lines = self.lines(run.start * PAGE_LINES, bytes_of(run) / LINE_BYTES);
            for word in lines.iter().flat_map(copy_of) {
                syncer.copies.extend_from_slice(&word.to_le_bytes());
            }
        }
        runs
    }

    fn end_checkpoint(&self, syncer: &mut Syncer) -> Result<(), MediumError> {
        let checkpoint = syncer.checkpoint.take().expect("a checkpoint has begun");
        syncer.sweep.end_part(&checkpoint);
        if checkpoint.pages.end == Checkpoint::ALL.end {
            self.work.checkpoints.fetch_add(1, Ordering::Relaxed);
        }
        let is_alone = self.disk.breaks(Breach::PartAlone);
        let start = if is_alone { checkpoint.start } else { syncer.sweep.start() };
        let frees = start.segment > self.writer.lock().mark.start.segment;
        if !frees && checkpoint.pages != Checkpoint::ALL {
            return Ok(());
        }
        if self.disk.breaks(Breach::MarkBeforePages) {
            self.write_mark(start, true)?;
        }
        if self.disk.breaks(Breach::ReuseBeforeMark) {
            let mut writer = self.writer.lock();
            writer.mark.start = start;
            self.grant(&writer);
            return Ok(());
        }
        self.checked(self.disk.sync(Place::Pool))?;
        self.write_mark(start, true)?;
        self.grant(&self.writer.lock());
        Ok(())
    }

    /// Writes the next mark, durable on return. The caller has the lock of the syncer.
    fn write_mark(&self, start: Point, needs: bool) -> Result<(), MediumError> {
        let needed = self.reads.synced.load(Ordering::Acquire).max(start.position);
        let old = self.writer.lock().mark;
        let mark = Mark { sequence: old.sequence + 1, needs, start, needed, ..old };
        self.checked(put_mark(&self.disk, &mark))?;
        self.writer.lock().mark = mark;
        Ok(())
    }
}

/// Returns the size of some pages, in bytes.
fn bytes_of(pages: &Range<u64>) -> usize {
    ((pages.end - pages.start) * PAGE_BYTES) as usize
}

/// Writes `mark` to its sector, durable on return. If that fails for one that says "whole", the
/// sector is as before in the cache of the system. Else the next open would read there what the
/// device may not have, and remove a journal that a power cut makes necessary.
pub(super) fn put_mark<D: Disk>(disk: &D, mark: &Mark) -> std::io::Result<()> {
    let (at, sector) = mark.encode();
    let mut before = vec![0; sector.len()];
    disk.read(Place::Pool, at, &mut before)?;
    let put = disk.write(Place::Pool, at, &sector).and_then(|()| disk.sync(Place::Pool));
    if put.is_err() && !mark.needs {
        let _ = disk.write(Place::Pool, at, &before); // The first error says more.
    }
    put
}

/// Writes the pages from `first` on to the pool file, but for the sectors of the mark.
pub(super) fn write_pages<D: Disk>(disk: &D, first: u64, bytes: &[u8]) -> std::io::Result<()> {
    if first > 0 {
        return disk.write(Place::Pool, first * PAGE_BYTES, bytes);
    }
    disk.write(Place::Pool, 0, &bytes[..MARK_BYTES.start])?;
    disk.write(Place::Pool, MARK_BYTES.end as u64, &bytes[MARK_BYTES.end..])
}
