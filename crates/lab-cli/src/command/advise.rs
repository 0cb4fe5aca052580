//! `advise`: names the best design for a workload on a device.

use crate::command::bench::device;
use crate::table::{self, table};
use bristlecone_console::exit::{Answer, UsageError};
use bristlecone_console::output::{Output, grouped, whole};
use bristlecone_console::progress::Spinner;
use bristlecone_console::values;
use bristlecone_lab::device::Profile;
use bristlecone_lab::workload::{Recipe, Workload};
use bristlecone_reproduce::advise::{Advice, advise};
use serde::Serialize;
use std::io::Write;

/// Name the designs that are fastest for a workload on a modelled device, and the reason.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bristlecone-lab advise --workload get:80+insert:20 --device cxl-nv
  bristlecone-lab advise --workload sessions.toml --device optane-200 --threads 48
  bristlecone-lab advise --workload insert --device ssd --threads 8

The command runs the workload on every persistent design, at each of its node sizes, on a model of
the device in virtual time. The model has no latch contention and no other programs. The list has
each design once, at its fastest node size. A build has the default and the smallest size of each
design; `cargo lab` makes and runs one with all sizes.")]
pub(crate) struct Args {
    /// The workload: a name, a mix or a file, as for `bench`.
    #[arg(long)]
    workload: Workload,
    /// The device: a name or FILE.toml, as for `bench`.
    #[arg(long, value_parser = device)]
    device: Box<Profile>,
    /// Number of threads that use the index.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1024),
    )]
    threads: u32,
    /// Number of records in the model. The modelled cache has one byte for each.
    #[arg(long, value_name = "R", default_value = "100000", value_parser = values::count)]
    records: u64,
    /// Number of operations in the model.
    #[arg(long, value_name = "O", default_value = "20000", value_parser = values::count)]
    ops: u64,
    /// Number of designs to list.
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,
    /// Seed of the keys and of the order of operations.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A design and its rank as a JSON object.
#[derive(Serialize)]
struct Ranked<'a> {
    rank: usize,
    device: &'a str,
    workload: &'a str,
    threads: u32,
    #[serde(flatten)]
    advice: &'a Advice,
    /// The reason why the next design is slower; only for rank 1.
    why: Option<String>,
}

/// Models the designs and prints the fastest.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    let mut profile = (*args.device).clone();
    profile.cpu.cache_bytes = args.records;
    profile.check().map_err(|error| {
        UsageError(format!("--records is too small for the modelled cache: {error}"))
    })?;
    if args.workload.reopens().is_some() {
        let what =
            "the model has no opening of a pool: reopen-crash and reopen-clean have no advice";
        return Err(UsageError(what.into()).into());
    }
    let recipe = Recipe {
        dist: args.workload.dist(),
        ops: args.workload.ops(args.ops.max(1), args.records),
        workload: args.workload.clone(),
        records: args.records,
        seed: args.seed,
        ..Recipe::default()
    };
    let spinner = Spinner::new();
    let ranked = advise(&recipe, &profile, args.threads, &|what| spinner.say(what))?;
    spinner.end();
    let why = ranked.iter().find(|other| other.design != ranked[0].design);
    let why = why.map(|other| ranked[0].why(other));
    if output.json {
        for (at, advice) in ranked.iter().take(args.top).enumerate() {
            output.object(&Ranked {
                rank: at + 1,
                device: &profile.name,
                workload: recipe.workload.name(),
                threads: args.threads,
                advice,
                why: why.clone().filter(|_| at == 0),
            })?;
        }
        return Ok(Answer::Yes);
    }
    print(&ranked[..args.top.min(ranked.len())], output)?;
    if let Some((best, why)) = ranked.first().zip(why) {
        writeln!(output, "{} with nodes of {} B: {why}", best.design, best.node_bytes)?;
    }
    Ok(Answer::Yes)
}

/// Prints the table, and the meaning of its columns.
fn print(ranked: &[Advice], output: &mut Output) -> std::io::Result<()> {
    let titles = [
        "design",
        "node",
        "ops/s",
        "bound",
        "ns/op",
        "lines",
        "fences",
        "misses",
        "media B/op",
        "formula ops/s",
    ];
    let mut shown = table(&titles, 1..10);
    for advice in ranked {
        shown.add_row([
            advice.design.clone(),
            advice.node_bytes.to_string(),
            grouped(whole(advice.ops_per_second)),
            advice.bound.name().to_owned(),
            format!("{:.0}", advice.alone_ns),
            format!("{:.2}", advice.lines),
            format!("{:.2}", advice.fences),
            format!("{:.2}", advice.misses),
            format!("{:.1}", advice.media_bytes),
            grouped(whole(advice.predicted)),
        ]);
    }
    table::print(&shown, output)?;
    writeln!(
        output,
        "\nbound: the part of the device that limits the speed. lines, fences, misses: cache lines \
         flushed,\nfences and cache misses of an operation. formula: a prediction from these counts \
         alone.\n"
    )
}
