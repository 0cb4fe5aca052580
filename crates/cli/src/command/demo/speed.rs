//! The speed of the store on the words, and the cost of an insert.

use super::expect::value_of;
use crate::child;
use bristlecone::{Options, Store};
use std::path::Path;
use std::time::Instant;

/// Operations a second, of all threads together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speed {
    pub(super) puts: f64,
    pub(super) gets: f64,
}

/// Puts the words into a new store at `path`, with these options, in the given order. Then gets
/// each of them.
pub(super) fn measure(
    path: &Path,
    words: &[(usize, &[u8])],
    threads: usize,
    options: Options,
) -> anyhow::Result<Speed> {
    let store = options.initial_bytes(64 << 20).prefault(true).create(path)?;
    let pairs: Vec<(&[u8], Vec<u8>)> =
        words.iter().map(|&(i, word)| (word, value_of(i, 0))).collect();
    let puts = each(&pairs, threads, |(word, value)| Ok(store.put(word, value)?))?;
    let gets = each(&pairs, threads, |(word, value)| {
        let same = store.get_with(word, |found| found == value)?;
        anyhow::ensure!(same == Some(true), "a word that was put is absent, or has another value");
        Ok(())
    })?;
    store.close()?;
    Ok(Speed { puts, gets })
}

/// Does `work` for each pair, with the pairs divided among the threads. Returns pairs a second.
fn each<'a>(
    pairs: &'a [(&'a [u8], Vec<u8>)],
    threads: usize,
    work: impl Fn(&'a (&'a [u8], Vec<u8>)) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<f64> {
    let start = Instant::now();
    std::thread::scope(|scope| {
        let work = &work;
        let parts = pairs.chunks(pairs.len().div_ceil(threads).max(1));
        let threads: Vec<_> =
            parts.map(|part| child::start(scope, move || part.iter().try_for_each(work))).collect();
        threads.into_iter().try_for_each(|thread| thread?.join().expect("a thread panicked"))
    })?;
    Ok(pairs.len() as f64 / start.elapsed().as_secs_f64().max(1e-9))
}

/// Returns the mean lines flushed and the mean fences of an insert of a word into persistent
/// memory, by the store's budget. Splits of leaves are not in it.
///
/// Counting them would need a second copy of the store, compiled for a counting medium; the store's
/// tests count instead, and `bristlecone-lab bench` counts with splits.
pub(super) fn mean_cost(words: &[(usize, &[u8])]) -> (f64, f64) {
    let (mut lines, mut fences) = (0, 0);
    for &(i, word) in words {
        let cost = Store::insert_cost(word.len(), value_of(i, 0).len());
        lines += u64::from(cost.lines);
        fences += u64::from(cost.fences);
    }
    let mean = |sum: u64| sum as f64 / words.len().max(1) as f64;
    (mean(lines), mean(fences))
}
