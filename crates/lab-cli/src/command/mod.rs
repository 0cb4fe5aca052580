//! The commands, one a file or folder. Each has its `Args`, the arguments of the command line, and
//! a `run` that returns its answer.

mod advise;
mod bench;
mod crash;
mod designs;
mod page_file;
mod reproduce;

use bristlecone_console::exit::Answer;
use bristlecone_console::output::Output;
use clap::Subcommand;

/// A command and its arguments, in the order of `--help`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Designs(designs::Args),
    Bench(bench::Args),
    Reproduce(reproduce::Args),
    Advise(advise::Args),
    Crash(crash::Args),
}

impl Command {
    /// Runs the command.
    pub(crate) fn run(self, output: &mut Output) -> anyhow::Result<Answer> {
        match self {
            Self::Designs(args) => designs::run(&args, output),
            Self::Bench(args) => bench::run(&args, output),
            Self::Reproduce(args) => reproduce::run(&args, output),
            Self::Advise(args) => advise::run(&args, output),
            Self::Crash(args) => crash::run(&args, output),
        }
    }
}
