//! The commands, one a file. Each has its `Args`, as the command line gives them, and a `run` that
//! gives its answer.

pub(crate) mod advise;
pub(crate) mod bench;
mod catalogue;
pub(crate) mod check;
pub(crate) mod crash;
pub(crate) mod create;
pub(crate) mod del;
pub(crate) mod demo;
pub(crate) mod designs;
pub(crate) mod dump;
mod faults;
pub(crate) mod get;
pub(crate) mod load;
pub(crate) mod put;
pub(crate) mod reproduce;
pub(crate) mod scan;
pub(crate) mod stat;
pub(crate) mod torture;
mod witness;
