//! NUMA placement: pages on the nodes of a placement.
//!
//! 1. The system is told before the pages exist. For anonymous memory that is right after the
//!    mapping; for a file it is before its space is allocated, because then shared memory gets its
//!    pages.
//! 2. A node is only preferred: if it is full, the system takes another. If the node does not
//!    exist, or the system knows no nodes, that is an error.
//! 3. A file system with a page cache places its pages itself and reports no error. So such a file
//!    is refused here.
#![expect(unsafe_code, reason = "memory policies have no safe form")]

use super::MediumError;
use super::backing::{Backing, FileKind};
use super::mapped::Range;
use super::page::{page_bytes, pages_around, unmap};
use crate::numa::{NODE_NUMBERS, Placement};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::io;

/// The number of words of a node mask.
const MASK_WORDS: usize = NODE_NUMBERS as usize / 64;

impl Range {
    /// Tells the system to place the pages of `old..new` on the nodes of `placement`, if it binds.
    pub(super) fn place(
        &self,
        old: u64,
        new: u64,
        placement: Option<&Placement>,
    ) -> Result<(), MediumError> {
        let Some(placement) = placement.filter(|placement| placement.binds()) else {
            return Ok(());
        };
        for (part, node) in placement.parts(pages_around(&(old..new), page_bytes())) {
            let start = self.base.as_ptr().wrapping_add(part.start as usize);
            prefer(start, (part.end - part.start) as usize, node)?;
        }
        Ok(())
    }
}

impl Backing {
    /// Tells the system to place the future pages of `old..new` of the file on the nodes of
    /// `placement`, if it binds and the file is not on DAX, where the device decides. The system
    /// keeps the policy of shared memory with the file. So a temporary mapping is enough, and the
    /// permanent mapping is not split into stripes.
    pub(super) fn place_on(
        &self,
        old: u64,
        new: u64,
        placement: Option<&Placement>,
    ) -> Result<(), MediumError> {
        let Some(placement) = placement.filter(|placement| placement.binds()) else {
            return Ok(());
        };
        if self.kind == FileKind::Dax {
            return Ok(());
        }
        if self.kind != FileKind::SharedMemory {
            let source = io::Error::new(
                io::ErrorKind::Unsupported,
                "this file system has no NUMA placement; use DAX or tmpfs, or \
                 Placement::as_it_lies",
            );
            return Err(MediumError::Node { node: placement.nodes()[0], source });
        }
        for (part, node) in placement.parts(pages_around(&(old..new), page_bytes())) {
            self.place_part(part.start, (part.end - part.start) as usize, node)?;
        }
        Ok(())
    }

    fn place_part(&self, at: u64, bytes: usize, node: u16) -> Result<(), MediumError> {
        let (access, sharing) = (ProtFlags::empty(), MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe { mmap(core::ptr::null_mut(), bytes, access, sharing, self.file(), at) };
        let start = start.map_err(|e| MediumError::system("map a stripe of the file", e))?;
        let placed = prefer(start.cast(), bytes, node);
        unmap(start.cast(), bytes);
        placed
    }
}

/// Tells the system to place the future pages of this process's mapping on `node` while it has
/// space.
fn prefer(start: *mut u8, bytes: usize, node: u16) -> Result<(), MediumError> {
    let mut nodes = [0u64; MASK_WORDS];
    nodes[usize::from(node / 64)] = 1 << (node % 64);
    // The system takes longs, so each argument is a whole register. SAFETY: the mask has as many
    // words as `maxnode` says, which counts one bit more. The call changes where future pages come
    // from, and no contents.
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
