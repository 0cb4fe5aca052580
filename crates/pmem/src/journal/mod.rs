//! The line journal: power safety for a file on a disk, beneath the medium.
//!
//! A tree is right for every image in which each line holds a prefix of its stores and everything
//! fenced is there. So the journal keeps, on disk, images of lines in the order of their fences.
//! Any prefix of them, replayed onto the state before, is an image that the crash model allows.
//!
//! ```text
//! working memory, private                        loads and stores of the trees
//!   | fence: the noted lines are copied under one lock bit
//! ring, a file mapped shared                     survives the death of the process
//!   | drain: frames with chained checksums
//! segments                                       one sync makes all of them durable
//!   | checkpoint: pages, after the segments are synced past their copies
//! pool file
//! ```
//!
//! 1. The kernel never writes working memory. Only what this module writes persists.
//! 2. A fence copies its lines while it holds the lock bit of the ring, and returns after it has
//!    released it. So no later position holds an older copy of a line, and no copy of a prefix
//!    holds a store that was made after the prefix ended.
//! 3. The copy of a line is a state that the line had: two readings that agree.
//! 4. The checksum of a frame is seeded with that of the frame before, and the first of an open
//!    with a random number. So a frame that a cut left behind a lost one never counts again.
//! 5. A page is copied, *then* the head of the ring is read, and the page is written after the
//!    segments are synced up to that head.
//! 6. A segment is used again after a mark that no longer needs it is synced, and that mark is
//!    written after the pages of its checkpoint are synced.
//! 7. Space for a line is granted before it enters the ring. So a checkpoint can always drain it.
//! 8. A failed write or sync ends all writing until the next open. Nothing is tried again.
//!
//! The bytes are in `docs/FORMAT.md`; what survives what is in `docs/PERSISTENCE.md`.

mod checkpoint;
mod commits;
mod disk;
mod error;
mod folder;
mod frame;
mod growth;
mod journaled;
mod leftovers;
mod lines;
mod mark;
mod noted;
mod options;
mod pages;
mod point;
mod reads;
mod recovery;
mod ring;
mod stats;
mod sweep;
mod trace;
mod work;

pub use error::JournalError;
pub use journaled::Journaled;
pub(crate) use mark::Mark;
pub use options::{Durability, JournalOptions};
pub(crate) use reads::{Reads, has_note};
pub use stats::JournalStats;
#[doc(hidden)]
pub use trace::{DiskFiles, DiskTrace, Recording};

#[cfg(test)]
mod tests;
