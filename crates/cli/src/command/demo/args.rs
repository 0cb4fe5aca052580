//! The arguments of `demo`.

use crate::session::DurabilityArgs;
use std::path::PathBuf;

/// Load English words with a process that is killed again and again; verify that no acknowledged
/// write is lost.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bristlecone demo
  bristlecone demo --kills 100 --seed 7 --json

The 104 334 words are those of Debian's package wamerican. The files lie in a temporary folder that
is removed at the end. The exit code is 1 if an acknowledged write is lost.

Lines and fences an insert are the store's budget for an insert without a split on persistent
memory; `bristlecone-lab bench --design bristlecone` counts them.")]
pub(crate) struct Args {
    /// Number of times that the loading process is killed.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20,
        value_parser = clap::value_parser!(u64).range(1..=10_000),
    )]
    pub(super) kills: u64,
    /// Seed of the order of the words and of the moments of the kills [default: the clock].
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// Number of threads that load.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 2,
        value_parser = clap::value_parser!(u64).range(1..=64),
    )]
    pub(super) threads: u64,
    /// Folder for the temporary folder [default: the system's].
    #[arg(long, value_name = "DIR")]
    pub(super) folder: Option<PathBuf>,
    #[command(flatten)]
    pub(super) durability: DurabilityArgs,
}
