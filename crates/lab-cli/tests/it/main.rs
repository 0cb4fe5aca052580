//! The built command, run as users and programs run it.

mod bad_input;
mod claims;
mod documents;
mod kv;
mod lab;
mod signals;
mod witness;
mod workloads;

use bristlecone_console::testing::{self, Done, lines, objects};
use std::ffi::OsStr;

/// Runs the command to its end.
fn run<A: AsRef<OsStr>>(arguments: &[A], input: &[u8]) -> Done {
    testing::run(env!("CARGO_BIN_EXE_bristlecone-lab"), arguments, input)
}
