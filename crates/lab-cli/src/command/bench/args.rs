//! The arguments of `bench`.

use bristlecone_console::exit::UsageError;
use bristlecone_console::values::{self, Nodes};
use bristlecone_lab::bench::{Bench, Delays, Flushing};
use bristlecone_lab::device::Profile;
use bristlecone_lab::workload::{Dist, Keys, Recipe, Trace, Workload, WorkloadError};
use bristlecone_pmem::journal::Durability;
use bristlecone_pmem::{Domain, Placement};
use std::path::PathBuf;
use std::time::Duration;

/// Measure designs under a workload: speed, latency, flushes, fences, memory.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bristlecone-lab bench --design fptree,btreemap --workload insert,get --records 1000000
  bristlecone-lab bench --design all --workload a --threads 2 --reps 3 --json
  bristlecone-lab bench --design fptree --workload update --device optane-200 --sim-threads 48
  bristlecone-lab bench --design btree-ls-r --workload update --maintenance-threads 2
  bristlecone-lab bench --design floor,fptree,lb-tree --workload get,update --reps 3

`btreemap` is std's BTreeMap in DRAM, `bristlecone` the store (keys of 8 B as byte strings).
`floor` is no index, but the least that one does: a read loads one line of a pool of the same size,
a write also stores to it, flushes and fences it. floor-serial waits for each line before it asks
for the next one, floor-pipelined does not. All rows then show their time as a multiple of both.
docs/benchmarks.md lists the peers. Peers that keep files need a build with `--features peers`;
their files lie in a folder at --pool, else in /var/tmp. The workloads reopen-crash and
reopen-clean time the opening of a pool of --records records. Counts per operation are of at most
200 000 operations on at most 1 000 000 records. Flushes and fences are those of --domain, also
where the file survives less. --device runs each workload once more, with one thread, on a model of
a device in virtual time; docs/device-model.md describes the model.")]
pub(crate) struct Args {
    /// Designs, as `bristlecone-lab designs` lists them; also `btreemap`, `bristlecone`, `floor`;
    /// or `all`. Stores and trees of others: `peer:NAME`, or all `peers`.
    #[arg(long, value_delimiter = ',', required_unless_present = "peer")]
    pub(super) design: Vec<String>,
    /// Shared library of a tree with the interface of `PiBench`; the same as `peer:/PATH`.
    #[arg(long, value_name = "LIB")]
    peer: Vec<PathBuf>,
    /// Workloads: one kind of operation (insert, get, multiget, update, delete, scan), a mix of
    /// YCSB (a to f), reopen-crash, reopen-clean; a mix such as get:30+insert:70 of get, insert,
    /// update, upsert, rmw, delete, scan with percentages that sum to 100; a FILE.toml with one; a
    /// FILE.trace that --record wrote, or in the text of memcached (docs/workloads.md).
    #[arg(long, value_delimiter = ',', required = true, value_parser = workload)]
    pub(super) workload: Vec<Workload>,
    /// Records to load before the clock starts [default: the workload file's, else half of the keys
    /// of a key file, else 1000000].
    #[arg(long, value_name = "R", value_parser = values::count)]
    records: Option<u64>,
    /// Load the records in bulk, and fill each node to this percentage [default: they are inserted
    /// one by one].
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=100))]
    fill: Option<u32>,
    /// Operations to measure, of all threads together [default: the workload file's, else the
    /// number of records].
    #[arg(long, value_name = "O", value_parser = values::count)]
    ops: Option<u64>,
    /// Number of threads that run operations.
    #[arg(
        long,
        value_name = "T",
        default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=1024),
    )]
    threads: u64,
    /// Extra threads that collect the logs of btree-ls-r and ccl-btree. Other designs start none.
    #[arg(
        long = "maintenance-threads",
        alias = "collectors",
        value_name = "N",
        default_value_t = 0,
        value_parser = clap::value_parser!(u64).range(..=1024),
    )]
    collectors: u64,
    /// Distribution of the chosen records: uniform, zipfian, latest, sequential, hotspot (80 % of
    /// the operations on 20 % of the records), hotspot:OPS/RECORDS [default: the published one of
    /// the workload, else uniform].
    #[arg(long, value_parser = dist)]
    dist: Option<Dist>,
    /// Kind of keys: u64 (numbers of 8 B); byte strings of 16 B, 20 B (`user` and digits), 64 B
    /// (with a long common prefix), var (8 to 100 B); the lines of a FILE; words, ipv4, ipv6,
    /// cities, city-names, paths, lemmas, unicode-names of ./key-sets [default: the workload
    /// file's, else u64].
    #[arg(long, value_name = "KEYS", value_parser = keys)]
    keys: Option<Keys>,
    /// Size of a node; a size that is neither the default nor the smallest needs `cargo lab`
    /// [default: the design's].
    #[arg(long, value_name = "N")]
    pub(super) node_bytes: Option<usize>,
    /// Write the records and operations of the first workload to a trace before they are run.
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,
    /// Nanoseconds added to each flush of a line; after a comma, to each fence.
    #[arg(long, value_name = "D[,F]", default_value = "0", value_parser = delay)]
    pub(super) delay_ns: Delays,
    /// Pool file to create for the run and to remove after it [default: in /dev/shm].
    #[arg(long, value_name = "PATH")]
    pub(super) pool: Option<PathBuf>,
    #[command(flatten)]
    nodes: Nodes,
    /// Persistence domain whose flushes and fences are executed: adr, eadr, disk, process,
    /// volatile. With disk, the file has a journal, which is synced every 100 ms.
    #[arg(long, default_value = "adr", value_parser = values::measured_domain)]
    pub(super) domain: Domain,
    /// Sync the journal for each write, before it returns. Only with --domain disk.
    #[arg(long)]
    commit: bool,
    /// Instructions that write lines back and order them: fastest (such as clwb and sfence), or
    /// serial (clflush and mfence, as in papers from before clwb).
    #[arg(long, default_value = "fastest", value_parser = flushing)]
    flush: Flushing,
    /// Number of repetitions; the row has the median.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=1000),
    )]
    pub(super) reps: u64,
    /// Seed of the keys and of the order of operations.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Start this many operations a second, of all threads together, at random times. Latency then
    /// counts from the planned start, also if the operation before is late [default: each thread
    /// starts an operation after the one before].
    #[arg(long, value_name = "OPS_PER_SECOND", value_parser = rate)]
    rate: Option<f64>,
    /// Operations that each thread runs before the clock starts.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        value_parser = clap::value_parser!(u64).range(..=MANY),
    )]
    warm_up: u64,
    /// Device to model as well: optane-100, optane-200, pcm, stt-ram, nvdimm-n, cxl-nv, dram-300ns,
    /// ssd; or a profile, FILE.toml.
    #[arg(long, value_name = "NAME", value_parser = device, conflicts_with = "node_bytes")]
    device: Option<Box<Profile>>,
    /// Number of threads for which the model predicts the throughput.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        requires = "device",
        value_parser = clap::value_parser!(u32).range(1..=1024),
    )]
    pub(super) sim_threads: u32,
    /// Cache size of the modelled processor [default: the profile's].
    #[arg(long, value_name = "SIZE", requires = "device", value_parser = values::bytes)]
    sim_cache: Option<u64>,
    /// Pairs of a scan; the most in workload e [default: the workload file's, else 100].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    scan_length: Option<u16>,
}

/// The most records, and the most operations: more would fit no memory.
const MANY: u64 = 1 << 36;

/// The default number of records.
const RECORDS: u64 = 1_000_000;

pub(crate) fn workload(text: &str) -> Result<Workload, WorkloadError> {
    text.parse()
}

fn rate(text: &str) -> Result<f64, String> {
    /// The lowest rate: one operation in 1000 s.
    const LEAST: f64 = 0.001;
    /// The highest rate, above what any machine can start.
    const MOST: f64 = 1e12;
    let rate = text.parse().ok().filter(|rate| (LEAST..=MOST).contains(rate));
    rate.ok_or_else(|| format!("expected operations a second, {LEAST} to {MOST:e}"))
}

pub(crate) fn keys(text: &str) -> Result<Keys, WorkloadError> {
    text.parse()
}

pub(crate) fn dist(text: &str) -> Result<Dist, WorkloadError> {
    text.parse()
}

pub(crate) fn flushing(text: &str) -> Result<Flushing, String> {
    let all = [Flushing::Fastest, Flushing::Serial];
    let found = all.into_iter().find(|flushing| flushing.name() == text);
    found.ok_or_else(|| "expected fastest or serial".to_owned())
}

pub(crate) fn delay(text: &str) -> Result<Delays, String> {
    let nanoseconds = |text: &str| {
        text.parse().map(Duration::from_nanos).map_err(|_| "expected nanoseconds".to_owned())
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
    /// Returns the names of the designs and peers to measure.
    pub(super) fn names(&self) -> anyhow::Result<Vec<String>> {
        let mut names = self.design.clone();
        for library in &self.peer {
            names.push(format!("peer:{}", std::path::absolute(library)?.display()));
        }
        Ok(names)
    }

    /// Returns the profile of the device to model, if there is one.
    pub(super) fn device(&self) -> anyhow::Result<Option<Profile>> {
        let mut device = self.device.as_deref().cloned();
        if let Some((profile, bytes)) = device.as_mut().zip(self.sim_cache) {
            profile.cpu.cache_bytes = bytes;
            profile.check().map_err(|error| UsageError(error.to_string()))?;
        }
        Ok(device)
    }

    /// Returns the settings of all timed runs.
    pub(super) fn bench(&self) -> anyhow::Result<Bench> {
        let is_disk = self.domain == Domain::Disk;
        if is_disk && self.flush != Flushing::Fastest || self.commit && !is_disk {
            let what = "--domain disk takes no --flush serial, and no other domain takes --commit";
            return Err(UsageError(what.into()).into());
        }
        Ok(Bench {
            pool: self.pool.clone(),
            domain: self.domain,
            flushing: self.flush,
            durability: if self.commit { Durability::Commit } else { Durability::DEFAULT },
            delays: self.delay_ns,
            placement: self.nodes.placement(Placement::new)?,
        })
    }

    /// Returns the recipe of `workload`. The command line overrides the workload's file.
    pub(super) fn recipe(&self, workload: &Workload) -> anyhow::Result<Recipe> {
        let is_driven = self.rate.is_some() || self.warm_up > 0 || self.collectors > 0;
        if workload.reopens().is_some() && is_driven {
            let what =
                "reopen-crash and reopen-clean take no --rate, --warm-up or --maintenance-threads";
            return Err(UsageError(what.into()).into());
        }
        let recipe = match workload.trace() {
            Some(trace) => self.replay(workload, trace)?,
            None => self.chosen(workload),
        };
        let opens = workload.reopens().is_some();
        if recipe.records == 0 && !workload.begins_empty() {
            return Err(UsageError(
                "--records is 0, but the workload reads or changes records".into(),
            )
            .into());
        }
        if self.ops == Some(0) || (recipe.ops == 0 && !opens) {
            return Err(UsageError(
                "no operation is left to measure: --ops must be at least 1, not counting --warm-up"
                    .into(),
            )
            .into());
        }
        if recipe.ops > MANY || recipe.records > MANY {
            return Err(UsageError(format!("--records and --ops are at most {MANY}")).into());
        }
        Ok(recipe)
    }

    /// Returns the recipe of a workload that is no trace.
    fn chosen(&self, workload: &Workload) -> Recipe {
        let custom = workload.custom();
        let keys = self.keys.as_ref().or(custom.and_then(|custom| custom.keys.as_ref()));
        let keys = keys.cloned().unwrap_or_default();
        // Half of the keys of a file are loaded, so that as many are left for inserts.
        let records = self.records.or(custom.and_then(|custom| custom.records));
        let records = records.unwrap_or(keys.count().map_or(RECORDS, |count| count / 2));
        let ops = self.ops.or(custom.and_then(|custom| custom.ops)).unwrap_or(records.max(1));
        let scan_length = self.scan_length.or(custom.and_then(|custom| custom.scan_length));
        Recipe {
            workload: workload.clone(),
            dist: self.dist.unwrap_or(workload.dist()),
            records,
            fill: self.fill,
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

    /// Returns the recipe of a replay of `trace`, which has its own records and keys.
    fn replay(&self, workload: &Workload, trace: &Trace) -> anyhow::Result<Recipe> {
        let own = [
            (self.records.is_some(), "--records"),
            (self.keys.is_some(), "--keys"),
            (self.dist.is_some(), "--dist"),
            (self.scan_length.is_some(), "--scan-length"),
        ];
        if let Some((_, option)) = own.iter().find(|(given, _)| *given) {
            return Err(
                UsageError(format!("{option} has no effect on a trace: leave it out")).into()
            );
        }
        Ok(Recipe {
            workload: workload.clone(),
            records: trace.records(),
            fill: self.fill,
            ops: self.measured(workload, self.ops.unwrap_or(trace.ops()), trace.records()),
            threads: self.threads,
            maintenance_threads: self.collectors,
            seed: self.seed,
            rate: self.rate,
            warm_up: self.warm_up,
            ..Recipe::default()
        })
    }

    /// Returns the number of operations, at most `wanted`, that `records` records allow after the
    /// warm-up.
    fn measured(&self, workload: &Workload, wanted: u64, records: u64) -> u64 {
        let early = self.warm_up * self.threads;
        workload.ops(wanted.saturating_add(early), records).saturating_sub(early)
    }
}
