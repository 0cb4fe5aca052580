//! Any other processor. No write-back instruction is known, so no mapping survives a power cut.

use super::WriteBack;
use crate::word::words_of;
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
    for (word, value) in target.iter().zip(words_of(source)) {
        word.store(value, Ordering::Relaxed);
    }
}
