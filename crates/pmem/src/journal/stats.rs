//! The state of a journal, in numbers.

use super::folder::Folder;
use super::lines::Journal;
use super::options::Durability;
use crate::line::LINE_BYTES;
use crate::medium::Medium;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

/// The state of a journal. Positions count the lines that were fenced since the open.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalStats {
    /// The moment from which a write survives a power cut.
    pub durability: Durability,
    /// The number of lines that were fenced since the open.
    pub position: u64,
    /// The position up to which lines survive a power cut.
    pub synced: u64,
    /// The position up to which lines are in the pool file: a replay begins there.
    pub checkpoint: u64,
    /// The number of times since the open that checkpoints have written all that had changed.
    pub checkpoints: u64,
    /// The number of lines that the ring can hold.
    pub ring_lines: u64,
    /// The number of lines that only the ring has.
    pub ring_lines_used: u64,
    /// The number of segments.
    pub segments: u64,
    /// The number of segments that a replay needs.
    pub segments_used: u64,
    /// The size of a segment, in bytes.
    pub segment_bytes: u64,
    /// The bytes that were written to segments since the open.
    pub journal_bytes_written: u64,
    /// The bytes that were written to the pool file since the open: pages, and marks.
    pub pool_bytes_written: u64,
    /// The number of syncs of segments, which writes wait for.
    pub journal_syncs: u64,
    /// The number of syncs of the pool file.
    pub pool_syncs: u64,
    /// The mean time of a sync of a segment.
    pub sync_mean: Duration,
    /// The number of operations that waited for a sync of a segment.
    pub waits: u64,
    /// The number of groups in which they waited: of each, one thread has synced for all.
    pub groups: u64,
    /// The number of operations of the largest group.
    pub largest_group: u64,
    /// The number of times that a fence waited for space in the ring or in the segments.
    pub stalls: u64,
    /// The size of the private memory that holds the pool, in bytes.
    pub memory_bytes: u64,
}

impl JournalStats {
    /// Returns the number of bytes that a power cut could lose now, in whole lines.
    pub fn unsynced_bytes(&self) -> u64 {
        (self.position - self.synced) * LINE_BYTES as u64
    }
}

impl Journal<Folder> {
    /// Returns the state of the journal of a store with this durability.
    pub(super) fn stats(&self, durability: Durability) -> JournalStats {
        let writer = self.writer.lock();
        let (mark, end) = (writer.mark, writer.end);
        drop(writer);
        // The position last: it is the greatest.
        let synced = self.reads.synced.load(Ordering::Acquire);
        let position = self.ring.head();
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let work = &self.disk.work;
        let journal_syncs = load(&work.syncs[0]);
        JournalStats {
            durability,
            position,
            synced,
            checkpoint: mark.start.position,
            checkpoints: load(&self.work.checkpoints),
            ring_lines: self.ring.slots(),
            ring_lines_used: position - end.position,
            segments: mark.geometry.segments,
            segments_used: end.segment - mark.start.segment + 1,
            segment_bytes: mark.geometry.segment_bytes,
            journal_bytes_written: load(&work.bytes[0]),
            pool_bytes_written: load(&work.bytes[1]),
            journal_syncs,
            pool_syncs: load(&work.syncs[1]),
            sync_mean: Duration::from_nanos(load(&work.sync_nanos) / journal_syncs.max(1)),
            waits: load(&self.work.waits),
            groups: load(&self.work.groups),
            largest_group: load(&self.work.largest_group),
            stalls: load(&self.work.stalls),
            memory_bytes: self.memory.len(),
        }
    }
}
