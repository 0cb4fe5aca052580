//! `salvage`: copies the pairs of a damaged store that are whole into a new store.

use crate::session::{self, DurabilityArgs};
use anyhow::Context;
use bristlecone::{Corrupt, Error, Store};
use bristlecone_console::exit::Answer;
use bristlecone_console::output::{Output, counted};
use bristlecone_console::progress::Progress;
use serde_json::json;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Copy the pairs of a damaged store that are whole into a new store. The damaged file is only
/// read.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bristlecone salvage damaged.pool whole.pool
  bristlecone dump damaged.pool --skip-damaged > pairs.tsv

A pair is copied only if its checksums are right; each damaged leaf or record is named on standard
error. The exit code is 0 if nothing is damaged, 1 if something is, and 3 if there is no pair to
copy. A pair that is older than the last one that was written passes every checksum: compare what
comes out with another copy if you have one.")]
pub(crate) struct Args {
    /// The damaged store. No process may have it open.
    damaged: PathBuf,
    /// The file to create.
    into: PathBuf,
    #[command(flatten)]
    durability: DurabilityArgs,
}

/// Copies the pairs.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    const REPORT_EVERY: u64 = 4096;
    let mut progress = Progress::new(0);
    let create = || args.durability.options().create(&args.into);
    let mut into: Option<Store> = None;
    let (mut pairs, mut bytes) = (0_u64, 0_u64);
    let damages = each_pair(&args.damaged, &mut |key, value| {
        // Created with the first pair: a file that holds none leaves nothing behind.
        let store = match &into {
            Some(store) => store,
            None => into.insert(create()?),
        };
        store.put(key, value)?;
        pairs += 1;
        bytes += (key.len() + value.len()) as u64;
        if pairs.is_multiple_of(REPORT_EVERY) {
            progress.advance(REPORT_EVERY);
        }
        Ok(())
    })
    .with_context(|| format!("stopped after {}", counted(pairs, "pair")))?;
    drop(progress);
    let store = match into {
        Some(store) => store,
        None => create()?, // An empty store without damage.
    };
    session::close(store)?;
    if output.json {
        let damages: Vec<_> = damages.iter().map(of_damage).collect();
        output.object(&json!({
            "pool": args.into.to_string_lossy(),
            "pairs": pairs,
            "bytes": bytes,
            "damaged": damages,
        }))?;
    } else {
        let (them, into) = (counted(pairs, "pair"), args.into.display());
        let places = counted(damages.len() as u64, "damaged place");
        writeln!(output, "{into}: {them}; {places} in {}", args.damaged.display())?;
        output.flush()?;
    }
    Ok(Answer::from_bool(damages.is_empty()))
}

/// A function that takes the key and the value of a pair.
pub(super) type TakePair<'a> = dyn FnMut(&[u8], &[u8]) -> anyhow::Result<()> + 'a;

/// Passes each whole pair of the store at `path` to `take`, and names each damage on standard
/// error. Returns the damages.
///
/// # Errors
/// The errors of `take`; the file cannot be read; or there is damage and no pair.
pub(super) fn each_pair(path: &Path, take: &mut TakePair<'_>) -> anyhow::Result<Vec<Corrupt>> {
    let mut damages: Vec<Corrupt> = Vec::new();
    let mut has_pairs = false;
    for item in bristlecone::salvage(path)? {
        match item {
            Ok((key, value)) => {
                has_pairs = true;
                take(&key, &value)?;
            }
            Err(damage) => {
                // If standard error is closed, the pairs and the exit code are still wanted.
                let _ = writeln!(io::stderr(), "bristlecone: {}: {damage}", path.display());
                damages.push(damage);
            }
        }
    }
    match damages.first() {
        Some(damage) if !has_pairs => Err(Error::Damaged { path: path.into(), damage: *damage })
            .context("no pair can be read"),
        _ => Ok(damages),
    }
}

fn of_damage(damage: &Corrupt) -> serde_json::Value {
    json!({
        "offset": damage.at,
        "what": damage.what,
        "expected": damage.expected,
        "found": damage.found,
    })
}
