//! What a run found, as programs and people read it.

use super::count::PerOp;
use super::model::{self, Model};
use super::run::Measured;
use super::workload::{Dist, Workload};
use crate::output::{Output, grouped, table, whole};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::io::Write;

/// The figures of one design under one workload: those of the repetition with the median speed.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) design: String,
    pub(super) workload: Workload,
    pub(super) threads: u64,
    pub(super) records: u64,
    pub(super) ops: u64,
    pub(super) seconds: f64,
    pub(super) ops_per_second: f64,
    pub(super) latency_ns: Latency,
    /// None where what is measured is no operation.
    pub(super) per_op: Option<PerOp>,
    pub(super) bytes_per_key: Bytes,
    pub(super) node_bytes: Option<usize>,
    pub(super) dist: Dist,
    pub(super) domain: &'static str,
    pub(super) delay_ns: u64,
    pub(super) reps: usize,
    pub(super) seed: u64,
    /// Slowest and fastest repetition.
    pub(super) ops_per_second_range: [f64; 2],
    /// What a modelled device makes of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<Model>,
}

/// Percentiles of the sampled operations; of batches, where the workload is in batches.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Latency {
    p50: u64,
    p90: u64,
    p99: u64,
    p999: u64,
}

/// Memory for each key after the load.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Bytes {
    pub(super) pm: f64,
    pub(super) dram: f64,
}

impl Latency {
    pub(super) fn p99(&self) -> u64 {
        self.p99
    }

    /// The percentiles of `samples`, in nanoseconds, to three digits.
    pub(super) fn of(samples: &[u32]) -> Self {
        let mut histogram = Histogram::<u64>::new_with_max(u64::from(u32::MAX), 3)
            .expect("the bounds are in order");
        for &sample in samples {
            histogram.saturating_record(u64::from(sample));
        }
        let at = |quantile| histogram.value_at_quantile(quantile);
        Self { p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999) }
    }
}

/// The repetition with the median speed (the slower of two in the middle), and the speeds of the
/// slowest and the fastest.
pub(super) fn median(mut repetitions: Vec<Measured>) -> Option<(Measured, [f64; 2])> {
    repetitions.sort_by(|a, b| a.ops_per_second().total_cmp(&b.ops_per_second()));
    let range = [repetitions.first()?.ops_per_second(), repetitions.last()?.ops_per_second()];
    let middle = (repetitions.len() - 1) / 2;
    Some((repetitions.swap_remove(middle), range))
}

/// Prints `rows` for people, each with its speed relative to the first of its workload.
pub(super) fn print(rows: &[Row], output: &mut Output) -> std::io::Result<()> {
    let titles = [
        "design",
        "workload",
        "ops/s",
        "ratio",
        "p50 ns",
        "p99 ns",
        "p99.9 ns",
        "lines",
        "fences",
        "words",
        "PM B/key",
        "DRAM B/key",
    ];
    let mut shown = table(&titles, 2..12);
    for row in rows {
        let first = rows.iter().find(|first| first.workload == row.workload);
        let ratio = first.map_or(1.0, |first| row.ops_per_second / first.ops_per_second);
        let counted = |count: fn(&PerOp) -> f64| {
            row.per_op.as_ref().map_or("-".to_owned(), |per_op| format!("{:.2}", count(per_op)))
        };
        shown.add_row([
            row.design.clone(),
            row.workload.name(),
            speed(row.ops_per_second),
            format!("{ratio:.2}"),
            row.latency_ns.p50.to_string(),
            row.latency_ns.p99.to_string(),
            row.latency_ns.p999.to_string(),
            counted(|per_op| per_op.lines),
            counted(|per_op| per_op.fences),
            counted(|per_op| per_op.words),
            format!("{:.1}", row.bytes_per_key.pm),
            format!("{:.1}", row.bytes_per_key.dram),
        ]);
    }
    output.table(&shown)
}

/// Prints what modelled devices made of `rows`, if there are any.
pub(super) fn print_models(rows: &[Row], threads: u32, output: &mut Output) -> std::io::Result<()> {
    let modelled = rows
        .iter()
        .filter_map(|row| Some((row.design.as_str(), row.workload.name(), row.model.as_ref()?)));
    if modelled.clone().next().is_none() {
        return Ok(());
    }
    writeln!(output)?;
    model::print(modelled, threads, output)
}

/// Operations a second, with a fraction where there are few.
fn speed(ops_per_second: f64) -> String {
    if ops_per_second < 100.0 {
        return format!("{ops_per_second:.2}");
    }
    grouped(whole(ops_per_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seconds: f64) -> Measured {
        Measured { ops: 100, seconds, samples: Vec::new() }
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

    #[test]
    fn percentiles_are_those_of_the_samples() {
        let samples: Vec<u32> = (1..=1000).collect();
        let latency = Latency::of(&samples);
        assert_eq!((latency.p50, latency.p90, latency.p99), (500, 900, 990));
        assert_eq!(latency.p999, 999);
    }
}
