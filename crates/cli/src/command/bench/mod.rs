//! `bench`: workloads on the designs, all in one run, so that their ratios mean something.
//!
//! For each workload and repetition every design loads the same records in the same order, then
//! does the same operations; the repetitions of the designs are interleaved, and the one with the
//! median speed is reported. Counts come from a pass of their own ([`count`]); the memory of a key is
//! found once, after the first load.

mod count;
mod report;
mod run;
mod stored;
mod subject;
mod target;
mod workload;
mod zipf;

use crate::args;
use crate::failure::{Answer, Usage};
use crate::output::{Output, Progress};
use bristlecone_pmem::medium::Delay;
use bristlecone_pmem::{Domain, Medium};
use report::{Bytes, Latency, Row};
use std::path::PathBuf;
use std::time::Duration;
use target::{Bench, Target};
use workload::{Dist, Recipe, Workload};

/// Measure designs under a workload: speed, latency, flushes, fences, memory.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bristlecone bench --design fptree,btreemap --workload insert,get --records 1000000
  bristlecone bench --design all --workload a --threads 2 --reps 3 --json

`btreemap` is std's BTreeMap in DRAM, `bristlecone` the store's own index (keys of 8 B as byte
strings). Counts per operation are of at most 200 000 operations on at most 1 000 000 records.
Flushes and fences are those of --domain, whatever the file survives.")]
pub(crate) struct Args {
    /// Designs, as `bristlecone designs` lists them; also `btreemap`, `bristlecone`; or `all`.
    #[arg(long, value_delimiter = ',', required = true)]
    design: Vec<String>,
    /// Workloads: one kind of operation, or a mix of YCSB.
    #[arg(long, value_delimiter = ',', required = true, value_enum)]
    workload: Vec<Workload>,
    /// Records to load before the clock starts.
    #[arg(long, value_name = "R", default_value = "1000000", value_parser = args::count)]
    records: u64,
    /// Operations to measure, of all threads together [default: as many as records].
    #[arg(long, value_name = "O", value_parser = args::count)]
    ops: Option<u64>,
    /// Threads.
    #[arg(long, value_name = "T", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: u64,
    /// Which records are chosen [default: as the workload is published, else uniform].
    #[arg(long, value_enum)]
    dist: Option<Dist>,
    /// Size of a node [default: the design's].
    #[arg(long, value_name = "N")]
    node_bytes: Option<usize>,
    /// Nanoseconds added to each line flushed; after a comma, to each fence.
    #[arg(long, value_name = "D[,F]", value_parser = delay)]
    delay_ns: Option<Delays>,
    /// Pool file to create for the run and remove after it [default: in /dev/shm].
    #[arg(long, value_name = "PATH")]
    pool: Option<PathBuf>,
    /// Domain whose flushes and fences are executed: adr, eadr, process, volatile.
    #[arg(long, default_value = "adr", value_parser = args::domain)]
    domain: Domain,
    /// Repetitions.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    reps: u64,
    /// What keys and choices are drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Pairs of a scan; in workload e, the most.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..))]
    scan_length: u16,
}

/// Injected latencies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delays {
    flush: Duration,
    fence: Duration,
}

impl Delays {
    /// `medium`, slower by these.
    fn on<M: Medium>(self, medium: M) -> Delay<M> {
        Delay::new(medium, self.flush, self.fence)
    }
}

fn delay(text: &str) -> Result<Delays, String> {
    let nanoseconds = |text: &str| {
        text.parse().map(Duration::from_nanos).map_err(|_| "nanoseconds are expected".to_owned())
    };
    let (flush, fence) = text.split_once(',').unwrap_or((text, "0"));
    Ok(Delays { flush: nanoseconds(flush)?, fence: nanoseconds(fence)? })
}

impl Args {
    fn recipe(&self, workload: Workload) -> anyhow::Result<Recipe> {
        let ops = self.ops.unwrap_or_else(|| self.records.max(1));
        if self.records == 0 && workload != Workload::Insert {
            return Err(Usage("only inserts can begin without --records".into()).into());
        }
        if ops == 0 {
            return Err(Usage("--ops must be at least 1".into()).into());
        }
        Ok(Recipe {
            workload,
            dist: self.dist.unwrap_or(workload.dist()),
            records: self.records,
            ops: workload.ops(ops, self.records),
            threads: self.threads,
            scan_length: self.scan_length,
            seed: self.seed,
        })
    }
}

/// Runs everything that `args` ask for.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    let targets = target::parse(&args.design, args.node_bytes)?;
    let recipes =
        args.workload.iter().map(|&w| args.recipe(w)).collect::<anyhow::Result<Vec<_>>>()?;
    let phases = recipes.len() as u64 * targets.len() as u64 * (args.reps + 1);
    let mut progress = Progress::new(phases);
    let bench = Bench { pool: args.pool.clone(), domain: args.domain, delays: args.delay_ns };
    let mut rows = Vec::new();
    let mut memory = vec![None; targets.len()];
    for recipe in &recipes {
        for row in one_workload(args, &bench, &targets, recipe, &mut memory, &mut progress)? {
            if output.json {
                output.object(&row)?;
            }
            rows.push(row);
        }
    }
    drop(progress);
    if !output.json {
        report::print(&rows, output)?;
    }
    Ok(Answer::Yes)
}

fn one_workload(
    args: &Args,
    bench: &Bench,
    targets: &[Target],
    recipe: &Recipe,
    memory: &mut [Option<Bytes>],
    progress: &mut Progress,
) -> anyhow::Result<Vec<Row>> {
    let plans = recipe.plans();
    let mut repetitions: Vec<Vec<run::Measured>> = targets.iter().map(|_| Vec::new()).collect();
    for _ in 0..args.reps {
        for (index, target) in targets.iter().enumerate() {
            progress.say(format!("{target}, {}", recipe.workload.name()));
            let once = bench.time(target, recipe, &plans, memory[index].is_none())?;
            repetitions[index].push(once.measured);
            memory[index] = memory[index].or(once.memory);
            progress.advance(1);
        }
    }
    drop(plans);
    let mut rows = Vec::new();
    for ((target, repetitions), memory) in targets.iter().zip(repetitions).zip(memory) {
        progress.say(format!("{target}, {}: counting", recipe.workload.name()));
        let per_op = bench.count(target, recipe)?;
        progress.advance(1);
        let Some((middle, ops_per_second_range)) = report::median(repetitions) else { continue };
        rows.push(Row {
            design: target.to_string(),
            workload: recipe.workload,
            threads: recipe.threads,
            records: recipe.records,
            ops: middle.ops,
            seconds: middle.seconds,
            ops_per_second: middle.ops_per_second(),
            latency_ns: Latency::of(&middle.samples),
            per_op,
            bytes_per_key: memory.unwrap_or_default(),
            node_bytes: target.node_bytes(),
            dist: recipe.dist,
            domain: args.domain.name(),
            delay_ns: args.delay_ns.map_or(0, |delays| delays.flush.as_nanos() as u64),
            reps: args.reps as usize,
            seed: args.seed,
            ops_per_second_range,
        });
    }
    Ok(rows)
}
