//! The process that is killed.

use super::steps::{Load, key_of, value_of, version_of};
use anyhow::Context;
use bristlecone::Store;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::convert::Infallible;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;

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

/// Opens or creates the store and works until the parent kills this process.
pub(super) fn run(pool: &Path, load: Load) -> anyhow::Result<Infallible> {
    let store = Store::options().initial_bytes(1 << 20).open_or_create(pool)?;
    // Every write is one call of 8 B. A pipe takes up to 4 KiB at once: a word arrives whole or
    // not.
    let pipe =
        std::io::stdout().as_fd().try_clone_to_owned().context("take over standard output")?;
    let pipe = File::from(pipe);
    std::thread::scope(|scope| {
        let (store, pipe) = (&store, &pipe);
        let mut threads = Vec::new();
        for thread in 0..load.threads {
            threads.push(scope.spawn(move || write(store, pipe, load, thread)));
        }
        threads.push(scope.spawn(move || read(store, pipe, load)));
        let ended = threads.into_iter().map(|thread| thread.join().expect("a thread panicked"));
        ended.collect::<Vec<_>>().into_iter().collect::<anyhow::Result<Vec<Infallible>>>()
    })?;
    anyhow::bail!("every thread has ended, and none should")
}

/// Does the steps of a thread. Acknowledges each after it has returned.
fn write(store: &Store, mut pipe: &File, load: Load, thread: u64) -> anyhow::Result<Infallible> {
    for (step, done) in load.steps(thread).zip(1..) {
        let key = key_of(step.key);
        match step.version {
            Some(version) => store.put(&key, value_of(step.key, version))?,
            None => store.delete(&key).map(|_| ())?,
        }
        pipe.write_all(&acknowledgement(thread, done))?;
    }
    anyhow::bail!("the steps of thread {thread} have ended, and never should")
}

/// Looks up random keys and acknowledges each value of this cycle: after a reader has seen a value,
/// no older one may follow.
fn read(store: &Store, mut pipe: &File, load: Load) -> anyhow::Result<Infallible> {
    let mut rng = SmallRng::seed_from_u64(load.seed ^ load.cycle);
    loop {
        let number = rng.random_range(0..load.keys);
        let version = store.get_with(key_of(number), |value| version_of(number, value))?;
        match version {
            Some(Some(seen)) if seen.cycle == load.cycle => {
                let thread = number % load.threads;
                pipe.write_all(&acknowledgement(thread, seen.step + 1))?;
            }
            Some(None) => anyhow::bail!("key {number} has a value that no thread wrote"),
            _ => {}
        }
    }
}
