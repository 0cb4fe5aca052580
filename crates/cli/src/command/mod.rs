//! The commands, one a file.

pub(crate) mod bench;
pub(crate) mod designs;

use crate::args::{Cli, Command};
use crate::failure::Answer;
use crate::output::Output;

/// Does what the command line says.
pub(crate) fn run(cli: Cli) -> anyhow::Result<Answer> {
    let mut output = Output::new(cli.json);
    match cli.command {
        Command::Designs(args) => designs::run(&args, &mut output),
        Command::Bench(args) => bench::run(&args, &mut output),
    }
}
