//! Latches and deferred reclamation. Volatile: nothing here decides what a crash leaves.

mod epoch;
mod latch;

pub use epoch::{Guard, collect, pin};
pub use latch::{Exclusive, Latch, LatchWord, OnMedium, Version};
