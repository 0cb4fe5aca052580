//! A model of a persistent-memory device, in virtual time, behind a
//! [`Medium`](bristlecone_pmem::Medium).
//!
//! ```text
//! program -> cache -> write-pending queue -> write buffer -> media     one queue, two buffers and
//!         <- cache <------------------------ read buffer  <- media     two servers on each DIMM
//! ```
//!
//! 1. The medium below holds the data. The model decides the time and the traffic of the media; no
//!    answer of the program depends on it.
//! 2. With one thread, every figure is the same on every run. The model reads no clock, draws no
//!    random number, and uses addresses only relative to the base.
//! 3. Every number comes from the profile.
//!
//! | module | contents |
//! | --- | --- |
//! | `profile` | the numbers, in TOML |
//! | `cache` | the processor's cache, and the lines in flight |
//! | `dimm`, `buffer`, `media` | queues and servers; buffers; bytes and wear |
//! | `machine` | the core, its clock and its events |
//! | `medium` | the medium that programs use |
//! | `summary`, `threads` | the report; the projection to more threads |
//!
//! `docs/device-model.md` says what is modelled, by which formula, and what is not.

mod buffer;
mod cache;
mod dimm;
mod machine;
mod media;
mod medium;
mod profile;
mod summary;
mod threads;

pub use medium::Device;
pub use profile::{Buffer, Cpu, Energy, Media, Persistence, Profile, ProfileError, Queue};
pub use summary::{DeviceReport, TimeNs};
pub use threads::{Bound, Demand, Projection};
