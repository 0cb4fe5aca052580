//! wB+-Trees (Chen and Jin, PVLDB 8(7), 2015): nodes of 512 B, on real memory and on simulated
//! phase-change memory.

mod line_writes;
pub(super) mod served;
pub(super) mod simulation;
mod strings;

pub(super) use line_writes::clflush;
pub(super) use strings::strings;

use crate::claims::{Claim, Number};
use crate::experiments::operation_costs;
use crate::interval::Interval;
use crate::papers::finding::{ClaimResult, Measured, Measurement, counted, measure_each, timed};
use crate::rule::Status;
use crate::speed::Speed;
use crate::workbench::{Named, Work, Workbench};
use bristlecone_lab::Result;
use bristlecone_lab::workload::Workload;
use bristlecone_report::figure::{Axis, Curve, Lines, Point, Scale, Stroke};
use core::cmp::Ordering;

/// The system of the paper, then the trees with logging and with shadowing.
const DESIGNS: [&str; 7] = [
    "wb-tree",
    "btree-log",
    "unsorted-leaf-log",
    "unsorted-bitmap-log",
    "btree-shadow",
    "unsorted-leaf-shadow",
    "unsorted-bitmap-shadow",
];
/// The system of the paper with leaves that have a bitmap alone.
const BITMAP_LEAF: &str = "wb-tree-bitmap-leaf";
/// The number of keys in the paper.
const KEYS: u64 = 50_000_000;
/// The number of operations in the paper.
const OPS: u64 = 500_000;

pub(in crate::papers) fn table3(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    const UNITS: [&str; 3] = ["words", "lines", "fences"];
    bench.say("Table 3");
    let mut measurements = Vec::new();
    for structure in operation_costs::table()?.iter().filter(|row| row.paper[0][0] > 0.0) {
        for (at, operation) in operation_costs::OPERATIONS.into_iter().enumerate() {
            for (unit, name) in UNITS.into_iter().enumerate() {
                let (paper, printed) = (structure.paper[at][unit], structure.printed[at][unit]);
                let case = format!("{operation}: {name}");
                let number = Number::to_meet(structure.name, case, paper, Status::AsDescribed, "");
                let terms = structure.terms[at].iter().filter(|(_, term)| term[unit] > 0.0);
                let terms: Vec<_> =
                    terms.map(|(term, of)| format!("; {:.2} of {term}", of[unit])).collect();
                let all = structure.counted[at][unit];
                let note = format!("{all:.2} in all{}", terms.concat());
                measurements.push(Measurement::exact(&number, printed, note));
            }
        }
    }
    Ok(ClaimResult { measurements, blocks: Vec::new(), source: counted(claim) })
}

/// The percentages to which the paper loads the nodes of its trees.
const FILLS: [u32; 2] = [70, 100];

/// Returns runs of inserts, deletes and lookups of the paper's size, limited by the scale.
fn works(bench: &Workbench<'_>, fill: u32) -> [Work; 3] {
    let records = bench.scaled(KEYS);
    let ops = bench.scaled(OPS).min(records / 2);
    [Workload::Insert, Workload::Delete, Workload::Get]
        .map(|w| Work::new(w, records, ops).with_fill(fill).flushed_serially())
}

/// Returns the index of the design over which the first has the greatest factor, with the factor.
fn best(speeds: &[Speed]) -> (usize, Interval) {
    factors(speeds).max_by(by_value).expect("there are baselines")
}

/// Returns the index of the design over which the first has the least factor, with the factor.
fn least(speeds: &[Speed]) -> (usize, Interval) {
    factors(speeds).min_by(by_value).expect("there are baselines")
}

/// Returns the factors of the first design over each other one, with their indices.
fn factors(speeds: &[Speed]) -> impl Iterator<Item = (usize, Interval)> {
    speeds.iter().map(|speed| speeds[0].over(speed)).enumerate().skip(1)
}

fn by_value(a: &(usize, Interval), b: &(usize, Interval)) -> Ordering {
    a.1.value.total_cmp(&b.1.value)
}

/// Returns the persistent trees of the paper, the system first, that with a bitmap alone last.
fn persistent() -> Vec<Named<'static>> {
    DESIGNS.into_iter().chain([BITMAP_LEAF]).map(|name| (name, None)).collect()
}

/// Returns the structure that the paper has for `name` with nodes of `bytes` bytes: the system's
/// nodes of one line or two have slots alone.
fn of_size(name: &'static str, bytes: usize) -> &'static str {
    if name == DESIGNS[0] && bytes <= 128 { "wb-tree-slot-only" } else { name }
}

pub(in crate::papers) fn real_machine(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    /// The node sizes of the paper, in bytes.
    const SIZES: [usize; 4] = [64, 128, 256, 512];
    let (mut top, mut found) = (0.0, Measured::default());
    let mut curves: Vec<_> = DESIGNS
        .iter()
        .map(|&name| Curve { name: name.into(), stroke: Stroke::Measured, points: Vec::new() })
        .collect();
    let runs: Vec<_> =
        FILLS.into_iter().flat_map(|fill| works(bench, fill).map(|work| (fill, work))).collect();
    for size in SIZES {
        let designs = DESIGNS.map(|name| (of_size(name, size), Some(size)));
        for (fill, work) in &runs {
            let speeds = bench.speeds(&designs, work)?;
            if work.workload == Workload::Insert && *fill == FILLS[0] {
                for (curve, speed) in curves.iter_mut().zip(&speeds) {
                    curve.points.push(Point { x: size as f64, y: Some(speed.ns() * 1e-3) });
                }
            }
            let (at, factor) = best(&speeds);
            if work.workload != Workload::Get && factor.value > top {
                top = factor.value;
                let note = format!(
                    "{} operations ({}) on {} records in nodes of {size} B, {fill} % full, against {}; the paper has {KEYS} keys",
                    work.ops,
                    work.workload.name(),
                    work.records,
                    DESIGNS[at]
                );
                found = Measured::timed(factor, note, &[&speeds[0], &speeds[at]]);
            }
        }
    }
    let chart = Lines {
        title: "Insert time, by node size".into(),
        description: "In the DRAM of this machine, with clflush and mfence, into nodes 70 % full."
            .into(),
        x: Axis { label: "node size in bytes".into(), scale: Scale::Log2 },
        y: Axis { label: "microseconds per insert".into(), scale: Scale::Linear },
        curves,
        baseline: None,
    };
    let measurements = measure_each(claim, |_| found.clone());
    Ok(ClaimResult { measurements, blocks: vec![chart.into()], source: timed(claim) })
}
