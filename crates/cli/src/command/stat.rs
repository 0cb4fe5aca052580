//! `stat`: what a store says of itself.

use crate::failure::Answer;
use crate::output::{Output, grouped, table, waiting};
use crate::session::{self, survives};
use serde_json::json;
use std::path::PathBuf;

/// Print what a store is: its keys, sizes, domain and format. Counts the keys by walking them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  bristlecone stat trees.pool --json")]
pub(crate) struct Args {
    /// The store.
    pool: PathBuf,
}

/// Prints it.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    let (stats, keys) = session::with(&args.pool, |store| {
        let keys = waiting("counting the keys", || store.len())?;
        Ok((store.stats(), keys))
    })?;
    let uuid = format!("{:032x}", stats.uuid);
    if output.json {
        output.object(&json!({
            "pool": args.pool.to_string_lossy(),
            "keys": keys,
            "domain": stats.domain.name(),
            "write_back": format!("{:?}", stats.write_back).to_lowercase(),
            "design": stats.design,
            "node_bytes": stats.node_bytes,
            "format_version": stats.format_version,
            "uuid": uuid,
            "generation": stats.generation,
            "was_recovered": stats.was_recovered,
            "made_anew": stats.made_anew,
            "pool_bytes": stats.pool_bytes,
            "used_bytes": stats.used_bytes,
            "free_bytes": stats.free_bytes,
            "blocks": stats.blocks,
        }))?;
        return Ok(Answer::Yes);
    }
    let mut shown = table(&[], 0..0);
    let opened = match (stats.made_anew, stats.was_recovered) {
        (0, false) => "closed before",
        (0, true) => "not closed before, recovered",
        _ => "what the last close saved was damaged, and is made anew",
    };
    for (name, value) in [
        ("pool", args.pool.display().to_string()),
        ("keys", grouped(keys)),
        ("survives", format!("{} (domain {})", survives(stats.domain), stats.domain)),
        ("write-back", format!("{:?}", stats.write_back).to_lowercase()),
        ("index", format!("{}, nodes of {} bytes", stats.design, stats.node_bytes)),
        ("format", format!("version {}, {uuid}", stats.format_version)),
        ("opened", format!("{} times; {opened}", stats.generation)),
        ("bytes", grouped(stats.pool_bytes)),
        ("in use", format!("{} in {} blocks", grouped(stats.used_bytes), grouped(stats.blocks))),
        ("free", grouped(stats.free_bytes)),
    ] {
        shown.add_row([name.to_owned(), value]);
    }
    output.table(&shown)?;
    Ok(Answer::Yes)
}
