//! `dump`: prints every pair in key order, in a format that `load` reads.

use crate::format::Format;
use crate::session;
use bristlecone_console::exit::Answer;
use bristlecone_console::output::Output;
use bristlecone_console::progress::Progress;
use std::io::Write;
use std::path::PathBuf;

/// Print every pair in key order, in a format that `load` reads.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  bristlecone dump trees.pool --format tsv > trees.tsv")]
pub(crate) struct Args {
    /// The store.
    pool: PathBuf,
    /// Format of the output [default: tsv; jsonl with --json].
    #[arg(long, value_enum)]
    format: Option<Format>,
}

/// Prints all pairs.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    const REPORT_EVERY: u64 = 4096;
    let default = if output.json { Format::Jsonl } else { Format::Tsv };
    let format = args.format.unwrap_or(default);
    session::with(&args.pool, |store| {
        let mut progress = Progress::new(0);
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
