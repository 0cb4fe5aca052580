//! Pages of the system: sizes, unmapping, and huge pages.
#![expect(unsafe_code, reason = "memory mapping has no safe form")]

use core::ops::Range;
use rustix::mm::{Advice, madvise, munmap};

/// The size of a huge page, and the alignment of a mapping, so that the system may use such pages.
pub(super) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Returns the size of a page of this system, in bytes: 4 KiB, on some systems 16 or 64 KiB.
pub(super) fn page_bytes() -> usize {
    rustix::param::page_size()
}

/// Returns the range of whole pages around `range`, for pages of `page` bytes.
pub(super) const fn pages_around(range: &Range<u64>, page: usize) -> Range<u64> {
    let page = page as u64;
    range.start / page * page..range.end.next_multiple_of(page)
}

pub(super) fn unmap(start: *mut u8, bytes: usize) {
    if bytes > 0 {
        // SAFETY: the caller owns exactly these pages and hands out no reference that outlives it.
        let done = unsafe { munmap(start.cast(), bytes) };
        debug_assert!(done.is_ok(), "unmapping our own range cannot fail");
    }
}

/// The size of the part that one call makes present, in bytes: it takes some 100 us. A thread that
/// maps memory waits for one call at most.
const POPULATED_BYTES: usize = 256 << 10;

/// Makes the pages of `range` of the mapping at `start` present and writable now. Only speed
/// depends on it.
pub(super) fn populate(start: usize, range: &Range<u64>) {
    let pages = pages_around(range, page_bytes());
    for at in (pages.start..pages.end).step_by(POPULATED_BYTES) {
        let bytes = (pages.end - at).min(POPULATED_BYTES as u64) as usize;
        let at = core::ptr::without_provenance_mut(start + at as usize);
        // SAFETY: the caller owns the pages; populating them changes no contents.
        if unsafe { madvise(at, bytes, Advice::LinuxPopulateWrite) }.is_err() {
            return;
        }
    }
}

/// Asks the system for huge pages for the whole pages of a range. Only speed depends on them.
pub(super) fn advise_huge(address: usize, bytes: usize) {
    let page = page_bytes();
    let start = address.next_multiple_of(page);
    let end = (address + bytes) / page * page;
    if start < end {
        // SAFETY: this advice changes no content, and none at all where nothing is mapped.
        let _ = unsafe {
            madvise(core::ptr::without_provenance_mut(start), end - start, Advice::LinuxHugepage)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pool is a multiple of 32 KiB long, so it may end within a page.
    #[test]
    fn a_mapping_takes_whole_pages_of_any_size() {
        let range = (160 << 10)..(4 << 20) + (32 << 10);
        assert_eq!(pages_around(&range, 4 << 10), range);
        let end = (4 << 20) + (64 << 10);
        assert_eq!(pages_around(&range, 64 << 10), (128 << 10)..end);
        assert_eq!(pages_around(&(13..14), 4 << 10), 0..4 << 10);
        assert_eq!(pages_around(&(0..0), 64 << 10), 0..0);
        assert!(page_bytes().is_power_of_two() && page_bytes() >= 4 << 10);
    }
}
