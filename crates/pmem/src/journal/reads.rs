//! A table for readers that wait: the position of the newest line that was fenced in each
//! region of the pool, and the position up to which lines are synced.
//!
//! 1. A fence enters the positions of its lines while it holds the lock bit of the ring. So a
//!    reader of what its thread published after the fence finds the position, or a later one.
//! 2. Regions share words of the table. So a reader may wait for more than it has read, never for
//!    less.
//! 3. While all lines are synced, a reader looks no further: two loads of one line.

use crate::line::LINE_BYTES;
use crate::word::PmWord;
use core::cell::Cell;
use core::ptr::NonNull;
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

/// The positions that readers of a pool wait for.
#[derive(Debug)]
pub(crate) struct Reads {
    /// The position up to which lines survive a power cut.
    pub(super) synced: AtomicU64,
    /// The position behind the newest line of all, if readers wait.
    entered: AtomicU64,
    /// The newest position of each word of the table, if readers wait.
    newest: Option<Box<[AtomicU64; WORDS]>>,
}

impl Reads {
    /// Returns those of a new journal. Without readers that wait there is no table.
    pub(super) fn new(readers_wait: bool) -> Self {
        let words = || (0..WORDS).map(|_| AtomicU64::new(0)).collect::<Box<[_]>>();
        let newest = readers_wait.then(|| words().try_into().expect("as many words"));
        Self { synced: AtomicU64::new(0), entered: AtomicU64::new(0), newest }
    }

    /// Enters that `line` was fenced, before position `end`. The caller holds the lock bit.
    #[inline(always)]
    pub(super) fn enter(&self, line: u64, end: u64) {
        if let Some(newest) = &self.newest {
            newest[(line / REGION_LINES) as usize % WORDS].store(end, Ordering::Relaxed);
            self.entered.store(end, Ordering::Relaxed);
        }
    }

    /// Returns the position behind the newest line that was fenced in the `bytes` bytes from `at`
    /// on.
    fn newest_of(&self, at: usize, bytes: usize) -> u64 {
        let Some(newest) = &self.newest else { return 0 };
        let regions = at / REGION_BYTES..(at + bytes).div_ceil(REGION_BYTES);
        let positions = regions.map(|region| newest[region % WORDS].load(Ordering::Relaxed));
        positions.fold(0, u64::max)
    }

    /// Returns `true` if no sync has covered some line, of whatever region.
    #[inline(always)]
    fn has_unsynced(&self) -> bool {
        self.entered.load(Ordering::Relaxed) > self.synced.load(Ordering::Acquire)
    }

    /// Notes that this thread relies on `words` of the medium at `base`, if no sync has covered
    /// them.
    #[inline(always)]
    pub(crate) fn note(&self, base: NonNull<u8>, words: &[PmWord]) {
        if self.has_unsynced() {
            self.note_newest(base.as_ptr() as usize, words);
        }
    }

    #[inline(never)]
    fn note_newest(&self, base: usize, words: &[PmWord]) {
        let at = (words.as_ptr() as usize).wrapping_sub(base);
        let newest = self.newest_of(at, core::mem::size_of_val(words));
        if newest > self.synced.load(Ordering::Acquire) {
            note(base, newest);
        }
    }
}

/// Returns `true` if this thread has noted something and has not waited for it.
#[inline(always)]
pub(crate) fn has_note() -> bool {
    RELIED_ON.get().1 > 0
}

/// Notes that this thread relies on the lines before `position` of the medium at `base`.
#[cold]
fn note(base: usize, position: u64) {
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
        for readers_wait in [true, false] {
            let reads = Reads::new(readers_wait);
            reads.enter(REGION_LINES, 7);
            reads.enter(REGION_LINES + 1, 9);
            reads.enter(2 * REGION_LINES, 8);
            let of = |at, bytes| reads.newest_of(at, bytes);
            let found = [of(0, REGION_BYTES), of(0, REGION_BYTES + 1), of(2 * REGION_BYTES, 8)];
            assert_eq!(found, if readers_wait { [0, 9, 8] } else { [0; 3] });
            assert_eq!(of(REGION_BYTES, 2 * REGION_BYTES), if readers_wait { 9 } else { 0 });
        }
    }

    #[test]
    fn a_thread_relies_on_the_newest_of_what_it_noted() {
        note(64, 5);
        note(64, 3);
        assert!(has_note());
        assert_eq!((take(128), take(64), take(64)), (0, 5, 0));
        assert!(!has_note());
        note(64, 5);
        note(128, 2);
        assert_eq!((take(64), take(128)), (0, 2));
    }
}
