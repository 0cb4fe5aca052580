//! The run: load, then measure.
//!
//! 1. Operations are chosen before the clock starts; between its start and its end a thread
//!    allocates nothing, calls nothing through a table and shares nothing but the subject.
//! 2. Every [`SAMPLE_EVERY`]th operation is timed by itself, the others run untimed, so that
//!    reading the clock costs the throughput less than one part in fifty.
//! 3. Each answer is compared with what it must be: a run with a wrong answer gives no figure.

use super::subject::{Actor, Subject};
use super::workload::{BATCH, Kind, Op, Plan, Recipe, belongs, key_of, value_of};
use crate::failure::Violation;
use core::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

/// Operations for each one that is timed.
pub(super) const SAMPLE_EVERY: usize = 16;

/// What the threads of one run did.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) ops: u64,
    pub(super) seconds: f64,
    /// Time of each sampled operation, in nanoseconds.
    pub(super) samples: Vec<u32>,
}

impl Measured {
    pub(super) fn ops_per_second(&self) -> f64 {
        self.ops as f64 / self.seconds
    }
}

/// Inserts the records of `recipe`, in the same order for every subject.
pub(super) fn load<S: Subject>(subject: &mut S, recipe: &Recipe) -> anyhow::Result<()> {
    let actors = subject.actors(recipe.threads);
    let wrong: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..recipe.threads)
            .zip(actors)
            .map(|(thread, actor)| scope.spawn(move || fill(actor, recipe, thread)))
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().expect("a loading thread panicked"))
            .sum::<anyhow::Result<u64>>()
    })?;
    expect_none(wrong, recipe.records)
}

fn fill<A: Actor>(mut actor: A, recipe: &Recipe, thread: u64) -> anyhow::Result<u64> {
    let mut wrong = 0;
    for index in recipe.share(recipe.records, thread) {
        let key = key_of(recipe.seed, index);
        wrong += u64::from(!actor.insert(key, value_of(key, 0))?);
    }
    Ok(wrong)
}

/// Runs the plans, a thread each, all at once.
pub(super) fn measure<S: Subject>(subject: &mut S, plans: &[Plan]) -> anyhow::Result<Measured> {
    let actors = subject.actors(plans.len() as u64);
    let barrier = Barrier::new(plans.len());
    let done: Vec<anyhow::Result<Thread>> = std::thread::scope(|scope| {
        let threads: Vec<_> = plans
            .iter()
            .zip(actors)
            .map(|(plan, actor)| {
                let barrier = &barrier;
                scope.spawn(move || follow(plan, actor, barrier))
            })
            .collect();
        threads.into_iter().map(|t| t.join().expect("a measured thread panicked")).collect()
    });
    let threads = done.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let ops = plans.iter().map(Plan::ops).sum();
    expect_none(threads.iter().map(|thread| thread.wrong).sum(), ops)?;
    let first = threads.iter().map(|thread| thread.start).min();
    let last = threads.iter().map(|thread| thread.end).max();
    let elapsed = first.zip(last).map(|(first, last)| last - first).unwrap_or_default();
    let seconds = elapsed.as_secs_f64().max(1e-9);
    let samples = threads.into_iter().flat_map(|thread| thread.samples).collect();
    Ok(Measured { ops, seconds, samples })
}

/// What one thread did.
struct Thread {
    start: Instant,
    end: Instant,
    samples: Vec<u32>,
    wrong: u64,
}

fn follow<A: Actor>(plan: &Plan, mut actor: A, barrier: &Barrier) -> anyhow::Result<Thread> {
    // The memory for the samples is touched here, not while the clock runs.
    let mut samples = vec![1; plan.ops() as usize / SAMPLE_EVERY + 1];
    black_box(&mut samples).clear();
    barrier.wait();
    let start = Instant::now();
    let wrong = match plan {
        Plan::Each(ops) => each(&mut actor, ops, &mut samples)?,
        Plan::Batches(keys) => batches(&mut actor, keys, &mut samples)?,
    };
    Ok(Thread { start, end: Instant::now(), samples, wrong })
}

fn each<A: Actor>(actor: &mut A, ops: &[Op], samples: &mut Vec<u32>) -> anyhow::Result<u64> {
    let mut wrong = 0;
    for group in ops.chunks(SAMPLE_EVERY) {
        let start = Instant::now();
        wrong += u64::from(!step(actor, &group[0])?);
        samples.push(start.elapsed().as_nanos().min(u128::from(u32::MAX)) as u32);
        for op in &group[1..] {
            wrong += u64::from(!step(actor, op)?);
        }
    }
    Ok(wrong)
}

/// Does `op`; says whether it went as it must.
#[inline(always)]
pub(super) fn step<A: Actor>(actor: &mut A, op: &Op) -> anyhow::Result<bool> {
    let key = op.key;
    Ok(match op.kind {
        Kind::Get => actor.get(key)?.is_some_and(|value| belongs(key, value)),
        Kind::Insert => actor.insert(key, value_of(key, 0))?,
        Kind::Update => actor.update(key, value_of(key, 1))?,
        Kind::ReadModifyWrite => match actor.get(key)? {
            Some(value) => {
                let next = value_of(key, (value as u8).wrapping_add(1));
                belongs(key, value) && actor.update(key, next)?
            }
            None => false,
        },
        Kind::Remove => actor.remove(key)?,
        Kind::Scan => actor.scan(key, usize::from(op.length))? > 0,
    })
}

fn batches<A: Actor>(actor: &mut A, keys: &[u64], samples: &mut Vec<u32>) -> anyhow::Result<u64> {
    let mut wrong = 0;
    let mut values = [None; BATCH];
    for batch in keys.chunks(BATCH) {
        let values = &mut values[..batch.len()];
        let start = Instant::now();
        actor.multi_get(batch, values)?;
        samples.push(start.elapsed().as_nanos().min(u128::from(u32::MAX)) as u32);
        for (&key, value) in batch.iter().zip(values) {
            wrong += u64::from(!value.is_some_and(|value| belongs(key, value)));
        }
    }
    Ok(wrong)
}

/// # Errors
/// Some answers were wrong.
pub(super) fn expect_none(wrong: u64, ops: u64) -> anyhow::Result<()> {
    if wrong == 0 {
        return Ok(());
    }
    Err(Violation(format!("{wrong} of {ops} operations gave a wrong answer")).into())
}
