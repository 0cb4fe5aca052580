//! The options of a file with a journal.

use super::frame::SECTOR_BYTES;
use super::mark::SEGMENTS_MAX;
use super::point::Geometry;
use crate::medium::memory_bytes;
use crate::numa::Placement;
use std::time::Duration;

/// The moment from which a write to a plain file survives a power cut. From its return on it
/// survives the death of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// A write survives when it returns, and so does what a read has returned.
    Commit,
    /// A write survives soon after: a power cut loses the newest writes, and never one without all
    /// later ones. A thread syncs at this interval, and a write waits if the last sync began more
    /// than four intervals ago. An interval of less than 1 ms counts as 1 ms.
    Interval(Duration),
    /// A write survives only once the file is closed: a power cut may lose any page until then. A
    /// store has no journal. A [`Journaled`](super::Journaled) medium syncs only when it is asked.
    Process,
}

impl Durability {
    /// The default on a plain file: an interval of 100 ms.
    pub const DEFAULT: Self = Self::Interval(Duration::from_millis(100));
}

/// The options with which a file with a journal is opened.
#[derive(Clone, Copy, Debug)]
pub struct JournalOptions {
    /// The moment from which a write survives a power cut. Default: [`Durability::DEFAULT`].
    pub durability: Durability,
    /// The size of the journal, in bytes; 1 MiB at least, 16 GiB at most. A journal that the pool
    /// needs keeps its size. Default: 64 MiB.
    pub journal_bytes: u64,
    /// The largest size of the file while it is open, in bytes, because all of it is in private
    /// memory. Default: 70 % of the memory that the machine has, or that the control group of the
    /// process may use.
    pub memory_bytes: Option<u64>,
    /// The address space to reserve, in bytes: the limit of growth. Default: 256 GiB. A larger file
    /// reserves its own size.
    pub reserve_bytes: u64,
    /// The map from stripes to NUMA nodes. Default: none.
    pub placement: Option<Placement>,
    /// The time for which an open waits until another process has closed the file. Default: none.
    pub wait: Duration,
    /// `true` to accept any file system, and a file that is mounted without its folder. Default:
    /// `false`.
    pub trust_file_system: bool,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self {
            durability: Durability::DEFAULT,
            journal_bytes: 64 << 20,
            memory_bytes: None,
            reserve_bytes: 256 << 30,
            placement: None,
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
/// The number of segments of a larger one, if their size allows. An open store holds them all open:
/// one that could not be opened later would end all writing.
const SEGMENTS: u64 = 64;
/// The largest number of slots of a ring.
const SLOTS_MAX: u64 = 1 << 14;

impl JournalOptions {
    /// Returns the largest size of working memory, in bytes.
    pub(super) fn memory_limit(&self) -> u64 {
        self.memory_bytes.unwrap_or_else(|| memory_bytes() / 10 * 7)
    }

    /// Returns `true` if segments must have zeros from the start: the first write to space that is
    /// only allocated makes a sync take longer, for which a commit waits.
    pub(super) fn zeroes_segments(&self) -> bool {
        self.durability == Durability::Commit
    }

    pub(super) fn geometry(&self) -> Geometry {
        let segment_bytes = (self.journal_bytes / SEGMENTS)
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
