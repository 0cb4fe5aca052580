//! The run: load, then measure.
//!
//! 1. Operations are chosen before the clock starts. Between its start and its end, a thread
//!    allocates nothing and shares only the system and the keys, which no thread writes. An
//!    operation of a design or a peer is one indirect call of a nanosecond or two, so the loop is
//!    compiled once for all of them.
//! 2. Every [`SAMPLE_EVERY`]th operation is timed by itself. The others run untimed, so that
//!    reading the clock costs less than 2 % of the throughput.
//! 3. In an open loop every operation is timed, from its scheduled start (`pace`).
//! 4. Each answer is checked. A run with a wrong answer gives no figure.

use super::latency::Latency;
use super::maintenance::MaintenanceWorker;
use super::step::{Batch, Scratch, Step};
use super::{pace, pin};
use crate::error::{LabError, Result};
use crate::system::{Session, System};
use crate::workload::{BATCH, KeyBuffer, Keys, Plan, Recipe, Render};
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, Ordering};
use hdrhistogram::Histogram;
use std::sync::Barrier;
use std::thread::ScopedJoinHandle;
use std::time::Instant;

/// The number of operations for each one that is timed.
pub(crate) const SAMPLE_EVERY: usize = 16;

/// The result of the threads of one run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Measured {
    /// The number of measured operations.
    pub ops: u64,
    /// The time from the first thread's start to the last thread's end.
    pub seconds: f64,
    /// The time of each sampled operation in nanoseconds. Empty in an open loop.
    pub samples: Vec<u32>,
    /// The result of an open loop, which has latencies in place of samples.
    pub open: Option<OpenLoop>,
    /// The number of maintenance workers. 0 if the system defers no work.
    pub maintenance_threads: u64,
    /// `true` if each thread had a processor to itself.
    pub pinned: bool,
}

/// The result of an open loop, in which operations start at scheduled times.
#[derive(Debug)]
pub struct OpenLoop {
    /// The number of operations that were scheduled in a second.
    pub offered: f64,
    /// The time of each operation from its scheduled start to its end, in nanoseconds.
    pub latencies: Histogram<u64>,
}

impl Measured {
    /// Returns the operations of all threads together in a second.
    pub fn ops_per_second(&self) -> f64 {
        self.ops as f64 / self.seconds
    }

    /// Returns percentiles of the samples, or of all operations of an open loop.
    pub fn latency(&self) -> Latency {
        match &self.open {
            Some(open) => Latency::in_histogram(&open.latencies),
            None => Latency::of(&self.samples),
        }
    }
}

/// Inserts the records of `recipe`, in the same order for every system; or loads them in bulk, if
/// the recipe has a fill.
pub(crate) fn load<K: Render, S: System<K>>(system: &mut S, recipe: &Recipe) -> Result<()> {
    if let Some(fill_percent) = recipe.fill {
        return bulk_load(system, recipe, fill_percent);
    }
    let sessions = system.sessions(recipe.threads);
    let wrong: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..recipe.threads)
            .zip(sessions)
            .map(|(thread, mut session)| scope.spawn(move || fill(&mut session, recipe, thread)))
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().expect("loading threads do not panic"))
            .sum::<Result<u64>>()
    })?;
    expect_none(wrong, recipe.records)
}

fn bulk_load<K: Render, S: System<K>>(
    system: &mut S,
    recipe: &Recipe,
    fill_percent: u32,
) -> Result<()> {
    let mut buffer = KeyBuffer::default();
    let mut pair = |index| {
        let (token, value) = recipe.record(index);
        (K::to_owned(K::render(recipe.keys(), token, &mut buffer)), value)
    };
    let mut pairs: Vec<_> = (0..recipe.records).map(&mut pair).collect();
    pairs.sort_unstable();
    system.bulk_load(&mut pairs.into_iter(), fill_percent)
}

fn fill<K: Render, S: Session<K>>(session: &mut S, recipe: &Recipe, thread: u64) -> Result<u64> {
    let mut buffer = KeyBuffer::default();
    let mut wrong = 0;
    for index in recipe.share(recipe.records, thread) {
        let (token, value) = recipe.record(index);
        let key = K::render(recipe.keys(), token, &mut buffer);
        wrong += u64::from(!session.insert(key, value)?);
    }
    Ok(wrong)
}

/// Runs the plans of `recipe`, all at once, one thread each, beside its maintenance workers.
pub(crate) fn measure<K: Render, S: System<K>>(
    system: &mut S,
    recipe: &Recipe,
    plans: &[Plan],
) -> Result<Measured> {
    let workers = if system.defers_work() { recipe.maintenance_threads } else { 0 };
    let mut sessions = system.sessions(plans.len() as u64 + workers);
    let barrier = Barrier::new(plans.len());
    let processors = pin::processors(sessions.len());
    let of_workers = sessions.split_off(plans.len());
    let (maintenance_threads, is_over) = (of_workers.len() as u64, AtomicBool::new(false));
    let (done, maintained) = std::thread::scope(|scope| {
        let workers: Vec<_> = (plans.len()..)
            .zip(of_workers)
            .map(|(index, mut session)| {
                let (maintainer, processor) =
                    (session.maintainer(), processors.get(index).copied());
                let worker = MaintenanceWorker { maintainer, processor, is_over: &is_over };
                scope.spawn(move || worker.run(&mut session))
            })
            .collect();
        let threads: Vec<_> = plans
            .iter()
            .zip(sessions)
            .enumerate()
            .map(|(index, (plan, mut session))| {
                let processor = processors.get(index).copied();
                let thread_plan =
                    ThreadPlan { recipe, thread: index as u64, processor, barrier: &barrier };
                scope.spawn(move || follow(plan, &mut session, &thread_plan))
            })
            .collect();
        let done: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::Relaxed);
        let maintained: Vec<_> = workers.into_iter().map(ScopedJoinHandle::join).collect();
        (done, maintained)
    });
    for maintained in maintained {
        maintained.expect("no maintenance worker panics")?;
    }
    let done = done.into_iter().map(|done| done.expect("measured threads do not panic"));
    let threads = done.collect::<Result<Vec<_>>>()?;
    let planned = plans.iter().map(Plan::ops).sum();
    expect_none(threads.iter().map(|thread| thread.wrong).sum(), planned)?;
    let first = threads.iter().map(|thread| thread.start).min();
    let last = threads.iter().map(|thread| thread.end).max();
    let elapsed = first.zip(last).map(|(first, last)| last - first).unwrap_or_default();
    Ok(Measured {
        ops: threads.iter().map(|thread| thread.ops).sum(),
        seconds: elapsed.as_secs_f64().max(1e-9),
        maintenance_threads,
        pinned: threads.iter().all(|thread| thread.pinned),
        open: recipe.rate.map(|offered| OpenLoop { offered, latencies: joined(&threads) }),
        samples: threads.into_iter().flat_map(|thread| thread.samples).collect(),
    })
}

/// Returns the latencies of all `threads`.
fn joined(threads: &[Thread]) -> Histogram<u64> {
    let mut all = pace::latencies();
    for latencies in threads.iter().filter_map(|thread| thread.latencies.as_ref()) {
        all.add(latencies).expect("all of them have the same bounds");
    }
    all
}

/// The parameters of a measured thread beside its operations.
struct ThreadPlan<'a> {
    recipe: &'a Recipe,
    thread: u64,
    processor: Option<usize>,
    barrier: &'a Barrier,
}

/// The result of one thread.
struct Thread {
    start: Instant,
    end: Instant,
    ops: u64,
    samples: Vec<u32>,
    latencies: Option<Histogram<u64>>,
    wrong: u64,
    pinned: bool,
}

fn follow<K: Render, S: Session<K>>(
    plan: &Plan,
    session: &mut S,
    thread_plan: &ThreadPlan<'_>,
) -> Result<Thread> {
    /// Returns the operations of the warm-up, and the measured ones.
    fn split<'p, T>(all: &'p [T], thread_plan: &ThreadPlan<'_>) -> (&'p [T], &'p [T]) {
        all.split_at(all.len().min(thread_plan.recipe.warm_up as usize))
    }
    match plan {
        Plan::Each(ops) => {
            let (early, timed) = split(ops, thread_plan);
            each(session, early.iter(), timed.iter(), SAMPLE_EVERY, thread_plan)
        }
        Plan::Replay(steps) => {
            let (early, timed) = split(steps, thread_plan);
            each(session, early.iter(), timed.iter(), SAMPLE_EVERY, thread_plan)
        }
        Plan::Batches(tokens) => {
            let (early, timed) = split(tokens, thread_plan);
            let (early, timed) = (early.chunks(BATCH), timed.chunks(BATCH));
            each(session, early.map(Batch), timed.map(Batch), 1, thread_plan)
        }
    }
}

/// Runs the steps of the warm-up. When every thread has done so, runs the steps of `timed`: on
/// schedule if the recipe has a rate, otherwise one after the other. Times one of `every` steps by
/// itself.
fn each<K: Render, S: Session<K>, T: Step>(
    session: &mut S,
    early: impl Iterator<Item = T>,
    timed: impl ExactSizeIterator<Item = T> + Clone,
    every: usize,
    thread_plan: &ThreadPlan<'_>,
) -> Result<Thread> {
    let ThreadPlan { recipe, thread, processor, barrier } = *thread_plan;
    let pinned = processor.is_some_and(pin::pin);
    let ops = timed.clone().map(Step::ops).sum();
    // The memory for results is touched here, so that no page fault happens while the clock runs.
    let mut samples = vec![1; timed.len() / every + 1];
    black_box(&mut samples).clear();
    let mut paced = recipe
        .rate
        .map(|rate| (pace::schedule(recipe, rate, thread, timed.len()), pace::latencies()));
    let (keys, mut scratch, mut wrong) = (recipe.keys(), Scratch::default(), 0);
    for step in early {
        wrong += step.run(session, keys, &mut scratch)?;
    }
    barrier.wait();
    let start = Instant::now();
    wrong += match &mut paced {
        Some((schedule, latencies)) => {
            let timed = timed.zip(schedule.iter().copied());
            open(session, timed, keys, &mut scratch, latencies, pinned)?
        }
        None => closed(session, timed, keys, &mut scratch, &mut samples, every)?,
    };
    let (end, latencies) = (Instant::now(), paced.map(|(_, latencies)| latencies));
    Ok(Thread { start, end, ops, samples, latencies, wrong, pinned })
}

/// Runs steps one after the other. Returns the number of wrong answers.
fn closed<K: Render, S: Session<K>, T: Step>(
    session: &mut S,
    mut steps: impl Iterator<Item = T>,
    keys: &Keys,
    scratch: &mut Scratch,
    samples: &mut Vec<u32>,
    every: usize,
) -> Result<u64> {
    let mut wrong = 0;
    while let Some(sampled) = steps.next() {
        let start = Instant::now();
        wrong += sampled.run(session, keys, scratch)?;
        samples.push(start.elapsed().as_nanos().min(u128::from(u32::MAX)) as u32);
        for untimed in steps.by_ref().take(every - 1) {
            wrong += untimed.run(session, keys, scratch)?;
        }
    }
    Ok(wrong)
}

/// Runs each step at its scheduled time. Returns the number of wrong answers.
fn open<K: Render, S: Session<K>, T: Step>(
    session: &mut S,
    steps: impl Iterator<Item = (T, u64)>,
    keys: &Keys,
    scratch: &mut Scratch,
    latencies: &mut Histogram<u64>,
    pinned: bool,
) -> Result<u64> {
    let mut wrong = 0;
    let start = Instant::now();
    for (step, due) in steps {
        pace::wait(start, due, pinned);
        wrong += step.run(session, keys, scratch)?;
        latencies.saturating_record(pace::nanoseconds(start) - due);
    }
    Ok(wrong)
}

/// # Errors
/// The number of wrong answers, if it is not 0.
pub(crate) fn expect_none(wrong: u64, ops: u64) -> Result<()> {
    if wrong == 0 {
        return Ok(());
    }
    Err(LabError::Wrong { wrong, ops })
}

#[cfg(test)]
mod tests;
