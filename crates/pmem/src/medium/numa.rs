//! Pages on the nodes that a placement names.
//!
//! 1. The system is told before there are pages: right after the mapping of anonymous memory, and of a
//!    file before its space is allocated, for that is when shared memory gets its pages.
//! 2. A node is preferred: where it is full, the system takes another. A node that does not exist, or a
//!    system that knows of none, is an error.
//! 3. A file system whose pages are in the page cache puts them where it wants and says nothing. So
//!    it is refused here.
#![expect(unsafe_code, reason = "memory policies have no safe form")]

use super::MediumError;
use super::mapped::{Backing, Range};
use super::page::{PAGE_BYTES, unmap};
use crate::numa::{NODE_NUMBERS, Placement};
use rustix::fs::fstatfs;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::io;

/// Words of a set of nodes.
const MASK_WORDS: usize = NODE_NUMBERS as usize / 64;
/// What the system calls shared memory (`tmpfs`), as a type of file systems.
const SHARED_MEMORY: i64 = 0x0102_1994;

impl Range {
    /// Has the pages of `old..new` put on the nodes of `placement`, if it binds any.
    pub(super) fn place(
        &self,
        old: u64,
        new: u64,
        placement: Option<&Placement>,
    ) -> Result<(), MediumError> {
        let Some(placement) = placement.filter(|placement| placement.binds()) else {
            return Ok(());
        };
        for (part, node) in placement.parts(whole_pages(old, new)) {
            let start = self.base.as_ptr().wrapping_add(part.start as usize);
            prefer(start, (part.end - part.start) as usize, node)?;
        }
        Ok(())
    }
}

impl Backing {
    /// Has the pages that `old..new` of the file will get put on the nodes of `placement`, if it binds
    /// any and the file is not where it is by its device. What is told of shared memory is kept with
    /// the file, so a mapping that is gone at once is enough, and none is cut into stripes.
    pub(super) fn place(
        &self,
        old: u64,
        new: u64,
        placement: Option<&Placement>,
    ) -> Result<(), MediumError> {
        let Some(placement) = placement.filter(|placement| placement.binds() && !self.dax) else {
            return Ok(());
        };
        let kind =
            fstatfs(&self.file).map_err(|e| MediumError::system("see its file system", e))?;
        if kind.f_type != SHARED_MEMORY {
            let source = io::Error::new(
                io::ErrorKind::Unsupported,
                "the page cache takes no orders; use DAX, shared memory, or a placement as it lies",
            );
            return Err(MediumError::Node { node: placement.nodes()[0], source });
        }
        for (part, node) in placement.parts(whole_pages(old, new)) {
            self.place_part(part.start, (part.end - part.start) as usize, node)?;
        }
        Ok(())
    }

    fn place_part(&self, at: u64, bytes: usize, node: u16) -> Result<(), MediumError> {
        let (access, sharing) = (ProtFlags::empty(), MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe { mmap(core::ptr::null_mut(), bytes, access, sharing, &self.file, at) };
        let start = start.map_err(|e| MediumError::system("map a stripe of the file", e))?;
        let placed = prefer(start.cast(), bytes, node);
        unmap(start.cast(), bytes);
        placed
    }
}

/// The pages that hold `old..new`, whole.
fn whole_pages(old: u64, new: u64) -> core::ops::Range<u64> {
    let page = PAGE_BYTES as u64;
    old / page * page..new.next_multiple_of(page)
}

/// Has the pages of our own mapping that do not exist yet put on `node`, while it has room.
fn prefer(start: *mut u8, bytes: usize, node: u16) -> Result<(), MediumError> {
    let mut nodes = [0u64; MASK_WORDS];
    nodes[usize::from(node / 64)] = 1 << (node % 64);
    // Each argument is a whole register: the system takes longs.
    // SAFETY: the set of nodes is as long as is said, one more than its bits as the system counts; what
    // is changed is where pages come from, and no content.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            start,
            bytes,
            libc::c_long::from(libc::MPOL_PREFERRED),
            nodes.as_ptr(),
            usize::from(NODE_NUMBERS) + 1,
            0usize,
        )
    };
    if done == 0 {
        return Ok(());
    }
    Err(MediumError::Node { node, source: io::Error::last_os_error() })
}

#[cfg(test)]
mod tests;
