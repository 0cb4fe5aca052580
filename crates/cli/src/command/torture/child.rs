//! The process that is killed.

use super::args::options;
use super::steps::{Load, key_of, value_of, version_of};
use crate::child::start;
use crate::session::Promise;
use anyhow::Context;
use bristlecone::Store;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The length of an acknowledgement.
pub(super) const ACKNOWLEDGEMENT_BYTES: usize = 8;
/// The low bits of an acknowledgement, which count steps. The bits above are the thread.
const STEP_BITS: u32 = 48;

/// Returns the word that says that `thread` has done `steps` steps. The reader also sends it, for
/// the thread whose value it has seen.
pub(super) fn acknowledgement(thread: u64, steps: u64) -> [u8; ACKNOWLEDGEMENT_BYTES] {
    (thread << STEP_BITS | steps).to_le_bytes()
}

/// Returns the thread and the number of steps of an acknowledgement.
pub(super) fn acknowledged(bytes: [u8; ACKNOWLEDGEMENT_BYTES]) -> (u64, u64) {
    let word = u64::from_le_bytes(bytes);
    (word >> STEP_BITS, word & ((1 << STEP_BITS) - 1))
}

/// Opens or creates the store and works until the parent kills this process. A journal is small, so
/// that checkpoints run.
///
/// If `snapshot` names a file, this copies the pool there after the open, whole or not at all. If
/// `steps` is given, each thread ends after so many steps, and then this closes the store.
pub(super) fn run(
    pool: &Path,
    load: Load,
    promise: Promise,
    snapshot: Option<&Path>,
    steps: Option<u64>,
) -> anyhow::Result<()> {
    let store = options(promise).open_or_create(pool)?;
    if let Some(snapshot) = snapshot {
        let part = snapshot.with_extension("part");
        let copied = std::fs::copy(pool, &part).and_then(|_| std::fs::rename(&part, snapshot));
        copied.context("copy the pool")?;
    }
    acknowledged_work(&store, load, steps)?;
    Ok(store.close()?)
}

/// Does the steps of all threads, and writes each acknowledgement to standard output.
fn acknowledged_work(store: &Store, load: Load, steps: Option<u64>) -> anyhow::Result<()> {
    // Every write is one call of 8 B. A pipe takes up to 4 KiB at once: a word arrives whole or
    // not.
    let pipe =
        std::io::stdout().as_fd().try_clone_to_owned().context("take over standard output")?;
    let pipe = File::from(pipe);
    work(store, load, steps, &|thread, steps, _| {
        Ok((&pipe).write_all(&acknowledgement(thread, steps))?)
    })
}

/// A function that is called once so many steps of a thread have returned, or once a reader has
/// seen the last of them.
pub(super) type Acknowledge<'a> = &'a (dyn Fn(u64, u64, bool) -> anyhow::Result<()> + Sync);

/// Does the steps of all threads, and lets a reader look up random keys meanwhile.
pub(super) fn work(
    store: &Store,
    load: Load,
    steps: Option<u64>,
    acknowledge: Acknowledge<'_>,
) -> anyhow::Result<()> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_over = &is_over;
        let writer = |thread| move || write(store, acknowledge, load, thread, steps, is_over);
        let mut writers = Vec::new();
        let started = (0..load.threads).try_for_each(|thread| {
            writers.push(start(scope, writer(thread))?);
            anyhow::Ok(())
        });
        let reader =
            started.and_then(|()| start(scope, move || read(store, acknowledge, load, is_over)));
        // Without one of its threads the work ends.
        is_over.store(reader.is_err(), Ordering::Relaxed);
        let ended: Vec<anyhow::Result<()>> =
            writers.into_iter().map(|thread| thread.join().expect("a thread panicked")).collect();
        is_over.store(true, Ordering::Relaxed);
        let read = reader.and_then(|reader| reader.join().expect("the reading thread panicked"));
        ended.into_iter().chain([read]).collect()
    })
}

/// Does the steps of a thread, or the first `steps` of them, until the work is over. Acknowledges
/// each after it has returned.
fn write(
    store: &Store,
    acknowledge: Acknowledge<'_>,
    load: Load,
    thread: u64,
    steps: Option<u64>,
    is_over: &AtomicBool,
) -> anyhow::Result<()> {
    let most = steps.map_or(usize::MAX, |steps| steps as usize);
    for (step, done) in load.steps(thread).take(most).zip(1..) {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let key = key_of(step.key);
        match step.version {
            Some(version) => store.put(&key, value_of(step.key, version))?,
            None => store.delete(&key).map(|_| ())?,
        }
        acknowledge(thread, done, false)?;
    }
    Ok(())
}

/// Looks up random keys until the writers have ended. Acknowledges each value of this cycle: after
/// a reader has seen a value, no older one may follow.
fn read(
    store: &Store,
    acknowledge: Acknowledge<'_>,
    load: Load,
    is_over: &AtomicBool,
) -> anyhow::Result<()> {
    let mut rng = SmallRng::seed_from_u64(load.seed ^ load.cycle);
    while !is_over.load(Ordering::Relaxed) {
        let number = rng.random_range(0..load.keys);
        let version = store.get_with(key_of(number), |value| version_of(number, value))?;
        match version {
            Some(Some(seen)) if seen.cycle == load.cycle => {
                let thread = number % load.threads;
                acknowledge(thread, seen.step + 1, true)?;
            }
            Some(None) => anyhow::bail!("key {number} has a value that no thread wrote"),
            _ => {}
        }
    }
    Ok(())
}
