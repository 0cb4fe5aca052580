//! The laboratory: measurements and models of indexes on persistent memory.
//!
//! | module | contents |
//! | --- | --- |
//! | [`workload`] | operations and keys, chosen before the clock starts |
//! | [`device`] | models of persistent-memory devices in virtual time |
//! | [`system`] | the systems under test: designs, the store, and peers |
//! | [`mod@bench`] | workloads on systems: timed, counted and modelled |
//! | [`kv`] | a server over any design, and its clients |
//!
//! # Example
//!
//! ```
//! use bristlecone_lab::device::{Device, Profile};
//! use bristlecone_pmem::{Mapped, Medium, Pool};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Device::new(Mapped::anonymous(1 << 20)?, Profile::named("optane-100")?)?;
//! let pool = Pool::create(device)?;
//! let block = pool.reserve(64)?;
//! pool.medium().reset_counts();
//! let words = pool.words(block, 8)?;
//! pool.medium().store(&words[0], 42);
//! let _ = pool.medium().persist(&words[..1]);
//! pool.medium().end_op(8);
//! assert_eq!(pool.medium().report().cli, Some(8.0)); // a line of 64 B for 8 B
//! # Ok(()) }
//! ```

pub mod bench;
pub mod device;
mod error;
pub mod kv;
pub mod system;
pub mod workload;

pub use error::{LabError, Result};
