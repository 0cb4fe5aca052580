//! How fast the store takes the words, and what each of them costs.

use super::expect::value_of;
use bristlecone::Store;
use bristlecone_pmem::Mapped;
use bristlecone_pmem::medium::Count;
use std::path::Path;
use std::time::Instant;

/// Operations a second, of all threads together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speed {
    pub(super) puts: f64,
    pub(super) gets: f64,
}

/// Puts the words into a new store at `path`, in the order given, and gets them again.
pub(super) fn measure(
    path: &Path,
    words: &[(usize, &[u8])],
    threads: usize,
) -> anyhow::Result<Speed> {
    let options = Store::options().initial_bytes(64 << 20).prefault(true);
    let store = options.create(path)?;
    let pairs: Vec<(&[u8], Vec<u8>)> =
        words.iter().map(|&(i, word)| (word, value_of(i, 0))).collect();
    let puts = each(&pairs, threads, |(word, value)| Ok(store.put(word, value)?))?;
    let gets = each(&pairs, threads, |(word, value)| {
        let same = store.get_with(word, |found| found == value)?;
        anyhow::ensure!(same == Some(true), "a word that was put does not come back");
        Ok(())
    })?;
    store.close()?;
    Ok(Speed { puts, gets })
}

/// Does `work` for each pair, divided among the threads; gives pairs a second.
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
            parts.map(|part| scope.spawn(move || part.iter().try_for_each(work))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a thread panicked"))
    })?;
    Ok(pairs.len() as f64 / start.elapsed().as_secs_f64().max(1e-9))
}

/// Lines flushed and fences for each put of a new word, where the domain needs them, on average.
pub(super) fn count(words: &[(usize, &[u8])]) -> anyhow::Result<(f64, f64)> {
    let store = Store::create_on(Count::new(Mapped::anonymous(16 << 20)?))?;
    store.medium().take();
    let (mut lines, mut fences) = (0, 0);
    for &(i, word) in words {
        store.put(word, value_of(i, 0))?;
        let counts = store.medium().take();
        lines += counts.lines;
        fences += counts.fences;
    }
    let each = |count: u64| count as f64 / words.len().max(1) as f64;
    Ok((each(lines), each(fences)))
}
