//! Latches and deferred reclamation. Volatile: nothing here decides what a crash leaves.

mod latch;
#[cfg(all(test, loom))]
mod loom;

pub use crossbeam_epoch::{Guard, pin};
pub use latch::{Exclusive, Latch, LatchWord, OnMedium, Version};
