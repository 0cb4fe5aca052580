//! Passes that answer one question each: the cost of splits, and the gain of batches.

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

/// The time of inserts, divided into those that split a node and the others.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Splits {
    /// The number of inserts.
    pub inserts: u64,
    /// The number of inserts that exceeded the budget of an insert without a split, in lines or
    /// fences.
    pub splits: u64,
    /// The share of the time that these inserts took, from 0 to 1.
    pub time_share: f64,
    /// The mean number of lines that one of these inserts flushed.
    pub split_lines: f64,
    /// The mean number of lines that another insert flushed.
    pub other_lines: f64,
}

/// Inserts the records of `recipe` into an empty `target` by one thread, with `delays`, and finds
/// the inserts that split a node by their flushes and fences. Each insert is timed and counted by
/// itself, which costs time too. So the share is meaningful only with latencies that exceed this
/// cost.
///
/// # Errors
/// The system failed, gave a wrong answer, or is no design.
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
        let counts = tree.medium().simulation_as::<Count<Delay<Mapped>>>().map(Count::take);
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

/// Returns the lookups in a second in batches of each of `sizes`, 1 to 16 keys, in each of ten
/// turns. One thread looks up as many of `recipe`'s records as the recipe has operations. Batches
/// of all sizes take turns, so that noise affects all of them; each turn begins with another
/// size.
///
/// # Errors
/// The system failed, gave a wrong answer, or is no design; or a size is out of range.
pub fn batches(
    target: &Target,
    recipe: &Recipe,
    sizes: &[usize],
    bench: &Bench,
) -> Result<Vec<Vec<f64>>> {
    /// The number of turns of each size.
    const TURNS: usize = 10;
    if sizes.iter().any(|&size| size == 0 || size > BATCH) {
        return Err(LabError::Asked(format!("batches have 1 to {BATCH} keys")));
    }
    numbers(recipe)?;
    let room = room_bytes(target, recipe);
    let (_, design) = target.form::<Memory, u64>(recipe.keys())?;
    let medium = bench.flushing.emulate(Mapped::anonymous(room)?, bench.domain)?;
    let medium = bench.delays.on(medium);
    let mut tree = DesignTree::create(&design, medium)?;
    run::load(&mut tree, recipe)?;
    let keys: Vec<u64> = recipe.plans()?.iter().flat_map(Plan::tokens).collect();
    let mut speeds = vec![Vec::new(); sizes.len()];
    let mut wrong = 0;
    let parts: Vec<&[u64]> = keys.chunks(keys.len().div_ceil(TURNS).max(1)).collect();
    for turn in 0..parts.len() {
        for at in (0..sizes.len()).map(|at| (at + turn) % sizes.len()) {
            // Each size looks up other keys in a turn, so none profits from the cache misses of
            // another.
            let (size, part) = (sizes[at], parts[(turn + at) % parts.len()]);
            let start = Instant::now();
            for session in &mut tree.sessions(1) {
                wrong += look_up(session, part, size)?;
            }
            speeds[at].push(part.len() as f64 / start.elapsed().as_secs_f64().max(1e-9));
        }
    }
    expect_none(wrong, (keys.len() * sizes.len()) as u64)?;
    Ok(speeds)
}

/// # Errors
/// The keys of `recipe` are byte strings.
fn numbers(recipe: &Recipe) -> Result<()> {
    if recipe.keys().are_bytes() {
        return Err(LabError::Asked("splits and batches are measured with keys of 8 B".into()));
    }
    Ok(())
}

/// Looks up `keys`, `size` at a time, and returns the number of wrong answers.
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
