//! The commands, one a file or folder. Each has its `Args`, the arguments of the command line, and
//! a `run` that returns its answer.

mod advise;
mod bench;
mod crash;
mod designs;
mod kv;
mod page_file;
mod reproduce;

use bristlecone_console::exit::Answer;
use bristlecone_console::leftovers::Remover;
use bristlecone_console::output::Output;
use bristlecone_lab::system::{LEFTOVER_KIND, temporary_folders};
use clap::Subcommand;

/// Starts the process that removes the files of a benchmark that a signal ends.
fn remover() -> Option<Remover> {
    let folders = temporary_folders();
    Remover::start(LEFTOVER_KIND, &folders.each_ref().map(AsRef::as_ref))
}

/// A command and its arguments, in the order of `--help`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Designs(designs::Args),
    Bench(bench::Args),
    Kv(kv::Args),
    Reproduce(reproduce::Args),
    Advise(advise::Args),
    Crash(crash::Args),
}

impl Command {
    /// Runs the command.
    pub(crate) fn run(self, output: &mut Output) -> anyhow::Result<Answer> {
        match self {
            Self::Designs(args) => designs::run(&args, output),
            Self::Bench(args) => {
                let _remover = remover();
                bench::run(&args, output)
            }
            Self::Kv(args) => {
                let _remover = remover();
                kv::run(&args, output)
            }
            Self::Reproduce(args) => {
                let _remover = remover();
                reproduce::run(&args, output)
            }
            Self::Advise(args) => advise::run(&args, output),
            Self::Crash(args) => crash::run(&args, output),
        }
    }
}
