//! The comparison of systems: workload by workload, with interleaved repetitions.

use super::count::count;
use super::model::model;
use super::options::Bench;
use super::row::{self, BenchRow};
use super::run::Measured;
use crate::device::Profile;
use crate::error::{LabError, Result};
use crate::system::{BytesPerKey, Target};
use crate::workload::Recipe;

/// An event of a comparison, for a display of its progress.
#[derive(Debug)]
pub enum ComparisonEvent {
    /// The comparison begins this part.
    Doing(String),
    /// One of [`Comparison::steps`] is done.
    Done,
}

/// Systems that are compared under the same workloads.
#[derive(Debug)]
pub struct Comparison {
    bench: Bench,
    targets: Vec<Target>,
    reps: u64,
    device: Option<Profile>,
    sim_threads: u32,
    /// The memory for each key of each system, after its first load.
    memory: Vec<Option<BytesPerKey>>,
}

impl Comparison {
    /// Returns a comparison of `targets` with `reps` repetitions each.
    pub fn new(bench: Bench, targets: Vec<Target>, reps: u64) -> Self {
        let memory = vec![None; targets.len()];
        Self { bench, targets, reps, device: None, sim_threads: 1, memory }
    }

    /// Adds a pass on a model of `device`, projected to `threads` threads.
    #[must_use]
    pub fn on(mut self, device: Option<Profile>, threads: u32) -> Self {
        (self.device, self.sim_threads) = (device, threads);
        self
    }

    /// Returns the number of steps that each workload takes.
    pub fn steps(&self) -> u64 {
        self.targets.len() as u64 * (self.reps + 1)
    }

    /// Compares all systems under `recipe`. Returns a row for each, in their order.
    ///
    /// # Errors
    /// A system failed, gave a wrong answer, or cannot do the workload.
    pub fn run(
        &mut self,
        recipe: &Recipe,
        watch: &mut dyn FnMut(ComparisonEvent),
    ) -> Result<Vec<BenchRow>> {
        let reopens = recipe.workload.reopens().is_some();
        if let Some(volatile) = self.targets.iter().find(|t| reopens && !t.is_persistent()) {
            return Err(LabError::Asked(format!("{volatile} cannot be opened again")));
        }
        let replays = recipe.workload.trace().is_some();
        if replays && self.targets.iter().any(|target| matches!(target, Target::Floor(_))) {
            return Err(LabError::Asked("the floor has no values, so it replays no trace".into()));
        }
        let name = recipe.workload.name();
        let plans = recipe.plans()?;
        let mut repetitions: Vec<Vec<Measured>> = self.targets.iter().map(|_| Vec::new()).collect();
        for _ in 0..self.reps {
            for (index, target) in self.targets.iter().enumerate() {
                watch(ComparisonEvent::Doing(format!("{target}, {name}")));
                let memory = &mut self.memory[index];
                let once = self.bench.time(target, recipe, &plans, memory.is_none())?;
                repetitions[index].push(once.measured);
                *memory = memory.or(once.memory);
                watch(ComparisonEvent::Done);
            }
        }
        drop(plans);
        let mut rows = Vec::new();
        for (index, repetitions) in repetitions.into_iter().enumerate() {
            watch(ComparisonEvent::Doing(format!("{}, {name}: counting", self.targets[index])));
            rows.extend(self.row(index, recipe, repetitions, watch)?);
            watch(ComparisonEvent::Done);
        }
        row::relate_to_floor(&mut rows);
        Ok(rows)
    }

    /// Returns the row of the system at `index`, with the passes that are not timed.
    fn row(
        &self,
        index: usize,
        recipe: &Recipe,
        repetitions: Vec<Measured>,
        watch: &mut dyn FnMut(ComparisonEvent),
    ) -> Result<Option<BenchRow>> {
        let target = &self.targets[index];
        let operates = recipe.workload.reopens().is_none();
        let per_op =
            (operates && target.is_counted()).then(|| count(target, recipe)).transpose()?;
        let model = match &self.device {
            Some(profile) if operates => {
                let name = recipe.workload.name();
                watch(ComparisonEvent::Doing(format!("{target}, {name}: {}", profile.name)));
                model(target, recipe, profile, self.sim_threads)?
            }
            _ => None,
        };
        let Some((middle, ops_per_second_range)) = row::median(repetitions) else {
            return Ok(None);
        };
        Ok(Some(BenchRow {
            design: target.to_string(),
            workload: recipe.workload.clone(),
            threads: recipe.threads,
            collectors: middle.maintenance_threads,
            records: recipe.records,
            ops: middle.ops,
            seconds: middle.seconds,
            ops_per_second: middle.ops_per_second(),
            latency_ns: middle.latency(),
            offered: middle.open.as_ref().map(|open| open.offered),
            achieved: middle.open.as_ref().map(|_| middle.ops_per_second()),
            warm_up: recipe.warm_up,
            pinned: middle.pinned,
            per_op,
            bytes_per_key: self.memory[index].unwrap_or_default(),
            node_bytes: target.node_bytes(),
            keys: recipe.keys().clone(),
            key_bytes: recipe.keys().mean_bytes(),
            dist: recipe.dist,
            fill: recipe.fill,
            domain: self.bench.domain.name(),
            flush: self.bench.flushing.name(),
            delay_ns: self.bench.delays.flush.as_nanos() as u64,
            reps: self.reps as usize,
            seed: recipe.seed,
            ops_per_second_range,
            times_floor: None,
            model,
        }))
    }
}
