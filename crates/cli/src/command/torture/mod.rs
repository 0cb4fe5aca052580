//! `torture`: a store that is loaded by several threads of a process which is killed, thousands of
//! times. After each kill all of it is compared with what had been acknowledged.
//!
//! 1. A child's threads do steps that are drawn from a seed, each on keys of its own, so the parent
//!    knows every step without being told. A thread begins a step when the one before is
//!    acknowledged: so there is one of each thread whose outcome is open, and no more.
//! 2. An acknowledgement is a word in a pipe, written after the operation has returned; what is in
//!    the pipe when the child dies, the parent still reads.

mod child;
mod ledger;
mod parent;
mod steps;

use crate::args;
use crate::failure::Answer;
use crate::output::Output;
use std::path::PathBuf;

/// Load a store with several threads, kill the process, verify; again, some thousands of times.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bristlecone torture --cycles 10000
  bristlecone torture --cycles 100 --threads 4 --keys 1M --load 1M --json

Every put, update and delete that was acknowledged is looked for after each kill, and values that a
reader has seen; a scan must be in order, and every block of the pool accounted for. The exit code
is 1 if anything is lost or wrong.")]
pub(crate) struct Args {
    /// Times that the process is killed.
    #[arg(long, value_name = "N", default_value = "1000", value_parser = args::count)]
    cycles: u64,
    /// Threads that write, beside one that reads.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    threads: u64,
    /// Keys that there may be.
    #[arg(long, value_name = "N", default_value = "10k", value_parser = args::count)]
    keys: u64,
    /// Keys that each new pool holds before the first kill; at most all that there may be.
    #[arg(long, value_name = "N", default_value = "0", value_parser = args::count)]
    load: u64,
    /// What the steps and the moments of the kills are drawn from [default: the clock].
    #[arg(long)]
    seed: Option<u64>,
    /// Folder to make the temporary folder in [default: the system's].
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Be the process that is killed, in this cycle.
    #[arg(long, hide = true, requires = "pool", requires = "seed")]
    victim: Option<u64>,
    /// The pool of that process.
    #[arg(long, hide = true)]
    pool: Option<PathBuf>,
}

/// Kills and verifies, or is what is killed.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    if let (Some(cycle), Some(pool), Some(seed)) = (args.victim, &args.pool, args.seed) {
        let keys = args.keys.max(args.threads);
        let load = steps::Load { seed, cycle, keys, threads: args.threads };
        return child::run(pool, load).map(|never| match never {});
    }
    parent::run(args, output)
}
