//! The table of what a reader relies on: for each region of the pool, the position of the newest
//! line that was fenced there.
//!
//! 1. A fence enters the positions of its lines while it holds the lock bit of the ring. So a
//!    reader of what its thread published after the fence finds the position, or a later one.
//! 2. Regions share words of the table. So a reader may wait for more than it has read, never for
//!    less.

use crate::line::LINE_BYTES;
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};

/// The size of a region, in bytes.
const REGION_BYTES: usize = 256;
const REGION_LINES: u64 = (REGION_BYTES / LINE_BYTES) as u64;
/// The number of words: a power of two.
const WORDS: usize = 4096;

thread_local! {
    /// The base of a medium, and the position up to which this thread relies on it.
    static RELIED_ON: Cell<(usize, u64)> = const { Cell::new((0, 0)) };
}

/// The newest position of each word of the table.
#[derive(Debug)]
pub(super) struct Newest {
    words: Box<[AtomicU64; WORDS]>,
}

impl Default for Newest {
    fn default() -> Self {
        let words: Box<[AtomicU64]> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        Self { words: words.try_into().expect("as many words") }
    }
}

impl Newest {
    /// Enters that `line` was fenced, before position `end`. The caller holds the lock bit.
    #[inline(always)]
    pub(super) fn enter(&self, line: u64, end: u64) {
        self.words[(line / REGION_LINES) as usize % WORDS].store(end, Ordering::Relaxed);
    }

    /// Returns the position behind the newest line that was fenced in the `bytes` bytes from `at`
    /// on.
    #[inline(always)]
    pub(super) fn of(&self, at: usize, bytes: usize) -> u64 {
        let last = (at + bytes.max(1) - 1) / REGION_BYTES;
        let mut newest = 0;
        for region in at / REGION_BYTES..=last {
            newest = newest.max(self.words[region % WORDS].load(Ordering::Relaxed));
        }
        newest
    }
}

/// Notes that this thread relies on the lines before `position` of the medium at `base`.
#[cold]
pub(super) fn note(base: usize, position: u64) {
    let (other, former) = RELIED_ON.get();
    RELIED_ON.set((base, if other == base { former.max(position) } else { position }));
}

/// Returns the position up to which this thread relies on the medium at `base`, and forgets it.
#[inline(always)]
pub(super) fn take(base: usize) -> u64 {
    let (noted, position) = RELIED_ON.get();
    if noted != base {
        return 0;
    }
    RELIED_ON.set((0, 0));
    position
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_has_the_position_of_its_newest_line() {
        let newest = Newest::default();
        newest.enter(REGION_LINES, 7);
        newest.enter(REGION_LINES + 1, 9);
        newest.enter(2 * REGION_LINES, 8);
        assert_eq!(newest.of(0, REGION_BYTES), 0);
        assert_eq!(newest.of(0, REGION_BYTES + 1), 9);
        assert_eq!(newest.of(2 * REGION_BYTES, 8), 8);
        assert_eq!(newest.of(REGION_BYTES, 2 * REGION_BYTES), 9);
    }

    #[test]
    fn a_thread_relies_on_the_newest_of_what_it_noted() {
        note(64, 5);
        note(64, 3);
        assert_eq!((take(128), take(64), take(64)), (0, 5, 0));
        note(64, 5);
        note(128, 2);
        assert_eq!((take(64), take(128)), (0, 2));
    }
}
