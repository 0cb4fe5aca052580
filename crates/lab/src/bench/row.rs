//! The row of a system under a workload: the JSON of `bench`.

use super::count::PerOp;
use super::latency::Latency;
use super::model::Model;
use super::run::Measured;
use crate::system::{BytesPerKey, Overlap};
use crate::workload::{Dist, Keys, Workload};
use serde::Serialize;

/// The time of an operation divided by that of the floor, in the same run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FloorRatio {
    /// The ratio to the floor whose operations wait for one another.
    pub serial: f64,
    /// The ratio to the floor whose operations may overlap.
    pub pipelined: f64,
}

/// The figures of one system under one workload, from the repetition with the median speed.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct BenchRow {
    /// The name of the system.
    pub design: String,
    /// The workload, by its name.
    pub workload: Workload,
    /// The number of measured threads.
    pub threads: u64,
    /// The number of maintenance workers. Left out if there were none.
    #[serde(skip_serializing_if = "is_zero")]
    pub collectors: u64,
    /// The number of records that were loaded.
    pub records: u64,
    /// The number of operations, of all threads together.
    pub ops: u64,
    /// The time of these operations.
    pub seconds: f64,
    /// The speed of all threads together.
    pub ops_per_second: f64,
    /// Latencies of single operations.
    pub latency_ns: Latency,
    /// The number of operations that were scheduled in a second, in an open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered: Option<f64>,
    /// The number of operations that were done in a second, in an open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub achieved: Option<f64>,
    /// The number of operations of each thread before the clock started.
    pub warm_up: u64,
    /// `true` if each thread had a processor to itself.
    pub pinned: bool,
    /// The counts of an operation. `None` if the workload has no operations or the system no
    /// counter.
    pub per_op: Option<PerOp>,
    /// The memory for each key.
    pub bytes_per_key: BytesPerKey,
    /// The bytes of a node, if the system has a choice of node sizes.
    pub node_bytes: Option<usize>,
    /// The kind of the keys.
    pub keys: Keys,
    /// The mean length of the keys.
    pub key_bytes: f64,
    /// The distribution of operations over records.
    pub dist: Dist,
    /// The percentage to which a bulk load filled the nodes; `None` if records were inserted.
    pub fill: Option<u32>,
    /// The domain whose flushes and fences were executed.
    pub domain: &'static str,
    /// The instructions that ran: those of [`Flushing`](super::Flushing).
    pub flush: &'static str,
    /// The latency added to each line flushed.
    pub delay_ns: u64,
    /// The number of repetitions.
    pub reps: usize,
    /// The seed of keys and choices.
    pub seed: u64,
    /// The speeds of the slowest and the fastest repetition.
    pub ops_per_second_range: [f64; 2],
    /// The ratio to the floor, if the run measured it under this workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times_floor: Option<FloorRatio>,
    /// The cost on a modelled device, if one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
}

/// Serde passes the field by reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Sets the ratio of each of `rows`, which are of one workload, if the floor is among them.
pub(super) fn relate_to_floor(rows: &mut [BenchRow]) {
    let speed = |overlap: Overlap| {
        let name = overlap.to_string();
        rows.iter().find(|row| row.design == name).map(|row| row.ops_per_second)
    };
    let floors = speed(Overlap::Serial).zip(speed(Overlap::Pipelined));
    let Some((serial, pipelined)) = floors else { return };
    for row in rows {
        let speed = row.ops_per_second;
        row.times_floor = Some(FloorRatio { serial: serial / speed, pipelined: pipelined / speed });
    }
}

/// Returns the repetition with the median speed, the slower of two in the middle, and the speeds of
/// the slowest and the fastest.
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
