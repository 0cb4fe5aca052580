//! Running recovery's work on several threads.

use bristlecone_pmem::Medium;
use parking_lot::Mutex;
use std::panic::resume_unwind;
use std::sync::LazyLock;
use std::sync::mpsc::channel;
use std::thread::Builder;

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
/// `jobs`. Threads that the system refuses cost speed alone.
pub(crate) fn in_parallel<J: Sync, R: Send>(
    max_threads: usize,
    jobs: &[J],
    work: impl Fn(&J) -> R + Sync,
) -> Vec<R> {
    on_threads(Builder::new, max_threads, jobs, &work)
}

/// Runs `work` on the jobs that `produce` sends, in order, on up to `max_threads` threads: all but
/// this one while `produce` goes on, then this one, too. Returns the results in the order of the
/// jobs. One job starts no thread.
pub(crate) fn in_pipeline<J: Send, R: Send, E>(
    max_threads: usize,
    produce: impl FnOnce(&mut dyn FnMut(J)) -> Result<(), E>,
    work: impl Fn(J) -> R + Sync,
) -> Result<Vec<R>, E> {
    let (sender, receiver) = channel();
    let (receiver, results) = (Mutex::new(receiver), Mutex::new(Vec::new()));
    let run = || {
        loop {
            let received = receiver.lock().recv();
            let Ok((number, job)) = received else { return };
            let result = work(job);
            results.lock().push((number, result));
        }
    };
    std::thread::scope(|scope| {
        let (mut sent, mut threads) = (0, Vec::new());
        let send = &mut |job| {
            // The receiver lives longer than this scope.
            let _ = sender.send((sent, job));
            sent += 1;
            if sent == 2 {
                let spawn = |_| Builder::new().spawn_scoped(scope, run).ok();
                threads.extend((1..max_threads).filter_map(spawn));
            }
        };
        let produced = produce(send);
        drop(sender);
        run();
        for thread in threads {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
        produced
    })?;
    let mut results = results.into_inner();
    results.sort_unstable_by_key(|&(number, _)| number);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

fn on_threads<J: Sync, R: Send>(
    builder: impl Fn() -> Builder,
    max_threads: usize,
    jobs: &[J],
    work: &(impl Fn(&J) -> R + Sync),
) -> Vec<R> {
    let run = |part: &[J]| -> Vec<R> { part.iter().map(work).collect() };
    let threads = max_threads.min(jobs.len());
    if threads < 2 {
        return run(jobs);
    }
    let share = jobs.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let spawn = |part| builder().spawn_scoped(scope, move || run(part)).map_err(|_| part);
        let threads: Vec<_> = jobs.chunks(share).map(spawn).collect();
        let results = threads.into_iter().map(|thread| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(part) => run(part),
        });
        results.flatten().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_refused_threads_would_do_is_done() {
        let jobs: Vec<_> = (0..1000).collect();
        let doubled: Vec<_> = jobs.iter().map(|job| job * 2).collect();
        // No address space has room for such a stack.
        let refused = || Builder::new().stack_size(1 << 60);
        assert!(refused().spawn(|| ()).is_err());
        assert_eq!(on_threads(refused, 8, &jobs, &|job| job * 2), doubled);
        assert_eq!(in_parallel(8, &jobs, |job| job * 2), doubled);
    }

    #[test]
    fn jobs_of_a_pipeline_run_once_and_in_any_number_of_threads() {
        for (threads, count) in [(1, 100), (2, 0), (2, 1), (2, 2), (3, 100)] {
            let send_all = |send: &mut dyn FnMut(usize)| {
                (0..count).for_each(send);
                Ok::<_, ()>(())
            };
            let doubled = in_pipeline(threads, send_all, |job| job * 2);
            assert_eq!(doubled, Ok((0..count).map(|job| job * 2).collect()));
        }
        let refused = |send: &mut dyn FnMut(usize)| {
            (0..9).for_each(send);
            Err("no more")
        };
        assert_eq!(in_pipeline(2, refused, |job| job), Err("no more"));
    }

    #[test]
    #[should_panic(expected = "of a job")]
    fn a_panic_of_a_job_is_passed_on() {
        let send_all = |send: &mut dyn FnMut(usize)| {
            (0..9).for_each(send);
            Ok::<_, ()>(())
        };
        let _ = in_pipeline(2, send_all, |_| panic!("of a job"));
    }
}
