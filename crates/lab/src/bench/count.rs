//! The counted pass: what one operation does to the medium.
//!
//! Counting costs more than what it counts, so it is a pass of its own, with one thread, on a tree
//! of the same records, at most [`RECORDS_MAX`] of them, and at most [`OPS_MAX`] operations of the
//! same workload. Splits and merges are in the average.

use super::act::{Act, Batch, Scratch};
use super::run::expect_none;
use super::subject::{Actor, Counted};
use crate::error::Result;
use crate::workload::{BATCH, Buffer, Plan, Recipe, Render};
use bristlecone_pmem::medium::Counts;
use serde::Serialize;

/// Records of the tree that is counted, at most.
pub(crate) const RECORDS_MAX: u64 = 1_000_000;
/// Operations that are counted, at most.
pub(crate) const OPS_MAX: u64 = 200_000;

/// Averages of one operation.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct PerOp {
    /// Lines flushed.
    pub lines: f64,
    /// Fences.
    pub fences: f64,
    /// Words stored.
    pub words: f64,
    /// Distinct units of 256 B, of the lines flushed by one operation.
    pub units256: f64,
}

impl PerOp {
    /// The averages of `ops` operations that did `total`.
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

/// The part of `recipe` that is counted.
pub(crate) fn part_of(recipe: &Recipe) -> Recipe {
    // What a trace loads is all needed.
    let records_max = if recipe.workload.trace().is_some() { u64::MAX } else { RECORDS_MAX };
    let records = recipe.records.min(records_max);
    let ops = recipe.workload.ops(recipe.ops.min(OPS_MAX), records);
    Recipe { records, ops, threads: 1, collectors: 0, rate: None, warm_up: 0, ..recipe.clone() }
}

/// Loads what `recipe` says and counts its operations.
pub(crate) fn count<K: Render, S: Counted<K>>(mut subject: S, recipe: &Recipe) -> Result<PerOp> {
    /// Inserts between two times that the tally of the load is thrown away: it grows meanwhile.
    const FORGET_EVERY: u64 = 256;
    let mut wrong = 0;
    let mut buffer = Buffer::default();
    for start in (0..recipe.records).step_by(FORGET_EVERY as usize) {
        for actor in &mut subject.actors(1) {
            for index in start..recipe.records.min(start + FORGET_EVERY) {
                let (token, value) = recipe.record(index);
                let key = K::render(recipe.keys(), token, &mut buffer);
                wrong += u64::from(!actor.insert(key, value)?);
            }
        }
        subject.take();
    }
    // What made the tree is no operation.
    subject.take();
    let mut total = Counts::default();
    let mut done = 0;
    for plan in recipe.plans()? {
        done += plan.ops();
        wrong += match &plan {
            Plan::Each(ops) => follow(&mut subject, ops.iter(), recipe, &mut total)?,
            Plan::Replay(steps) => follow(&mut subject, steps.iter(), recipe, &mut total)?,
            Plan::Batches(tokens) => {
                follow(&mut subject, tokens.chunks(BATCH).map(Batch), recipe, &mut total)?
            }
        };
    }
    expect_none(wrong, recipe.records + done)?;
    Ok(PerOp::new(total, done))
}

/// Does `acts` and adds to `total` what each did; how many answers were wrong.
fn follow<K: Render, S: Counted<K>, X: Act>(
    subject: &mut S,
    acts: impl Iterator<Item = X>,
    recipe: &Recipe,
    total: &mut Counts,
) -> Result<u64> {
    let (mut wrong, mut scratch) = (0, Scratch::default());
    for act in acts {
        for actor in &mut subject.actors(1) {
            wrong += act.act(actor, recipe.keys(), &mut scratch)?;
        }
        *total += subject.take();
    }
    Ok(wrong)
}
