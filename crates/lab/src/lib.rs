//! The laboratory: models and measurements of trees that claim something about their cost.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`device`] | persistent-memory devices in virtual time |
//! | [`workload`] | what is done to which keys, decided before the clock starts |
//! | [`mod@bench`] | workloads on designs, timed, counted, modelled |
//! | [`ccl`] | the law of CCL-BTree's buffers, counted |
//! | [`fill`] | inserts into leaves that are all equally full |
//! | [`ls`] | btree-ls with other numbers of logs, shares of garbage, lengths of chains |
//! | [`peers`] | what others have made, in the same harness |
//! | [`shift`] | what the shift of entries flushes in an inner node |
//! | [`table3`] | words, lines and fences of ten structures, beside the paper's formulas |
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
//! pool.medium().renew();
//! let words = pool.words(block, 8)?;
//! pool.medium().store(&words[0], 42);
//! let _ = pool.medium().persist(&words[..1]);
//! pool.medium().end_op(8);
//! assert_eq!(pool.medium().report().cli, Some(8.0)); // a line of 64 B for 8 B
//! # Ok(()) }
//! ```

pub mod bench;
pub mod ccl;
pub mod device;
mod error;
pub mod fill;
pub mod ls;
pub mod peers;
pub mod shift;
pub mod table3;
pub mod workload;

pub use error::{LabError, Result};
