//! The open loop: an operation starts at its scheduled time, even if earlier ones are not done.
//!
//! 1. The schedule of each thread is a Poisson process of its own, drawn from the seed before the
//!    clock starts.
//! 2. Latency is counted from the scheduled start of an operation, not from the actual one. So an
//!    operation that waits behind a slow one counts as slow too (no coordinated omission).

use crate::workload::{Recipe, mix64, whole};
use core::hint;
use hdrhistogram::Histogram;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::time::Instant;

/// The longest latency that is distinguished from longer ones: an hour.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
/// The number of significant digits of latencies.
const DIGITS: u8 = 3;

/// Returns an empty histogram of latencies whose memory is already mapped.
pub(super) fn latencies() -> Histogram<u64> {
    let mut histogram =
        Histogram::new_with_max(LATENCY_NS_MAX, DIGITS).expect("the bounds are in order");
    histogram.reset(); // Writes all of it, so that no page is missing while the clock runs.
    histogram
}

/// Returns the scheduled start of each of `count` operations of `thread`, in nanoseconds from the
/// start of the run. All threads together start `rate` operations in a second.
pub(super) fn schedule(recipe: &Recipe, rate: f64, thread: u64, count: usize) -> Vec<u64> {
    /// Separates these draws from those of the plans.
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

/// Waits until `due` nanoseconds after `start`. A thread with a processor of its own spins; another
/// one yields.
pub(super) fn wait(start: Instant, due: u64, pinned: bool) {
    while nanoseconds(start) < due {
        if pinned { hint::spin_loop() } else { std::thread::yield_now() }
    }
}

/// Returns the nanoseconds since `start`.
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
        // A thread of four starts an operation every 4 us. The standard deviation of the mean is 13
        // ns; that of the share of gaps below the mean, 1 - 1/e, is 0.15 %.
        let last = *arrivals.last().unwrap() as f64;
        assert!((last / 100_000.0 - 4000.0).abs() < 80.0, "{last}");
        let gaps = arrivals.windows(2).map(|pair| pair[1] - pair[0]);
        let short = gaps.filter(|&gap| gap < 4000).count() as f64 / 100_000.0;
        assert!((short - 0.632).abs() < 0.01, "{short}");
        assert_ne!(arrivals, schedule(&recipe, 1e6, 1, 100_000), "each thread has its own");
    }
}
