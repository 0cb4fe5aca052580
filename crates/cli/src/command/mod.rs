//! The commands, one a file. Each has its `Args`, the arguments of the command line, and a `run`
//! that returns its answer.

mod check;
mod create;
mod del;
mod demo;
mod dump;
mod get;
mod load;
mod put;
mod salvage;
mod scan;
mod stat;
mod torture;

use bristlecone_console::exit::Answer;
use bristlecone_console::output::Output;
use clap::Subcommand;

/// A command and its arguments, in the order of `--help`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::Args),
    Create(create::Args),
    Put(put::Args),
    Get(get::Args),
    Del(del::Args),
    Scan(scan::Args),
    Stat(stat::Args),
    Check(check::Args),
    Load(load::Args),
    Dump(dump::Args),
    Salvage(salvage::Args),
    Torture(torture::Args),
}

impl Command {
    /// Runs the command.
    pub(crate) fn run(self, output: &mut Output) -> anyhow::Result<Answer> {
        match self {
            Self::Demo(args) => demo::run(&args, output),
            Self::Create(args) => create::run(&args, output),
            Self::Put(args) => put::run(&args, output),
            Self::Get(args) => get::run(&args, output),
            Self::Del(args) => del::run(&args, output),
            Self::Scan(args) => scan::run(&args, output),
            Self::Stat(args) => stat::run(&args, output),
            Self::Check(args) => check::run(&args, output),
            Self::Load(args) => load::run(&args, output),
            Self::Dump(args) => dump::run(&args, output),
            Self::Salvage(args) => salvage::run(&args, output),
            Self::Torture(args) => torture::run(&args, output),
        }
    }
}
