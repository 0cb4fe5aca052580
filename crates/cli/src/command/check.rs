//! `check`: reads and verifies all of a store.

use crate::session;
use bristlecone_console::exit::Answer;
use bristlecone_console::output::{Align, Output, counted, grouped};
use bristlecone_console::progress::waiting;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Read and verify every node, every pair and every block of a store. The exit code is 3 if it is
/// damaged, 1 if all pairs are there and blocks are in use that none of them needs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  bristlecone check trees.pool")]
pub(crate) struct Args {
    /// The store.
    pool: PathBuf,
    #[command(flatten)]
    open: session::OpenArgs,
}

/// Returns the sentences about `blocks` blocks that no pair needs.
fn leak(pool: &Path, blocks: u64) -> String {
    let (them, pool) = (counted(blocks, "block"), pool.display());
    format!(
        "{pool}: no pair needs {them} that the store counts as in use. All pairs are there; the \
         space is lost until they are moved: `dump` them, and `load` them into a new store. Please \
         report it: this is a defect of Bristlecone"
    )
}

/// Verifies the store.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    let checked: Result<_, bristlecone::Error> = waiting("reading all of the store", || {
        let mut store = args.open.options().open(&args.pool)?;
        let report = store.check()?;
        Ok((store, report))
    });
    let report = match checked {
        Ok((store, report)) => {
            session::close(store)?;
            report
        }
        Err(error) => {
            if output.json && session::is_damage(&error) {
                output.object(&json!({ "ok": false, "damage": error.to_string() }))?;
            }
            return Err(error.into());
        }
    };
    let whole = report.unreachable_blocks == 0;
    if !whole {
        let leak = leak(&args.pool, report.unreachable_blocks);
        let _ = writeln!(std::io::stderr(), "bristlecone: {leak}"); // The exit code says so, too.
    }
    if output.json {
        output.object(&json!({
            "ok": whole,
            "keys": report.keys,
            "key_bytes": report.key_bytes,
            "value_bytes": report.value_bytes,
            "record_bytes": report.record_bytes,
            "leaves": report.index.leaves,
            "inner_nodes": report.index.inner_nodes,
            "height": report.index.height,
            "index_pm_bytes": report.index.pm_bytes,
            "index_dram_bytes": report.index.dram_bytes,
            "unreachable_blocks": report.unreachable_blocks,
        }))?;
        return Ok(Answer::from_bool(whole));
    }
    let pairs = [
        ("keys", report.keys),
        ("bytes of keys", report.key_bytes),
        ("bytes of values", report.value_bytes),
        ("leaves", report.index.leaves),
        ("inner nodes", report.index.inner_nodes),
        ("height", u64::from(report.index.height)),
        ("bytes of the index, persistent", report.index.pm_bytes),
        ("bytes of the index, DRAM", report.index.dram_bytes),
        ("unreachable blocks", report.unreachable_blocks),
    ];
    output.pairs(&pairs.map(|(name, value)| (name, grouped(value))), Align::Right)?;
    Ok(Answer::from_bool(whole))
}
