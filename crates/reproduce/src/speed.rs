//! The speed of a timed run: throughput and latency of each repetition.

use crate::interval::Interval;

/// The throughput of a timed run, in each of its repetitions.
#[derive(Clone, Debug, PartialEq)]
pub struct Speed {
    /// The throughput of all threads together: the median of the repetitions.
    pub ops_per_second: f64,
    /// The operations a second, and the 99th percentile of the latency in nanoseconds, of each
    /// repetition.
    runs: Vec<[f64; 2]>,
    threads: u64,
}

impl Speed {
    pub(crate) fn new(runs: Vec<[f64; 2]>, threads: u64) -> Self {
        let mut speeds: Vec<f64> = runs.iter().map(|run| run[0]).collect();
        speeds.sort_by(f64::total_cmp);
        Self { ops_per_second: speeds[(speeds.len() - 1) / 2], runs, threads }
    }

    /// Returns the median of the mean time between operations in nanoseconds.
    pub fn ns(&self) -> f64 {
        1e9 / self.ops_per_second
    }

    /// Returns the median of the 99th percentiles of the latency in nanoseconds.
    pub fn p99_ns(&self) -> f64 {
        let mut latencies = self.latencies();
        latencies.sort_by(f64::total_cmp);
        latencies[(latencies.len() - 1) / 2]
    }

    /// Returns the operations a second of each repetition.
    pub fn speeds(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run[0]).collect()
    }

    fn latencies(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run[1]).collect()
    }

    /// Returns the range of the repetitions, relative to their median.
    pub fn spread(&self) -> f64 {
        let speeds = self.speeds();
        let [least, most] = [f64::min, f64::max].map(|of| speeds.iter().copied().reduce(of));
        most.zip(least).map_or(0.0, |(most, least)| (most - least) / self.ops_per_second)
    }

    /// Returns the throughput over that of `other`, which ran in the same turns.
    pub fn over(&self, other: &Self) -> Interval {
        Interval::of_ratios(&self.ratios(other))
    }

    /// Returns the throughput over that of `other` in each repetition.
    pub fn ratios(&self, other: &Self) -> Vec<f64> {
        let pairs = self.runs.iter().zip(&other.runs);
        pairs.map(|(own, other)| own[0] / other[0]).collect()
    }

    /// Returns the 99th percentile over that of `other`, which ran in the same turns.
    pub fn p99_over(&self, other: &Self) -> Interval {
        Interval::paired(&self.latencies(), &other.latencies())
    }

    /// Returns the numbers of threads and of processors, if there are more threads.
    pub fn crowd(&self) -> Option<[u64; 2]> {
        let processors = processors() as u64;
        (self.threads > processors).then_some([self.threads, processors])
    }
}

/// Returns the number of processors.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_the_median_with_the_range() {
        let found = Speed::new(vec![[3.0, 10.0], [1.0, 30.0], [2.0, 20.0]], 1);
        let is = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
        assert!(is(found.ops_per_second, 2.0) && is(found.p99_ns(), 20.0));
        assert!(is(found.ns(), 5e8) && is(found.spread(), 1.0));
        let half = Speed::new(vec![[1.5, 5.0], [0.5, 15.0], [1.0, 10.0]], 1);
        let ratios = [found.over(&half), found.p99_over(&half)];
        assert!(ratios.iter().all(|ratio| is(ratio.value, 2.0) && is(ratio.low.unwrap(), 2.0)));
        assert_eq!(found.crowd(), None);
        assert!(Speed::new(vec![[1.0, 1.0]], 1 << 20).crowd().is_some());
    }
}
