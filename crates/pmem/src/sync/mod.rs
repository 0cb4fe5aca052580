//! Latches and deferred reclamation. All of it is volatile: recovery relies on none of it.

mod epoch;
mod latch;
#[cfg(all(test, loom))]
mod loom;

pub use epoch::{Guard, collect, pin};
pub use latch::{Exclusive, Latch, LatchWord, OnDram, OnMedium, Version, nonce_of};
