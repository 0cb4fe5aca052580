//! The turns of checkpoints: each writes one part of the pool, in the order of pages, and all parts
//! take their turn while the journal fills up once.
//!
//! A replay starts where the checkpoint began of the part that waits longest for its next turn.

use super::point::{Checkpoint, Geometry, Point};
use core::ops::Range;
use std::collections::VecDeque;

/// The number of parts.
pub(super) const PARTS: u64 = 32;
/// The part of the segments that is left for what comes during a checkpoint.
const SPARE: u64 = 16;
/// The smallest number of these segments.
const SPARE_MIN: u64 = 2;

/// Returns the number of bytes of a journal, with a ring of `slots`, from the turn of a part to the
/// next.
pub(super) fn part_bytes(geometry: Geometry, slots: u64) -> u64 {
    let left = geometry.reserve(slots) + (geometry.segments / SPARE).max(SPARE_MIN);
    geometry.segments.saturating_sub(left).max(1) * geometry.segment_bytes / PARTS
}

/// The state of the turns: the parts that checkpoints have written, and the next one.
#[derive(Debug)]
pub(super) struct Sweep {
    /// The parts, by the beginning of their last checkpoint. The first `former` of them are of the
    /// sweep before: this one has not reached their end.
    parts: VecDeque<Part>,
    former: usize,
    next_page: u64,
}

#[derive(Debug)]
struct Part {
    /// The page behind the last one.
    end: u64,
    /// The place from which records may be missing in the pages.
    start: Point,
}

impl Sweep {
    /// Returns a sweep that begins when the pool holds all records before `start`.
    pub(super) fn new(start: Point) -> Self {
        let all = Part { end: u64::MAX, start };
        Self { parts: VecDeque::from([all]), former: 1, next_page: 0 }
    }

    /// Returns the place from which records may be missing in any page.
    pub(super) fn start(&self) -> Point {
        self.parts[0].start
    }

    /// Returns the place at which the last checkpoint began.
    pub(super) fn last_start(&self) -> Point {
        self.parts[self.parts.len() - 1].start
    }

    /// Returns the pages of the next part, if the pages that changed end at `end`. The last part
    /// of a sweep has no end.
    pub(super) fn next_part(&self, end: u64) -> Range<u64> {
        let part_end = self.next_page + end.div_ceil(PARTS).max(1);
        self.next_page..if part_end < end { part_end } else { u64::MAX }
    }

    /// Notes that a checkpoint of the next part, or of all pages, has written them.
    pub(super) fn end_part(&mut self, checkpoint: &Checkpoint) {
        let Range { start: first, end } = checkpoint.pages;
        if first == 0 {
            self.former = self.parts.len();
        }
        self.parts.push_back(Part { end, start: checkpoint.start });
        while self.former > 0 && self.parts[0].end <= end {
            self.parts.pop_front();
            self.former -= 1;
        }
        self.next_page = if end == u64::MAX { 0 } else { end };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_starts_where_the_oldest_part_began() {
        let point = |position| Point { position, ..Point::first(0) };
        let mut sweep = Sweep::new(point(0));
        let mut turn = |position, end| {
            let pages = sweep.next_part(end);
            let checkpoint =
                Checkpoint { start: point(position), next_page: pages.end, pages: pages.clone() };
            sweep.end_part(&checkpoint);
            assert_eq!(sweep.last_start(), point(position));
            (pages, sweep.start().position)
        };
        for part in 0..31 {
            assert_eq!(turn(part + 1, 64), (2 * part..2 * part + 2, 0));
        }
        assert_eq!(turn(32, 64), (62..u64::MAX, 1));
        // The pool has grown: the next part covers two of before, and half of one.
        assert_eq!(turn(33, 160), (0..5, 3));
        assert_eq!(turn(34, 160), (5..10, 6));
        // A checkpoint of all pages.
        sweep.end_part(&Checkpoint { start: point(40), next_page: 0, pages: 0..u64::MAX });
        assert_eq!((sweep.start(), sweep.next_part(64)), (point(40), 0..2));
    }
}
