//! The `bristlecone` command: a store on the command line, and its kill tests.
//!
//! Output and exit codes follow `bristlecone_console`. The designs, the benchmarks and the crash
//! explorer are in another command, `bristlecone-lab`, so that a build of the store needs none of
//! them.

mod child;
mod command;
mod moved;
mod quantile;
mod session;

use bristlecone_cli::{escape, format, json};
use bristlecone_console::output::Output;
use bristlecone_console::{exit, leftovers};
use clap::Parser;
use command::Command;
use std::io::Write;
use std::process::ExitCode;

/// An ordered key-value store for persistent memory, on the command line.
#[derive(Debug, Parser)]
#[command(name = "bristlecone", version, max_term_width = 100, after_help = AFTER_HELP)]
struct Cli {
    /// Print the answer as JSON: one object, or one object a line.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

/// The text below the options. The exit codes are those of [`exit::HELP`], which a test compares.
const AFTER_HELP: &str = "\
Exit codes: 0 done, 1 the answer is no, 2 wrong use, 3 the pool is damaged or foreign, 4 the system
refused.

The designs, the benchmarks and the crash explorer are the commands of bristlecone-lab; in a
checkout, `cargo lab --help`.";

fn main() -> ExitCode {
    if let Some(code) = leftovers::remove(std::env::args_os().skip(1)) {
        return code;
    }
    if let Some(line) = moved::answer(std::env::args_os().skip(1)) {
        return exit::refuse("bristlecone", &line);
    }
    let cli = Cli::parse();
    // Without the handler a file that another program cuts short still ends this process, only
    // without a message. So a failure to install it is no reason to stop.
    let _ = bristlecone_pmem::medium::install_fault_message();
    let result = cli.command.run(&mut Output::new(cli.json));
    let advice = result.as_ref().err().and_then(session::advice);
    let code = exit::finish("bristlecone", result, exit::code_of);
    if let Some(advice) = advice {
        let _ = writeln!(std::io::stderr(), "bristlecone: {advice}");
    }
    code
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
            let example = format!("bristlecone {}", command.get_name());
            assert!(help.contains(&example), "{} has no example", command.get_name());
        }
    }

    #[test]
    fn the_help_lists_the_exit_codes() {
        assert!(AFTER_HELP.replace('\n', " ").contains(exit::HELP));
    }
}
