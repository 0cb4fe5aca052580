//! The counted pass: what one operation does to the medium.
//!
//! Counting costs more than most operations, so it is a pass of its own. One thread does at most
//! [`OPS_MAX`] operations of the workload on at most [`RECORDS_MAX`] of its records. The averages
//! include splits and merges.

use super::room::first_room_bytes;
use super::run::{expect_none, load};
use super::step::{Batch, Scratch, Step};
use crate::error::{LabError, Result};
use crate::system::{AnySystem, OnMedium, Session, System, SystemKey, Target};
use crate::workload::{BATCH, KeyBuffer, Plan, Recipe, Render};
use bristlecone_pmem::medium::{Count, Counts};
use bristlecone_pmem::{Mapped, Simulated};
use bristlecone_trees::Text;
use serde::Serialize;

/// The greatest number of records of a counted tree.
pub(crate) const RECORDS_MAX: u64 = 1_000_000;
/// The greatest number of counted operations.
pub(crate) const OPS_MAX: u64 = 200_000;

/// Averages of one operation.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct PerOp {
    /// The number of lines flushed.
    pub lines: f64,
    /// The number of fences.
    pub fences: f64,
    /// The number of words stored.
    pub words: f64,
    /// The number of distinct media blocks of 256 B among the lines that one operation flushes.
    pub units256: f64,
}

impl PerOp {
    /// Returns the averages of `ops` operations that did `total`.
    pub(crate) fn new(total: Counts, ops: u64) -> Self {
        let mean = |count: u64| count as f64 / ops.max(1) as f64;
        Self {
            lines: mean(total.lines),
            fences: mean(total.fences),
            words: mean(total.words),
            units256: mean(total.units),
        }
    }
}

/// Creates a medium of `bytes` bytes that counts flushes, fences and stores.
///
/// # Errors
/// The system refuses the memory.
pub fn counting_medium(bytes: u64) -> Result<Simulated> {
    Ok(Simulated::over(Count::new(Mapped::anonymous(bytes)?)))
}

/// Returns the counter of a medium that [`counting_medium`] created.
///
/// # Panics
/// Another function created `medium`.
pub fn counter(medium: &Simulated) -> &Count<Mapped> {
    medium.simulation_as().expect("counted passes run on a counter")
}

/// Counts what an operation on `target` does to its medium, on the part of `recipe` that the
/// counted pass runs. A map in DRAM, which has no medium, does nothing to it.
///
/// # Errors
/// The system failed, gave a wrong answer, or cannot be counted.
pub fn count(target: &Target, recipe: &Recipe) -> Result<PerOp> {
    // A trace needs all the records that it loads.
    let records_max = if recipe.workload.trace().is_some() { u64::MAX } else { RECORDS_MAX };
    let records = recipe.records.min(records_max);
    let ops = recipe.workload.ops(recipe.ops.min(OPS_MAX), records);
    count_all(target, &Recipe { records, ops, ..recipe.clone() })
}

/// Counts like [`count`], but all records and operations of `recipe`.
///
/// # Errors
/// As [`count`].
pub fn count_all(target: &Target, recipe: &Recipe) -> Result<PerOp> {
    let recipe = &recipe.by_one_thread();
    if recipe.keys().are_bytes() {
        count_keys::<Text>(target, recipe)
    } else {
        count_keys::<u64>(target, recipe)
    }
}

fn count_keys<K: SystemKey>(target: &Target, recipe: &Recipe) -> Result<PerOp> {
    if let Target::Peer(peer) = target {
        K::expect_peer(peer, recipe.keys())?;
        return if peer.is_counted() {
            Ok(PerOp::default())
        } else {
            Err(LabError::Asked(format!("nothing counts what {peer} does")))
        };
    }
    let opener = target.opener::<Simulated, K>(recipe.keys())?;
    match opener.create(counting_medium(first_room_bytes(target, recipe))?)? {
        AnySystem::Design(mut tree) => count_on::<K, _>(&mut tree, recipe),
        AnySystem::Store(mut store) => count_on::<K, _>(&mut store, recipe),
        AnySystem::Floor(mut lines) => count_on::<K, _>(&mut lines, recipe),
    }
}

/// Loads the records of `recipe` and counts its operations.
fn count_on<K: Render, S>(system: &mut S, recipe: &Recipe) -> Result<PerOp>
where
    S: System<K> + OnMedium<Medium = Simulated>,
{
    /// The number of inserts after which the counts of the load are dropped. They take memory.
    const FORGET_EVERY: u64 = 256;
    let mut wrong = 0;
    let mut buffer = KeyBuffer::default();
    let inserted = if recipe.fill.is_some() { 0 } else { recipe.records };
    if recipe.fill.is_some() {
        load(system, recipe)?;
    }
    for start in (0..inserted).step_by(FORGET_EVERY as usize) {
        for session in &mut system.sessions(1) {
            for index in start..recipe.records.min(start + FORGET_EVERY) {
                let (token, value) = recipe.record(index);
                let key = K::render(recipe.keys(), token, &mut buffer);
                wrong += u64::from(!session.insert(key, value)?);
            }
        }
        let _ = counter(system.medium()).take();
    }
    // Creating the system is part of no operation.
    let _ = counter(system.medium()).take();
    let mut total = Counts::default();
    let mut done = 0;
    for plan in recipe.plans()? {
        done += plan.ops();
        wrong += match &plan {
            Plan::Each(ops) => follow(system, ops.iter(), recipe, &mut total)?,
            Plan::Replay(steps) => follow(system, steps.iter(), recipe, &mut total)?,
            Plan::Batches(tokens) => {
                follow(system, tokens.chunks(BATCH).map(Batch), recipe, &mut total)?
            }
        };
    }
    expect_none(wrong, inserted + done)?;
    Ok(PerOp::new(total, done))
}

/// Runs `steps`, adds the counts of each to `total`, and returns the number of wrong answers.
fn follow<K: Render, S, T: Step>(
    system: &mut S,
    steps: impl Iterator<Item = T>,
    recipe: &Recipe,
    total: &mut Counts,
) -> Result<u64>
where
    S: System<K> + OnMedium<Medium = Simulated>,
{
    let (mut wrong, mut scratch) = (0, Scratch::default());
    for step in steps {
        for session in &mut system.sessions(1) {
            wrong += step.run(session, recipe.keys(), &mut scratch)?;
        }
        *total += counter(system.medium()).take();
    }
    Ok(wrong)
}
