//! WO-tree: nodes of 16 lines, 8 B keys and values, latency added to each line flushed.

use super::{Finding, Found, about, bars, counted, findings, place, timed};
use crate::bench::{Named, Speed, Work, Workbench};
use crate::claims::Claim;
use crate::experiments::inner_shift;
use crate::figure::{Axis, Curve, Kind, Lines, Point, Scale};
use crate::page::Block;
use bristlecone_lab::Result;
use bristlecone_lab::workload::Workload;

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
fn lines(bench: &mut Workbench<'_>, claim: &Claim, work: &Work) -> Result<Found> {
    let counts: Vec<_> =
        DESIGNS.iter().map(|&design| bench.count(design, work)).collect::<Result<_>>()?;
    let findings = findings(claim, |number| {
        let Some(at) = place(&DESIGNS, &number.baseline) else { return (None, String::new()) };
        let (own, base) = (counts[0], counts[at]);
        let note = format!(
            "{:.2} against {:.2} lines an operation, {:.2} against {:.2} fences; {} operations",
            own.lines, base.lines, own.fences, base.fences, work.ops
        );
        (Some(own.lines / base.lines - 1.0), note)
    });
    let by_size = by_node_size(bench, &work.workload)?;
    let bars = bars(claim, &findings, "lines flushed, relative change", Some(0.0));
    Ok(Found { findings, blocks: vec![bars, by_size], source: counted(claim) })
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
        curves.push(Curve { name: name.into(), kind: Kind::Measured, points });
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

pub(super) fn flush_insert(bench: &mut Workbench<'_>, claim: &Claim) -> Result<Found> {
    let work = inserts(bench);
    lines(bench, claim, &work)
}

pub(super) fn flush_delete(bench: &mut Workbench<'_>, claim: &Claim) -> Result<Found> {
    let work = on_keys(bench, Workload::Delete);
    lines(bench, claim, &work)
}

/// What a change is of.
#[derive(Clone, Copy)]
enum Of {
    Time,
    Throughput,
}

impl Of {
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
    of: Of,
    axis: Axis,
    cases: &[Case],
) -> Result<Found> {
    let (mut all, mut measured): (Vec<Finding>, _) = (Vec::new(), Vec::new());
    for Case { name, x, work } in cases {
        let counts = flushed(bench, work)?;
        let speeds = bench.speeds(&DESIGNS, work)?;
        all.extend(
            findings(claim, |number| {
                let Some(at) = place(&DESIGNS, &number.baseline) else {
                    return (None, String::new());
                };
                let cost = counts.as_ref().map_or(String::new(), |counts| {
                    format!("; {:.2} against {:.2} lines flushed", counts[0], counts[at])
                });
                let note = about(speeds[0], speeds[at], work) + &cost;
                (Some(of.change(speeds[0], speeds[at])), note)
            })
            .into_iter()
            .filter(|finding| finding.number.case == *name),
        );
        measured.push((*x, speeds));
    }
    let mut blocks = vec![bars(claim, &all, of.label(), Some(0.0))];
    if cases.len() > 1 {
        blocks.push(along(axis, &measured));
    }
    Ok(Found { findings: all, blocks, source: timed(claim) })
}

/// The speeds of the designs along an axis.
fn along(axis: Axis, measured: &[(f64, Vec<Speed>)]) -> Block {
    let curve = |(at, (name, _)): (usize, &Named<'_>)| {
        let point = |(x, speeds): &(f64, Vec<Speed>)| Point {
            x: *x,
            y: Some(speeds[at].ops_per_second * 1e-6),
        };
        Curve {
            name: (*name).into(),
            kind: Kind::Measured,
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
fn times_alone(bench: &mut Workbench<'_>, claim: &Claim, of: Of, work: Work) -> Result<Found> {
    let axis = Axis { label: String::new(), scale: Scale::Linear };
    times(bench, claim, of, axis, &[Case { name: String::new(), x: 0.0, work }])
}

pub(super) fn time_insert(bench: &mut Workbench<'_>, claim: &Claim) -> Result<Found> {
    let work = inserts(bench);
    let mut found = times_alone(bench, claim, Of::Time, work.clone().slowed(DELAY_NS))?;
    found.blocks.push(by_latency(bench, &work)?);
    Ok(found)
}

/// Times of inserts by the latency that is added.
fn by_latency(bench: &mut Workbench<'_>, work: &Work) -> Result<Block> {
    const DELAYS_NS: [u64; 4] = [0, 150, 300, 600];
    let mut curves: Vec<_> = DESIGNS
        .iter()
        .map(|(name, _)| Curve { name: (*name).into(), kind: Kind::Measured, points: Vec::new() })
        .collect();
    for delay_ns in DELAYS_NS {
        let speeds = bench.speeds(&DESIGNS, &work.clone().slowed(delay_ns))?;
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

pub(super) fn time_delete(bench: &mut Workbench<'_>, claim: &Claim) -> Result<Found> {
    let work = on_keys(bench, Workload::Delete).slowed(DELAY_NS);
    times_alone(bench, claim, Of::Time, work)
}

pub(super) fn time_search(bench: &mut Workbench<'_>, claim: &Claim) -> Result<Found> {
    let work = on_keys(bench, Workload::Get);
    let found = times_alone(bench, claim, Of::Time, work)?;
    explained(bench, found)
}

/// The same with what it is worth that inner nodes of wo-tree are in DRAM here, and searched there by
/// vectors: `fast-fair` is there with them in persistent memory and in DRAM.
fn explained(bench: &mut Workbench<'_>, mut found: Found) -> Result<Found> {
    const PAIR: [Named<'static>; 2] = [("fast-fair-sp", Some(1024)), ("fast-fair", Some(1024))];
    let work = on_keys(bench, Workload::Get);
    let speeds = bench.speeds(&PAIR, &work)?;
    let note = format!(
        "; inner nodes are in DRAM here, which alone makes lookups of fast-fair {:.2} times as fast",
        speeds[0].ops_per_second / speeds[1].ops_per_second
    );
    found.findings.iter_mut().for_each(|finding| finding.note.push_str(&note));
    Ok(found)
}

/// Times by 1, 2 and 4 threads.
fn by_threads(bench: &mut Workbench<'_>, claim: &Claim, of: Of, work: &Work) -> Result<Found> {
    let case = |&threads: &u64| Case {
        name: if threads == 1 { "1 thread".into() } else { format!("{threads} threads") },
        x: threads as f64,
        work: work.clone().by(threads),
    };
    let axis = Axis { label: "threads".into(), scale: Scale::Log2 };
    times(bench, claim, of, axis, &THREADS.iter().map(case).collect::<Vec<_>>())
}

pub(super) fn concurrent_insert(bench: &mut Workbench<'_>, claim: &Claim) -> Result<Found> {
    let work = inserts(bench).slowed(DELAY_NS);
    by_threads(bench, claim, Of::Time, &work)
}

pub(super) fn concurrent_delete(bench: &mut Workbench<'_>, claim: &Claim) -> Result<Found> {
    let work = on_keys(bench, Workload::Delete).slowed(DELAY_NS);
    by_threads(bench, claim, Of::Time, &work)
}

pub(super) fn concurrent_search(bench: &mut Workbench<'_>, claim: &Claim) -> Result<Found> {
    let work = on_keys(bench, Workload::Get);
    let found = by_threads(bench, claim, Of::Throughput, &work)?;
    explained(bench, found)
}

pub(super) fn mixed(bench: &mut Workbench<'_>, claim: &Claim) -> Result<Found> {
    const THREADS: u64 = 4;
    let mut cases = Vec::new();
    for reads in [30_u32, 50, 70] {
        let mix: Workload = format!("get:{reads}+insert:{}", 100 - reads).parse()?;
        let work = Work::new(mix, bench.scaled(KEYS), bench.scaled(KEYS));
        let name = format!("{reads} % reads");
        cases.push(Case { name, x: f64::from(reads), work: work.by(THREADS).slowed(DELAY_NS) });
    }
    let axis = Axis { label: "percent of searches".into(), scale: Scale::Linear };
    times(bench, claim, Of::Time, axis, &cases)
}

pub(super) fn inner_flush(bench: &mut Workbench<'_>, claim: &Claim) -> Result<Found> {
    bench.say("fast-fair: inner nodes");
    let found = inner_shift::shifts()?;
    let findings = findings(claim, |_| {
        let note = format!(
            "inner nodes of wo-tree are in DRAM here; counted in those of fast-fair, which shift alike: \
             with {:.1} entries in 16 lines an entry that comes first flushes {:.2} lines, one that comes last 1",
            found.entries, found.front_lines
        );
        (Some(f64::midpoint(found.front_lines, 1.0)), note)
    });
    let bars = bars(claim, &findings, "lines flushed in the inner node", None);
    Ok(Found { findings, blocks: vec![bars], source: counted(claim) })
}
