//! `dump`: prints every pair in key order, in a format that `load` reads.

use super::salvage;
use crate::format::Format;
use crate::session;
use bristlecone_console::exit::Answer;
use bristlecone_console::output::Output;
use bristlecone_console::progress::Progress;
use std::io::Write;
use std::path::PathBuf;

/// Print every pair in key order, in a format that `load` reads.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bristlecone dump trees.pool --format tsv > trees.tsv
  bristlecone dump damaged.pool --skip-damaged | bristlecone load whole.pool")]
pub(crate) struct Args {
    /// The store.
    pool: PathBuf,
    /// Format of the output [default: tsv; jsonl with --json].
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Print the pairs that are whole, in no particular order, and name each damage on standard
    /// error. The exit code is then 1. The file is only read.
    #[arg(long, conflicts_with_all = ["wait", "open_torn"])]
    skip_damaged: bool,
    #[command(flatten)]
    open: session::OpenArgs,
}

/// Prints all pairs.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    const REPORT_EVERY: u64 = 4096;
    let default = if output.json { Format::Jsonl } else { Format::Tsv };
    let format = args.format.unwrap_or(default);
    let mut progress = Progress::new(0);
    if args.skip_damaged {
        let damages = salvage::each_pair(&args.pool, &mut |key, value| {
            progress.advance(1);
            Ok(format.write(output, key, value)?)
        })?;
        output.flush()?;
        return Ok(Answer::from_bool(damages.is_empty()));
    }
    session::with(&args.open.options(), &args.pool, |store| {
        for (pair, count) in store.iter().zip(1_u64..) {
            let (key, value) = pair?;
            format.write(output, &key, &value)?;
            if count.is_multiple_of(REPORT_EVERY) {
                progress.advance(REPORT_EVERY);
            }
        }
        Ok(output.flush()?)
    })?;
    Ok(Answer::Yes)
}
