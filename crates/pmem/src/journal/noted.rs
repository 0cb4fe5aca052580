//! The lines that a thread has flushed and not yet fenced.

use crate::line::{LINE_BYTES, line_of};
use core::cell::RefCell;
use parking_lot::Mutex;

/// Ranges of lines: the address of the first, and their number.
type Ranges = Vec<(usize, usize)>;

thread_local! {
    static NOTED: RefCell<Ranges> = const { RefCell::new(Vec::new()) };
}

/// The ranges of threads that end: `NOTED` may be gone when a destructor of another thread-local
/// writes. They share this list. A fence of one holds it while it copies the lines of all, so each
/// fence returns after the copies of what its thread has noted.
static LATE: Mutex<Ranges> = Mutex::new(Vec::new());

/// Notes the lines that the `bytes` bytes from `address` touch.
#[inline]
pub(super) fn note(address: usize, bytes: usize) {
    if bytes == 0 {
        return;
    }
    let first = line_of(address);
    let range = (first, (line_of(address + bytes - 1) - first) / LINE_BYTES + 1);
    if NOTED.try_with(|noted| add(&mut noted.borrow_mut(), range)).is_err() {
        note_late(range);
    }
}

#[inline(always)]
fn add(noted: &mut Ranges, range: (usize, usize)) {
    if noted.last() != Some(&range) {
        noted.push(range);
    }
}

#[cold]
fn note_late(range: (usize, usize)) {
    add(&mut LATE.lock(), range);
}

/// Calls `copy` with the noted ranges that begin in the `bytes` bytes from `base`, and with the
/// number of their lines, and forgets them. The others belong to other journals.
///
/// A range that an error left unfenced may be of another medium, which was here before and was
/// longer. What does not exist any more is not copied.
#[inline]
pub(super) fn take(base: usize, bytes: usize, copy: impl Fn(&[(usize, usize)], u64)) {
    let taken = NOTED.try_with(|noted| take_from(&mut noted.borrow_mut(), base, bytes, &copy));
    if taken.is_err() {
        take_late(base, bytes, &copy);
    }
}

#[cold]
fn take_late(base: usize, bytes: usize, copy: &impl Fn(&[(usize, usize)], u64)) {
    take_from(&mut LATE.lock(), base, bytes, copy);
}

#[inline(always)]
fn take_from(
    noted: &mut Ranges,
    base: usize,
    bytes: usize,
    copy: &impl Fn(&[(usize, usize)], u64),
) {
    let is_ours = |&(first, _): &(usize, usize)| first.wrapping_sub(base) < bytes;
    let (mut lines, mut all_ours) = (0, true);
    for (first, count) in noted.iter_mut() {
        let at = first.wrapping_sub(base);
        if at < bytes {
            *count = (*count).min((bytes - at) / LINE_BYTES);
            lines += *count as u64;
        } else {
            all_ours = false;
        }
    }
    if all_ours {
        copy(noted, lines);
        noted.clear();
    } else {
        let ours: Ranges = noted.iter().copied().filter(is_ours).collect();
        copy(&ours, lines);
        noted.retain(|range| !is_ours(range));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_fence_takes_each_line_of_each_flush() {
        const LINES: usize = 6;
        // Nothing reads what is there.
        let base = LINE_BYTES << 32;
        let flushes = [(0, 1), (0, 4), (0, 2), (3, 1), (2, 3), (5, 1), (5, 1)];
        for flushes in (1..=flushes.len()).map(|count| &flushes[..count]) {
            for &(first, lines) in flushes {
                note(base + first * LINE_BYTES, lines * LINE_BYTES);
            }
            let taken = RefCell::new((BTreeSet::new(), 0));
            take(base, LINES * LINE_BYTES, |ranges, lines| {
                let (taken, count) = &mut *taken.borrow_mut();
                for &(first, lines) in ranges {
                    taken.extend((0..lines).map(|line| (first - base) / LINE_BYTES + line));
                    *count += lines as u64;
                }
                assert_eq!(*count, lines);
            });
            let flushed = flushes.iter().flat_map(|&(first, lines)| first..first + lines);
            assert_eq!(taken.into_inner().0, flushed.collect(), "{flushes:?}");
        }
    }
}
