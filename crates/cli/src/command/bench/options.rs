//! What `bench` is told.

use super::target::Measurable;
use super::workload::{Dist, Recipe, Workload};
use crate::args;
use crate::failure::Usage;
use bristlecone_lab::device::Profile;
use bristlecone_pmem::Domain;
use bristlecone_pmem::Mapped;
use bristlecone_pmem::medium::{Count, Delay};
use std::path::PathBuf;
use std::time::Duration;

/// Measure designs under a workload: speed, latency, flushes, fences, memory.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bristlecone bench --design fptree,btreemap --workload insert,get --records 1000000
  bristlecone bench --design all --workload a --threads 2 --reps 3 --json
  bristlecone bench --design fptree,ccl-btree --workload update --device optane-200 --sim-threads 48

`btreemap` is std's BTreeMap in DRAM, `bristlecone` the store's own index (keys of 8 B as byte
strings). The workloads reopen-crash and reopen-clean time the opening of a pool of --records
records. Counts per operation are of at most 200 000 operations on at most 1 000 000 records.
Flushes and fences are those of --domain, whatever the file survives. --device runs each workload once
more, by one thread, on a model in virtual time, designs at their default node size;
docs/device-model.md says what it models.")]
pub(crate) struct Args {
    /// Designs, as `bristlecone designs` lists them; also `btreemap`, `bristlecone`; or `all`.
    #[arg(long, value_delimiter = ',', required = true)]
    pub(super) design: Vec<String>,
    /// Workloads: one kind of operation, or a mix of YCSB.
    #[arg(long, value_delimiter = ',', required = true, value_enum)]
    pub(super) workload: Vec<Workload>,
    /// Records to load before the clock starts.
    #[arg(long, value_name = "R", default_value = "1000000", value_parser = args::count)]
    pub(super) records: u64,
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
    pub(super) node_bytes: Option<usize>,
    /// Nanoseconds added to each line flushed; after a comma, to each fence.
    #[arg(long, value_name = "D[,F]", default_value = "0", value_parser = delay)]
    pub(super) delay_ns: Delays,
    /// Pool file to create for the run and remove after it [default: in /dev/shm].
    #[arg(long, value_name = "PATH")]
    pub(super) pool: Option<PathBuf>,
    /// Domain whose flushes and fences are executed: adr, eadr, process, volatile.
    #[arg(long, default_value = "adr", value_parser = args::domain)]
    pub(super) domain: Domain,
    /// Repetitions.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(super) reps: u64,
    /// What keys and choices are drawn from.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Also model a device: optane-100, optane-200, pcm, stt-ram, nvdimm-n, cxl-nv, dram-300ns; or a
    /// profile, FILE.toml.
    #[arg(long, value_name = "NAME", value_parser = device, conflicts_with = "node_bytes")]
    device: Option<Box<Profile>>,
    /// Threads that are projected from the model.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "device", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(super) sim_threads: u32,
    /// Cache of the modelled processor [default: the profile's].
    #[arg(long, value_name = "SIZE", requires = "device", value_parser = args::bytes)]
    sim_cache: Option<u64>,
    /// Pairs of a scan; in workload e, the most.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..))]
    scan_length: u16,
}

/// More records or operations than this are in no memory.
const MANY: u64 = 1 << 36;

/// Injected latencies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delays {
    pub(super) flush: Duration,
    fence: Duration,
}

impl Delays {
    /// `medium`, slower by these.
    pub(super) fn on(self, medium: Mapped) -> Measurable {
        Count::pass(Delay::new(medium, self.flush, self.fence))
    }
}

fn delay(text: &str) -> Result<Delays, String> {
    let nanoseconds = |text: &str| {
        text.parse().map(Duration::from_nanos).map_err(|_| "nanoseconds are expected".to_owned())
    };
    let (flush, fence) = text.split_once(',').unwrap_or((text, "0"));
    Ok(Delays { flush: nanoseconds(flush)?, fence: nanoseconds(fence)? })
}

fn device(text: &str) -> Result<Box<Profile>, String> {
    let is_file = std::path::Path::new(text).extension().is_some_and(|end| end == "toml");
    let profile = if is_file {
        Profile::parse(&std::fs::read_to_string(text).map_err(|error| error.to_string())?)
    } else {
        Profile::named(text)
    };
    profile.map(Box::new).map_err(|error| error.to_string())
}

impl Args {
    /// The device to model.
    pub(super) fn device(&self) -> anyhow::Result<Option<Profile>> {
        let mut device = self.device.as_deref().cloned();
        if let Some((profile, bytes)) = device.as_mut().zip(self.sim_cache) {
            profile.cpu.cache_bytes = bytes;
            profile.check().map_err(|error| Usage(error.to_string()))?;
        }
        Ok(device)
    }

    /// What `workload` does.
    pub(super) fn recipe(&self, workload: Workload) -> anyhow::Result<Recipe> {
        let ops = self.ops.unwrap_or_else(|| self.records.max(1));
        if self.records == 0 && workload != Workload::Insert {
            return Err(Usage("only inserts can begin without --records".into()).into());
        }
        if ops == 0 {
            return Err(Usage("--ops must be at least 1".into()).into());
        }
        if ops > MANY || self.records > MANY {
            return Err(Usage(format!("--records and --ops are at most {MANY}")).into());
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
