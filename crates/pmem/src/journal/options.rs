//! The options of a file with a journal.

use super::frame::SECTOR_BYTES;
use super::mark::SEGMENTS_MAX;
use super::point::Geometry;
use std::time::Duration;

/// When a write to a file with a journal survives a power cut. It survives the death of the process
/// when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When it returns. What a read has returned survives too.
    Commit,
    /// Soon after: a power cut loses the newest writes, and of any two writes the later alone. A
    /// thread syncs at this interval, and a write waits if the last sync began more than four
    /// intervals ago.
    Interval(Duration),
}

/// The options with which a file with a journal is opened.
#[derive(Clone, Copy, Debug)]
pub struct JournalOptions {
    /// When a write survives a power cut. Default: when it returns.
    pub durability: Durability,
    /// The size of the journal, in bytes. A journal that the pool needs keeps its size. Default: 64
    /// MiB.
    pub journal_bytes: u64,
    /// The address space to reserve, in bytes: the limit of growth. Default: 256 GiB.
    pub reserve_bytes: u64,
    /// The time for which an open waits until another process has closed the file. Default: none.
    pub wait: Duration,
    /// `true` to accept any file system. Default: `false`.
    pub trust_file_system: bool,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Commit,
            journal_bytes: 64 << 20,
            reserve_bytes: 256 << 30,
            wait: Duration::ZERO,
            trust_file_system: false,
        }
    }
}

/// The largest segment, in bytes.
const SEGMENT_BYTES_MAX: u64 = 4 << 20;
/// The smallest segment, in bytes.
const SEGMENT_BYTES_MIN: u64 = 64 << 10;
/// The number of segments of the smallest journal.
const SEGMENTS_MIN: u64 = 16;
/// The largest number of slots of a ring.
const SLOTS_MAX: u64 = 1 << 14;
impl JournalOptions {
    pub(super) fn geometry(&self) -> Geometry {
        let segment_bytes = (self.journal_bytes / SEGMENTS_MIN)
            .clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX)
            .next_multiple_of(SECTOR_BYTES);
        let segments = self.journal_bytes.div_ceil(segment_bytes);
        Geometry { segment_bytes, segments: segments.clamp(SEGMENTS_MIN, SEGMENTS_MAX) }
    }

    /// Returns the number of slots of a ring that a quarter of the journal can take.
    pub(super) fn slots(&self) -> u64 {
        let geometry = self.geometry();
        let fits = |slots: &u64| geometry.reserve(*slots) <= geometry.segments / 4;
        (0..=SLOTS_MAX.ilog2()).map(|bits| 1 << bits).rev().find(fits).unwrap_or(1)
    }
}
