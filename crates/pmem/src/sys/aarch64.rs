//! aarch64: `dc cvap` and `dsb`.
//!
//! The processor may reorder plain stores, but not past a release. [`Medium::store`] releases, so
//! stores to one line reach the cache, and then the persistence domain, in program order.
//!
//! [`Medium::store`]: crate::Medium::store
#![expect(unsafe_code, reason = "cache control has no safe form")]

use super::WriteBack;
use crate::word::words_of;
use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};

pub(super) fn detect() -> Option<WriteBack> {
    let dpb = std::arch::is_aarch64_feature_detected!("dpb");
    (dpb && smallest_line_bytes() >= crate::line::LINE_BYTES).then_some(WriteBack::DcCvap)
}

/// Returns the size of the smallest data-cache line, in bytes. One write-back must cover a whole
/// line of [`LINE_BYTES`](crate::line::LINE_BYTES).
fn smallest_line_bytes() -> usize {
    let types: u64;
    // SAFETY: Linux lets every program read this register, and reading it has no effect.
    unsafe { asm!("mrs {}, ctr_el0", out(reg) types, options(nomem, nostack, preserves_flags)) }
    4 << (types >> 16 & 0xf) // Bits 16..20: the logarithm of its words of 4 B.
}

#[inline(always)]
pub(super) fn write_back(_: WriteBack, address: usize) {
    // SAFETY: `detect` found `dc cvap`. It is written as its `sys` alias, which every assembler
    // accepts. It changes no architectural state, and the address lies in a medium's own mapping.
    unsafe { asm!("sys #3, c7, c12, #1, {}", in(reg) address, options(nostack, preserves_flags)) }
}

#[inline(always)]
pub(super) fn fence() {
    // SAFETY: a barrier without operands.
    unsafe { asm!("dsb sy", options(nostack, preserves_flags)) }
}

#[inline(always)]
pub(super) fn full_fence() {
    fence();
}

#[inline(always)]
pub(super) fn prefetch(address: usize) {
    // SAFETY: a prefetch changes no architectural state, for any address.
    unsafe { asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags)) }
}

#[inline(always)]
pub(super) fn prefetch_for_store(address: usize) {
    // SAFETY: a prefetch changes no architectural state, for any address.
    unsafe { asm!("prfm pstl1keep, [{}]", in(reg) address, options(nostack, preserves_flags)) }
}

pub(super) fn stream(target: &[AtomicU64], source: &[u8]) {
    for (word, value) in target.iter().zip(words_of(source)) {
        word.store(value, Ordering::Relaxed);
    }
    for address in crate::line::lines(target.as_ptr() as usize, core::mem::size_of_val(target)) {
        write_back(WriteBack::DcCvap, address);
    }
}
