//! The disk below a journal, as a trait: tests record what is written and cut it off.

use std::io;

/// A file of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Place {
    /// The file of the pool.
    Pool,
    /// The file with this index in the folder of the journal.
    Segment(u64),
}

impl Place {
    /// Returns the index of a segment, or `None` for the pool file.
    pub(super) fn segment(self) -> Option<u64> {
        match self {
            Self::Pool => None,
            Self::Segment(index) => Some(index),
        }
    }
}

/// A rule of the journal that a test breaks, to show that its search finds the loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breach {
    /// The checksum of a frame is seeded with nothing.
    Unchained,
    /// A frame counts if its header does, whatever its checksum.
    TailByLength,
    /// A page is written before the segments are synced past its copy.
    PageBeforeSync,
    /// The head of the ring is read before the page is copied.
    HeadBeforeCopy,
    /// The dirty mark of a page is cleared after the page is written.
    ClearAfterWrite,
    /// The mark is written before the pages of its checkpoint are synced.
    MarkBeforePages,
    /// The mark is written before the pages of its checkpoint are written.
    MarkFirst,
    /// The mark starts where the checkpoint of one part began, and not of the oldest.
    PartAlone,
    /// Segments are used again before the mark is synced.
    ReuseBeforeMark,
    /// A commit returns before the sync.
    AcknowledgeBeforeSync,
    /// A sync counts what was drained while the device was at work.
    CountLaterDrains,
    /// A recovery writes lines of the ring to the pool before the segments have them.
    RingUnsynced,
    /// A ring counts whatever its stamp says.
    StaleRing,
    /// A failed sync is tried again.
    RetrySync,
    /// A recovery reads what the system calls clean, after a failed sync.
    TrustCache,
    /// A fence does not say for readers which lines it has entered.
    ReadsUnnoted,
    /// A close marks the pool as whole before its pages are synced.
    WholeBeforePages,
    /// A recovery does not sync the pages that it writes.
    RecoveryUnsynced,
}

/// The files of a pool and its journal. A sector of 512 B is written whole or not at all, and what
/// was not synced may be lost, each sector by itself.
pub(super) trait Disk: Send + Sync + 'static {
    /// Reads `target.len()` bytes of `place` from `at` on.
    fn read(&self, place: Place, at: u64, target: &mut [u8]) -> io::Result<()>;
    /// Returns the end of the hole that `place` has at `at`, or `at`. Default: `at`.
    fn end_of_hole(&self, _place: Place, at: u64) -> io::Result<u64> {
        Ok(at)
    }
    /// Writes `source` to `place` from `at` on. The file is long enough.
    fn write(&self, place: Place, at: u64, source: &[u8]) -> io::Result<()>;
    /// Makes everything that was written to `place` survive a power cut.
    fn sync(&self, place: Place) -> io::Result<()>;
    /// Syncs `place`, and makes the next read return what the device has.
    fn settle(&self, place: Place) -> io::Result<()> {
        self.sync(place)
    }
    /// Returns `true` if a test breaks this rule. Compiles to nothing elsewhere.
    fn breaks(&self, _rule: Breach) -> bool {
        false
    }
}
