//! The substrate: everything that knows an instruction set, a mapping or a byte of a pool file.
//!
//! Layers, each using only those above it:
//!
//! | module | what it is |
//! | --- | --- |
//! | [`word`], [`line`](mod@line) | the 8 B failure-atomic word; lines of 64 B and units of 256 B |
//! | [`sys`] | write-back and fence instructions of the processor |
//! | [`medium`] | the one door to persistent memory: load, store, flush, fence |
//! | [`place`] | which stripe of a pool belongs to which NUMA node |
//! | [`dram`] | growing arrays of volatile words |
//! | [`pool`] | the file: superblocks, named roots, opening, growing, closing |
//! | [`alloc`] | which blocks are in use: volatile, recovered by reachability |
//! | [`log`] | failure-atomic changes of several words |
//! | [`sync`] | latches and deferred reclamation; nothing of it is persistent |
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
#[cfg(test)]
mod child;
pub mod defect;
pub mod dram;
pub mod error;
pub mod layout;
pub mod line;
pub mod log;
pub mod medium;
pub mod numa;
pub mod pool;
pub mod sync;
pub mod sys;
pub mod word;

pub use defect::Defect;
pub use error::Corrupt;
pub use medium::{Domain, Fenced, Mapped, Medium, Simulated};
pub use numa::Placement;
pub use pool::{Pool, PoolError};
pub use word::{PmPtr, PmWord};

/// CRC-32C of `bytes`, by the processor's own instruction where it has one.
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// CRC-32C of what `checksum` is of, followed by `bytes`.
pub fn checksum_append(checksum: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(checksum, bytes)
}

/// The examples of the README of this crate, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDocTests;
