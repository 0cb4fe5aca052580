//! Persistent-memory B+-trees: pieces, engines, designs.
//!
//! Above all stands [`PmIndex`]: every design implements it, and it is all that the store, the
//! explorer and the benchmarks see. A key reaches a design through the [`Key`] layer, so every
//! design serves integers and byte strings alike.

pub mod all_pm;
pub mod designs;
pub mod erased;
mod fingerprint;
pub mod hybrid;
pub mod index;
mod inner;
pub mod key;
pub mod leaf;
mod leaf_table;
pub mod maintenance;
pub mod names;
pub mod node;
mod parallel;
mod sorting;
pub mod spec;
pub mod unique_words;

pub use erased::ErasedDesign;
pub use index::{Design, MaintenanceCost, Order, PmIndex, TreeError, TreeStats, WriteMode};
pub use key::{Key, Record, Text};
pub use maintenance::Maintainer;
pub use spec::{Budget, Cost, Spec};

/// The examples of the README of this crate, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDocTests;
