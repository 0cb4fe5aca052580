//! The workbench: counts, times and models of designs, at the scale of the run.
//!
//! 1. Runs whose times are compared take turns, repetition by repetition, so that a change of the
//!    machine's speed affects all. Each repetition begins with another run. A ratio of times is the
//!    geometric mean of the ratios of the repetitions: see [`Speed::over`].
//! 2. Counts and models are equal on every machine. Each is made once and then cached.
//! 3. Throughput of many threads is projected from one modelled thread, which gets its share of the
//!    device's buffers: see [`Profile::crowded`].
//! 4. The modelled processor cache grows with the data: one byte for each key. The papers' machines
//!    had some 40 MB for 50 M keys. With a cache of real size, a tree small enough to be modelled
//!    in seconds would fit into it, and no load would reach the device.

use crate::experiments::log_tuning::{self, Choice, TuningResult};
use crate::served::{Served, ServedWork};
use crate::speed::Speed;
use bristlecone_lab::bench::{Bench, Delays, Flushing, Model, PerOp, count_all, models};
use bristlecone_lab::device::{DeviceReport, Profile};
use bristlecone_lab::system::{Target, design, parse};
use bristlecone_lab::workload::{Keys, Recipe, Workload};
use bristlecone_lab::{LabError, Result};
use bristlecone_pmem::Domain;
use bristlecone_pmem::journal::Durability;
use std::cell::Cell;
use std::collections::HashMap;
use std::time::Duration;

/// The size of a run: records, operations and repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunScale {
    /// The maximum number of records, and of operations, of a timed or counted run.
    pub ops_max: u64,
    /// The maximum number of records, and of operations, of a store behind a server, where each
    /// operation takes some 20 us.
    pub served_max: u64,
    /// The number of repetitions of a timed run.
    pub reps: u64,
    /// The number of records of a modelled run.
    pub modelled_records: u64,
    /// The number of operations of each kind in a modelled run.
    pub modelled_ops: u64,
}

impl RunScale {
    /// The scale of `--quick`: 10 to 20 minutes on two cores for all claims. It has too few
    /// repetitions for a timed number to agree.
    pub const QUICK: Self = Self {
        ops_max: 100_000,
        served_max: 20_000,
        reps: 3,
        modelled_records: 80_000,
        modelled_ops: 16_000,
    };
    /// The default scale: at least five times the records of [`QUICK`](Self::QUICK).
    pub const FULL: Self = Self {
        ops_max: 500_000,
        served_max: 100_000,
        reps: 10,
        modelled_records: 500_000,
        modelled_ops: 50_000,
    };
}

/// A design by name, with its node size in bytes; `None` selects the default size.
pub type Named<'a> = (&'a str, Option<usize>);

/// A run: workload, sizes, threads, and an added flush latency.
#[derive(Clone, Debug)]
pub struct Work {
    /// The kind of operation, or the mix of kinds.
    pub workload: Workload,
    /// The number of records loaded before the run.
    pub records: u64,
    /// The number of operations of all threads together.
    pub ops: u64,
    /// The number of threads.
    pub threads: u64,
    /// The latency added to each flushed line, in nanoseconds.
    pub delay_ns: u64,
    /// The kind of key.
    pub keys: Keys,
    /// The percentage to which a bulk load fills the nodes. `None`: the records are inserted.
    pub fill: Option<u32>,
    /// The number of pairs of a scan.
    pub scan_length: u16,
    /// The instructions that write lines back and order them.
    pub flushing: Flushing,
}

impl Work {
    /// Creates a run of `ops` operations on `records` records by one thread, without added latency.
    pub fn new(workload: Workload, records: u64, ops: u64) -> Self {
        Self {
            workload,
            records,
            ops,
            threads: 1,
            delay_ns: 0,
            keys: Keys::Numbers,
            fill: None,
            scan_length: Recipe::SCAN_LENGTH,
            flushing: Flushing::default(),
        }
    }

    /// Sets the number of threads.
    #[must_use]
    pub fn with_threads(self, threads: u64) -> Self {
        Self { threads, ..self }
    }

    /// Sets the percentage to which a bulk load fills the nodes.
    #[must_use]
    pub fn with_fill(self, percent: u32) -> Self {
        Self { fill: Some(percent), ..self }
    }

    /// Sets the number of pairs of a scan.
    #[must_use]
    pub fn with_scans_of(self, pairs: u16) -> Self {
        Self { scan_length: pairs, ..self }
    }

    /// Writes lines back with `clflush` and orders them with `mfence`.
    #[must_use]
    pub fn flushed_serially(self) -> Self {
        Self { flushing: Flushing::Serial, ..self }
    }

    /// Sets the latency added to each flushed line, in nanoseconds.
    #[must_use]
    pub fn with_flush_delay(self, delay_ns: u64) -> Self {
        Self { delay_ns, ..self }
    }
}

/// The workloads that each model runs, in this order.
pub const MODELLED: [Workload; 6] = [
    Workload::Get,
    Workload::Multiget,
    Workload::Scan,
    Workload::Update,
    Workload::Insert,
    Workload::Delete,
];
/// A modelled run has this factor fewer scans than other operations, because each reads 100 pairs.
const SCANS_PART: u64 = 20;

/// The source of counts, times and models, with a cache of counts and models.
pub struct Workbench<'w> {
    /// The size of the run.
    pub scale: RunScale,
    seed: u64,
    watch: &'w dyn Fn(&str),
    counts: HashMap<String, PerOp>,
    models: HashMap<ModelKey, Vec<Model>>,
    crowds: HashMap<(ModelKey, String), DeviceReport>,
    /// The runs behind a server, which claims share.
    served: HashMap<String, Vec<Served>>,
    /// `true` if the scale has limited a size since [`begin_claim`](Self::begin_claim).
    is_limited: Cell<bool>,
}

/// The key of a cached model: design, device, and number of threads that share its buffers.
type ModelKey = (String, String, u32);

impl core::fmt::Debug for Workbench<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Workbench").field("scale", &self.scale).finish_non_exhaustive()
    }
}

impl<'w> Workbench<'w> {
    /// Creates a workbench that passes messages of progress to `watch`.
    pub fn new(scale: RunScale, seed: u64, watch: &'w dyn Fn(&str)) -> Self {
        Self {
            scale,
            seed,
            watch,
            counts: HashMap::new(),
            models: HashMap::new(),
            crowds: HashMap::new(),
            served: HashMap::new(),
            is_limited: Cell::new(false),
        }
    }

    /// Returns the paper's number of records or operations, limited by the scale.
    pub fn scaled(&self, paper: u64) -> u64 {
        self.limited(paper, self.scale.ops_max)
    }

    /// Returns the paper's number of records of a modelled run, limited by the scale.
    pub fn modelled(&self, paper: u64) -> u64 {
        self.limited(paper, self.scale.modelled_records)
    }

    /// Returns the paper's number of records of a store behind a server, limited by the scale.
    pub fn scaled_for_server(&self, paper: u64) -> u64 {
        self.limited(paper, self.scale.served_max)
    }

    fn limited(&self, paper: u64, most: u64) -> u64 {
        if paper > most {
            self.is_limited.set(true);
        }
        paper.min(most)
    }

    /// Begins the measurement of a claim.
    pub fn begin_claim(&self) {
        self.is_limited.set(false);
    }

    /// Returns `true` if the scale has limited a size of the claim.
    pub fn is_limited(&self) -> bool {
        self.is_limited.get()
    }

    /// Passes a message of progress to the caller.
    pub fn say(&self, what: &str) {
        (self.watch)(what);
    }

    /// Returns `work` as a recipe of the laboratory.
    pub fn recipe(&self, work: &Work) -> Recipe {
        Recipe {
            workload: work.workload.clone(),
            dist: work.workload.dist(),
            records: work.records,
            fill: work.fill,
            ops: work.workload.ops(work.ops, work.records),
            threads: work.threads,
            scan_length: work.scan_length,
            seed: self.seed,
            keys: work.keys.clone(),
            ..Recipe::default()
        }
    }

    /// Counts the accesses of an operation to the medium, on average.
    ///
    /// # Errors
    /// The design does not exist or failed.
    pub fn count(&mut self, (name, bytes): Named<'_>, work: &Work) -> Result<PerOp> {
        let key = format!("{name} {bytes:?} {work:?}");
        if let Some(known) = self.counts.get(&key) {
            return Ok(*known);
        }
        self.say(&format!("{name}: counting"));
        let found = count_all(&design(name, bytes)?, &self.recipe(work))?;
        self.counts.insert(key, found);
        Ok(found)
    }

    /// Times several designs at one run, in turns.
    ///
    /// # Errors
    /// A design does not exist or failed.
    pub fn speeds(&mut self, designs: &[Named<'_>], work: &Work) -> Result<Vec<Speed>> {
        let runs: Vec<_> = designs.iter().map(|&design| (design, work)).collect();
        self.speeds_of(&runs)
    }

    /// Calls `once` for each of `runs` runs in each repetition, and returns the results of each.
    /// A repetition begins with the run after the one with which the last began.
    pub(crate) fn in_turns<T>(
        &self,
        runs: usize,
        mut once: impl FnMut(usize) -> Result<T>,
    ) -> Result<Vec<Vec<T>>> {
        let mut found: Vec<Vec<T>> = (0..runs).map(|_| Vec::new()).collect();
        for turn in 0..self.scale.reps as usize {
            for at in (0..runs).map(|at| (at + turn) % runs) {
                found[at].push(once(at)?);
            }
        }
        Ok(found)
    }

    /// Times several runs, in turns.
    ///
    /// # Errors
    /// A design does not exist or failed.
    pub fn speeds_of(&mut self, runs: &[(Named<'_>, &Work)]) -> Result<Vec<Speed>> {
        let mut prepared = Vec::new();
        for &((name, bytes), work) in runs {
            let recipe = self.recipe(work);
            let flush = Duration::from_nanos(work.delay_ns);
            let delays = Delays { flush, fence: Duration::ZERO };
            let bench = Bench {
                pool: None,
                domain: Domain::Adr,
                delays,
                placement: None,
                flushing: work.flushing,
                durability: Durability::DEFAULT,
            };
            prepared.push((target(name, bytes)?, recipe.plans()?, recipe, bench));
        }
        let found = self.in_turns(runs.len(), |at| {
            let (target, plans, recipe, bench) = &prepared[at];
            self.say(&format!("{target}: {}", recipe.workload.name()));
            let once = bench.time(target, recipe, plans, false)?.measured;
            Ok([once.ops_per_second(), once.latency().p99 as f64])
        })?;
        let speeds = found.into_iter().zip(runs);
        Ok(speeds.map(|(found, (_, work))| Speed::new(found, work.threads)).collect())
    }

    /// Times a store behind a server over each of `designs`, in turns. The same run is made once.
    ///
    /// # Errors
    /// A design does not exist or failed, or the server or a client did.
    pub fn served(&mut self, designs: &[&str], work: &ServedWork) -> Result<Vec<Served>> {
        let key = format!("{designs:?} {work:?}");
        if let Some(known) = self.served.get(&key) {
            return Ok(known.clone());
        }
        let mut recipes = Vec::new();
        for (workload, ops) in &work.workloads {
            let run = Work::new(workload.clone(), work.records, *ops).with_threads(work.clients);
            let recipe = self.recipe(&Work { keys: Keys::User, ..run });
            recipes.push((recipe.clone(), recipe.plans()?));
        }
        let found = self.in_turns(designs.len(), |at| {
            let design = designs[at];
            self.say(&format!("{design}: a server, {} clients", work.clients));
            work.run(design).time(&recipes)
        })?;
        let served: Vec<_> = found.iter().map(|times| work.speeds(times)).collect();
        self.served.insert(key, served.clone());
        Ok(served)
    }

    /// Returns the models of design `name` on `device`, one for each of [`MODELLED`].
    ///
    /// # Errors
    /// The design or the device does not exist, or the design failed.
    pub fn models(&mut self, name: &str, device: &str) -> Result<&[Model]> {
        self.prepare(&[name], &[device], &[])?;
        Ok(&self.models[&(name.to_owned(), device.to_owned(), 1)])
    }

    /// Returns the model of design `name` on `device` at `workload`, one of [`MODELLED`].
    ///
    /// # Errors
    /// As [`models`](Self::models).
    pub fn model(&mut self, name: &str, device: &str, workload: &Workload) -> Result<&Model> {
        let found = MODELLED.iter().position(|known| known == workload);
        let at =
            found.ok_or_else(|| LabError::Asked(format!("{} is not modelled", workload.name())))?;
        Ok(&self.models(name, device)?[at])
    }

    /// Returns the device report of [`model`](Self::model).
    ///
    /// # Errors
    /// As [`models`](Self::models).
    pub fn report(
        &mut self,
        name: &str,
        device: &str,
        workload: &Workload,
    ) -> Result<DeviceReport> {
        Ok(self.model(name, device, workload)?.report.clone())
    }

    /// Returns the device report of one thread of `threads` that share `device`.
    ///
    /// # Errors
    /// As [`models`](Self::models).
    pub fn crowded(
        &mut self,
        name: &str,
        device: &str,
        workload: &Workload,
        threads: u32,
    ) -> Result<DeviceReport> {
        let place = (name.to_owned(), device.to_owned(), threads);
        let at = MODELLED.iter().position(|known| known == workload);
        if let Some((models, at)) = self.models.get(&place).zip(at) {
            return Ok(models[at].report.clone());
        }
        let key = (place, workload.name().to_owned());
        if let Some(report) = self.crowds.get(&key) {
            return Ok(report.clone());
        }
        self.say(&format!("{name} on {device}, {threads} threads"));
        let recipe = self.modelled_recipe(workload);
        let profile = self.profile(device)?.crowded(threads);
        let found = models(&target(name, None)?, &[recipe], &profile, threads)?;
        let found = found.into_iter().next();
        let report = found.expect("a design has a medium").report;
        self.crowds.insert(key, report.clone());
        Ok(report)
    }

    /// Models all `names` on all `devices`, each for one thread and for each number in `crowds`.
    ///
    /// One model runs at a time: all pools of a process share the epochs of reclamation, so a model
    /// that ran beside another could free blocks at other moments.
    ///
    /// # Errors
    /// As [`models`](Self::models).
    pub fn prepare(&mut self, names: &[&str], devices: &[&str], crowds: &[u32]) -> Result<()> {
        for &name in names {
            for &device in devices {
                for &threads in [1].iter().chain(crowds) {
                    let place = (name.to_owned(), device.to_owned(), threads);
                    if !self.models.contains_key(&place) {
                        let models = self.model_of(name, device, threads)?;
                        self.models.insert(place, models);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the device of that name, with a processor cache of one byte for each modelled
    /// record.
    ///
    /// # Errors
    /// The device does not exist.
    pub fn profile(&self, device: &str) -> Result<Profile> {
        let mut profile = Profile::named(device)?;
        profile.cpu.cache_bytes = self.scale.modelled_records;
        Ok(profile)
    }

    /// Models a design of nodes of `bytes` bytes at `workload`. Returns the device report of one
    /// thread of `threads` that share `device`.
    ///
    /// # Errors
    /// As [`models`](Self::models).
    pub fn sized(
        &self,
        (name, bytes): (&str, usize),
        device: &str,
        workload: &Workload,
        threads: u32,
    ) -> Result<DeviceReport> {
        let recipe = self.modelled_recipe(workload);
        self.modelled_run((name, Some(bytes)), device, recipe, threads)
    }

    /// Models a design at `recipe`, as [`sized`](Self::sized) does at a workload.
    ///
    /// # Errors
    /// As [`models`](Self::models).
    pub fn modelled_run(
        &self,
        (name, bytes): Named<'_>,
        device: &str,
        recipe: Recipe,
        threads: u32,
    ) -> Result<DeviceReport> {
        let target = design(name, bytes)?;
        let bytes = target.node_bytes().unwrap_or_default();
        self.say(&format!("{name} of {bytes} B on {device}: {}", recipe.workload.name()));
        let profile = self.profile(device)?.crowded(threads);
        let found = models(&target, &[recipe], &profile, threads)?;
        let found = found.into_iter().next();
        Ok(found.expect("a design has a medium").report)
    }

    /// Models `recipes`, one after another, on `btree-ls` with the log parameters of `choice`, on a
    /// device whose buffers `threads` threads share.
    ///
    /// # Errors
    /// As [`models`](Self::models), or no instance with these parameters is compiled.
    pub fn tried(
        &self,
        choice: Choice,
        recipes: &[Recipe],
        (device, threads): (&str, u32),
    ) -> Result<TuningResult> {
        let Choice { logs, collects, recent } = choice;
        let gc = if collects { "with" } else { "without" };
        self.say(&format!("btree-ls on {device}: {logs} logs, {recent} pointers, {gc} log GC"));
        log_tuning::models(choice, recipes, &self.profile(device)?.crowded(threads), threads)
    }

    /// Returns the recipe of a modelled run of `workload`.
    pub fn modelled_recipe(&self, workload: &Workload) -> Recipe {
        let RunScale { modelled_records, modelled_ops, .. } = self.scale;
        let ops = match workload {
            Workload::Scan => modelled_ops / SCANS_PART,
            _ => modelled_ops,
        };
        self.recipe(&Work::new(workload.clone(), modelled_records, ops))
    }

    fn model_of(&self, name: &str, device: &str, threads: u32) -> Result<Vec<Model>> {
        self.say(&format!("{name} on {device}"));
        let recipes: Vec<_> =
            MODELLED.iter().map(|workload| self.modelled_recipe(workload)).collect();
        let profile = self.profile(device)?.crowded(threads);
        models(&target(name, None)?, &recipes, &profile, threads)
    }
}

/// Returns the target called `name`.
fn target(name: &str, bytes: Option<usize>) -> Result<Target> {
    let found = parse(&[name.to_owned()], bytes)?;
    found
        .into_iter()
        .next()
        .ok_or_else(|| LabError::Asked(format!("no design or system is called {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_limited_and_unknown_names_are_errors() {
        let silent = |_: &str| {};
        let mut bench = Workbench::new(RunScale::QUICK, 1, &silent);
        assert_eq!((bench.scaled(10), bench.is_limited()), (10, false));
        assert_eq!((bench.scaled(u64::MAX), bench.is_limited()), (RunScale::QUICK.ops_max, true));
        bench.begin_claim();
        assert!(!bench.is_limited());
        assert!(bench.profile("no such device").is_err());
        assert!(bench.report("fptree", "optane-100", &Workload::A).is_err());
        assert!(bench.count(("no such tree", None), &Work::new(Workload::Get, 1, 1)).is_err());
    }
}
