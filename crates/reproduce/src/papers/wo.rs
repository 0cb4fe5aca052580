//! WO-tree (Ma et al., JCST 2021): nodes of 16 lines, keys and values of 8 B, latency added to each
//! flushed line.

use super::finding::{
    ClaimResult, Measured, Measurement, comparison_chart, counted, index_of, measure_each, timed,
    timing_note,
};
use crate::claims::Claim;
use crate::experiments::inner_shift;
use crate::interval::Interval;
use crate::workbench::{Named, Speed, Work, Workbench, processors};
use bristlecone_lab::Result;
use bristlecone_lab::workload::Workload;
use bristlecone_report::figure::{Axis, Curve, Lines, Point, Scale, Stroke};
use bristlecone_report::page::Block;

/// The system of the paper, then its baselines, with nodes of 1 KiB as in the paper.
const DESIGNS: [Named<'static>; 4] = [
    ("wo-tree", Some(1024)),
    ("btree-native", Some(1024)),
    ("wb-tree", Some(1024)),
    ("fast-fair", Some(1024)),
];
/// The number of keys in the tree for searches and deletes.
const KEYS: u64 = 1_000_000;
/// The number of operations of an experiment.
const OPS: u64 = 300_000;
/// The latency that the paper adds to each flushed line, in nanoseconds.
const DELAY_NS: u64 = 300;
/// The numbers of threads in the paper.
const THREADS: [u64; 3] = [1, 2, 4];
/// The cases of Sec. 4.3.1, each with the tree whose inner nodes are measured for it.
const SHIFTING: [(&str, &str); 2] =
    [("a line at a time", "wo-tree"), ("an entry at a time", "btree-native")];

fn inserts(bench: &Workbench<'_>) -> Work {
    Work::new(Workload::Insert, 0, bench.scaled(OPS))
}

/// Returns a run on a loaded tree, with the paper's ratio of operations to keys: 3 to 10.
fn on_keys(bench: &Workbench<'_>, workload: Workload) -> Work {
    let records = bench.scaled(KEYS);
    Work::new(workload, records, bench.scaled(OPS).min(records * OPS / KEYS))
}

/// Counts flushed lines: the relative change of the system against each baseline.
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

/// Returns a chart of flushed lines by node size.
fn by_node_size(bench: &mut Workbench<'_>, workload: &Workload) -> Result<Block> {
    const SIZES: [usize; 4] = [256, 512, 1024, 2048];
    const NAMES: [&str; 6] =
        ["wo-tree", "wo-tree-r", "btree-native", "wb-tree", "fast-fair", "fptree"];
    let records = if *workload == Workload::Insert { 0 } else { bench.scaled(OPS) };
    let work = Work::new(workload.clone(), records, bench.scaled(OPS));
    let mut curves = Vec::new();
    for name in NAMES {
        let mut points = Vec::new();
        for size in SIZES {
            // Some designs do not have nodes of this size.
            let known = bristlecone_lab::system::design(name, Some(size)).is_ok();
            let y = known.then(|| bench.count((name, Some(size)), &work)).transpose()?;
            points.push(Point { x: size as f64, y: y.map(|count| count.lines) });
        }
        curves.push(Curve { name: name.into(), stroke: Stroke::Measured, points });
    }
    let chart = Lines {
        title: format!("Lines flushed by an operation ({}), by node size", workload.name()),
        description: "Counted, for random keys of 8 B.".into(),
        x: Axis { label: "node size in bytes".into(), scale: Scale::Log2 },
        y: Axis { label: "lines per operation".into(), scale: Scale::Log10 },
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

pub(super) fn time_insert(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let work = inserts(bench);
    let mut found =
        times_alone(bench, claim, Metric::Time, work.clone().with_flush_delay(DELAY_NS))?;
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

pub(super) fn time_delete(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let work = on_keys(bench, Workload::Delete).with_flush_delay(DELAY_NS);
    times_alone(bench, claim, Metric::Time, work)
}

pub(super) fn time_search(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
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
    by_threads(bench, claim, Metric::Throughput, &work)
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
    let mut counts = Vec::new();
    for (case, name) in SHIFTING {
        bench.say(&format!("{name}: inner nodes"));
        counts.push((case, name, inner_shift::shifts(name)?));
    }
    let measurements = measure_each(claim, |number| {
        let of_case = counts.iter().find(|(case, ..)| *case == number.case);
        let Some((_, name, found)) = of_case else { return (None, String::new()) };
        let note = format!(
            "inner nodes of {name}: with {:.1} entries in 16 lines, an insert at the front flushes {:.2} lines, \
             one at the end 1",
            found.entries, found.front_lines
        );
        (Some(f64::midpoint(found.front_lines, 1.0)), note)
    });
    let bars = comparison_chart(claim, &measurements, "lines flushed in the inner node", None);
    Ok(ClaimResult { measurements, blocks: vec![bars], source: counted(claim) })
}
