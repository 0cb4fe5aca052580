//! Open loop: operations start when their time has come, whether or not those before them are done.
//!
//! 1. The times are those of a Poisson process, drawn from the seed before the clock starts, each
//!    thread its own.
//! 2. Latency is counted from the time at which an operation was to start, not from when it did:
//!    what waits behind a slow operation is slow too (no coordinated omission). Every operation
//!    counts.

use crate::workload::{Recipe, mix64, whole};
use core::hint;
use hdrhistogram::Histogram;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::time::Instant;

/// The longest latency that is told apart from longer ones: an hour.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
/// Digits to which latencies are told apart.
const DIGITS: u8 = 3;

/// Latencies of all operations, none yet, in memory that is there already.
pub(super) fn latencies() -> Histogram<u64> {
    let mut histogram =
        Histogram::new_with_max(LATENCY_NS_MAX, DIGITS).expect("the bounds are in order");
    histogram.reset(); // Writes all of it, so that no page is missing while the clock runs.
    histogram
}

/// Nanoseconds from the start at which `thread` is to start each of its `count` operations, when
/// all threads together start `rate` a second.
pub(super) fn schedule(recipe: &Recipe, rate: f64, thread: u64, count: usize) -> Vec<u64> {
    /// Sets these draws apart from those of the plans.
    const ARRIVALS: u64 = 0x6172_7269_7661_6C73;
    const NS_PER_SECOND: f64 = 1e9;
    let mut rng = SmallRng::seed_from_u64(mix64(recipe.seed ^ mix64(thread + 1) ^ ARRIVALS));
    let mean = NS_PER_SECOND * recipe.threads as f64 / rate;
    let mut at = 0.0;
    let mut arrive = || {
        at += -(1.0 - rng.random::<f64>()).ln() * mean;
        whole(at)
    };
    (0..count).map(|_| arrive()).collect()
}

/// Waits until `due` nanoseconds after `start`. A thread with a processor of its own keeps it;
/// another gives way.
pub(super) fn wait(start: Instant, due: u64, pinned: bool) {
    while nanoseconds(start) < due {
        if pinned { hint::spin_loop() } else { std::thread::yield_now() }
    }
}

/// Nanoseconds since `start`.
pub(super) fn nanoseconds(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_arrive_as_a_poisson_process_of_the_rate() {
        let recipe = Recipe { threads: 4, ..Recipe::default() };
        let arrivals = schedule(&recipe, 1e6, 2, 100_000);
        assert!(arrivals.is_sorted());
        // A thread of four starts one every 4 us; the standard deviation of the mean is 13 ns, that
        // of the share of gaps below the mean, 1 - 1/e, is 0.15 %.
        let last = *arrivals.last().unwrap() as f64;
        assert!((last / 100_000.0 - 4000.0).abs() < 80.0, "{last}");
        let gaps = arrivals.windows(2).map(|pair| pair[1] - pair[0]);
        let short = gaps.filter(|&gap| gap < 4000).count() as f64 / 100_000.0;
        assert!((short - 0.632).abs() < 0.01, "{short}");
        assert_ne!(arrivals, schedule(&recipe, 1e6, 1, 100_000), "each thread has its own");
    }
}
