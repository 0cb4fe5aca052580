//! The lines that a thread has flushed and not yet fenced.

use crate::line::{LINE_BYTES, line_of};
use core::cell::RefCell;

thread_local! {
    /// Ranges of lines: the address of the first, and their number.
    static NOTED: RefCell<Vec<(usize, usize)>> = const { RefCell::new(Vec::new()) };
}

/// Notes the lines that the `bytes` bytes from `address` touch.
#[inline]
pub(super) fn note(address: usize, bytes: usize) {
    if bytes == 0 {
        return;
    }
    let first = line_of(address);
    let count = (line_of(address + bytes - 1) - first) / LINE_BYTES + 1;
    NOTED.with_borrow_mut(|noted| {
        if noted.last() != Some(&(first, count)) {
            noted.push((first, count));
        }
    });
}

/// Calls `copy` with the noted ranges that begin in the `bytes` bytes from `base`, and with the
/// number of their lines, and forgets them. The others belong to other journals.
///
/// A range that an error left unfenced may be of another medium, which was here before and was
/// longer. What does not exist any more is not copied.
#[inline]
pub(super) fn take(base: usize, bytes: usize, copy: impl FnOnce(&[(usize, usize)], u64)) {
    NOTED.with_borrow_mut(|noted| {
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
            let ours: Vec<_> = noted.iter().copied().filter(is_ours).collect();
            copy(&ours, lines);
            noted.retain(|range| !is_ours(range));
        }
    });
}
