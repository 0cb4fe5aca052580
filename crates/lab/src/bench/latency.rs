//! Percentiles of latencies, in nanoseconds.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Percentiles of the sampled operations, or of batches if the workload is in batches. In an open
/// loop, of all operations from their scheduled start.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct Latency {
    /// The time in nanoseconds that 50 % of the operations did not exceed.
    pub p50: u64,
    /// The time in nanoseconds that 90 % of the operations did not exceed.
    pub p90: u64,
    /// The time in nanoseconds that 99 % of the operations did not exceed.
    pub p99: u64,
    /// The time in nanoseconds that 99.9 % of the operations did not exceed.
    pub p999: u64,
}

impl Latency {
    /// Returns the percentiles of `samples`, in nanoseconds, to three digits.
    pub fn of(samples: &[u32]) -> Self {
        let mut histogram = Histogram::<u64>::new_with_max(u64::from(u32::MAX), 3)
            .expect("the bounds are in order");
        for &sample in samples {
            histogram.saturating_record(u64::from(sample));
        }
        Self::in_histogram(&histogram)
    }

    /// Returns the percentiles of `histogram`, which counts nanoseconds.
    pub fn in_histogram(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile);
        Self { p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_samples() {
        let samples: Vec<u32> = (1..=1000).collect();
        let latency = Latency::of(&samples);
        assert_eq!((latency.p50, latency.p90, latency.p99), (500, 900, 990));
        assert_eq!(latency.p999, 999);
    }
}
