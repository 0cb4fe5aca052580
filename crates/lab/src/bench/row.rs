//! What a run found, as programs read it.

use super::count::PerOp;
use super::latency::Latency;
use super::model::Model;
use super::run::Measured;
use crate::system::BytesPerKey;
use crate::workload::{Dist, Keys, Workload};
use serde::Serialize;

/// The figures of one design under one workload: those of the repetition with the median speed.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct BenchRow {
    /// What was measured.
    pub design: String,
    /// Under what.
    pub workload: Workload,
    /// Threads.
    pub threads: u64,
    /// Threads that did what the design puts off meanwhile, if there were any.
    #[serde(skip_serializing_if = "is_zero")]
    pub collectors: u64,
    /// Records that were loaded.
    pub records: u64,
    /// Operations, of all threads together.
    pub ops: u64,
    /// That they took.
    pub seconds: f64,
    /// Of all threads together.
    pub ops_per_second: f64,
    /// Of single operations.
    pub latency_ns: Latency,
    /// Operations that were to start in a second, where they start at a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered: Option<f64>,
    /// Those that were done in a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub achieved: Option<f64>,
    /// Operations of each thread before the clock started.
    pub warm_up: u64,
    /// Whether each thread had a processor to itself.
    pub pinned: bool,
    /// None where what is measured is no operation.
    pub per_op: Option<PerOp>,
    /// Memory.
    pub bytes_per_key: BytesPerKey,
    /// Bytes of a node, where one is chosen.
    pub node_bytes: Option<usize>,
    /// What keys were.
    pub keys: Keys,
    /// Their mean length.
    pub key_bytes: f64,
    /// Which records were chosen.
    pub dist: Dist,
    /// The domain whose flushes and fences were executed.
    pub domain: &'static str,
    /// Added to each line flushed.
    pub delay_ns: u64,
    /// Repetitions.
    pub reps: usize,
    /// What keys and choices were drawn from.
    pub seed: u64,
    /// Slowest and fastest repetition.
    pub ops_per_second_range: [f64; 2],
    /// What a modelled device makes of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
}

/// For serde, which hands out references.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The repetition with the median speed (the slower of two in the middle), and the speeds of the
/// slowest and the fastest.
pub fn median(mut repetitions: Vec<Measured>) -> Option<(Measured, [f64; 2])> {
    repetitions.sort_by(|a, b| a.ops_per_second().total_cmp(&b.ops_per_second()));
    let range = [repetitions.first()?.ops_per_second(), repetitions.last()?.ops_per_second()];
    let middle = (repetitions.len() - 1) / 2;
    Some((repetitions.swap_remove(middle), range))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seconds: f64) -> Measured {
        let (samples, maintenance_threads) = (Vec::new(), 0);
        Measured { ops: 100, seconds, samples, open: None, maintenance_threads, pinned: false }
    }

    #[test]
    fn the_median_is_a_run_that_took_place() {
        let (middle, range) = median(vec![run(1.0), run(4.0), run(2.0)]).unwrap();
        let is = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
        assert!(is(middle.ops_per_second(), 50.0) && is(range[0], 25.0) && is(range[1], 100.0));
        let (slower, _) = median(vec![run(1.0), run(2.0)]).unwrap();
        assert!(is(slower.ops_per_second(), 50.0));
        assert!(median(Vec::new()).is_none());
    }
}
