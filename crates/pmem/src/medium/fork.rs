//! The mark of the process that opened a file.
//!
//! 1. The mark is a word on a page that the system clears in a child of `fork`. So one load tells
//!    a child from its parent, without a call of the system.
//! 2. Linux before 4.14 does not clear the page. There only the process id tells a child, and only
//!    the end of the mapping asks for it.
#![expect(unsafe_code, reason = "memory mapping has no safe form")]

use super::MediumError;
use super::page::{page_bytes, unmap};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

/// The value of the mark in the process that made it.
const OWN: u32 = 1;

/// The process that opened a file.
#[derive(Debug)]
pub(crate) struct Opener {
    mark: NonNull<AtomicU32>,
    process: u32,
}

impl Opener {
    /// Returns the mark of this process.
    pub(crate) fn this() -> Result<Self, MediumError> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let page = unsafe {
            mmap_anonymous(
                core::ptr::null_mut(),
                page_bytes(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        };
        let page = page.map_err(|e| MediumError::system("map memory", e))?;
        // SAFETY: the page is this function's own; the advice changes no contents in this process.
        let _ = unsafe { madvise(page, page_bytes(), Advice::LinuxWipeOnFork) }; // I2
        let mark = NonNull::new(page.cast()).expect("the kernel maps nothing at address 0");
        let opener = Self { mark, process: std::process::id() };
        opener.mark().store(OWN, Ordering::Relaxed);
        Ok(opener)
    }

    #[inline(always)]
    fn mark(&self) -> &AtomicU32 {
        // SAFETY: the page is mapped, zeroed at first and aligned, and it stays mapped until
        // `self` is dropped. An atomic is valid for any bits.
        unsafe { self.mark.as_ref() }
    }

    /// Returns `true` in a child of the process that made the mark.
    #[inline(always)]
    pub(crate) fn is_parent(&self) -> bool {
        self.mark().load(Ordering::Relaxed) != OWN
    }

    /// Returns `true` like [`is_parent`](Self::is_parent), also where the system does not clear the
    /// page (I2). Calls the system.
    pub(crate) fn is_parent_by_id(&self) -> bool {
        self.is_parent() || self.process != std::process::id()
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        unmap(self.mark.as_ptr().cast(), page_bytes());
    }
}

// SAFETY: the page is plain memory, and all accesses to it are atomic.
unsafe impl Send for Opener {}
// SAFETY: as for Send.
unsafe impl Sync for Opener {}

#[cfg(test)]
mod tests;
