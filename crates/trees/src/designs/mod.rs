//! The designs: each a composition, its constants, its budget.

pub mod fast_fair;
pub mod fptree;

pub use fast_fair::{FastFair, FastFairSp};
pub use fptree::FpTree;
