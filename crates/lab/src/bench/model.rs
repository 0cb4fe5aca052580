//! The modelled pass: what the operations of a workload cost on a device that is not here.
//!
//! The same records and operations as in the timed pass, by one thread, on a model in virtual time: the
//! figures are the same on every run and every machine.

use super::act::{Act, Batch, Scratch};
use super::bytes;
use super::row::Latency;
use super::run::{self, expect_none};
use super::subject::{Subject, Tree};
use super::target::{self, Target, room_bytes};
use crate::device::{Device, Profile, Projection, Report};
use crate::error::Result;
use crate::workload::{BATCH, Keys, Plan, Recipe};
use bristlecone::Store;
use bristlecone_pmem::{Mapped, Simulated};
use bristlecone_trees::{ErasedDesign, TreeStats};
use serde::Serialize;
use std::time::Instant;

/// What a device made of a workload.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Model {
    /// The profile's name.
    pub device: String,
    /// What it came to.
    #[serde(flatten)]
    pub report: Report,
    /// In virtual time; of batches, where the workload is in batches.
    pub latency_ns: Latency,
    /// What more threads could do, at the most.
    pub projections: Vec<Projection>,
    /// Where the writes went: writes of a unit, on the average, in equal parts of the pool in their order.
    #[serde(skip)]
    pub wear_map: Vec<f64>,
    /// How fast this machine was at it, loading apart.
    pub host_ops_per_second: f64,
}

/// Numbers of threads that are projected, beside the one that was asked for.
const THREADS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Parts of the pool whose wear is told apart.
const WEAR_CELLS: usize = 2048;

/// A model of a device on memory of this machine.
pub(crate) type Modelled = Device<Mapped>;

/// The model that a simulated medium is.
pub(crate) fn modelled(medium: &Simulated) -> &Modelled {
    medium.simulation_as().expect("modelled passes run on a device")
}

/// A subject on a model.
trait OnDevice: Subject {
    fn device(&self) -> &Modelled;
}

impl OnDevice for Tree<Simulated, u64> {
    fn device(&self) -> &Modelled {
        modelled(self.medium())
    }
}

impl OnDevice for Store<Simulated> {
    fn device(&self) -> &Modelled {
        modelled(self.medium())
    }
}

/// Runs `recipe` on a `target` that is on a device of `profile`; nothing for what has no medium.
///
/// # Errors
/// The target refused, or gave a wrong answer.
pub fn model(
    target: &Target,
    recipe: &Recipe,
    profile: &Profile,
    threads: u32,
) -> Result<Option<Model>> {
    Ok(models(target, core::slice::from_ref(recipe), profile, threads)?.pop())
}

/// Runs `recipes` one after the other on what the first one loads; a [`Model`] for each, or none for what
/// has no medium. All have the records and the seed of the first; one of them inserts at the most, and one
/// that removes is the last.
///
/// # Errors
/// As [`model`].
pub fn models(
    target: &Target,
    recipes: &[Recipe],
    profile: &Profile,
    threads: u32,
) -> Result<Vec<Model>> {
    let recipes = alone(recipes)?;
    if recipes.is_empty() {
        return Ok(Vec::new());
    }
    let pass = Pass { recipes: &recipes, profile, threads };
    match target {
        Target::Peer(_) => Ok(Vec::new()),
        Target::Store => pass.run(&mut Store::create_on(pass.medium(target)?)?),
        Target::Design { name, node_bytes, .. } => {
            let entry = bristlecone_registry::with_size(name, *node_bytes)?;
            let design = target::form::<_, u64>(&entry.simulated, &entry.spec)?;
            pass.run(&mut pass.tree(target, &design)?)
        }
    }
}

/// As [`models`], of a design that need not be the registry's, though its name is; and what there is of its
/// tree afterwards.
pub(crate) fn models_of(
    design: &ErasedDesign<Simulated, u64>,
    recipes: &[Recipe],
    profile: &Profile,
    threads: u32,
) -> Result<(Vec<Model>, TreeStats)> {
    let recipes = alone(recipes)?;
    let pass = Pass { recipes: &recipes, profile, threads };
    let mut tree = pass.tree(&target::design(design.spec.name, None)?, design)?;
    let models = pass.run(&mut tree)?;
    Ok((models, tree.into_index().check()?))
}

/// The recipes as one thread does them.
fn alone(recipes: &[Recipe]) -> Result<Vec<Recipe>> {
    if let Some(recipe) = recipes.iter().find(|recipe| recipe.keys().are_bytes()) {
        return Err(bytes::asked(recipe, "a device is modelled with keys of 8 B"));
    }
    let alone = |recipe: &Recipe| Recipe {
        threads: 1,
        collectors: 0,
        rate: None,
        warm_up: 0,
        ..recipe.clone()
    };
    Ok(recipes.iter().map(alone).collect())
}

struct Pass<'a> {
    recipes: &'a [Recipe],
    profile: &'a Profile,
    threads: u32,
}

impl Pass<'_> {
    /// A device with room enough that its pool does not grow.
    fn medium(&self, target: &Target) -> Result<Simulated> {
        /// What fragmentation may take.
        const TIMES: u64 = 2;
        let room = self.recipes.iter().map(|recipe| room_bytes(target, recipe)).sum::<u64>();
        let device = Device::new(Mapped::anonymous(TIMES * room)?, self.profile.clone())?;
        Ok(Simulated::over(device))
    }

    /// An empty tree of `design`, which is to do what `target` does.
    fn tree(
        &self,
        target: &Target,
        design: &ErasedDesign<Simulated, u64>,
    ) -> Result<Tree<Simulated, u64>> {
        Tree::create(design, self.medium(target)?)
    }

    fn run<S: OnDevice>(&self, subject: &mut S) -> Result<Vec<Model>> {
        let Some(first) = self.recipes.first() else { return Ok(Vec::new()) };
        run::load(subject, first)?;
        self.recipes.iter().map(|recipe| self.one(subject, recipe)).collect()
    }

    fn one<S: OnDevice>(&self, subject: &mut S, recipe: &Recipe) -> Result<Model> {
        subject.device().renew();
        let mut samples = Vec::new();
        let (keys, mut wrong, mut done) = (recipe.keys(), 0, 0);
        let start = Instant::now();
        for plan in recipe.plans()? {
            done += plan.ops();
            wrong += match &plan {
                Plan::Each(ops) => follow(ops.iter(), subject, keys, &mut samples)?,
                Plan::Replay(steps) => follow(steps.iter(), subject, keys, &mut samples)?,
                Plan::Batches(tokens) => {
                    follow(tokens.chunks(BATCH).map(Batch), subject, keys, &mut samples)?
                }
            };
        }
        let elapsed = start.elapsed().as_secs_f64().max(1e-9);
        expect_none(wrong, done)?;
        subject.device().settle();
        let report = subject.device().report();
        let mut threads = THREADS.to_vec();
        if !THREADS.contains(&self.threads) {
            threads.push(self.threads);
        }
        Ok(Model {
            device: self.profile.name.clone(),
            latency_ns: Latency::of(&samples),
            projections: threads.into_iter().map(|n| report.demand.project(n)).collect(),
            wear_map: subject.device().wear_map(WEAR_CELLS),
            report,
            host_ops_per_second: done as f64 / elapsed,
        })
    }
}

/// Does `acts`; how many answers were wrong.
fn follow<S: OnDevice, X: Act>(
    acts: impl Iterator<Item = X>,
    subject: &mut S,
    keys: &Keys,
    samples: &mut Vec<u32>,
) -> Result<u64> {
    let (mut wrong, mut scratch) = (0, Scratch::default());
    let mut last = subject.device().now_ns();
    for act in acts {
        for actor in &mut subject.actors(1) {
            wrong += act.act(actor, keys, &mut scratch)?;
        }
        let ends = (0..act.ops()).map(|_| subject.device().end_op(act.user_bytes()));
        let now = ends.last().unwrap_or(last);
        samples.push(u32::try_from(now - last).unwrap_or(u32::MAX));
        last = now;
    }
    Ok(wrong)
}
