//! `scan`: prints the pairs of a range in key order.

use crate::format::Format;
use crate::session;
use bristlecone::{Error, Pair, Store};
use bristlecone_console::exit::Answer;
use bristlecone_console::output::Output;
use std::ffi::OsString;
use std::io::Write;
use std::ops::Bound;
use std::path::PathBuf;

/// Print pairs in key order: key, tab, value. A tab, newline or backslash in them is printed as
/// `\t`, `\n`, `\\`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bristlecone scan trees.pool --prefix pinus
  bristlecone scan trees.pool --from a --to n --reverse --limit 10")]
pub(crate) struct Args {
    /// The store.
    pool: PathBuf,
    /// Print only keys that begin with P.
    #[arg(long, value_name = "P", conflicts_with_all = ["from", "to"])]
    prefix: Option<OsString>,
    /// Print keys from A on.
    #[arg(long, value_name = "A")]
    from: Option<OsString>,
    /// Print keys below B.
    #[arg(long, value_name = "B")]
    to: Option<OsString>,
    /// Print the greatest key first.
    #[arg(long)]
    reverse: bool,
    /// Print at most N pairs.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    #[command(flatten)]
    open: session::OpenArgs,
}

/// Prints the pairs of the range.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    session::with(&args.open.options(), &args.pool, |store| {
        let pairs = match &args.prefix {
            Some(prefix) => store.prefix(session::bytes(prefix)),
            None => range(args, store),
        };
        let limit = args.limit.unwrap_or(usize::MAX);
        if args.reverse {
            print(pairs.rev().take(limit), output)
        } else {
            print(pairs.take(limit), output)
        }
    })?;
    Ok(Answer::Yes)
}

fn range<'a>(args: &Args, store: &'a Store) -> bristlecone::Scan<'a> {
    let from =
        args.from.as_deref().map_or(Bound::Unbounded, |key| Bound::Included(session::bytes(key)));
    let to =
        args.to.as_deref().map_or(Bound::Unbounded, |key| Bound::Excluded(session::bytes(key)));
    store.scan((from, to))
}

fn print(
    pairs: impl Iterator<Item = Result<Pair, Error>>,
    output: &mut Output,
) -> anyhow::Result<()> {
    let format = if output.json { Format::Jsonl } else { Format::Tsv };
    for pair in pairs {
        let (key, value) = pair?;
        format.write(output, &key, &value)?;
    }
    Ok(output.flush()?)
}
