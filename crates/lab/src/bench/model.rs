//! The modelled pass: what the operations of a workload cost on a device that is not here.
//!
//! The same records and operations as in the timed pass, by one thread, on a model in virtual time: the
//! figures are the same on every run and every machine.

use super::act::{Act, Batch, Scratch};
use super::bytes;
use super::row::Latency;
use super::run::{self, expect_none};
use super::subject::{ROOT, Subject, Tree};
use super::target::{self, Target, room_bytes};
use crate::device::{Device, Profile, Projection, Report};
use crate::error::Result;
use crate::workload::{BATCH, Keys, Plan, Recipe};
use bristlecone::Store;
use bristlecone_pmem::{Mapped, Pool};
use bristlecone_trees::names::{self, Visitor};
use bristlecone_trees::{Design, ErasedDesign, PmIndex, TreeStats};
use serde::Serialize;
use std::sync::Arc;
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

/// The medium of a modelled pass.
type Medium = Device<Mapped>;

/// A tree of some design on it.
type ModelledTree = Tree<Medium, dyn PmIndex<Medium, u64>>;

/// A subject on a model.
trait Modelled: Subject {
    fn device(&self) -> &Medium;
}

impl Modelled for ModelledTree {
    fn device(&self) -> &Medium {
        self.medium()
    }
}

impl Modelled for Store<Medium> {
    fn device(&self) -> &Medium {
        self.medium()
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
            let design = names::with_design(name, Some(*node_bytes), Erased)?;
            pass.run(&mut pass.tree(target, &design)?)
        }
    }
}

/// As [`models`], of a design that need not be the registry's, though its name is; and what there is of its
/// tree afterwards.
pub(crate) fn models_of<D: Design>(
    recipes: &[Recipe],
    profile: &Profile,
    threads: u32,
) -> Result<(Vec<Model>, TreeStats)> {
    let recipes = alone(recipes)?;
    let pass = Pass { recipes: &recipes, profile, threads };
    let mut tree = pass.tree(&target::design(D::SPEC.name, None)?, &ErasedDesign::of::<D>())?;
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

/// Leaves the type of a design behind: what models one is compiled once for all, and of each tree at each size
/// no more than its own operations.
struct Erased;

impl Visitor for Erased {
    type Output = ErasedDesign<Medium, u64>;

    fn visit<D: Design>(self) -> Self::Output {
        ErasedDesign::of::<D>()
    }
}

struct Pass<'a> {
    recipes: &'a [Recipe],
    profile: &'a Profile,
    threads: u32,
}

impl Pass<'_> {
    /// A device with room enough that its pool does not grow.
    fn medium(&self, target: &Target) -> Result<Medium> {
        /// What fragmentation may take.
        const TIMES: u64 = 2;
        let room = self.recipes.iter().map(|recipe| room_bytes(target, recipe)).sum::<u64>();
        Ok(Device::new(Mapped::anonymous(TIMES * room)?, self.profile.clone())?)
    }

    /// An empty tree of `design`, which is to do what `target` does.
    fn tree(&self, target: &Target, design: &ErasedDesign<Medium, u64>) -> Result<ModelledTree> {
        let pool = Arc::new(Pool::create(self.medium(target)?)?);
        Ok(Tree::of((design.create)(pool, ROOT)?))
    }

    fn run<S: Modelled>(&self, subject: &mut S) -> Result<Vec<Model>> {
        let Some(first) = self.recipes.first() else { return Ok(Vec::new()) };
        run::load(subject, first)?;
        self.recipes.iter().map(|recipe| self.one(subject, recipe)).collect()
    }

    fn one<S: Modelled>(&self, subject: &mut S, recipe: &Recipe) -> Result<Model> {
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
fn follow<S: Modelled, X: Act>(
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
