//! `stat`: prints the properties of a store.

use crate::session::{self, survives};
use bristlecone::{ClassUsage, Durability, JournalStats, NodeUsage, Placement, Stats};
use bristlecone_console::exit::Answer;
use bristlecone_console::output::{Align, Output, grouped};
use bristlecone_console::progress::waiting;
use bristlecone_console::values::Nodes;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Print the properties of a store: number of keys, sizes, domain, format. Counts the keys by
/// reading the leaves.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bristlecone stat trees.pool --json
  bristlecone stat trees.pool --nodes 0,1 --stripe 2M
  bristlecone stat trees.pool --durability commit

With --nodes it also prints the use of each NUMA node's stripes. It moves no data.")]
pub(crate) struct Args {
    /// The store.
    pool: PathBuf,
    #[command(flatten)]
    nodes: Nodes,
    #[command(flatten)]
    open: session::OpenArgs,
}

/// Prints the properties.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    let mut options = args.open.options();
    if let Some(placement) = args.nodes.placement(Placement::as_it_lies)? {
        options = options.placement(placement);
    }
    let (stats, keys) = session::with(&options, &args.pool, |store| {
        let keys = waiting("counting the keys", || store.len())?;
        Ok((store.stats(), keys))
    })?;
    let uuid = format!("{:032x}", stats.uuid);
    if output.json {
        let mut object = object_of(args, &stats, keys, &uuid);
        if !stats.nodes.is_empty() {
            object["nodes"] = stats.nodes.iter().map(of_node).collect();
        }
        if let Some(journal) = &stats.journal {
            object["journal"] = of_journal(journal);
        }
        output.object(&object)?;
        return Ok(Answer::Yes);
    }
    let opened = match (stats.rebuilt_count, stats.was_recovered) {
        (0, false) => "closed by the last user",
        (0, true) => "not closed by the last user, recovered",
        _ => "saved structures were damaged, and are rebuilt",
    };
    let mut pairs = vec![
        ("pool", args.pool.display().to_string()),
        ("keys", grouped(keys)),
        ("survives", format!("{} (domain {})", survives(&stats), stats.domain)),
        ("write-back", format!("{:?}", stats.write_back).to_lowercase()),
        ("index", format!("{}, nodes of {} bytes", stats.design, stats.node_bytes)),
        ("format", format!("version {}, {uuid}", stats.format_version)),
        ("opened", format!("{} times; {opened}", stats.generation)),
        ("bytes", grouped(stats.pool_bytes)),
        ("in use", format!("{} in {} blocks", grouped(stats.used_bytes), grouped(stats.blocks))),
        ("free", grouped(stats.free_bytes)),
        ("free for one size", format!("{} in partly used chunks", grouped(stats.partial_bytes))),
        ("free for over 8 KiB", format!("{} beside large blocks", grouped(stats.free_page_bytes))),
        ("held back", held_back(&stats)),
    ];
    let names: Vec<String> =
        stats.nodes.iter().map(|usage| format!("node {}", usage.node)).collect();
    for (usage, name) in stats.nodes.iter().zip(&names) {
        let [used, all, free] = [usage.used_bytes, usage.pool_bytes, usage.free_bytes].map(grouped);
        pairs.push((name, format!("{used} of {all} in use, {free} free")));
    }
    let journal = stats.journal.as_ref().map(lines_of).unwrap_or_default();
    pairs.extend(journal.iter().map(|(name, text)| (*name, text.clone())));
    output.pairs(&pairs, Align::Left)?;
    Ok(Answer::Yes)
}

/// Returns the state of a journal, as lines.
fn lines_of(journal: &JournalStats) -> Vec<(&'static str, String)> {
    let JournalStats { position, synced, checkpoint, .. } = *journal;
    let durability = match journal.durability {
        Durability::Commit => "commit: each write is synced".to_owned(),
        Durability::Interval(time) => format!("interval: synced every {time:?}"),
        Durability::Process => "process: synced when it is closed".to_owned(),
    };
    let [used, all, ring_used, ring] =
        [journal.segments_used, journal.segments, journal.ring_lines_used, journal.ring_lines]
            .map(grouped);
    let segment_bytes = grouped(journal.segment_bytes);
    let largest = grouped(journal.largest_group);
    let mean = journal.waits as f64 / journal.groups.max(1) as f64;
    vec![
        ("journal", durability),
        ("segments", format!("{used} of {all} in use, of {segment_bytes} bytes")),
        ("ring", format!("{ring_used} of {ring} lines in use")),
        (
            "fenced",
            format!(
                "{} lines; {} synced, {} in the pool file",
                grouped(position),
                grouped(synced),
                grouped(checkpoint)
            ),
        ),
        (
            "written",
            format!(
                "{} bytes of journal, {} of pool in {} checkpoints",
                grouped(journal.journal_bytes_written),
                grouped(journal.pool_bytes_written),
                grouped(journal.checkpoints)
            ),
        ),
        (
            "syncs",
            format!(
                "{} of segments, {:?} each; {} of the pool",
                grouped(journal.journal_syncs),
                journal.sync_mean,
                grouped(journal.pool_syncs)
            ),
        ),
        (
            "waits",
            format!(
                "{} for a sync, {mean:.1} a group, {largest} at most; {} for space",
                grouped(journal.waits),
                grouped(journal.stalls)
            ),
        ),
        ("private memory", format!("{} bytes", grouped(journal.memory_bytes))),
    ]
}

/// Returns the state of a journal as JSON.
fn of_journal(journal: &JournalStats) -> Value {
    let (durability, interval_ms) = match journal.durability {
        Durability::Commit => ("commit", None),
        Durability::Interval(time) => ("interval", Some(time.as_millis() as u64)),
        Durability::Process => ("process", None),
    };
    json!({
        "durability": durability,
        "interval_ms": interval_ms,
        "position": journal.position,
        "synced": journal.synced,
        "unsynced_bytes": journal.unsynced_bytes(),
        "checkpoint": journal.checkpoint,
        "checkpoints": journal.checkpoints,
        "ring_lines": journal.ring_lines,
        "ring_lines_used": journal.ring_lines_used,
        "segments": journal.segments,
        "segments_used": journal.segments_used,
        "segment_bytes": journal.segment_bytes,
        "journal_bytes_written": journal.journal_bytes_written,
        "pool_bytes_written": journal.pool_bytes_written,
        "journal_syncs": journal.journal_syncs,
        "pool_syncs": journal.pool_syncs,
        "sync_mean_us": journal.sync_mean.as_secs_f64() * 1e6,
        "waits": journal.waits,
        "groups": journal.groups,
        "largest_group": journal.largest_group,
        "stalls": journal.stalls,
        "memory_bytes": journal.memory_bytes,
    })
}

/// Returns the properties of the whole store, for `--json`.
fn object_of(args: &Args, stats: &Stats, keys: u64, uuid: &str) -> serde_json::Value {
    json!({
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
        "rebuilt_count": stats.rebuilt_count,
        "pool_bytes": stats.pool_bytes,
        "used_bytes": stats.used_bytes,
        "free_bytes": stats.free_bytes,
        "blocks": stats.blocks,
        "header_bytes": stats.header_bytes,
        "waiting_blocks": stats.waiting_blocks,
        "waiting_bytes": stats.waiting_bytes,
        "partial_bytes": stats.partial_bytes,
        "free_page_bytes": stats.free_page_bytes,
        "rest_bytes": stats.rest_bytes,
        "kept_bytes": stats.kept_bytes,
        "tail_bytes": stats.tail_bytes,
        "classes": stats.classes.iter().map(of_class).collect::<Vec<_>>(),
    })
}

/// Returns the bytes that no block can use now, by their cause.
fn held_back(stats: &Stats) -> String {
    format!(
        "{} for close, {} at the ends of chunks, {} behind the pool",
        grouped(stats.kept_bytes),
        grouped(stats.rest_bytes),
        grouped(stats.tail_bytes),
    )
}

/// Returns the use of the chunks of one block size as JSON.
fn of_class(usage: &ClassUsage) -> Value {
    json!({
        "block_bytes": usage.block_bytes,
        "chunks": usage.chunks,
        "blocks": usage.blocks,
        "free_bytes": usage.free_bytes,
    })
}

/// Returns the use of a NUMA node's stripes as JSON.
fn of_node(usage: &NodeUsage) -> Value {
    json!({
        "node": usage.node,
        "pool_bytes": usage.pool_bytes,
        "used_bytes": usage.used_bytes,
        "free_bytes": usage.free_bytes,
    })
}
