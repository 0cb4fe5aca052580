//! Any other processor. No write-back instruction is known, so no mapping survives a power cut.

use super::WriteBack;
use core::sync::atomic::{AtomicU64, Ordering};

pub(super) fn detect() -> Option<WriteBack> {
    None
}

pub(super) fn write_back(_: WriteBack, _: usize) {}

pub(super) fn fence() {
    core::sync::atomic::fence(Ordering::SeqCst);
}

pub(super) fn full_fence() {
    fence();
}

pub(super) fn prefetch(_: usize) {}

pub(super) fn prefetch_for_store(_: usize) {}

pub(super) fn stream(target: &[AtomicU64], source: &[u8]) {
    for (word, bytes) in target.iter().zip(source.chunks(8)) {
        let mut value = [0; 8];
        value[..bytes.len()].copy_from_slice(bytes);
        word.store(u64::from_le_bytes(value), Ordering::Relaxed);
    }
}
