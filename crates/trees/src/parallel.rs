//! Work that recovery does on several threads.

use bristlecone_pmem::Medium;
use std::panic::resume_unwind;

/// How many jobs are done at the same time: as many as there are processors, but one by one where the
/// medium decides who goes on.
pub(crate) fn width<M: Medium>() -> usize {
    if M::SCHEDULES { 1 } else { std::thread::available_parallelism().map_or(1, usize::from) }
}

/// Does jobs at the same time; what comes of them is in their order.
pub(crate) fn in_parallel<M: Medium, J: Sync, R: Send>(
    jobs: &[J],
    work: impl Fn(&J) -> R + Sync,
) -> Vec<R> {
    let threads = width::<M>().min(jobs.len());
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
