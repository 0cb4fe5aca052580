//! The `bristlecone` command: the store, the designs, the benchmarks and the explorer.
//!
//! 1. Standard output carries the answer and nothing else; progress and complaints go to standard
//!    error.
//! 2. The exit code is 0 when it is done, 1 when the answer is no, 2 for a wrong use, 3 for a pool
//!    that is damaged or foreign, 4 when the system refused.

mod args;
mod command;
mod escape;
mod failure;
mod format;
mod json;
mod output;
mod session;
mod victim;

use args::{Cli, Command};
use clap::Parser;
use failure::Answer;
use output::Output;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Without the handler a file that is cut while it is open ends the process all the same, only
    // without a message; so that it cannot be had is no reason to stop.
    let _ = bristlecone_pmem::medium::install_fault_message();
    match run(cli) {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(failure::NO),
        // Whoever read the answer has had enough of it, as `head` has.
        Err(error) if failure::reader_left(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is gone too, the exit code still tells.
            let _ = writeln!(std::io::stderr(), "bristlecone: {error:#}");
            ExitCode::from(failure::exit_code(&error))
        }
    }
}

/// Does what the command line says.
fn run(cli: Cli) -> anyhow::Result<Answer> {
    let mut output = Output::new(cli.json);
    let output = &mut output;
    match cli.command {
        Command::Demo(args) => command::demo::run(&args, output),
        Command::Create(args) => command::create::run(&args, output),
        Command::Put(args) => command::put::run(&args, output),
        Command::Get(args) => command::get::run(&args, output),
        Command::Del(args) => command::del::run(&args, output),
        Command::Reproduce(args) => command::reproduce::run(&args, output),
        Command::Scan(args) => command::scan::run(&args, output),
        Command::Stat(args) => command::stat::run(&args, output),
        Command::Check(args) => command::check::run(&args, output),
        Command::Load(args) => command::load::run(&args, output),
        Command::Dump(args) => command::dump::run(&args, output),
        Command::Designs(args) => command::designs::run(&args, output),
        Command::Advise(args) => command::advise::run(&args, output),
        Command::Bench(args) => command::bench::run(&args, output),
        Command::Crash(args) => command::crash::run(&args, output),
        Command::Torture(args) => command::torture::run(&args, output),
    }
}
