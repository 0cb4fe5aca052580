//! The `bristlecone-lab` command: the designs, the benchmarks, the claims of the papers, the crash
//! explorer. In a checkout `cargo lab` builds and runs it.
//!
//! Output and exit codes follow `bristlecone_console`.

mod command;
mod exit_code;
mod table;

use bristlecone_console::output::Output;
use bristlecone_console::{exit, leftovers};
use clap::Parser;
use command::Command;
use std::process::ExitCode;

/// The laboratory of Bristlecone: compares persistent-memory trees and explores their crashes.
#[derive(Debug, Parser)]
#[command(name = "bristlecone-lab", version, max_term_width = 100, after_help = exit::HELP)]
struct Cli {
    /// Print the answer as JSON: one object, or one object a line.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    if let Some(code) = leftovers::remove(std::env::args_os().skip(1)) {
        return code;
    }
    let cli = Cli::parse();
    // Without the handler a file that another program cuts short still ends this process, only
    // without a message. So a failure to install it is no reason to stop.
    let _ = bristlecone_pmem::medium::install_fault_message();
    let result = cli.command.run(&mut Output::new(cli.json));
    exit::finish("bristlecone-lab", result, exit_code::code_of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_of_the_arguments_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_shows_an_example() {
        for command in Cli::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let example = format!("bristlecone-lab {}", command.get_name());
            assert!(help.contains(&example), "{} has no example", command.get_name());
        }
    }
}
