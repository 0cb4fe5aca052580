//! The counted pass: what one operation does to the medium.
//!
//! Counting costs more than what it counts, so it is a pass of its own, with one thread, on a tree
//! of the same records, at most [`RECORDS_MAX`] of them, and at most [`OPS_MAX`] operations of the
//! same workload. Splits and merges are in the average.

use super::run::{expect_none, step};
use super::subject::{Actor, Counted};
use super::workload::{BATCH, Plan, Recipe, key_of, value_of};
use bristlecone_pmem::medium::Counts;
use serde::Serialize;

/// Records of the tree that is counted, at most.
pub(super) const RECORDS_MAX: u64 = 1_000_000;
/// Operations that are counted, at most.
pub(super) const OPS_MAX: u64 = 200_000;

/// Averages of one operation.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct PerOp {
    /// Lines flushed.
    pub(super) lines: f64,
    /// Fences.
    pub(super) fences: f64,
    /// Words stored.
    pub(super) words: f64,
    /// Distinct units of 256 B, of the lines flushed by one operation.
    pub(super) units256: f64,
}

impl PerOp {
    /// The averages of `ops` operations that did `total`.
    pub(super) fn new(total: Counts, ops: u64) -> Self {
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
pub(super) fn part_of(recipe: &Recipe) -> Recipe {
    let records = recipe.records.min(RECORDS_MAX);
    let ops = recipe.workload.ops(recipe.ops.min(OPS_MAX), records);
    Recipe { records, ops, threads: 1, ..recipe.clone() }
}

/// Loads what `recipe` says and counts its operations.
pub(super) fn count<S: Counted>(mut subject: S, recipe: &Recipe) -> anyhow::Result<PerOp> {
    /// Inserts between two times that the tally of the load is thrown away: it grows meanwhile.
    const FORGET_EVERY: u64 = 256;
    let mut wrong = 0;
    for start in (0..recipe.records).step_by(FORGET_EVERY as usize) {
        for actor in &mut subject.actors(1) {
            for index in start..recipe.records.min(start + FORGET_EVERY) {
                let key = key_of(recipe.seed, index);
                wrong += u64::from(!actor.insert(key, value_of(key, 0))?);
            }
        }
        subject.take();
    }
    let mut total = Counts::default();
    let mut done = 0;
    for plan in recipe.plans() {
        done += plan.ops();
        match plan {
            Plan::Each(ops) => {
                for op in &ops {
                    for actor in &mut subject.actors(1) {
                        wrong += u64::from(!step(actor, op)?);
                    }
                    total += subject.take();
                }
            }
            Plan::Batches(keys) => {
                for batch in keys.chunks(BATCH) {
                    let mut values = [None; BATCH];
                    for actor in &mut subject.actors(1) {
                        actor.multi_get(batch, &mut values[..batch.len()])?;
                    }
                    wrong += values[..batch.len()].iter().filter(|v| v.is_none()).count() as u64;
                    total += subject.take();
                }
            }
        }
    }
    expect_none(wrong, recipe.records + done)?;
    Ok(PerOp::new(total, done))
}
