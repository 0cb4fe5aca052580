//! Isle-Tree (Wang and Chattopadhyay): nodes of 512 B, 300 ns added to each flushed line, 10 M
//! uniform keys.

mod latency;
pub(super) mod served;

pub(super) use latency::{latency_gap, latency_others};

use crate::claims::Claim;
use crate::interval::Interval;
use crate::papers::finding::{
    ClaimResult, Measured, Measurement, comparison_chart, counted, index_of, measure_each, timed,
    timing_note, try_measure_each,
};
use crate::speed::Speed;
use crate::workbench::{Named, Work, Workbench};
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

pub(in crate::papers) fn flush_insert(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
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
    let measurements = factors(bench, claim, work)?;
    let bars = comparison_chart(claim, &measurements, "time, relative to isle-tree", Some(1.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: timed(claim) })
}

/// Measures each number of `claim` as the time of its baseline over that of the system.
fn factors(bench: &mut Workbench<'_>, claim: &Claim, work: &Work) -> Result<Vec<Measurement>> {
    let speeds = bench.speeds(&DESIGNS, work)?;
    Ok(measure_each(claim, |number| {
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
    }))
}

pub(in crate::papers) fn insert_sizes(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    const SIZES: [(&str, u64); 2] =
        [("1 000 000 keys", 1_000_000), ("100 000 000 keys", 100_000_000)];
    let mut measurements = Vec::new();
    for (case, keys) in SIZES {
        let work = Work::new(Workload::Insert, 0, bench.scaled(keys)).with_flush_delay(DELAY_NS);
        let of_size = claim.with_numbers(|number| number.case == case);
        measurements.extend(factors(bench, &of_size, &work)?);
    }
    let bars = comparison_chart(claim, &measurements, "time, relative to isle-tree", Some(1.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: timed(claim) })
}

pub(in crate::papers) fn time_insert(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    let work = inserts(bench).with_flush_delay(DELAY_NS);
    times(bench, claim, &work)
}

pub(in crate::papers) fn time_search(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    let keys = bench.scaled(KEYS);
    times(bench, claim, &Work::new(Workload::Get, keys, keys))
}

pub(in crate::papers) fn split_share(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    let keys = bench.scaled(KEYS);
    let delays = Delays { flush: Duration::from_nanos(DELAY_NS), fence: Duration::ZERO };
    let recipe = bench.recipe(&Work::new(Workload::Get, keys, 1));
    let shares: Vec<Vec<Splits>> = bench.in_turns(claim.numbers.len(), |at| {
        let name = &claim.numbers[at].baseline;
        bench.say(&format!("{name}: splits"));
        splits(&design(name, None)?, &recipe, delays)
    })?;
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

pub(in crate::papers) fn node_size(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    const SIZES: [usize; 3] = [512, 1024, 2048];
    let work = inserts(bench).with_flush_delay(DELAY_NS);
    let names: Vec<&str> = claim.numbers.iter().map(|number| number.baseline.as_str()).collect();
    let runs = names.iter().flat_map(|&name| SIZES.map(|size| (name, size))).filter(has_size);
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

/// Returns `true` if there are nodes of this size. Some designs do not have nodes of each size.
fn has_size(&(name, size): &(&str, usize)) -> bool {
    design(name, Some(size)).is_ok()
}

pub(in crate::papers) fn search_node_size(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    const SIZES: [usize; 3] = [2048, 1024, 512];
    let keys = bench.scaled(KEYS);
    let work = Work::new(Workload::Get, keys, keys);
    let names = claim.numbers.iter().map(|number| number.baseline.as_str());
    let largest = |name| SIZES.map(|size| (name, size)).into_iter().find(has_size);
    let runs: Vec<_> = [DESIGNS[0].0].into_iter().chain(names).filter_map(largest).collect();
    let designs: Vec<Named<'_>> = runs.iter().map(|&(name, size)| (name, Some(size))).collect();
    let speeds = bench.speeds(&designs, &work)?;
    let measurements = measure_each(claim, |number| {
        let Some(at) = index_of(&designs, &number.baseline) else { return Measured::default() };
        let (own, base) = (&speeds[0], &speeds[at]);
        let note = format!("nodes of {} B; {}", runs[at].1, timing_note(base, own, &work));
        Measured::timed(own.over(base), note, &[own, base])
    });
    let bars = comparison_chart(claim, &measurements, "time, relative to isle-tree", Some(1.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: timed(claim) })
}

/// Counts lines of inserts without a split: all keys fit one leaf.
pub(in crate::papers) fn lines(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
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
pub(in crate::papers) fn split_count(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
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
