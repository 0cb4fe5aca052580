//! The designs: each a composition, its constants, its budget.

pub mod fptree;

pub use fptree::FpTree;
