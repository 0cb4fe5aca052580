//! Pages of the system: sizes, unmapping, and huge pages.
#![expect(unsafe_code, reason = "memory mapping has no safe form")]

use rustix::mm::{Advice, madvise, munmap};

/// The size of a page, in bytes.
pub(super) const PAGE_BYTES: usize = 4096;
/// The size of a huge page, and the alignment of a mapping, so that the system may use such pages.
pub(super) const HUGE_PAGE_BYTES: usize = 2 << 20;

pub(super) fn unmap(start: *mut u8, bytes: usize) {
    if bytes > 0 {
        // SAFETY: the caller owns exactly these pages and hands out no reference that outlives it.
        let done = unsafe { munmap(start.cast(), bytes) };
        debug_assert!(done.is_ok(), "unmapping our own range cannot fail");
    }
}

/// Asks the system for huge pages for the whole pages of a range. Only speed depends on them.
pub(super) fn advise_huge(address: usize, bytes: usize) {
    let start = address.next_multiple_of(PAGE_BYTES);
    let end = (address + bytes) / PAGE_BYTES * PAGE_BYTES;
    if start < end {
        // SAFETY: this advice changes no content, and none at all where nothing is mapped.
        let _ = unsafe {
            madvise(core::ptr::without_provenance_mut(start), end - start, Advice::LinuxHugepage)
        };
    }
}
