//! Isle-Tree (Wang and Chattopadhyay): nodes of 512 B, 300 ns added to each flushed line, 10 M
//! uniform keys.

use super::finding::{
    ClaimResult, Measured, comparison_chart, counted, index_of, measure_each, timed, timing_note,
    try_measure_each,
};
use crate::claims::Claim;
use crate::interval::Interval;
use crate::workbench::{Named, Speed, Work, Workbench};
use bristlecone_lab::Result;
use bristlecone_lab::bench::{Delays, Splits, specs, splits};
use bristlecone_lab::system::design;
use bristlecone_lab::workload::Workload;
use bristlecone_report::figure::{Axis, Curve, Lines, Point, Scale, Stroke};
use std::time::Duration;

/// The system of the paper, then its baselines.
const DESIGNS: [Named<'static>; 6] = [
    ("isle-tree", None),
    ("nv-tree", None),
    ("fptree", None),
    ("wb-tree", None),
    ("fast-fair", None),
    ("circ-tree", None),
];
/// The number of keys in the paper.
const KEYS: u64 = 10_000_000;
/// The latency that the paper adds to each flushed line, in nanoseconds.
const DELAY_NS: u64 = 300;

fn inserts(bench: &Workbench<'_>) -> Work {
    Work::new(Workload::Insert, 0, bench.scaled(KEYS))
}

pub(super) fn flush_insert(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let work = inserts(bench);
    let counts: Vec<_> =
        DESIGNS.iter().map(|&design| bench.count(design, &work)).collect::<Result<_>>()?;
    let measurements = measure_each(claim, |number| {
        let Some(at) = index_of(&DESIGNS, &number.baseline) else { return (None, String::new()) };
        let (own, base) = (counts[0], counts[at]);
        let note = format!(
            "{:.2} against {:.2} lines per insert, {} inserts; budgets without a split: {} and {}",
            base.lines,
            own.lines,
            work.ops,
            insert_budget(&number.baseline),
            insert_budget(DESIGNS[0].0),
        );
        (Some(base.lines / own.lines), note)
    });
    let bars =
        comparison_chart(claim, &measurements, "lines flushed, relative to isle-tree", Some(1.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: counted(claim) })
}

/// Returns the budget of an insert of `name` without a split.
fn insert_budget(name: &str) -> String {
    let spec = specs().into_iter().flatten().find(|spec| spec.name == name);
    spec.map_or(String::new(), |spec| {
        let cost = spec.budget.insert;
        format!("{} lines, {} fences", cost.lines, cost.fences)
    })
}

/// Times all designs: the time of each baseline over that of the system.
fn times(bench: &mut Workbench<'_>, claim: &Claim, work: &Work) -> Result<ClaimResult> {
    let speeds = bench.speeds(&DESIGNS, work)?;
    let measurements = measure_each(claim, |number| {
        let Some(at) = index_of(&DESIGNS, &number.baseline) else { return Measured::default() };
        let cost = match work.workload {
            Workload::Insert => {
                let words = [insert_budget(&number.baseline), insert_budget(DESIGNS[0].0)];
                format!("; budgets without a split: {} and {}", words[0], words[1])
            }
            _ => String::new(),
        };
        let (own, base) = (&speeds[0], &speeds[at]);
        let note = timing_note(base, own, work) + &cost;
        Measured::timed(own.over(base), note, &[own, base])
    });
    let bars = comparison_chart(claim, &measurements, "time, relative to isle-tree", Some(1.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: timed(claim) })
}

pub(super) fn time_insert(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let work = inserts(bench).with_flush_delay(DELAY_NS);
    times(bench, claim, &work)
}

pub(super) fn time_search(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let keys = bench.scaled(KEYS);
    times(bench, claim, &Work::new(Workload::Get, keys, keys))
}

pub(super) fn split_share(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let keys = bench.scaled(KEYS);
    let delays = Delays { flush: Duration::from_nanos(DELAY_NS), fence: Duration::ZERO };
    let recipe = bench.recipe(&Work::new(Workload::Get, keys, 1));
    let mut shares: Vec<Vec<Splits>> = vec![Vec::new(); claim.numbers.len()];
    for turn in 0..bench.scale.reps as usize {
        for at in (0..shares.len()).map(|at| (at + turn) % claim.numbers.len()) {
            let name = &claim.numbers[at].baseline;
            bench.say(&format!("{name}: splits"));
            shares[at].push(splits(&design(name, None)?, &recipe, delays)?);
        }
    }
    let mut shares = shares.into_iter();
    let measurements = measure_each(claim, |_| {
        let shares = shares.next().unwrap_or_default();
        let Some(found) = shares.first() else { return Measured::default() };
        let note = format!(
            "{} of {} inserts split a node and flush {:.1} lines, the others flush {:.1}; {DELAY_NS} ns are added to each line",
            found.splits, found.inserts, found.split_lines, found.other_lines
        );
        let of_time: Vec<f64> = shares.iter().map(|found| found.time_share).collect();
        Measured::repeated(Interval::of_ratios(&of_time), note)
    });
    let bars = comparison_chart(claim, &measurements, "share of insert time spent in splits", None);
    Ok(ClaimResult { measurements, blocks: vec![bars], source: timed(claim) })
}

pub(super) fn node_size(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    const SIZES: [usize; 3] = [512, 1024, 2048];
    let work = inserts(bench).with_flush_delay(DELAY_NS);
    let names: Vec<&str> = claim.numbers.iter().map(|number| number.baseline.as_str()).collect();
    // Some designs do not have nodes of each size.
    let is_known = |&(name, size): &(&str, usize)| design(name, Some(size)).is_ok();
    let runs = names.iter().flat_map(|&name| SIZES.map(|size| (name, size))).filter(is_known);
    let runs: Vec<(&str, usize)> = runs.collect();
    // All sizes take turns, so that they can be compared.
    let turns: Vec<_> = runs.iter().map(|&(name, size)| ((name, Some(size)), &work)).collect();
    let speeds = bench.speeds_of(&turns)?;
    let of = |name: &str| {
        let found = runs.iter().zip(&speeds).filter(|((run, _), _)| *run == name);
        found.map(|((_, size), speed)| (*size, speed)).collect::<Vec<_>>()
    };
    let point =
        |(size, speed): (usize, &Speed)| Point { x: size as f64, y: Some(speed.ns() * 1e-3) };
    let curve = |name: &&str| Curve {
        name: (*name).to_owned(),
        stroke: Stroke::Measured,
        points: of(name).into_iter().map(point).collect(),
    };
    let curves = names.iter().map(curve).collect();
    let measurements = measure_each(claim, |number| {
        let sizes = of(&number.baseline);
        let Some((&(least, first), &(most, last))) = sizes.first().zip(sizes.last()) else {
            return Measured::default();
        };
        let note = format!(
            "{:.2} us with nodes of {least} B, {:.2} with {most} B, the largest there are; {} inserts",
            first.ns() * 1e-3,
            last.ns() * 1e-3,
            work.ops
        );
        Measured::timed(first.over(last), note, &[first, last])
    });
    let chart = Lines {
        title: "Insert time, by node size".into(),
        description: format!("{DELAY_NS} ns are added to each flushed line."),
        x: Axis { label: "node size in bytes".into(), scale: Scale::Log2 },
        y: Axis { label: "microseconds per insert".into(), scale: Scale::Linear },
        curves,
        baseline: None,
    };
    Ok(ClaimResult { measurements, blocks: vec![chart.into()], source: timed(claim) })
}

pub(super) fn latency_gap(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    const PAIR: [Named<'static>; 2] = [("isle-tree", None), ("fast-fair", None)];
    const DELAYS_NS: [u64; 4] = [0, 200, 400, 600];
    let mut ratios = Vec::new();
    for delay_ns in DELAYS_NS {
        let work = inserts(bench).with_flush_delay(delay_ns);
        let speeds = bench.speeds(&PAIR, &work)?;
        let (own, base) = (&speeds[0], &speeds[1]);
        let (ratio, note) = (own.over(base), timing_note(base, own, &work));
        ratios.push((delay_ns, ratio.value, Measured::timed(ratio, note, &[own, base])));
    }
    let measurements = measure_each(claim, |number| {
        let found = ratios.iter().find(|(delay, ..)| number.case == format!("{delay} ns"));
        found.map_or(Measured::default(), |(.., measured)| measured.clone())
    });
    let points = |ratio: &dyn Fn(usize) -> Option<f64>| {
        let point = |(at, &delay): (usize, &u64)| Point { x: delay as f64, y: ratio(at) };
        DELAYS_NS.iter().enumerate().map(point).collect()
    };
    let published = |at: usize| {
        let case = format!("{} ns", DELAYS_NS[at]);
        claim.numbers.iter().find(|number| number.case == case).map(|number| number.paper)
    };
    let chart = Lines {
        title: "Insert time of fast-fair over that of isle-tree, by flush latency".into(),
        description: "Solid: measured here; dotted: the paper.".into(),
        x: Axis { label: "nanoseconds added to each flushed line".into(), scale: Scale::Linear },
        y: Axis { label: "ratio of times".into(), scale: Scale::Linear },
        curves: vec![
            Curve {
                name: "measured here".into(),
                stroke: Stroke::Measured,
                points: points(&|at| Some(ratios[at].1)),
            },
            Curve { name: "the paper".into(), stroke: Stroke::Paper, points: points(&published) },
        ],
        baseline: None,
    };
    Ok(ClaimResult { measurements, blocks: vec![chart.into()], source: timed(claim) })
}

pub(super) fn ycsb_p99(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    /// The paper has four clients. With more threads than processors, the tail latency would be
    /// that of the system's scheduler.
    const CLIENTS: u64 = 2;
    let records = bench.scaled(KEYS);
    let work = Work::new("get:50+insert:50".parse()?, records, records);
    let work = work.with_threads(CLIENTS).with_flush_delay(DELAY_NS);
    let speeds = bench.speeds(&DESIGNS, &work)?;
    let recipe = bench.recipe(&Work::new(Workload::Get, records, 1));
    let mut costs = Vec::new();
    for (name, _) in DESIGNS {
        bench.say(&format!("{name}: splits"));
        costs.push(splits(&design(name, None)?, &recipe, Delays::default())?);
    }
    let measurements = measure_each(claim, |number| {
        let Some(at) = index_of(&DESIGNS, &number.baseline) else { return Measured::default() };
        let (own, base) = (&speeds[0], &speeds[at]);
        let part = |at: usize| costs[at].splits as f64 / costs[at].inserts as f64 / 2.0 * 100.0;
        let note = format!(
            "{:.1} against {:.1} us, for half inserts and half reads by {CLIENTS} threads, without a server; {} records; {:.1} and {:.1} % of the operations split a node and flush {:.1} and {:.1} lines",
            base.p99_ns() * 1e-3,
            own.p99_ns() * 1e-3,
            work.records,
            part(at),
            part(0),
            costs[at].split_lines,
            costs[0].split_lines,
        );
        Measured::timed(own.p99_over(base).less_one(), note, &[own, base])
    });
    let bars = comparison_chart(claim, &measurements, "p99, relative change", Some(0.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: timed(claim) })
}

/// Counts lines of inserts without a split: all keys fit one leaf.
pub(super) fn lines(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    /// The number of keys, which fit one leaf of 512 B of each tree.
    const FEW: u64 = 20;
    let measurements = try_measure_each(claim, |number| {
        let count = bench.count((&number.baseline, None), &Work::new(Workload::Insert, 0, FEW))?;
        let note =
            format!("{:.2} lines and {:.2} fences, {FEW} inserts", count.lines, count.fences);
        Ok((Some(count.lines), note))
    })?;
    Ok(ClaimResult { measurements, blocks: Vec::new(), source: counted(claim) })
}

/// Counts inserts for each that splits a node.
pub(super) fn split_count(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let (name, size) = DESIGNS[0];
    let recipe = bench.recipe(&Work::new(Workload::Get, bench.scaled(KEYS), 1));
    bench.say(&format!("{name}: splits"));
    let found = splits(&design(name, size)?, &recipe, Delays::default())?;
    let measurements = measure_each(claim, |_| {
        let note = format!("{} of {} inserts split a node", found.splits, found.inserts);
        (Some(found.inserts as f64 / found.splits.max(1) as f64), note)
    });
    Ok(ClaimResult { measurements, blocks: Vec::new(), source: counted(claim) })
}
