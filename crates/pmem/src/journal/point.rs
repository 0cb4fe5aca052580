//! Places in a journal, and the sizes of its segments.

use super::frame;
use core::ops::Range;

/// The place of a frame in the journal: what a reader needs to read on from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point {
    /// The number of the segment. Segment `n` is in file `n % segments`.
    pub(super) segment: u64,
    /// The offset in the segment, in bytes.
    pub(super) offset: u64,
    /// The position of the first record: the number of records before it in this open.
    pub(super) position: u64,
    /// The checksum of the frame before, or the seed of the open.
    pub(super) chain: u32,
}

impl Point {
    /// Returns the beginning of the journal of an open with this `nonce`.
    pub(super) fn first(nonce: u64) -> Self {
        Self { segment: 0, offset: 0, position: 0, chain: (nonce >> 32) as u32 ^ nonce as u32 }
    }
}

/// A checkpoint that has begun.
#[derive(Debug)]
pub(super) struct Checkpoint {
    /// The place from which records may be missing in its pages once it is done.
    pub(super) start: Point,
    /// The pages that it writes, if records have changed them.
    pub(super) pages: Range<u64>,
    /// The first page that the checkpoint has not reached.
    pub(super) next_page: u64,
}

impl Checkpoint {
    /// The pages of a checkpoint of the whole pool.
    pub(super) const ALL: Range<u64> = 0..u64::MAX;
}

/// The sizes of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    /// The size of a segment, in bytes: a multiple of a sector.
    pub(super) segment_bytes: u64,
    /// The number of files.
    pub(super) segments: u64,
}

impl Geometry {
    /// Returns the file of a segment.
    pub(super) fn file_of(self, segment: u64) -> u64 {
        segment % self.segments
    }

    /// Returns the number of bytes of the journal from `start` to `end`.
    pub(super) fn distance(self, start: Point, end: Point) -> u64 {
        (end.segment - start.segment) * self.segment_bytes + end.offset - start.offset
    }

    /// Returns the largest number of records in a frame: four frames fit in a segment.
    pub(super) fn frame_records(self) -> u64 {
        let bytes = self.segment_bytes / 4 - frame::HEADER_BYTES as u64;
        let fit = bytes / frame::RECORD_BYTES as u64;
        fit.min(frame::RECORDS_MAX)
    }

    /// Returns the number of segments that must be free for a ring of `slots`, so that a checkpoint
    /// can drain it (I7 of the module): twice the ring, because a fence may be entering lines while
    /// the last segment is filled, and in each segment a frame that did not fit.
    pub(super) fn reserve(self, slots: u64) -> u64 {
        let frame = frame::bytes(self.frame_records());
        let frames = (2 * slots).div_ceil(self.frame_records()) + 4;
        let a_segment = (self.segment_bytes / frame).max(1);
        frames.div_ceil(a_segment) + 1
    }
}
