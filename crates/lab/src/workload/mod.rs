//! Workloads: what is done to which keys, decided before the clock starts.
//!
//! 1. Record `i` has a token ([`Recipe::token`]), which is all that a plan stores of its key. For
//!    one seed tokens are distinct, and the same for every design in a run.
//! 2. A plan names only keys that are there when its turn comes, whatever the other threads do:
//!    what was loaded and nobody deletes, what its own thread has inserted. What is deleted is a
//!    part of the loaded records by itself, each of them once, and each thread has its share. So
//!    every operation must succeed, and one that does not is an error and not a fast miss. A trace
//!    may ask for what is not there: it knows what every one of its answers must be.
//! 3. The named mixes are those that YCSB publishes: a 50/50 read/update, b 95/5 read/update, c
//!    read only, d 95/5 read/insert with reads of the latest, e 95/5 scan/insert, f 50/50
//!    read/read-modify-write.
//!
//! | module | what it is |
//! | --- | --- |
//! | `named`, `mix`, `file` | what is done: by a name, a mix in text, a file |
//! | `trace` | what was recorded, and its text |
//! | `dist`, `zipf` | to which records |
//! | `keys`, `set` | what keys the records have |
//! | `recipe` | all of it with its numbers, and the plans made from it |
//! | `operation` | what plans are made of |

mod chooser;
mod dist;
mod error;
mod file;
mod hash;
mod keys;
mod named;
mod operation;
mod recipe;
mod set;
mod shares;
mod trace;
mod zipf;

pub use dist::Dist;
pub use error::WorkloadError;
pub use file::Custom;
pub use hash::mix64;
pub use keys::Keys;
pub use named::Workload;
pub use operation::{Op, OpKind, Plan, Replayed};
pub use recipe::Recipe;
pub use set::KeySet;
pub use shares::Mix;
pub use trace::Trace;

pub(crate) use keys::{KeyBuffer, Render};
pub(crate) use operation::{BATCH, belongs, value_of};
pub(crate) use zipf::whole;
