//! What `bench` is told.

use crate::args::{self, Nodes};
use crate::failure::Usage;
use bristlecone_lab::bench::{Bench, Delays};
use bristlecone_lab::device::Profile;
use bristlecone_lab::workload::{Dist, Keys, Recipe, Trace, Workload, WorkloadError};
use bristlecone_pmem::{Domain, Placement};
use std::path::PathBuf;
use std::time::Duration;

/// Measure designs under a workload: speed, latency, flushes, fences, memory.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bristlecone bench --design fptree,btreemap --workload insert,get --records 1000000
  bristlecone bench --design all --workload a --threads 2 --reps 3 --json
  bristlecone bench --design fptree,ccl-btree --workload update --device optane-200 --sim-threads 48
  bristlecone bench --design btree-ls,ccl-btree --workload update --threads 2 --collectors 2

`btreemap` is std's BTreeMap in DRAM, `bristlecone` the store's own index (keys of 8 B as byte
strings). docs/benchmarks.md lists the peers; those that keep files need a build with
`--features peers`, and put them into a folder at --pool, else in /var/tmp. The workloads
reopen-crash and reopen-clean time the opening of a pool of --records records. Counts per operation
are of at most 200 000 operations on at most 1 000 000 records.
Flushes and fences are those of --domain, whatever the file survives. --device runs each workload once
more, by one thread, on a model in virtual time; docs/device-model.md says what it models.")]
pub(crate) struct Args {
    /// Designs, as `bristlecone designs` lists them; also `btreemap`, `bristlecone`; or `all`; what
    /// others have made, `peer:NAME`, or all `peers`.
    #[arg(long, value_delimiter = ',', required_unless_present = "peer")]
    pub(super) design: Vec<String>,
    /// Shared library with a tree behind the interface of `PiBench`; the same as `peer:/PATH`.
    #[arg(long, value_name = "LIB")]
    peer: Vec<PathBuf>,
    /// Workloads: one kind of operation (insert, get, multiget, update, delete, scan), a mix of
    /// YCSB (a to f), reopen-crash, reopen-clean; a mix such as get:30+insert:70 of get, insert,
    /// update, upsert, rmw, delete, scan with percentages that sum to 100; a FILE.toml with one; a
    /// FILE.trace that --record wrote, or in the text of memcached (docs/workloads.md).
    #[arg(long, value_delimiter = ',', required = true, value_parser = workload)]
    pub(super) workload: Vec<Workload>,
    /// Records to load before the clock starts [default: the workload file's, else 1000000, of a
    /// file of keys half].
    #[arg(long, value_name = "R", value_parser = args::count)]
    records: Option<u64>,
    /// Operations to measure, of all threads together [default: the workload file's, else as many
    /// as records].
    #[arg(long, value_name = "O", value_parser = args::count)]
    ops: Option<u64>,
    /// Threads.
    #[arg(long, value_name = "T", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: u64,
    /// Threads beside those that collect the logs of a design meanwhile, so that its operations need not
    /// (btree-ls, ccl-btree; others put nothing off, and have none).
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1024))]
    collectors: u64,
    /// Which records are chosen: uniform, zipfian, latest, sequential, hotspot (80 % of the
    /// operations on 20 % of the records), hotspot:OPS/RECORDS [default: as the workload is
    /// published, else uniform].
    #[arg(long, value_parser = dist)]
    dist: Option<Dist>,
    /// What keys are: u64 (numbers of 8 B); byte strings of 16 B, 20 B (`user` and digits), 64 B
    /// (with a long common prefix), var (8 to 100 B); the lines of a FILE; words, ipv4, ipv6,
    /// cities, city-names, paths, lemmas, unicode-names of ./key-sets [default: the workload
    /// file's, else u64].
    #[arg(long, value_name = "KEYS", value_parser = keys)]
    keys: Option<Keys>,
    /// Size of a node [default: the design's].
    #[arg(long, value_name = "N")]
    pub(super) node_bytes: Option<usize>,
    /// Write the records and operations of the first workload as a trace, before they are run.
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,
    /// Nanoseconds added to each line flushed; after a comma, to each fence.
    #[arg(long, value_name = "D[,F]", default_value = "0", value_parser = delay)]
    pub(super) delay_ns: Delays,
    /// Pool file to create for the run and remove after it [default: in /dev/shm].
    #[arg(long, value_name = "PATH")]
    pub(super) pool: Option<PathBuf>,
    #[command(flatten)]
    nodes: Nodes,
    /// Domain whose flushes and fences are executed: adr, eadr, process, volatile.
    #[arg(long, default_value = "adr", value_parser = args::domain)]
    pub(super) domain: Domain,
    /// Repetitions.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(super) reps: u64,
    /// What keys and choices are drawn from.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Start so many operations a second, of all threads together, at random times that do not wait
    /// for those before: latency is then from when an operation was to start [default: one after
    /// the other].
    #[arg(long, value_name = "OPS_PER_SECOND", value_parser = rate)]
    rate: Option<f64>,
    /// Operations of each thread before the clock starts.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=MANY))]
    warm_up: u64,
    /// Also model a device: optane-100, optane-200, pcm, stt-ram, nvdimm-n, cxl-nv, dram-300ns; or
    /// a profile, FILE.toml.
    #[arg(long, value_name = "NAME", value_parser = device, conflicts_with = "node_bytes")]
    device: Option<Box<Profile>>,
    /// Threads that are projected from the model.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "device", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(super) sim_threads: u32,
    /// Cache of the modelled processor [default: the profile's].
    #[arg(long, value_name = "SIZE", requires = "device", value_parser = args::bytes)]
    sim_cache: Option<u64>,
    /// Pairs of a scan; in workload e, the most [default: the workload file's, else 100].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    scan_length: Option<u16>,
}

/// More records or operations than this are in no memory.
const MANY: u64 = 1 << 36;

/// Records, where nobody says how many.
const RECORDS: u64 = 1_000_000;

fn workload(text: &str) -> Result<Workload, WorkloadError> {
    text.parse()
}

fn rate(text: &str) -> Result<f64, String> {
    /// Slower than this is no load, and a run of it takes for ever.
    const LEAST: f64 = 0.001;
    /// More than any machine starts.
    const MOST: f64 = 1e12;
    let rate = text.parse().ok().filter(|rate| (LEAST..=MOST).contains(rate));
    rate.ok_or_else(|| format!("operations a second are expected, {LEAST} to {MOST:e}"))
}

fn keys(text: &str) -> Result<Keys, WorkloadError> {
    text.parse()
}

fn dist(text: &str) -> Result<Dist, WorkloadError> {
    text.parse()
}

fn delay(text: &str) -> Result<Delays, String> {
    let nanoseconds = |text: &str| {
        text.parse().map(Duration::from_nanos).map_err(|_| "nanoseconds are expected".to_owned())
    };
    let (flush, fence) = text.split_once(',').unwrap_or((text, "0"));
    Ok(Delays { flush: nanoseconds(flush)?, fence: nanoseconds(fence)? })
}

pub(crate) fn device(text: &str) -> Result<Box<Profile>, String> {
    let is_file = std::path::Path::new(text).extension().is_some_and(|end| end == "toml");
    let profile = if is_file {
        Profile::parse(&std::fs::read_to_string(text).map_err(|error| error.to_string())?)
    } else {
        Profile::named(text)
    };
    profile.map(Box::new).map_err(|error| error.to_string())
}

impl Args {
    /// The names of all that is measured.
    pub(super) fn names(&self) -> anyhow::Result<Vec<String>> {
        let mut names = self.design.clone();
        for library in &self.peer {
            names.push(format!("peer:{}", std::path::absolute(library)?.display()));
        }
        Ok(names)
    }

    /// The device to model.
    pub(super) fn device(&self) -> anyhow::Result<Option<Profile>> {
        let mut device = self.device.as_deref().cloned();
        if let Some((profile, bytes)) = device.as_mut().zip(self.sim_cache) {
            profile.cpu.cache_bytes = bytes;
            profile.check().map_err(|error| Usage(error.to_string()))?;
        }
        Ok(device)
    }

    /// How designs are timed.
    pub(super) fn bench(&self) -> anyhow::Result<Bench> {
        Ok(Bench {
            pool: self.pool.clone(),
            domain: self.domain,
            delays: self.delay_ns,
            placement: self.nodes.placement(Placement::new)?,
        })
    }

    /// What `workload` does: what the command line says, else what the workload's file says.
    pub(super) fn recipe(&self, workload: &Workload) -> anyhow::Result<Recipe> {
        let is_driven = self.rate.is_some() || self.warm_up > 0 || self.collectors > 0;
        if workload.reopens().is_some() && is_driven {
            let what = "opening a pool again has no --rate, no --warm-up, no --collectors";
            return Err(Usage(what.into()).into());
        }
        let recipe = match workload.trace() {
            Some(trace) => self.replay(workload, trace)?,
            None => self.chosen(workload),
        };
        let opens = workload.reopens().is_some();
        if recipe.records == 0 && !workload.begins_empty() {
            return Err(Usage("only inserts can begin without --records".into()).into());
        }
        if self.ops == Some(0) || (recipe.ops == 0 && !opens) {
            return Err(Usage("--ops must be at least 1, beside those of --warm-up".into()).into());
        }
        if recipe.ops > MANY || recipe.records > MANY {
            return Err(Usage(format!("--records and --ops are at most {MANY}")).into());
        }
        Ok(recipe)
    }

    /// What a workload does whose keys and records are chosen here.
    fn chosen(&self, workload: &Workload) -> Recipe {
        let custom = workload.custom();
        let keys = self.keys.as_ref().or(custom.and_then(|custom| custom.keys.as_ref()));
        let keys = keys.cloned().unwrap_or_default();
        // Half of the keys that there are leave as many for inserts.
        let records = self.records.or(custom.and_then(|custom| custom.records));
        let records = records.unwrap_or(keys.count().map_or(RECORDS, |count| count / 2));
        let ops = self.ops.or(custom.and_then(|custom| custom.ops)).unwrap_or(records.max(1));
        let scan_length = self.scan_length.or(custom.and_then(|custom| custom.scan_length));
        Recipe {
            workload: workload.clone(),
            dist: self.dist.unwrap_or(workload.dist()),
            records,
            ops: self.measured(workload, ops, records),
            threads: self.threads,
            maintenance_threads: self.collectors,
            scan_length: scan_length.unwrap_or(Recipe::SCAN_LENGTH),
            seed: self.seed,
            keys,
            rate: self.rate,
            warm_up: self.warm_up,
        }
    }

    /// What a replay of `trace` does: what it loads and which keys it has, it says itself.
    fn replay(&self, workload: &Workload, trace: &Trace) -> anyhow::Result<Recipe> {
        let own = [
            (self.records.is_some(), "--records"),
            (self.keys.is_some(), "--keys"),
            (self.dist.is_some(), "--dist"),
            (self.scan_length.is_some(), "--scan-length"),
        ];
        if let Some((_, option)) = own.iter().find(|(given, _)| *given) {
            return Err(Usage(format!("a trace goes without {option}: it says that itself")).into());
        }
        Ok(Recipe {
            workload: workload.clone(),
            records: trace.records(),
            ops: self.measured(workload, self.ops.unwrap_or(trace.ops()), trace.records()),
            threads: self.threads,
            maintenance_threads: self.collectors,
            seed: self.seed,
            rate: self.rate,
            warm_up: self.warm_up,
            ..Recipe::default()
        })
    }

    /// How many of `wanted` operations there can be on `records` records behind the warm-up.
    fn measured(&self, workload: &Workload, wanted: u64, records: u64) -> u64 {
        let early = self.warm_up * self.threads;
        workload.ops(wanted.saturating_add(early), records).saturating_sub(early)
    }
}
