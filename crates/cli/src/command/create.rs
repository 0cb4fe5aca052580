//! `create`: creates an empty store.

use crate::session::{DurabilityArgs, survives};
use bristlecone_console::exit::Answer;
use bristlecone_console::output::Output;
use bristlecone_console::values;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Create an empty store. Its file grows when it is full.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  bristlecone create trees.pool --size 64M")]
pub(crate) struct Args {
    /// The file to create.
    pool: PathBuf,
    /// Initial size of the file, with a unit K, M, G or T.
    #[arg(long, value_name = "S", default_value = "16M", value_parser = values::bytes)]
    size: u64,
    #[command(flatten)]
    durability: DurabilityArgs,
}

/// Creates the store.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    let stats = args.durability.options().initial_bytes(args.size).create_closed(&args.pool)?;
    if output.json {
        output.object(&json!({
            "pool": args.pool.to_string_lossy(),
            "pool_bytes": stats.pool_bytes,
            "domain": stats.domain.name(),
            "design": stats.design,
        }))?;
    } else {
        let (pool, domain) = (args.pool.display(), stats.domain);
        let (bytes, survives) = (stats.pool_bytes, survives(&stats));
        writeln!(output, "{pool}: {bytes} bytes, domain {domain}: survives {survives}")?;
        output.flush()?;
    }
    Ok(Answer::Yes)
}
