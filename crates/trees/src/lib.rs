//! Persistent-memory B+-trees: leaf layouts, engines, and the designs that combine them.
//!
//! Every design implements [`PmIndex`], the only interface that the store, the crash explorer and
//! the benchmarks use. A key reaches a design through a [`Key`] layer, so every design serves
//! integers and byte strings alike.
//!
//! | layer | modules |
//! | --- | --- |
//! | designs: an engine with a layout (FAST+FAIR, WO-tree: their own) | [`designs`], [`names`] |
//! | engines: descent, splits, merges, scans, recovery | [`hybrid`], [`all_pm`], `leaf_table` |
//! | scans, and a log, of the designs with their own engine | `linked_leaves`, `line_log` |
//! | bulk loads: the leaves, for all engines | `bulk` |
//! | inner nodes in DRAM, used by `hybrid` and `leaf_table` | `inner` |
//! | layouts: how entries lie in a block, and how a change persists | [`leaf`], [`node`] |
//! | keys: how a key becomes a word in a node | [`key`], [`unique_words`] |
//! | interface | [`index`], [`spec`], [`maintenance`], [`erased`] |
//! | a key-value store over any design, for experiments | [`kv`] |

pub mod all_pm;
mod bulk;
mod checkpoint;
pub mod designs;
pub mod erased;
mod fingerprint;
pub mod hybrid;
pub mod index;
mod inner;
pub mod key;
pub mod kv;
mod lanes;
pub mod leaf;
mod leaf_table;
mod line_log;
mod linked_leaves;
pub mod maintenance;
pub mod names;
pub mod node;
mod node_latch;
mod parallel;
mod root_block;
mod sorting;
pub mod spec;
pub mod unique_words;

pub use designs::cell_tree::{CommittedPairs, PairChange, PairState};
pub use erased::ErasedDesign;
pub use index::{Design, MaintenanceCost, Order, PmIndex, TreeError, TreeStats, WriteMode};
pub use key::{Key, Record, Text};
pub use maintenance::Maintainer;
pub use spec::{Budget, Cost, Spec};

/// The examples of the README of this crate, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDocTests;
