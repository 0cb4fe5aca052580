//! The modelled pass: what the operations of a workload cost on a device that is not present.
//!
//! One thread does the records and operations of the timed pass on a model in virtual time. Its
//! figures are the same on every run and every machine.

use super::latency::Latency;
use super::room::room_bytes;
use super::run::{self, expect_none};
use super::step::{Batch, Scratch, Step};
use crate::device::{Device, DeviceReport, Profile, Projection};
use crate::error::Result;
use crate::system::{AnySystem, DesignTree, OnMedium, System, Target, bytes_refused};
use crate::workload::{BATCH, Keys, Plan, Recipe, Render};
use bristlecone_pmem::{Mapped, Simulated};
use bristlecone_trees::{ErasedDesign, TreeStats};
use serde::Serialize;
use std::time::Instant;

/// The cost of a workload on a modelled device.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Model {
    /// The name of the device's profile.
    pub device: String,
    /// The report of the device.
    #[serde(flatten)]
    pub report: DeviceReport,
    /// Latencies in virtual time: of operations, or of batches if the workload is in batches.
    pub latency_ns: Latency,
    /// Upper bounds of the speed of more threads.
    pub projections: Vec<Projection>,
    /// The mean number of writes of a media unit, in equal parts of the pool in their order.
    #[serde(skip)]
    pub wear_map: Vec<f64>,
    /// Operations that this machine modelled in a second, without the load.
    pub host_ops_per_second: f64,
}

/// Numbers of threads that are projected, beside the number that the user named.
const THREADS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// The greatest number of parts of a wear map.
const WEAR_CELLS: usize = 2048;

/// Creates a medium of `bytes` bytes on a model of `profile`.
///
/// # Errors
/// The profile is invalid, or the system refuses the memory.
pub fn modelled_medium(bytes: u64, profile: &Profile) -> Result<Simulated> {
    Ok(Simulated::over(Device::new(Mapped::anonymous(bytes)?, profile.clone())?))
}

/// Returns the device of a medium that [`modelled_medium`] created.
///
/// # Panics
/// Another function created `medium`.
pub fn modelled_device(medium: &Simulated) -> &Device<Mapped> {
    medium.simulation_as().expect("modelled passes run on a device")
}

/// Runs `recipe` on `target` on a device of `profile`. Returns `None` for a peer, which has no
/// medium.
///
/// # Errors
/// The system failed, gave a wrong answer, or the keys are byte strings.
pub fn model(
    target: &Target,
    recipe: &Recipe,
    profile: &Profile,
    threads: u32,
) -> Result<Option<Model>> {
    Ok(models(target, core::slice::from_ref(recipe), profile, threads)?.pop())
}

/// Runs `recipes` one after the other on the records of the first one. Returns a [`Model`] for
/// each, or none for a peer. All recipes have the records and the seed of the first. At most one
/// inserts, and one that removes is the last.
///
/// # Errors
/// As [`model`].
pub fn models(
    target: &Target,
    recipes: &[Recipe],
    profile: &Profile,
    threads: u32,
) -> Result<Vec<Model>> {
    let pass = ModelPass::new(recipes, profile, threads)?;
    let Some(first) = pass.recipes.first() else { return Ok(Vec::new()) };
    if matches!(target, Target::Peer(_)) {
        return Ok(Vec::new());
    }
    let opener = target.opener::<Simulated, u64>(first.keys())?;
    match opener.create(pass.medium(target)?)? {
        AnySystem::Design(mut tree) => pass.run::<u64, _>(&mut tree),
        AnySystem::Store(mut store) => pass.run::<u64, _>(&mut store),
        AnySystem::Floor(mut lines) => pass.run::<u64, _>(&mut lines),
    }
}

/// Runs `recipes` as [`models`] does, on a form of a design that need not be in the registry.
/// `target` decides the size of the pool. Also returns the statistics of the tree after the last
/// recipe.
///
/// # Errors
/// As [`models`].
pub fn models_of_form(
    target: &Target,
    form: &ErasedDesign<Simulated, u64>,
    recipes: &[Recipe],
    profile: &Profile,
    threads: u32,
) -> Result<(Vec<Model>, TreeStats)> {
    let pass = ModelPass::new(recipes, profile, threads)?;
    let mut tree = DesignTree::create(form, pass.medium(target)?)?;
    let models = pass.run::<u64, _>(&mut tree)?;
    Ok((models, tree.index().check()?))
}

struct ModelPass<'a> {
    recipes: Vec<Recipe>,
    profile: &'a Profile,
    threads: u32,
}

impl<'a> ModelPass<'a> {
    /// # Errors
    /// The keys of a recipe are byte strings.
    fn new(recipes: &[Recipe], profile: &'a Profile, threads: u32) -> Result<Self> {
        if let Some(recipe) = recipes.iter().find(|recipe| recipe.keys().are_bytes()) {
            return Err(bytes_refused(recipe.keys(), "a device is modelled with keys of 8 B"));
        }
        let recipes = recipes.iter().map(Recipe::by_one_thread).collect();
        Ok(Self { recipes, profile, threads })
    }

    /// Creates a device so large that its pool does not grow.
    fn medium(&self, target: &Target) -> Result<Simulated> {
        /// The factor that allows for fragmentation.
        const TIMES: u64 = 2;
        let room = self.recipes.iter().map(|recipe| room_bytes(target, recipe)).sum::<u64>();
        modelled_medium(TIMES * room, self.profile)
    }

    fn run<K: Render, S>(&self, system: &mut S) -> Result<Vec<Model>>
    where
        S: System<K> + OnMedium<Medium = Simulated>,
    {
        let Some(first) = self.recipes.first() else { return Ok(Vec::new()) };
        run::load(system, first)?;
        self.recipes.iter().map(|recipe| self.one(system, recipe)).collect()
    }

    fn one<K: Render, S>(&self, system: &mut S, recipe: &Recipe) -> Result<Model>
    where
        S: System<K> + OnMedium<Medium = Simulated>,
    {
        modelled_device(system.medium()).reset_counts();
        let mut samples = Vec::new();
        let (keys, mut wrong, mut done) = (recipe.keys(), 0, 0);
        let start = Instant::now();
        for plan in recipe.plans()? {
            done += plan.ops();
            wrong += match &plan {
                Plan::Each(ops) => follow(ops.iter(), system, keys, &mut samples)?,
                Plan::Replay(steps) => follow(steps.iter(), system, keys, &mut samples)?,
                Plan::Batches(tokens) => {
                    follow(tokens.chunks(BATCH).map(Batch), system, keys, &mut samples)?
                }
            };
        }
        let elapsed = start.elapsed().as_secs_f64().max(1e-9);
        expect_none(wrong, done)?;
        let device = modelled_device(system.medium());
        device.settle();
        let report = device.report();
        let mut threads = THREADS.to_vec();
        if !THREADS.contains(&self.threads) {
            threads.push(self.threads);
        }
        Ok(Model {
            device: self.profile.name.clone(),
            latency_ns: Latency::of(&samples),
            projections: threads.into_iter().map(|n| report.demand.project(n)).collect(),
            wear_map: device.wear_map(WEAR_CELLS),
            report,
            host_ops_per_second: done as f64 / elapsed,
        })
    }
}

/// Runs `steps`, adds the virtual time of each to `samples`, and returns the number of wrong
/// answers.
fn follow<K: Render, S, T: Step>(
    steps: impl Iterator<Item = T>,
    system: &mut S,
    keys: &Keys,
    samples: &mut Vec<u32>,
) -> Result<u64>
where
    S: System<K> + OnMedium<Medium = Simulated>,
{
    let (mut wrong, mut scratch) = (0, Scratch::default());
    let mut last = modelled_device(system.medium()).now_ns();
    for step in steps {
        for session in &mut system.sessions(1) {
            wrong += step.run(session, keys, &mut scratch)?;
        }
        let device = modelled_device(system.medium());
        let ends = (0..step.ops()).map(|_| device.end_op(step.user_bytes()));
        let now = ends.last().unwrap_or(last);
        samples.push(u32::try_from(now - last).unwrap_or(u32::MAX));
        last = now;
    }
    Ok(wrong)
}
