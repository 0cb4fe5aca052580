//! wB+-Trees on simulated phase-change memory: Fig. 11 and 12, and what times follow.

use super::{BITMAP_LEAF, DESIGNS, FILLS, persistent, works};
use crate::claims::{Claim, Number};
use crate::experiments::filled_leaves::{self, Filled};
use crate::interval::Interval;
use crate::papers::finding::{
    ClaimResult, Measured, comparison_chart, counted, measure_each, modelled, timed,
    try_measure_each,
};
use crate::rank::rank_correlation;
use crate::speed::Speed;
use crate::workbench::Workbench;
use bristlecone_lab::Result;
use bristlecone_lab::workload::Workload;
use bristlecone_report::figure::{BarSeries, Bars};
use bristlecone_report::page::Block;

/// The device model of the paper's simulator.
const DEVICE: &str = "pcm";
/// The number of keys in the paper's simulations.
const KEYS: u64 = 20_000_000;

pub(in crate::papers) fn pcm(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
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
    let lookup = ns(bench, BITMAP_LEAF, &Workload::Get)?;
    let volatile = ns(bench, "btree", &Workload::Get)?;
    let records = bench.scale.modelled_records;
    let measurements = measure_each(claim, |number| match number.baseline.as_str() {
        "btree" => (
            Some(lookup / volatile),
            format!("{lookup:.0} against {volatile:.0} ns; {records} keys"),
        ),
        _ => (Some(top), format!("{note}; {records} keys, the paper has {KEYS}")),
    });
    let mut blocks = vec![comparison_chart(claim, &measurements, "factor", Some(1.0))];
    blocks.extend(by_fill(bench)?);
    Ok(ClaimResult { measurements, blocks, source: modelled(claim, DEVICE) })
}

/// Returns the time of an operation on the device.
fn ns(bench: &mut Workbench<'_>, name: &str, workload: &Workload) -> Result<f64> {
    bench.report(name, DEVICE, workload).map(|report| report.demand.alone_ns)
}

/// Compares the times of pairs of trees, in the order of the paper's bars.
pub(in crate::papers) fn order(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let own = DESIGNS[0];
    let measurements = try_measure_each(claim, |Number { baseline, case, .. }| {
        let (workload, slow, fast) = match case.as_str() {
            "search" => (Workload::Get, own, baseline.as_str()),
            "insert, logging over shadowing" => (Workload::Insert, "btree-log", baseline.as_str()),
            "insert, shadowing over wb-tree" => (Workload::Insert, baseline.as_str(), own),
            "delete, wb-tree over bitmap leaves" => (Workload::Delete, own, baseline.as_str()),
            _ => (Workload::Insert, own, baseline.as_str()),
        };
        let [slow_ns, fast_ns] = [ns(bench, slow, &workload)?, ns(bench, fast, &workload)?];
        let note = format!(
            "{slow} {slow_ns:.0} ns, {fast} {fast_ns:.0} ns; {} keys, the paper has {KEYS}",
            bench.scale.modelled_records
        );
        Ok((Some(slow_ns / fast_ns), note))
    })?;
    let bars = comparison_chart(claim, &measurements, "factor", Some(1.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: modelled(claim, DEVICE) })
}

/// Inserts into trees whose nodes are `percent` full, and returns the counts of each.
fn filled(bench: &mut Workbench<'_>, percent: u32) -> Result<Vec<(&'static str, Filled)>> {
    let sizes = filled_sizes(bench);
    let profile = bench.profile(DEVICE)?;
    let each = filled_leaves::names().map(|name| {
        bench.say(&format!("{name}, nodes {percent} % full"));
        Ok((name, filled_leaves::inserts(name, percent, &profile, sizes)?))
    });
    each.collect()
}

/// Returns the numbers of loaded and of inserted keys.
fn filled_sizes(bench: &Workbench<'_>) -> [u64; 2] {
    /// The number of loaded keys for each inserted key, as in the paper.
    const PART: u64 = 200;
    let keys = bench.modelled(KEYS);
    [keys, keys / PART]
}

/// Compares bits and lines of inserts into nodes that are 70 % full.
pub(in crate::papers) fn counts(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let filled = filled(bench, FILLS[0])?;
    let of = |name: &str| filled.iter().find(|(filled, _)| *filled == name).map(|(_, of)| of);
    let bits = |name: &str| of(name).map_or(f64::NAN, |filled| filled.report.flips_per_op);
    let lines = |name: &str| of(name).map_or(f64::NAN, lines);
    let [keys, inserts] = filled_sizes(bench);
    let own = DESIGNS[0];
    let measurements = measure_each(claim, |number| {
        let (unit, of): (_, &dyn Fn(&str) -> f64) = match number.case.as_str() {
            "bits" => ("bits", &bits),
            _ => ("lines", &lines),
        };
        let least = DESIGNS[1..].iter().min_by(|a, b| of(a).total_cmp(&of(b)));
        let other = if of_all(number) { least.copied() } else { Some(number.baseline.as_str()) };
        let Some(other) = other else { return (None, String::new()) };
        let note = format!(
            "{:.1} against {:.1} {unit} an insert of {other}; {inserts} inserts into {keys} keys, nodes {} % full",
            of(own),
            of(other),
            FILLS[0],
        );
        (Some(of(own) / of(other)), note)
    });
    let bars = comparison_chart(claim, &measurements, "factor", Some(1.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: counted(claim) })
}

/// Returns `true` if the baseline of `number` is the best of all other trees, not one of them.
fn of_all(number: &Number) -> bool {
    !filled_leaves::names().any(|name| name == number.baseline)
}

/// Returns the lines that an insert flushes.
fn lines(filled: &Filled) -> f64 {
    filled.report.lines_per_op - filled.report.evictions_per_op
}

/// Correlates times with bits on the model, and with flushed lines on this machine.
pub(in crate::papers) fn shapes(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let filled = filled(bench, FILLS[0])?;
    let bits: Vec<f64> = filled.iter().map(|(_, of)| of.report.flips_per_op).collect();
    let modelled: Vec<f64> = filled.iter().map(|(_, of)| of.report.demand.alone_ns).collect();
    let on_model = rank_correlation(&bits, &modelled);
    let names = persistent();
    let [work, ..] = works(bench, FILLS[0]);
    let speeds = bench.speeds(&names, &work)?;
    let mut lines = Vec::new();
    for &name in &names {
        lines.push(bench.count(name, &work)?.lines);
    }
    let each: Vec<f64> = (0..bench.scale.reps as usize)
        .map(|turn| {
            let times: Vec<f64> = speeds.iter().map(|speed| speed.speeds()[turn].recip()).collect();
            rank_correlation(&lines, &times)
        })
        .collect();
    let medians: Vec<f64> = speeds.iter().map(Speed::ns).collect();
    let here = Interval::range(rank_correlation(&lines, &medians), &each);
    let [keys, inserts] = filled_sizes(bench);
    let measurements = measure_each(claim, |number| {
        if number.case == "PCM, bits" {
            let note = format!(
                "inserts of {} trees, {inserts} into {keys} keys, nodes {} % full",
                filled.len(),
                FILLS[0]
            );
            return (Some(on_model), note).into();
        }
        let note = format!(
            "inserts of {} trees, {} into {} keys, with clflush and mfence; the interval is the \
             range of the repetitions",
            names.len(),
            work.ops,
            work.records
        );
        Measured::timed(here, note, &speeds.iter().collect::<Vec<_>>())
    });
    Ok(ClaimResult { measurements, blocks: Vec::new(), source: timed(claim) })
}

/// Returns charts of inserts into trees whose leaves are 70 % and 100 % full.
fn by_fill(bench: &mut Workbench<'_>) -> Result<Vec<Block>> {
    let [keys, inserts] = filled_sizes(bench);
    let names: Vec<&str> = filled_leaves::names().collect();
    let mut filled = Vec::new();
    for percent in FILLS {
        let each = self::filled(bench, percent)?.into_iter();
        filled.push(each.map(|(_, filled)| filled).collect::<Vec<_>>());
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
         counted. Then {inserts} random keys were inserted.",
        both(&|filled| filled.fill),
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
    let lines = bars("Lines flushed by an insert, by fill of leaves", "lines per insert", &lines);
    let time = bars(
        &format!("Insert time on the device model {DEVICE}, by fill of leaves"),
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
