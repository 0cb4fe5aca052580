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
mod output;

use args::Cli;
use clap::Parser;
use failure::Answer;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match command::run(cli) {
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
