//! Running recovery's work on several threads.

use bristlecone_pmem::Medium;
use std::panic::resume_unwind;
use std::sync::LazyLock;

/// The fewest bytes for each thread: starting a thread takes longer than reading less than this.
const BYTES_PER_THREAD: u64 = 1 << 20;

/// The number of processors. It is kept because the system call takes longer than opening a small
/// index.
static PROCESSORS: LazyLock<u64> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, |count| count.get() as u64));

/// Returns the number of threads for work on `bytes` bytes: one for each MiB, at least one, at most
/// the number of processors. One if the medium controls the schedule: its scheduler does not know
/// threads that are spawned here.
pub(crate) fn thread_count<M: Medium>(bytes: u64) -> usize {
    if M::CONTROLS_SCHEDULE { 1 } else { (bytes / BYTES_PER_THREAD).clamp(1, *PROCESSORS) as usize }
}

/// Runs `work` on all `jobs`, on up to `max_threads` threads. Returns the results in the order of
/// `jobs`.
pub(crate) fn in_parallel<J: Sync, R: Send>(
    max_threads: usize,
    jobs: &[J],
    work: impl Fn(&J) -> R + Sync,
) -> Vec<R> {
    let threads = max_threads.min(jobs.len());
    if threads < 2 {
        return jobs.iter().map(work).collect();
    }
    let work = &work;
    let share = jobs.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let parts = jobs.chunks(share);
        let run = |part: &'_ [J]| -> Vec<R> { part.iter().map(work).collect() };
        let threads: Vec<_> = parts.map(|part| scope.spawn(move || run(part))).collect();
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        joined.flatten().collect()
    })
}
