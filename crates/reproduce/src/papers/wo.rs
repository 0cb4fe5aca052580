//! WO-tree: nodes of 16 lines, 8 B keys and values, latency added to each line flushed.

use super::finding::{
    ClaimResult, Measurement, comparison_chart, counted, index_of, measure_each, timed, timing_note,
};
use crate::claims::Claim;
use crate::experiments::inner_shift;
use crate::workbench::{Named, Speed, Work, Workbench};
use bristlecone_lab::Result;
use bristlecone_lab::workload::Workload;
use bristlecone_report::figure::{Axis, Curve, Lines, Point, Scale, Stroke};
use bristlecone_report::page::Block;

/// The systems of the paper, at its node size.
const DESIGNS: [Named<'static>; 4] = [
    ("wo-tree", Some(1024)),
    ("btree-log", Some(1024)),
    ("wb-tree", Some(1024)),
    ("fast-fair", Some(1024)),
];
/// Keys in the tree that is searched and deleted from.
const KEYS: u64 = 1_000_000;
/// Operations of an experiment.
const OPS: u64 = 300_000;
/// Nanoseconds that the paper adds to each line flushed.
const DELAY_NS: u64 = 300;
/// Threads of its experiments.
const THREADS: [u64; 3] = [1, 2, 4];

fn inserts(bench: &Workbench<'_>) -> Work {
    Work::new(Workload::Insert, 0, bench.scaled(OPS))
}

/// The paper's tree is three times as large as what is done to it.
fn on_keys(bench: &Workbench<'_>, workload: Workload) -> Work {
    let records = bench.scaled(KEYS);
    Work::new(workload, records, bench.scaled(OPS).min(records * OPS / KEYS))
}

/// Lines of the system beside those of each baseline, counted.
fn lines(bench: &mut Workbench<'_>, claim: &Claim, work: &Work) -> Result<ClaimResult> {
    let counts: Vec<_> =
        DESIGNS.iter().map(|&design| bench.count(design, work)).collect::<Result<_>>()?;
    let measurements = measure_each(claim, |number| {
        let Some(at) = index_of(&DESIGNS, &number.baseline) else { return (None, String::new()) };
        let (own, base) = (counts[0], counts[at]);
        let note = format!(
            "{:.2} against {:.2} lines an operation, {:.2} against {:.2} fences; {} operations",
            own.lines, base.lines, own.fences, base.fences, work.ops
        );
        (Some(own.lines / base.lines - 1.0), note)
    });
    let by_size = by_node_size(bench, &work.workload)?;
    let bars = comparison_chart(claim, &measurements, "lines flushed, relative change", Some(0.0));
    Ok(ClaimResult { measurements, blocks: vec![bars, by_size], source: counted(claim) })
}

/// Lines an operation flushes, by the size of nodes.
fn by_node_size(bench: &mut Workbench<'_>, workload: &Workload) -> Result<Block> {
    const SIZES: [usize; 4] = [256, 512, 1024, 2048];
    const NAMES: [&str; 6] =
        ["wo-tree", "wo-tree-r", "btree-log", "wb-tree", "fast-fair", "fptree"];
    let records = if *workload == Workload::Insert { 0 } else { bench.scaled(OPS) };
    let work = Work::new(workload.clone(), records, bench.scaled(OPS));
    let mut curves = Vec::new();
    for name in NAMES {
        let mut points = Vec::new();
        for size in SIZES {
            // Not every design has nodes of every size.
            let known = bristlecone_lab::system::design(name, Some(size)).is_ok();
            let y = known.then(|| bench.count((name, Some(size)), &work)).transpose()?;
            points.push(Point { x: size as f64, y: y.map(|count| count.lines) });
        }
        curves.push(Curve { name: name.into(), stroke: Stroke::Measured, points });
    }
    let chart = Lines {
        title: format!("Lines flushed by {}s, by the size of nodes", workload.name()),
        description: "Counted; random keys of 8 B.".into(),
        x: Axis { label: "bytes of a node".into(), scale: Scale::Log2 },
        y: Axis { label: "lines an operation".into(), scale: Scale::Log10 },
        curves,
        baseline: None,
    };
    Ok(chart.into())
}

pub(super) fn flush_insert(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let work = inserts(bench);
    lines(bench, claim, &work)
}

pub(super) fn flush_delete(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let work = on_keys(bench, Workload::Delete);
    lines(bench, claim, &work)
}

/// What a change is of.
#[derive(Clone, Copy)]
enum Metric {
    Time,
    Throughput,
}

impl Metric {
    fn change(self, own: Speed, base: Speed) -> f64 {
        let ratio = own.ops_per_second / base.ops_per_second;
        match self {
            Self::Time => 1.0 / ratio - 1.0,
            Self::Throughput => ratio - 1.0,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Time => "time, relative change",
            Self::Throughput => "operations a second, relative change",
        }
    }
}

/// A part of an experiment: its name in the claim, where it is on the axis of a chart, and what is done.
struct Case {
    name: String,
    x: f64,
    work: Work,
}

/// Times of the system beside those of each baseline, for each of `cases`, which are along `axis` if they are
/// several.
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
                    return (None, String::new());
                };
                let cost = counts.as_ref().map_or(String::new(), |counts| {
                    format!("; {:.2} against {:.2} lines flushed", counts[0], counts[at])
                });
                let note = timing_note(speeds[0], speeds[at], work) + &cost;
                (Some(metric.change(speeds[0], speeds[at])), note)
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

/// The speeds of the designs along an axis.
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
        title: format!("Operations a second, by {}", axis.label),
        description: format!(
            "Nodes of 1 KiB; timed on {} processors.",
            std::thread::available_parallelism().map_or(1, usize::from)
        ),
        x: axis,
        y: Axis { label: "million operations a second".into(), scale: Scale::Linear },
        curves: DESIGNS.iter().enumerate().map(curve).collect(),
        baseline: None,
    };
    chart.into()
}

/// Lines that each design flushes in an operation of `work`, if any does.
fn flushed(bench: &mut Workbench<'_>, work: &Work) -> Result<Option<Vec<f64>>> {
    if work.workload == Workload::Get {
        return Ok(None);
    }
    // One thread counts for all, whatever is added to a flush.
    let counted = Work { threads: 1, delay_ns: 0, ..work.clone() };
    let count = |design: &Named<'_>| bench.count(*design, &counted).map(|count| count.lines);
    DESIGNS.iter().map(count).collect::<Result<Vec<_>>>().map(Some)
}

/// Times where there is one case.
fn times_alone(
    bench: &mut Workbench<'_>,
    claim: &Claim,
    metric: Metric,
    work: Work,
) -> Result<ClaimResult> {
    let axis = Axis { label: String::new(), scale: Scale::Linear };
    times(bench, claim, metric, axis, &[Case { name: String::new(), x: 0.0, work }])
}

pub(super) fn time_insert(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let work = inserts(bench);
    let mut found =
        times_alone(bench, claim, Metric::Time, work.clone().with_flush_delay(DELAY_NS))?;
    found.blocks.push(by_latency(bench, &work)?);
    Ok(found)
}

/// Times of inserts by the latency that is added.
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
        title: "Time of an insert, by the latency of writes".into(),
        description: "Nodes of 1 KiB, one thread; the latency is added to each line flushed."
            .into(),
        x: Axis { label: "nanoseconds added to each line flushed".into(), scale: Scale::Linear },
        y: Axis { label: "microseconds an insert".into(), scale: Scale::Log10 },
        curves,
        baseline: None,
    };
    Ok(chart.into())
}

pub(super) fn time_delete(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let work = on_keys(bench, Workload::Delete).with_flush_delay(DELAY_NS);
    times_alone(bench, claim, Metric::Time, work)
}

pub(super) fn time_search(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let work = on_keys(bench, Workload::Get);
    let found = times_alone(bench, claim, Metric::Time, work)?;
    with_dram_note(bench, found)
}

/// The same with what it is worth that inner nodes of wo-tree are in DRAM here, and searched there by
/// vectors: `fast-fair` is there with them in persistent memory and in DRAM.
fn with_dram_note(bench: &mut Workbench<'_>, mut found: ClaimResult) -> Result<ClaimResult> {
    const PAIR: [Named<'static>; 2] = [("fast-fair-sp", Some(1024)), ("fast-fair", Some(1024))];
    let work = on_keys(bench, Workload::Get);
    let speeds = bench.speeds(&PAIR, &work)?;
    let note = format!(
        "; inner nodes are in DRAM here, which alone makes lookups of fast-fair {:.2} times as fast",
        speeds[0].ops_per_second / speeds[1].ops_per_second
    );
    found.measurements.iter_mut().for_each(|measurement| measurement.note.push_str(&note));
    Ok(found)
}

/// Times by 1, 2 and 4 threads.
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

pub(super) fn concurrent_insert(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let work = inserts(bench).with_flush_delay(DELAY_NS);
    by_threads(bench, claim, Metric::Time, &work)
}

pub(super) fn concurrent_delete(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let work = on_keys(bench, Workload::Delete).with_flush_delay(DELAY_NS);
    by_threads(bench, claim, Metric::Time, &work)
}

pub(super) fn concurrent_search(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let work = on_keys(bench, Workload::Get);
    let found = by_threads(bench, claim, Metric::Throughput, &work)?;
    with_dram_note(bench, found)
}

pub(super) fn mixed(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
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

pub(super) fn inner_flush(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    bench.say("fast-fair: inner nodes");
    let found = inner_shift::shifts()?;
    let measurements = measure_each(claim, |_| {
        let note = format!(
            "inner nodes of wo-tree are in DRAM here; counted in those of fast-fair, which shift alike: \
             with {:.1} entries in 16 lines an entry that comes first flushes {:.2} lines, one that comes last 1",
            found.entries, found.front_lines
        );
        (Some(f64::midpoint(found.front_lines, 1.0)), note)
    });
    let bars = comparison_chart(claim, &measurements, "lines flushed in the inner node", None);
    Ok(ClaimResult { measurements, blocks: vec![bars], source: counted(claim) })
}
