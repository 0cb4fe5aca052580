//! Latches and deferred reclamation. Volatile: nothing here decides what a crash leaves.

mod epoch;
mod latch;
#[cfg(all(test, loom))]
mod loom;

pub use epoch::{Guard, collect, pin};
pub use latch::{Exclusive, Latch, LatchWord, OnDram, OnMedium, Version, generation_of};
