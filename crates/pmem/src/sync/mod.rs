//! Latches and deferred reclamation. All of it is volatile: recovery relies on none of it.

mod epoch;
mod latch;
#[cfg(all(test, loom))]
mod loom;
mod shared;
mod shifts;

#[cfg(test)]
pub(crate) use epoch::PINS_EVERY_POOL;
pub(crate) use epoch::Readers;
pub use epoch::{Guard, exchange_pins, pin};
pub use latch::{
    Exclusive, HELD_NOTE_BITS, Latch, LatchBits, LatchWord, OnDram, OnMedium, Version, held_note,
    nonce_of, note_held,
};
pub use shared::{Shared, SharedLatch, Unshared};
pub use shifts::{ShiftCount, ShiftCounter};
