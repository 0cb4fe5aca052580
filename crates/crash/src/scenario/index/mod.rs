//! Scenarios of an index: every operation in every structural case that the design has.
//!
//! 1. A case is found by trial: operations run until the statistics of the index change in the way
//!    that the case is about. That operation is the one under test, and those before it are the
//!    setup. So one list of cases serves every design.
//! 2. After each crash the index is opened, checked, compared with a model, opened again as if the
//!    machine had stopped once more, and used around the keys of the operation under test.

mod alloc_faults;
mod batch_cases;
mod cases;
mod dense_cases;
mod exercise;
pub(crate) mod maintenance_cases;
mod scenario;
pub(crate) mod sequences;
pub(crate) mod session;
pub(crate) mod structure_cases;
mod trial;
mod unrepaired_cases;

pub(crate) use cases::{cases, wide_cases};
