//! The parts that the commands `bristlecone` and `bristlecone-lab` share.
//!
//! Both commands keep two rules:
//!
//! 1. Standard output carries the answer and nothing else. Progress and errors go to standard
//!    error.
//! 2. The exit code says how the command ended; [`exit`] lists the five codes.

pub mod exit;
pub mod leftovers;
pub mod output;
pub mod progress;
#[cfg(feature = "testing")]
pub mod testing;
pub mod values;
