//! WO-tree (Ma et al., JCST 2021): nodes of 16 lines, keys and values of 8 B, latency added to each
//! flushed line.

mod counts;
mod order;

pub(super) use counts::{flush_delete, flush_insert, inner_flush, node_size, shifts};
pub(super) use order::{latency, recovery, search_order};

use crate::claims::Claim;
use crate::interval::Interval;
use crate::papers::finding::{
    ClaimResult, Measured, Measurement, comparison_chart, index_of, measure_each, timed,
    timing_note,
};
use crate::speed::{Speed, processors};
use crate::workbench::{Named, Work, Workbench};
use bristlecone_lab::Result;
use bristlecone_lab::workload::Workload;
use bristlecone_report::figure::{Axis, Curve, Lines, Point, Scale, Stroke};
use bristlecone_report::page::Block;

/// The system of the paper, then its baselines, with nodes of 1 KiB as in the paper.
const DESIGNS: [Named<'static>; 4] = [
    ("wo-tree", Some(1024)),
    ("btree-native", Some(1024)),
    ("wb-tree-words", Some(1024)),
    ("fast-fair", Some(1024)),
];
/// The number of keys in the tree for searches and deletes.
const KEYS: u64 = 1_000_000;
/// The number of operations of an experiment.
const OPS: u64 = 300_000;
/// The least latency that Fig. 10(b) of the paper adds to each flushed line, in nanoseconds.
const LEAST_DELAY_NS: u64 = 300;
/// The latency that the paper adds elsewhere.
const DELAY_NS: u64 = 400;
/// The numbers of threads in the paper.
const THREADS: [u64; 3] = [1, 2, 4];
fn inserts(bench: &Workbench<'_>) -> Work {
    Work::new(Workload::Insert, 0, bench.scaled(OPS))
}

/// Returns a run on a loaded tree, with the paper's ratio of operations to keys: 3 to 10.
fn on_keys(bench: &Workbench<'_>, workload: Workload) -> Work {
    let records = bench.scaled(KEYS);
    Work::new(workload, records, bench.scaled(OPS).min(records * OPS / KEYS))
}

/// The quantity whose relative change a claim states.
#[derive(Clone, Copy)]
enum Metric {
    Time,
    Throughput,
}

impl Metric {
    fn change(self, own: &Speed, base: &Speed) -> Interval {
        match self {
            Self::Time => base.over(own).less_one(),
            Self::Throughput => own.over(base).less_one(),
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Time => "time, relative change",
            Self::Throughput => "operations a second, relative change",
        }
    }
}

/// A case of a claim: its name there, its position on the axis of the chart, and the run.
struct Case {
    name: String,
    x: f64,
    work: Work,
}

/// Times the system and each baseline in each of `cases`. If there are several, the result includes
/// a chart of them along `axis`.
fn times(
    bench: &mut Workbench<'_>,
    claim: &Claim,
    metric: Metric,
    axis: Axis,
    cases: &[Case],
) -> Result<ClaimResult> {
    let (mut all, mut measured): (Vec<Measurement>, _) = (Vec::new(), Vec::new());
    for Case { name, x, work } in cases {
        let counts = flushed(bench, work)?;
        let speeds = bench.speeds(&DESIGNS, work)?;
        all.extend(
            measure_each(claim, |number| {
                let Some(at) = index_of(&DESIGNS, &number.baseline) else {
                    return Measured::default();
                };
                let cost = counts.as_ref().map_or(String::new(), |counts| {
                    format!("; {:.2} against {:.2} lines flushed", counts[0], counts[at])
                });
                let (own, base) = (&speeds[0], &speeds[at]);
                let note = timing_note(own, base, work) + &cost;
                Measured::timed(metric.change(own, base), note, &[own, base])
            })
            .into_iter()
            .filter(|measurement| measurement.number.case == *name),
        );
        measured.push((*x, speeds));
    }
    let mut blocks = vec![comparison_chart(claim, &all, metric.label(), Some(0.0))];
    if cases.len() > 1 {
        blocks.push(throughput_chart(axis, &measured));
    }
    Ok(ClaimResult { measurements: all, blocks, source: timed(claim) })
}

/// Returns a chart of the throughput of all designs along an axis.
fn throughput_chart(axis: Axis, measured: &[(f64, Vec<Speed>)]) -> Block {
    let curve = |(at, (name, _)): (usize, &Named<'_>)| {
        let point = |(x, speeds): &(f64, Vec<Speed>)| Point {
            x: *x,
            y: Some(speeds[at].ops_per_second * 1e-6),
        };
        Curve {
            name: (*name).into(),
            stroke: Stroke::Measured,
            points: measured.iter().map(point).collect(),
        }
    };
    let chart = Lines {
        title: format!("Throughput, by {}", axis.label),
        description: format!("Nodes of 1 KiB; timed on {} processors.", processors()),
        x: axis,
        y: Axis { label: "million operations a second".into(), scale: Scale::Linear },
        curves: DESIGNS.iter().enumerate().map(curve).collect(),
        baseline: None,
    };
    chart.into()
}

/// Counts the lines that an operation of `work` flushes, for each design; `None` for lookups.
fn flushed(bench: &mut Workbench<'_>, work: &Work) -> Result<Option<Vec<f64>>> {
    if work.workload == Workload::Get {
        return Ok(None);
    }
    // Counts depend neither on the number of threads nor on the added latency.
    let counted = Work { threads: 1, delay_ns: 0, ..work.clone() };
    let count = |design: &Named<'_>| bench.count(*design, &counted).map(|count| count.lines);
    DESIGNS.iter().map(count).collect::<Result<Vec<_>>>().map(Some)
}

/// Times a claim that has a single case.
fn times_alone(
    bench: &mut Workbench<'_>,
    claim: &Claim,
    metric: Metric,
    work: Work,
) -> Result<ClaimResult> {
    let axis = Axis { label: String::new(), scale: Scale::Linear };
    times(bench, claim, metric, axis, &[Case { name: String::new(), x: 0.0, work }])
}

pub(in crate::papers) fn time_insert(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    let work = inserts(bench);
    let mut found =
        times_alone(bench, claim, Metric::Time, work.clone().with_flush_delay(LEAST_DELAY_NS))?;
    found.blocks.push(by_latency(bench, &work)?);
    Ok(found)
}

/// Returns a chart of insert time by added latency.
fn by_latency(bench: &mut Workbench<'_>, work: &Work) -> Result<Block> {
    const DELAYS_NS: [u64; 4] = [0, 150, 300, 600];
    let mut curves: Vec<_> = DESIGNS
        .iter()
        .map(|(name, _)| Curve {
            name: (*name).into(),
            stroke: Stroke::Measured,
            points: Vec::new(),
        })
        .collect();
    for delay_ns in DELAYS_NS {
        let speeds = bench.speeds(&DESIGNS, &work.clone().with_flush_delay(delay_ns))?;
        for (curve, speed) in curves.iter_mut().zip(speeds) {
            curve.points.push(Point { x: delay_ns as f64, y: Some(speed.ns() * 1e-3) });
        }
    }
    let chart = Lines {
        title: "Insert time, by added flush latency".into(),
        description: "Nodes of 1 KiB, one thread; the latency is added to each flushed line."
            .into(),
        x: Axis { label: "nanoseconds added to each flushed line".into(), scale: Scale::Linear },
        y: Axis { label: "microseconds per insert".into(), scale: Scale::Log10 },
        curves,
        baseline: None,
    };
    Ok(chart.into())
}

pub(in crate::papers) fn time_delete(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    let work = on_keys(bench, Workload::Delete).with_flush_delay(DELAY_NS);
    times_alone(bench, claim, Metric::Time, work)
}

pub(in crate::papers) fn time_search(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    let work = on_keys(bench, Workload::Get);
    times_alone(bench, claim, Metric::Time, work)
}

/// Times runs of 1, 2 and 4 threads.
fn by_threads(
    bench: &mut Workbench<'_>,
    claim: &Claim,
    metric: Metric,
    work: &Work,
) -> Result<ClaimResult> {
    let case = |&threads: &u64| Case {
        name: if threads == 1 { "1 thread".into() } else { format!("{threads} threads") },
        x: threads as f64,
        work: work.clone().with_threads(threads),
    };
    let axis = Axis { label: "threads".into(), scale: Scale::Log2 };
    times(bench, claim, metric, axis, &THREADS.iter().map(case).collect::<Vec<_>>())
}

pub(in crate::papers) fn concurrent_insert(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    let work = inserts(bench).with_flush_delay(DELAY_NS);
    by_threads(bench, claim, Metric::Time, &work)
}

pub(in crate::papers) fn concurrent_delete(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    let work = on_keys(bench, Workload::Delete).with_flush_delay(DELAY_NS);
    by_threads(bench, claim, Metric::Time, &work)
}

pub(in crate::papers) fn concurrent_search(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    let work = on_keys(bench, Workload::Get);
    by_threads(bench, claim, Metric::Throughput, &work)
}

pub(in crate::papers) fn mixed(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    const THREADS: u64 = 4;
    let mut cases = Vec::new();
    for reads in [30_u32, 50, 70] {
        let mix: Workload = format!("get:{reads}+insert:{}", 100 - reads).parse()?;
        let work = Work::new(mix, bench.scaled(KEYS), bench.scaled(KEYS));
        let name = format!("{reads} % reads");
        cases.push(Case {
            name,
            x: f64::from(reads),
            work: work.with_threads(THREADS).with_flush_delay(DELAY_NS),
        });
    }
    let axis = Axis { label: "percent of searches".into(), scale: Scale::Linear };
    times(bench, claim, Metric::Time, axis, &cases)
}
