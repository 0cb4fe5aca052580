//! Passes that ask one question each: what splits cost, and what batches gain.

use super::options::{Bench, Delays};
use super::room::room_bytes;
use super::run::{self, expect_none};
use crate::error::{LabError, Result};
use crate::system::{DesignTree, Session, System, Target};
use crate::workload::{BATCH, Plan, Recipe, belongs, value_of};
use bristlecone_pmem::medium::{Count, Delay};
use bristlecone_pmem::{Mapped, Simulated};
use bristlecone_registry::Memory;
use std::time::{Duration, Instant};

/// How the time of inserts divides.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Splits {
    /// Inserts.
    pub inserts: u64,
    /// Of these, those that flushed more lines or fenced more often than an insert without a split may.
    pub splits: u64,
    /// The part of the time that the latter took.
    pub time_share: f64,
    /// Lines flushed by one of the latter, on the average.
    pub split_lines: f64,
    /// Lines flushed by another insert, on the average.
    pub other_lines: f64,
}

/// Inserts the records of `recipe` into an empty `target`, by one thread, with `delays`, and tells those that
/// split a node by what they did to the medium. Each insert is timed by itself, and counted, which is not
/// free either: only with latencies that are longer than that does the share mean something.
///
/// # Errors
/// The target refused, gave a wrong answer, or is no design.
pub fn splits(target: &Target, recipe: &Recipe, delays: Delays) -> Result<Splits> {
    numbers(recipe)?;
    let room = room_bytes(target, recipe);
    let (spec, design) = target.form::<Simulated, u64>(recipe.keys())?;
    let medium = Count::new(Delay::new(Mapped::anonymous(room)?, delays.flush, delays.fence));
    let mut tree = DesignTree::create(&design, Simulated::over(medium))?;
    let budget = spec.budget.insert;
    let (mut all, mut split) = (Duration::ZERO, Duration::ZERO);
    let (mut splits, mut wrong) = (0, 0);
    let (mut lines, mut split_lines) = (0, 0);
    for index in 0..recipe.records {
        let key = recipe.token(index);
        let start = Instant::now();
        for session in &mut tree.sessions(1) {
            wrong += u64::from(!session.insert(key, value_of(key, 0))?);
        }
        let time = start.elapsed();
        let counts = tree.medium().simulation_as::<Count<Memory>>().map(Count::take);
        let counts = counts.expect("this pass made its medium");
        all += time;
        lines += counts.lines;
        if counts.lines > u64::from(budget.lines) || counts.fences > u64::from(budget.fences) {
            splits += 1;
            split += time;
            split_lines += counts.lines;
        }
    }
    expect_none(wrong, recipe.records)?;
    let time_share = split.as_secs_f64() / all.as_secs_f64().max(f64::MIN_POSITIVE);
    let each = |lines: u64, inserts: u64| lines as f64 / inserts.max(1) as f64;
    Ok(Splits {
        inserts: recipe.records,
        splits,
        time_share,
        split_lines: each(split_lines, splits),
        other_lines: each(lines - split_lines, recipe.records - splits),
    })
}

/// Lookups a second in batches of 1 to 16 keys, of `recipe`'s records, as many as its operations, by one
/// thread. The batches of all sizes take turns, so that they meet the same noise.
///
/// # Errors
/// The target refused, gave a wrong answer, or is no design.
pub fn batches(
    target: &Target,
    recipe: &Recipe,
    sizes: &[usize],
    bench: &Bench,
) -> Result<Vec<f64>> {
    /// Turns that the batches of each size take.
    const TURNS: usize = 8;
    if sizes.iter().any(|&size| size == 0 || size > BATCH) {
        return Err(LabError::Asked(format!("batches have 1 to {BATCH} keys")));
    }
    numbers(recipe)?;
    let room = room_bytes(target, recipe);
    let (_, design) = target.form::<Memory, u64>(recipe.keys())?;
    let medium = bench.delays.on(Mapped::anonymous(room)?.emulate(bench.domain)?);
    let mut tree = DesignTree::create(&design, medium)?;
    run::load(&mut tree, recipe)?;
    let keys: Vec<u64> = recipe.plans()?.iter().flat_map(Plan::tokens).collect();
    let mut times = vec![Duration::ZERO; sizes.len()];
    let mut wrong = 0;
    let parts: Vec<&[u64]> = keys.chunks(keys.len().div_ceil(TURNS).max(1)).collect();
    for turn in 0..parts.len() {
        for (at, (&size, time)) in sizes.iter().zip(&mut times).enumerate() {
            // What one size has just brought into the cache is not what the next one looks for.
            let part = parts[(turn + at) % parts.len()];
            let start = Instant::now();
            for session in &mut tree.sessions(1) {
                wrong += look_up(session, part, size)?;
            }
            *time += start.elapsed();
        }
    }
    expect_none(wrong, (keys.len() * sizes.len()) as u64)?;
    let speed = |time: &Duration| keys.len() as f64 / time.as_secs_f64().max(1e-9);
    Ok(times.iter().map(speed).collect())
}

/// # Errors
/// The keys of `recipe` are byte strings.
fn numbers(recipe: &Recipe) -> Result<()> {
    if recipe.keys().are_bytes() {
        return Err(LabError::Asked("splits and batches are measured with keys of 8 B".into()));
    }
    Ok(())
}

/// Looks `keys` up, `size` at a time; how many answers were wrong.
fn look_up<S: Session>(session: &mut S, keys: &[u64], size: usize) -> Result<u64> {
    let mut wrong = 0;
    let mut values = [None; BATCH];
    for batch in keys.chunks(size) {
        let values = &mut values[..batch.len()];
        session.multi_get(batch, values)?;
        for (&key, value) in batch.iter().zip(values) {
            wrong += u64::from(!value.is_some_and(|value| belongs(key, value)));
        }
    }
    Ok(wrong)
}
