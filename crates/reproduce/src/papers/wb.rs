//! wB+-Trees (Chen and Jin, PVLDB 8(7), 2015): nodes of 512 B, on real memory and on simulated
//! phase-change memory.

use super::finding::{
    ClaimResult, Measured, Measurement, comparison_chart, counted, measure_each, modelled, timed,
};
use crate::claims::{Claim, Number};
use crate::experiments::filled_leaves::{self, Filled};
use crate::experiments::operation_costs;
use crate::interval::Interval;
use crate::rule::Status;
use crate::workbench::{Named, Speed, Work, Workbench};
use bristlecone_lab::Result;
use bristlecone_lab::workload::{Keys, Workload};
use bristlecone_report::figure::{Axis, BarSeries, Bars, Curve, Lines, Point, Scale, Stroke};
use bristlecone_report::page::Block;

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
/// The number of keys in the paper.
const KEYS: u64 = 50_000_000;
/// The number of operations in the paper.
const OPS: u64 = 500_000;

pub(super) fn table3(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    const UNITS: [&str; 3] = ["words", "lines", "fences"];
    bench.say("Table 3");
    let mut measurements = Vec::new();
    for structure in operation_costs::table()?.iter().filter(|row| row.paper[0][0] > 0.0) {
        for (at, operation) in operation_costs::OPERATIONS.into_iter().enumerate() {
            for (unit, name) in UNITS.into_iter().enumerate() {
                let (paper, counted) = (structure.paper[at][unit], structure.counted[at][unit]);
                let case = format!("{operation}: {name}");
                let (status, reason) = likeness(structure.name, operation);
                let number = Number::to_meet(structure.name, case, paper, status, reason);
                let note = format!(
                    "the terms of the formula and of the count are in docs/designs/{}.md",
                    structure.name
                );
                measurements.push(Measurement::exact(&number, counted, note));
            }
        }
    }
    Ok(ClaimResult { measurements, blocks: Vec::new(), source: counted(claim) })
}

/// Returns how like the paper's an operation of a structure is, with the reason.
///
/// The page of each structure has the terms.
fn likeness(structure: &str, operation: &str) -> (Status, &'static str) {
    let is_split = operation.contains("split");
    let reason = match structure {
        "unsorted-leaf-log" if operation == "remove" => "the last entry is removed, so none moves",
        name if is_split && name.ends_with("-log") => "the words of new nodes are not logged",
        name if name.ends_with("-log") => "a seal in each log record, and an end of the log",
        name if is_split && name.ends_with("-shadow") => {
            "the copies are fenced before the log, the words that lead to them written back"
        }
        name if name.ends_with("-shadow") => "in a tree of one leaf",
        _ if is_split => "the new node is fenced before its log, and the log is ended",
        _ => return (Status::AsDescribed, ""),
    };
    (Status::Substituted, reason)
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
    let factors = speeds.iter().map(|speed| speeds[0].over(speed)).enumerate().skip(1);
    let best = factors.max_by(|a, b| a.1.value.total_cmp(&b.1.value));
    best.expect("there are baselines")
}

pub(super) fn real_machine(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    const SIZES: [usize; 3] = [256, 512, 1024];
    /// The largest node of the paper's figure, in bytes.
    const PRINTED_MAX: usize = 512;
    let (mut top, mut found) = (0.0, Measured::default());
    let mut curves: Vec<_> = DESIGNS
        .iter()
        .map(|&name| Curve { name: name.into(), stroke: Stroke::Measured, points: Vec::new() })
        .collect();
    let runs: Vec<_> =
        FILLS.into_iter().flat_map(|fill| works(bench, fill).map(|work| (fill, work))).collect();
    for size in SIZES {
        let designs: Vec<Named<'_>> = DESIGNS.iter().map(|&name| (name, Some(size))).collect();
        for (fill, work) in &runs {
            let speeds = bench.speeds(&designs, work)?;
            if work.workload == Workload::Insert && *fill == FILLS[0] {
                for (curve, speed) in curves.iter_mut().zip(&speeds) {
                    curve.points.push(Point { x: size as f64, y: Some(speed.ns() * 1e-3) });
                }
            }
            let (at, factor) = best(&speeds);
            let is_printed = size <= PRINTED_MAX;
            if is_printed && work.workload != Workload::Get && factor.value > top {
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

pub(super) fn pcm(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    const DEVICE: &str = "pcm";
    let ns = |bench: &mut Workbench<'_>, name: &str, workload: &Workload| {
        bench.report(name, DEVICE, workload).map(|report| report.demand.alone_ns)
    };
    let (mut top, mut note) = (0.0, String::new());
    for workload in [Workload::Insert, Workload::Delete] {
        let own = ns(bench, DESIGNS[0], &workload)?;
        for name in &DESIGNS[1..] {
            let factor = ns(bench, name, &workload)? / own;
            if factor > top {
                top = factor;
                note = format!("{} against {name}; {own:.0} ns per operation", workload.name());
            }
        }
    }
    let lookup = ns(bench, "wb-tree-bitmap-leaf", &Workload::Get)?;
    let volatile = ns(bench, "btree", &Workload::Get)?;
    let records = bench.scale.modelled_records;
    let measurements = measure_each(claim, |number| match number.baseline.as_str() {
        "btree" => (
            Some(lookup / volatile),
            format!("{lookup:.0} against {volatile:.0} ns; {records} keys"),
        ),
        _ => (Some(top), format!("{note}; {records} keys, the paper has 20 000 000")),
    });
    let mut blocks = vec![comparison_chart(claim, &measurements, "factor", Some(1.0))];
    blocks.extend(by_fill(bench, DEVICE)?);
    Ok(ClaimResult { measurements, blocks, source: modelled(claim, DEVICE) })
}

/// Returns charts of inserts into trees whose leaves are 70 % and 100 % full.
fn by_fill(bench: &mut Workbench<'_>, device: &str) -> Result<Vec<Block>> {
    /// The number of loaded keys for each inserted key, as in the paper.
    const PART: u64 = 200;
    let keys = bench.scale.modelled_records;
    let sizes = [keys, keys / PART];
    let profile = bench.profile(device)?;
    let names: Vec<&str> = filled_leaves::names().collect();
    let mut filled = [const { Vec::new() }; FILLS.len()];
    for name in &names {
        for (filled, percent) in filled.iter_mut().zip(FILLS) {
            bench.say(&format!("{name}, nodes {percent} % full"));
            filled.push(filled_leaves::inserts(name, percent, &profile, sizes)?);
        }
    }
    let range = |filled: &[Filled], of: &dyn Fn(&Filled) -> f64| {
        let values = filled.iter().map(|filled| of(filled) * 100.0);
        let (low, high) = values
            .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        match [low, high].map(|value| format!("{value:.0}")) {
            [low, high] if low == high => low,
            [low, high] => format!("{low} to {high}"),
        }
    };
    let both = |of: &dyn Fn(&Filled) -> f64| {
        format!("{} % and {} %", range(&filled[0], of), range(&filled[1], of))
    };
    let how = format!(
        "{keys} keys were loaded in bulk, into nodes as full as the legend says: {} of the slots of leaves, as \
         counted. Then {} random keys were inserted.",
        both(&|filled| filled.fill),
        sizes[1],
    );
    let bars = |title: &str, value: &str, of: &dyn Fn(&Filled) -> f64| Bars {
        title: title.into(),
        description: how.clone(),
        category: "design".into(),
        value: value.into(),
        categories: names.iter().map(|&name| name.to_owned()).collect(),
        series: FILLS
            .iter()
            .zip(&filled)
            .map(|(percent, filled)| BarSeries {
                name: format!("nodes {percent} % full"),
                values: filled.iter().map(|filled| Some(of(filled))).collect(),
                paper: Vec::new(),
            })
            .collect(),
        baseline: None,
        has_numbers: true,
    };
    let flushed = |filled: &Filled| filled.report.lines_per_op - filled.report.evictions_per_op;
    let lines = bars("Lines flushed by an insert, by fill of leaves", "lines per insert", &flushed);
    let time = bars(
        &format!("Insert time on the device model {device}, by fill of leaves"),
        "microseconds per insert",
        &|filled| filled.report.demand.alone_ns * 1e-3,
    );
    let note = format!(
        "{how} {} of these inserts split a leaf, {} an inner node.",
        both(&|filled| filled.splits),
        both(&|filled| filled.inner_splits),
    );
    Ok(vec![lines.into(), time.into(), Block::Note(note)])
}

pub(super) fn memcached(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    /// The shares of lookups in a cache's operations.
    const MIXES: [&str; 2] = ["get:50+update:50", "get:5+insert:95"];
    let records = bench.scaled(KEYS);
    let designs: Vec<Named<'_>> = DESIGNS.iter().map(|&name| (name, None)).collect();
    let (mut top, mut found) = (0.0, Measured::default());
    for mix in MIXES {
        let work = Work {
            keys: "20".parse::<Keys>()?,
            ..Work::new(mix.parse()?, records, bench.scaled(OPS).min(records))
        }
        .with_fill(FILLS[0])
        .flushed_serially();
        let speeds = bench.speeds(&designs, &work)?;
        let (at, factor) = best(&speeds);
        if factor.value > top {
            top = factor.value;
            let note = format!(
                "the index alone, without a server: keys of 20 B, {mix}, {} operations on {} records, against {}",
                work.ops, work.records, DESIGNS[at]
            );
            found = Measured::timed(factor, note, &[&speeds[0], &speeds[at]]);
        }
    }
    let measurements = measure_each(claim, |_| found.clone());
    let bars: Block = comparison_chart(claim, &measurements, "factor", Some(1.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: timed(claim) })
}
