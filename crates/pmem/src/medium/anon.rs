//! Anonymous pages: DRAM for tests, baselines and counting. It survives no crash.
#![expect(unsafe_code, reason = "memory mapping has no safe form")]

use super::mapped::{Fences, Mapped, Range};
use super::page::{HUGE_PAGE_BYTES, advise_huge, page_bytes, unmap};
use super::{Domain, MediumError};
use crate::numa::Placement;
use crate::sys::WriteBack;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

impl Mapped {
    /// Maps `bytes` of zeroed DRAM, which can grow to 16 times the size.
    ///
    /// # Errors
    /// The system has too little memory or address space.
    pub fn anonymous(bytes: u64) -> Result<Self, MediumError> {
        Self::anonymous_in(bytes, bytes.saturating_mul(16).max(64 << 20), None)
    }

    /// Maps memory like [`anonymous`](Self::anonymous), on the nodes of `placement`.
    ///
    /// # Errors
    /// The system has too little memory or address space, or does not have a node of `placement`.
    pub fn anonymous_on(bytes: u64, placement: Placement) -> Result<Self, MediumError> {
        Self::anonymous_in(bytes, bytes.saturating_mul(16).max(64 << 20), Some(placement))
    }

    /// Maps memory like [`anonymous`](Self::anonymous), which can grow to `reserve_bytes`, on the
    /// nodes of `placement`.
    pub(crate) fn anonymous_in(
        bytes: u64,
        reserve_bytes: u64,
        placement: Option<Placement>,
    ) -> Result<Self, MediumError> {
        let range = Range::reserve(reserve_bytes)?;
        range.extend_anonymous(0, bytes)?;
        range.place(0, bytes, placement.as_ref())?;
        Ok(Self {
            range,
            len: AtomicU64::new(bytes),
            file: None,
            write_back: WriteBack::None,
            fences: Fences::None,
            guaranteed: Domain::Volatile,
            placement,
            prefault: false,
            reproducible: false,
        })
    }
}

impl Range {
    /// Reserves addresses for `bytes`, aligned to [`HUGE_PAGE_BYTES`], without memory behind them.
    pub(crate) fn reserve(bytes: u64) -> Result<Self, MediumError> {
        let limit = isize::MAX as u64 - 2 * HUGE_PAGE_BYTES as u64;
        if bytes > limit {
            return Err(MediumError::Limit { wanted: bytes, limit });
        }
        let bytes = (bytes as usize).next_multiple_of(HUGE_PAGE_BYTES);
        let span = bytes + HUGE_PAGE_BYTES;
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe {
            mmap_anonymous(
                core::ptr::null_mut(),
                span,
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }
        .map_err(|e| MediumError::system("reserve address space; `ulimit -v` may limit it", e))?;
        let head = (start as usize).next_multiple_of(HUGE_PAGE_BYTES) - start as usize;
        let base = start.cast::<u8>().wrapping_add(head);
        unmap(start.cast(), head);
        unmap(base.wrapping_add(bytes), span - head - bytes);
        let base = NonNull::new(base).expect("the kernel maps nothing at address 0");
        Ok(Self { base, bytes })
    }

    /// Returns the first address.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Maps zeroed private pages at `old..new` of the range.
    pub(crate) fn extend_anonymous(&self, old: u64, new: u64) -> Result<(), MediumError> {
        let [old, new] = [old, new].map(|end| (end as usize).next_multiple_of(page_bytes()));
        if new <= old {
            return Ok(());
        }
        let at = self.base.as_ptr().wrapping_add(old).cast();
        // SAFETY: the pages lie in this reserved range, past all that is in use.
        let mapped = unsafe {
            mmap_anonymous(
                at,
                new - old,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE,
            )
        };
        let at = mapped.map_err(|e| MediumError::system("map memory", e))?;
        advise_huge(at as usize, new - old);
        Ok(())
    }
}

impl Range {
    /// Leaves the addresses as they are: the drop unmaps nothing.
    pub(super) fn abandon(&mut self) {
        self.bytes = 0;
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        unmap(self.base.as_ptr(), self.bytes);
    }
}

// SAFETY: the range is plain memory, and all accesses to it are atomic.
unsafe impl Send for Range {}
// SAFETY: as for Send.
unsafe impl Sync for Range {}
