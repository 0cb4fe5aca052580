//! `bench`: workloads on the designs, all in one run, so that their ratios mean something.
//!
//! For each workload and repetition every design loads the same records in the same order, then
//! does the same operations; the repetitions of the designs are interleaved, and the one with the
//! median speed is reported. Counts come from a pass of their own ([`count`]), what a modelled device
//! makes of it from another ([`model`]); the memory of a key is found once, after the first load.

mod compare;
mod count;
mod model;
mod options;
mod reopen;
mod report;
mod run;
mod stored;
mod subject;
mod target;
mod workload;
mod zipf;

pub(crate) use compare::run;
pub(crate) use options::Args;
pub(crate) use target::Measurable;
