//! Work that recovery does on several threads.

use bristlecone_pmem::Medium;
use std::panic::resume_unwind;
use std::sync::LazyLock;

/// Bytes to go through that are worth a thread: less is done before one has begun.
const BYTES_A_THREAD: u64 = 1 << 20;

/// Asking the system takes longer than a small index to be opened.
static PROCESSORS: LazyLock<u64> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, |count| count.get() as u64));

/// How many threads go through so many bytes: as many as there are processors, and work for; one where
/// the medium decides who goes on.
pub(crate) fn width<M: Medium>(bytes: u64) -> usize {
    if M::CONTROLS_SCHEDULE { 1 } else { (bytes / BYTES_A_THREAD).clamp(1, *PROCESSORS) as usize }
}

/// Does jobs on so many threads; what comes of them is in their order.
pub(crate) fn in_parallel<J: Sync, R: Send>(
    width: usize,
    jobs: &[J],
    work: impl Fn(&J) -> R + Sync,
) -> Vec<R> {
    let threads = width.min(jobs.len());
    if threads < 2 {
        return jobs.iter().map(work).collect();
    }
    let work = &work;
    let share = jobs.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let parts = jobs.chunks(share);
        let spawn = |part: &'_ [J]| -> Vec<R> { part.iter().map(work).collect() };
        let threads: Vec<_> = parts.map(|part| scope.spawn(move || spawn(part))).collect();
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        joined.flatten().collect()
    })
}
