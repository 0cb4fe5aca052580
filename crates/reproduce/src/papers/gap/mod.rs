//! The report on the gap between DRAM and persistent memory (Ni et al., 2020): flushes,
//! consistency, selective persistence, node sizes, batched lookups.

pub(super) mod device;
mod flush_cost;
pub(super) mod logs;
mod node_size;
pub(super) mod threads;

pub(super) use flush_cost::flush_cost;
pub(super) use node_size::node_size;

use crate::claims::{Claim, Number};
use crate::interval::Interval;
use crate::papers::finding::{
    ClaimResult, Measured, comparison_chart, counted, measure_each, modelled, timed,
    try_measure_each,
};
use crate::speed::Speed;
use crate::workbench::{Work, Workbench};
use bristlecone_lab::Result;
use bristlecone_lab::bench::{Bench, Delays, Flushing, batches};
use bristlecone_lab::system::design;
use bristlecone_lab::workload::Workload;
use bristlecone_pmem::Domain;
use bristlecone_pmem::journal::Durability;
use bristlecone_report::figure::{Axis, Curve, Lines, Point, Scale, Stroke};
use device::{DEVICE, VOLATILE};

/// The length of a cache line, in bytes.
const LINE_BYTES: f64 = 64.0;

/// The report's FAST & FAIR: its pairs are of 32 B, as those of the report's other trees.
const FAST_FAIR: &str = "fast-fair-wide";

pub(in crate::papers) fn table2(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let records = bench.scaled(160_000_000);
    let work = Work::new(Workload::Insert, records, records / 2);
    let measurements = try_measure_each(claim, |Number { baseline, case, .. }| {
        let count = bench.count((baseline, None), &work)?;
        let value = if case == "flushes" { count.lines } else { count.fences };
        Ok((Some(value), format!("{} inserts on {records} pairs", work.ops)))
    })?;
    Ok(ClaimResult { measurements, blocks: Vec::new(), source: counted(claim) })
}

/// Measures bytes and amplifications on a model: of reads in lines that were not in the cache, of
/// writes in lines that reached the device.
pub(in crate::papers) fn table2_more(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    let measurements = try_measure_each(claim, |Number { baseline, case, .. }| {
        let report = bench.report(baseline, DEVICE, &Workload::Insert)?;
        let (read, written) = (report.misses_per_op * LINE_BYTES, report.lines_per_op * LINE_BYTES);
        let (of_media, to_media) = (report.media_read_bytes_per_op, report.media_bytes_per_op);
        let value = match case.as_str() {
            "bytes read" => Some(read),
            "read amplification" => Some(of_media / read),
            "bytes written" => Some(written),
            _ => report.write_amplification,
        };
        let note = format!(
            "{read:.0} bytes of lines that were not in the cache, {of_media:.0} read from the media; {written:.0} bytes of lines that reached the modelled DIMMs, {to_media:.0} written to the media; the cache evicted {:.2} of {:.2} lines",
            report.evictions_per_op, report.lines_per_op
        );
        Ok((value, note))
    })?;
    Ok(ClaimResult { measurements, blocks: Vec::new(), source: modelled(claim, DEVICE) })
}

pub(in crate::papers) fn consistency(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    // Unsorted leaves with a bitmap are compared with those that flush nothing: the report's factor
    // is that of its Table 2 for these two.
    let volatile_of = |name: &str| match name {
        "persistent-unsorted" => "unsorted-leaf",
        _ => VOLATILE,
    };
    let mut found = Vec::new();
    for Number { baseline, .. } in &claim.numbers {
        let volatile = bench.report(volatile_of(baseline), DEVICE, &Workload::Insert)?;
        found.push((bench.report(baseline, DEVICE, &Workload::Insert)?, volatile));
    }
    let mut found = found.into_iter();
    let measurements = measure_each(claim, |_| {
        let Some((report, volatile)) = found.next() else { return (None, String::new()) };
        let note = format!(
            "{:.0} against {:.0} ns per insert, of which {:.0} and {:.0} ns are cache misses, {:.0} and {:.0} ns fences",
            report.demand.alone_ns,
            volatile.demand.alone_ns,
            report.time_ns_per_op.loads,
            volatile.time_ns_per_op.loads,
            report.time_ns_per_op.fences,
            volatile.time_ns_per_op.fences,
        );
        (Some(report.demand.alone_ns / volatile.demand.alone_ns), note)
    });
    let bars = comparison_chart(
        claim,
        &measurements,
        "insert time, relative to the tree that flushes nothing",
        Some(1.0),
    );
    Ok(ClaimResult { measurements, blocks: vec![bars], source: modelled(claim, DEVICE) })
}

pub(in crate::papers) fn selective_persistence(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    const PAIR: [&str; 2] = ["fast-fair-sp", FAST_FAIR];
    let ns = |bench: &mut Workbench<'_>, name: &str, workload: &Workload| {
        bench.report(name, DEVICE, workload).map(|report| report.demand.alone_ns)
    };
    let mut factors: Vec<Measured> = Vec::new();
    for workload in [Workload::Get, Workload::Insert] {
        let (own, base) = (ns(bench, PAIR[0], &workload)?, ns(bench, PAIR[1], &workload)?);
        let note = format!("{own:.0} against {base:.0} ns on the model {DEVICE}");
        factors.push((Some(base / own), note).into());
    }
    let rebuilt = rebuilds(bench)?;
    let (few, many) = (&rebuilt[rebuilt.len() - 2], &rebuilt[rebuilt.len() - 1]);
    let note = format!(
        "{:.1} ms for {} keys, {:.1} ms for {}, timed on this machine",
        few.1.ns() * 1e-6,
        few.0,
        many.1.ns() * 1e-6,
        many.0
    );
    factors.push(Measured::timed(few.1.over(&many.1), note, &[&few.1, &many.1]));
    let mut factors = factors.into_iter();
    let measurements = measure_each(claim, |_| factors.next().unwrap_or_default());
    let chart = Lines {
        title: "Time to open after a crash, by number of keys".into(),
        description: "Recovery of fast-fair-sp rebuilds the inner nodes from the leaves.".into(),
        x: Axis { label: "keys".into(), scale: Scale::Log10 },
        y: Axis { label: "milliseconds".into(), scale: Scale::Log10 },
        curves: vec![Curve {
            name: PAIR[0].into(),
            stroke: Stroke::Measured,
            points: rebuilt
                .iter()
                .map(|(keys, speed)| Point { x: *keys as f64, y: Some(speed.ns() * 1e-6) })
                .collect(),
        }],
        baseline: None,
    };
    let bars = comparison_chart(claim, &measurements, "factor", Some(1.0));
    Ok(ClaimResult {
        measurements,
        blocks: vec![bars, chart.into()],
        source: modelled(claim, DEVICE),
    })
}

/// Returns numbers of keys with the speed of opening a tree of that size after a crash.
fn rebuilds(bench: &mut Workbench<'_>) -> Result<Vec<(u64, Speed)>> {
    const TENTHS: [u64; 3] = [100, 10, 1];
    // Ten times the scale at the most: with fewer keys, an open takes less than a millisecond, and
    // noise dominates.
    let most = 10 * bench.scaled(u64::MAX);
    let works = TENTHS.map(|tenth| Work::new(Workload::ReopenCrash, most / tenth, 1));
    let runs: Vec<_> = works.iter().map(|work| (("fast-fair-sp", None), work)).collect();
    let speeds = bench.speeds_of(&runs)?;
    Ok(works.iter().map(|work| work.records).zip(speeds).collect())
}

pub(in crate::papers) fn interleaving(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    const SIZES: [usize; 4] = [128, 256, 512, 1024];
    const BATCHES: [usize; 5] = [1, 2, 4, 8, 16];
    /// The index in `BATCHES` of the batch size in the claim: 4.
    const FOUR: usize = 2;
    // Batches hide cache misses, so the tree must be larger than the cache.
    let keys = 10 * bench.scaled(u64::MAX);
    let recipe = bench.recipe(&Work::new(Workload::Get, keys, keys / 2));
    let dram = Bench {
        pool: None,
        domain: Domain::Volatile,
        delays: Delays::default(),
        placement: None,
        flushing: Flushing::default(),
        durability: Durability::DEFAULT,
    };
    let mut curves = Vec::new();
    let mut factors = Vec::new();
    for size in SIZES {
        bench.say(&format!("{VOLATILE} of {size} B: batches"));
        let speeds = batches(&design(VOLATILE, Some(size))?, &recipe, &BATCHES, &dram)?;
        let factor = |speeds_of_size: &Vec<f64>| Interval::paired(speeds_of_size, &speeds[0]);
        factors.push(factor(&speeds[FOUR]));
        let point = |(&batch, speeds): (&usize, &Vec<f64>)| Point {
            x: batch as f64,
            y: Some(factor(speeds).value),
        };
        curves.push(Curve {
            name: format!("{size} B, DRAM"),
            stroke: Stroke::Measured,
            points: BATCHES.iter().zip(&speeds).map(point).collect(),
        });
    }
    let (mut modelled, mut note) = (0.0, String::new());
    for size in SIZES {
        let ns = |workload| -> Result<f64> {
            Ok(bench.sized((VOLATILE, size), DEVICE, &workload, 1)?.demand.alone_ns)
        };
        let [single, batched] = [ns(Workload::Get)?, ns(Workload::Multiget)?];
        if single / batched > modelled {
            modelled = single / batched;
            note = format!(
                "batches of 16, nodes of {size} B, on the model {DEVICE}: {batched:.0} against {single:.0} ns a lookup"
            );
        }
    }
    let here = format!("batches of 4; {keys} keys, this machine");
    let measurements = measure_each(claim, |number| match number.case.as_str() {
        "128 B, DRAM" => Measured::repeated(factors[0], here.clone()),
        "256 B, DRAM" => Measured::repeated(factors[1], here.clone()),
        "1 KiB, DRAM" => Measured::repeated(factors[3], here.clone()),
        _ => (Some(modelled), note.clone()).into(),
    });
    let chart = Lines {
        title: "Speed-up of lookups, by batch size".into(),
        description: "The volatile tree in the DRAM of this machine, relative to single lookups."
            .into(),
        x: Axis { label: "keys per batch".into(), scale: Scale::Log2 },
        y: Axis { label: "speed-up".into(), scale: Scale::Linear },
        curves,
        baseline: None,
    };
    Ok(ClaimResult { measurements, blocks: vec![chart.into()], source: timed(claim) })
}
