//! The workbench: counts, times and models of designs, at the scale of the run.
//!
//! 1. What is compared in time is run in one go, the repetitions interleaved; a speed is the median.
//! 2. Counts and models are the same on every machine, and are made once for all who ask.
//! 3. What many threads do is projected from one thread that has its part of the device's buffers: see
//!    [`Profile::crowded`].
//! 4. The cache of a modelled processor is scaled with the data: a byte for each key, as the papers'
//!    machines had some 40 MB for 50 M keys. Else a tree that is small enough to be modelled in seconds
//!    would be in the cache, and nothing would be read from the device.

use crate::experiments::log_tuning::{self, Choice, TuningResult};
use bristlecone_lab::bench::{Bench, Delays, Model, PerOp, count_all, models};
use bristlecone_lab::device::{DeviceReport, Profile};
use bristlecone_lab::system::{Target, design, parse};
use bristlecone_lab::workload::{Keys, Recipe, Workload};
use bristlecone_lab::{LabError, Result};
use bristlecone_pmem::Domain;
use std::collections::HashMap;
use std::time::Duration;

/// How large a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Records and operations of what is timed or counted, at the most.
    pub ops_max: u64,
    /// Repetitions of what is timed.
    pub reps: u64,
    /// Records of what is modelled.
    pub modelled_records: u64,
    /// Operations of each kind of what is modelled.
    pub modelled_ops: u64,
}

impl Scale {
    /// Some nine minutes on two cores for all claims.
    pub const QUICK: Self =
        Self { ops_max: 100_000, reps: 3, modelled_records: 80_000, modelled_ops: 16_000 };
    /// At least five times the records of what is timed, counted or modelled.
    pub const FULL: Self =
        Self { ops_max: 500_000, reps: 5, modelled_records: 500_000, modelled_ops: 50_000 };
}

/// A design at a node size; its default if there is none.
pub type Named<'a> = (&'a str, Option<usize>);

/// What is done, by how many threads, and how slow flushes are.
#[derive(Clone, Debug)]
pub struct Work {
    /// The kind of operation, or the mix.
    pub workload: Workload,
    /// Records that are there before.
    pub records: u64,
    /// Operations, of all threads together.
    pub ops: u64,
    /// Threads.
    pub threads: u64,
    /// Nanoseconds added to each line flushed.
    pub delay_ns: u64,
    /// What keys are.
    pub keys: Keys,
}

impl Work {
    /// `ops` of `workload` on `records`, by one thread.
    pub fn new(workload: Workload, records: u64, ops: u64) -> Self {
        Self { workload, records, ops, threads: 1, delay_ns: 0, keys: Keys::Numbers }
    }

    /// The same by so many threads.
    #[must_use]
    pub fn by(self, threads: u64) -> Self {
        Self { threads, ..self }
    }

    /// The same with nanoseconds added to each line flushed.
    #[must_use]
    pub fn slowed(self, delay_ns: u64) -> Self {
        Self { delay_ns, ..self }
    }
}

/// A speed, and how far its repetitions were apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Median, of all threads together.
    pub ops_per_second: f64,
    /// The slowest and the fastest repetition.
    pub range: [f64; 2],
    /// 99 % of the operations took no longer: the median of the repetitions.
    pub p99_ns: f64,
}

impl Speed {
    /// What an operation takes.
    pub fn ns(self) -> f64 {
        1e9 / self.ops_per_second
    }
}

/// What is run on each model, in this order.
pub const MODELLED: [Workload; 6] = [
    Workload::Get,
    Workload::Multiget,
    Workload::Scan,
    Workload::Update,
    Workload::Insert,
    Workload::Delete,
];
/// Scans are so much longer than other operations that fewer are enough.
const SCANS_PART: u64 = 20;

/// Counts, times and models.
pub struct Workbench<'w> {
    /// How large the run is.
    pub scale: Scale,
    seed: u64,
    watch: &'w dyn Fn(&str),
    counts: HashMap<String, PerOp>,
    models: HashMap<Place, Vec<Model>>,
    crowds: HashMap<(Place, String), DeviceReport>,
}

/// A design, a device, and the threads that share its buffers.
type Place = (String, String, u32);

impl core::fmt::Debug for Workbench<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Workbench").field("scale", &self.scale).finish_non_exhaustive()
    }
}

impl<'w> Workbench<'w> {
    /// A workbench that tells `watch` what it is at.
    pub fn new(scale: Scale, seed: u64, watch: &'w dyn Fn(&str)) -> Self {
        Self {
            scale,
            seed,
            watch,
            counts: HashMap::new(),
            models: HashMap::new(),
            crowds: HashMap::new(),
        }
    }

    /// As many as the paper has, or as fit the scale.
    pub fn scaled(&self, paper: u64) -> u64 {
        paper.min(self.scale.ops_max)
    }

    /// Says what is being done.
    pub fn say(&self, what: &str) {
        (self.watch)(what);
    }

    /// What `work` is in the terms of the laboratory.
    pub fn recipe(&self, work: &Work) -> Recipe {
        Recipe {
            workload: work.workload.clone(),
            dist: work.workload.dist(),
            records: work.records,
            ops: work.workload.ops(work.ops, work.records),
            threads: work.threads,
            seed: self.seed,
            keys: work.keys.clone(),
            ..Recipe::default()
        }
    }

    /// What an operation does to the medium, on the average.
    ///
    /// # Errors
    /// There is no such design, or it failed.
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

    /// The speeds of several designs at one work, measured in turns.
    ///
    /// # Errors
    /// There is no such design, or it failed.
    pub fn speeds(&mut self, designs: &[Named<'_>], work: &Work) -> Result<Vec<Speed>> {
        let targets = designs.iter().map(|&(name, bytes)| target(name, bytes));
        let targets = targets.collect::<Result<Vec<_>>>()?;
        let recipe = self.recipe(work);
        let plans = recipe.plans()?;
        let delays = Delays { flush: Duration::from_nanos(work.delay_ns), fence: Duration::ZERO };
        let bench = Bench { pool: None, domain: Domain::Adr, delays, placement: None };
        let mut runs: Vec<Vec<[f64; 2]>> = vec![Vec::new(); targets.len()];
        for _ in 0..self.scale.reps {
            for (target, runs) in targets.iter().zip(&mut runs) {
                self.say(&format!("{target}: {}", recipe.workload.name()));
                let once = bench.time(target, &recipe, &plans, false)?.measured;
                let latency = once.latency();
                runs.push([once.ops_per_second(), latency.p99 as f64]);
            }
        }
        Ok(runs.iter().map(|runs| speed(runs)).collect())
    }

    /// The models of `name` on `device`, one for each of [`MODELLED`].
    ///
    /// # Errors
    /// There is no such design or device, or the design failed.
    pub fn models(&mut self, name: &str, device: &str) -> Result<&[Model]> {
        self.prepare(&[name], &[device], &[])?;
        Ok(&self.models[&(name.to_owned(), device.to_owned(), 1)])
    }

    /// The model of `name` on `device` at `workload`.
    ///
    /// # Errors
    /// As [`models`](Self::models).
    pub fn model(&mut self, name: &str, device: &str, workload: &Workload) -> Result<&Model> {
        let found = MODELLED.iter().position(|known| known == workload);
        let at =
            found.ok_or_else(|| LabError::Asked(format!("{} is not modelled", workload.name())))?;
        Ok(&self.models(name, device)?[at])
    }

    /// The report of that model.
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

    /// The report of one of `threads` threads that do `workload` with `name` on `device` all at once.
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

    /// Makes the models of all `names` on all `devices`, each for one thread and for each of `crowds`: one
    /// after the other, since pools of one process put off together what they free.
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

    /// The device of that name, its cache scaled with the data.
    ///
    /// # Errors
    /// There is none.
    pub fn profile(&self, device: &str) -> Result<Profile> {
        let mut profile = Profile::named(device)?;
        profile.cpu.cache_bytes = self.scale.modelled_records;
        Ok(profile)
    }

    /// The report of a design at a node size, at `workload` alone.
    ///
    /// # Errors
    /// As [`models`](Self::models).
    pub fn sized(
        &mut self,
        name: &str,
        bytes: usize,
        device: &str,
        workload: &Workload,
    ) -> Result<DeviceReport> {
        self.say(&format!("{name} of {bytes} B on {device}"));
        let recipe = self.modelled_recipe(workload);
        let found = models(&design(name, Some(bytes))?, &[recipe], &self.profile(device)?, 1)?;
        let found = found.into_iter().next();
        Ok(found.expect("a design has a medium").report)
    }

    /// What comes of `recipes`, one after the other, with `btree-ls` of that `choice`, on a device whose
    /// buffers so many threads share.
    ///
    /// # Errors
    /// As [`models`](Self::models), or the choice cannot be tried.
    pub fn tried(
        &self,
        choice: Choice,
        recipes: &[Recipe],
        (device, threads): (&str, u32),
    ) -> Result<TuningResult> {
        let Choice { logs, live_percent, deltas } = choice;
        self.say(&format!("btree-ls on {device}: {logs} logs, {live_percent} %, {deltas} deltas"));
        log_tuning::models(choice, recipes, &self.profile(device)?.crowded(threads), threads)
    }

    /// What is done on a model.
    pub fn modelled_recipe(&self, workload: &Workload) -> Recipe {
        let Scale { modelled_records, modelled_ops, .. } = self.scale;
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

/// What is called `name`.
fn target(name: &str, bytes: Option<usize>) -> Result<Target> {
    let found = parse(&[name.to_owned()], bytes)?;
    found.into_iter().next().ok_or_else(|| LabError::Asked(format!("nothing is called {name}")))
}

fn speed(runs: &[[f64; 2]]) -> Speed {
    let sorted = |at: usize| {
        let mut values: Vec<f64> = runs.iter().map(|run| run[at]).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let (speeds, latencies) = (sorted(0), sorted(1));
    let middle = (runs.len() - 1) / 2;
    let range = [speeds[0], speeds[speeds.len() - 1]];
    Speed { ops_per_second: speeds[middle], range, p99_ns: latencies[middle] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_the_median_and_says_how_far_it_was_from_the_others() {
        let found = speed(&[[3.0, 10.0], [1.0, 30.0], [2.0, 20.0]]);
        let expected = Speed { ops_per_second: 2.0, range: [1.0, 3.0], p99_ns: 20.0 };
        assert_eq!(found, expected);
        assert!((found.ns() - 5e8).abs() < 1e-3);
    }

    #[test]
    fn work_is_scaled_and_what_is_not_modelled_is_said() {
        let silent = |_: &str| {};
        let mut bench = Workbench::new(Scale::QUICK, 1, &silent);
        assert_eq!((bench.scaled(10), bench.scaled(u64::MAX)), (10, Scale::QUICK.ops_max));
        assert!(bench.profile("no such device").is_err());
        assert!(bench.report("fptree", "optane-100", &Workload::A).is_err());
        assert!(bench.count(("no such tree", None), &Work::new(Workload::Get, 1, 1)).is_err());
    }
}
