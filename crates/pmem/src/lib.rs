//! The persistent-memory layer: mapped files, write-back, allocation, logs, latches.
//!
//! Each module uses only those above it:
//!
//! | module | contents |
//! | --- | --- |
//! | [`word`], [`line`](mod@line) | the failure-atomic word of 8 B; cache lines of 64 B |
//! | [`error`], [`layout`] | corruption; sizes of the pool file |
//! | [`defect`] | the catalogue of published defects that tests inject |
//! | [`sys`], `checksum` | instructions of the processor: write-back, fence; CRC-32C |
//! | [`numa`] | the map from stripes of a pool to NUMA nodes |
//! | [`medium`] | the one way to persistent memory: load, store, flush, fence |
//! | [`sync`] | latches and deferred reclamation, all volatile |
//! | [`dram`] | arrays of volatile words that grow in place |
//! | [`journal`] | a plain file that survives a power cut: a journal of lines beside it |
//! | [`file`](mod@file) | a pool file as one medium: mapped, or with a journal |
//! | [`alloc`] | the allocator: volatile, rebuilt from what the roots reach |
//! | [`log`] | redo and undo-redo logs: failure-atomic changes of several words |
//! | [`pool`] | the file: superblocks, roots, heap; opening, growing, closing |
//!
//! # Example
//!
//! ```
//! use bristlecone_pmem::{Mapped, Medium, Pool};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let pool = Pool::create(Mapped::anonymous(1 << 20)?)?;
//! let block = pool.reserve(64)?;
//! let words = pool.words(block, 8)?;
//! pool.medium().store(&words[0], 42);
//! pool.medium().flush(&words[..1]);
//! pool.create_root("answer", 1, block)?; // it fences: both are durable from here on
//! # Ok(()) }
//! ```

const _: () = assert!(usize::BITS == 64 && cfg!(target_endian = "little"));

pub mod alloc;
mod checksum;
#[cfg(test)]
mod child;
pub mod defect;
pub mod dram;
pub mod error;
pub mod file;
pub mod journal;
pub mod layout;
pub mod line;
pub mod log;
pub mod medium;
pub mod numa;
pub mod pool;
pub mod sync;
pub mod sys;
pub mod word;

pub use checksum::{checksum, checksum_append};
pub use defect::Defect;
pub use error::Corrupt;
pub use file::FileMedium;
pub use journal::{Durability, Journaled};
pub use medium::{Domain, Fenced, Mapped, Medium, Simulated};
pub use numa::Placement;
pub use pool::{Pool, PoolError};
pub use word::{PmPtr, PmWord};

/// The examples of the README of this crate, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDocTests;
