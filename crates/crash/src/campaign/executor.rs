//! The executor: runs jobs on all processors, and reports their results in the order of the jobs.

use super::ProgressFn;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::mpsc;

/// Runs `run` on each of `jobs`, on `workers` threads, or on as many as the machine runs at once if
/// 0. Calls `show` with each result as soon as it and all before it are there, and `progress` after
/// each job.
pub(crate) fn in_order<J: Sync, T: Send>(
    workers: usize,
    progress: &ProgressFn,
    jobs: &[J],
    run: &(dyn Fn(&J) -> Vec<T> + Sync),
    show: &mut dyn FnMut(&T),
) {
    let workers = match workers {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        workers => workers,
    };
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..workers.min(jobs.len()) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some(index) = Some(next.fetch_add(1, Ordering::Relaxed))
                    && let Some(job) = jobs.get(index)
                    && sender.send((index, run(job))).is_ok()
                {}
            });
        }
        drop(sender);
        let (mut waiting, mut shown) = (BTreeMap::new(), 0);
        for (done, (index, results)) in (1..).zip(receiver) {
            progress.report(done, jobs.len() as u64);
            waiting.insert(index, results);
            while let Some(results) = waiting.remove(&shown) {
                results.iter().for_each(&mut *show);
                shown += 1;
            }
        }
    });
}
