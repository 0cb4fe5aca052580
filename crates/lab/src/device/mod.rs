//! A model of a persistent-memory device, in virtual time, behind a [`Medium`](bristlecone_pmem::Medium).
//!
//! ```text
//! program -> cache -> write-pending queue -> write buffer -> media     one queue, two buffers and
//!         <- cache <------------------------ read buffer  <- media     two servers on each DIMM
//! ```
//!
//! 1. The data are those of the medium below. The model decides what the time is, and what reaches the
//!    media; no answer depends on it.
//! 2. With one thread every number is the same on every run: nothing here reads a clock, draws a number
//!    or looks at an address that is not relative to the base.
//! 3. Every number is the profile's.
//!
//! | module | what it is |
//! | --- | --- |
//! | `profile` | the numbers, in TOML |
//! | `cache` | the processor's cache, and the lines under way |
//! | `dimm`, `buffer`, `media` | queues and servers; the buffers; bytes and wear |
//! | `machine` | one event after another |
//! | `medium` | the decorator |
//! | `summary`, `threads` | what it came to; what more threads could do |
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
