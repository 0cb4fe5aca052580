//! CCL-BTree (Li et al., 2024): leaves of 256 B, buffers of two entries, 48 threads that
//! saturate the media.

use super::finding::{ClaimResult, comparison_chart, measure_each, modelled, try_measure_each};
use crate::claims::Claim;
use crate::experiments::buffered_upserts::{self, BATCH_MAX};
use crate::rule::Relation;
use crate::workbench::Workbench;
use bristlecone_lab::Result;
use bristlecone_lab::device::{DeviceReport, Profile};
use bristlecone_lab::workload::Workload;
use bristlecone_report::figure::{Axis, BarSeries, Bars, Curve, Lines, Point, Scale, Stroke};

/// The device model of the paper's hardware.
const DEVICE: &str = "optane-200";
/// The number of threads in the paper.
const THREADS: u32 = 48;
/// The trees of the charts.
const OTHERS: [&str; 9] = [
    "fptree",
    "fast-fair",
    "lb-tree",
    "fast-fair-sp-r",
    "nv-tree",
    "wb-tree",
    "circ-tree",
    "isle-tree",
    "btree-ls-r",
];

/// The trees of the paper's comparison that this project has.
const COMPARED: [&str; 3] = ["fptree", "fast-fair", "lb-tree"];
/// The size of a node of each tree in the paper.
const NODE: usize = 256;
/// The others.
const NOT_HERE: &str = "DPTree, uTree and PACTree are not implemented here";

pub(super) fn formula(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    /// The number of keys for each key that is written: so few that no pass ends with a log of
    /// twice the size at which a collection is due.
    const PART: u64 = 8;
    let all = 8 * bench.scale.modelled_records;
    let mut profile = Profile::named(DEVICE)?;
    // The law counts flushes alone, so the cache must be too large to evict a leaf.
    profile.cpu.cache_bytes = profile.cpu.cache_bytes.max(all * 64);
    let mut units = Vec::new();
    for batch in 0..=BATCH_MAX {
        bench.say(&format!("ccl-btree, buffers of {batch}"));
        units.push(buffered_upserts::upserts(batch, &profile, [all, all / PART])?);
    }
    let measurements = measure_each(claim, |number| {
        let words: Vec<&str> = number.case.split([' ', ',']).collect();
        let batch = words.get(2).and_then(|batch| batch.parse().ok()).unwrap_or(0);
        let found = units[batch];
        let value = match words.last() {
            _ if claim.relation_of(number) == Relation::Change => found.units() - 1.0,
            Some(&"alone") if words.contains(&"leaf") => found.leaf_units,
            Some(&"alone") => found.log_units,
            _ => found.units(),
        };
        let note = format!(
            "leaves {:.3}, of {:.1} keys, and logs {:.3}; {:.0} % of the writes without \
             buffers met another in the device; {} of {all} keys, each once, after a collection",
            found.leaf_units,
            found.keys_per_leaf,
            found.log_units,
            (1.0 - units[0].units()) * 100.0,
            all / PART,
        );
        (Some(value), note)
    });
    let curve = |name: String, stroke, unit: &dyn Fn(usize) -> f64| Curve {
        name,
        stroke,
        points: (0..=BATCH_MAX).map(|n| Point { x: n as f64, y: Some(unit(n)) }).collect(),
    };
    let chart = Lines {
        title: "Media writes of an upsert, by buffer size".into(),
        description:
            "Media blocks of 256 B, counted on the device model; the dotted curve is the law."
                .into(),
        x: Axis { label: "upserts that a buffer holds (N)".into(), scale: Scale::Linear },
        y: Axis { label: "media blocks written per upsert".into(), scale: Scale::Linear },
        curves: vec![
            curve("ccl-btree".into(), Stroke::Measured, &|n| units[n].units()),
            curve("law".into(), Stroke::Paper, &buffered_upserts::law),
        ],
        baseline: None,
    };
    let blocks = vec![chart.into(), techniques(bench, &profile)?.into()];
    Ok(ClaimResult { measurements, blocks, source: modelled(claim, DEVICE) })
}

/// Returns a chart of media writes by the techniques that a tree has. The slides draw none.
fn techniques(bench: &mut Workbench<'_>, profile: &Profile) -> Result<Bars> {
    /// The number of passes over all keys. Collections run from the first on.
    const PASSES: u64 = 5;
    let all = bench.scale.modelled_records;
    bench.say("ccl-btree, one technique more each");
    let counts = buffered_upserts::techniques(profile, [all, PASSES])?;
    Ok(Bars {
        title: "Media writes of an upsert, by technique".into(),
        description: format!(
            "Each bar has one technique more than the one above it. Media blocks of 256 B, counted \
             on the device model; {PASSES} passes over {all} keys, of which the last counts."
        ),
        category: "technique".into(),
        value: "media blocks written per upsert".into(),
        categories: counts.iter().map(|&(name, _)| name.to_owned()).collect(),
        series: vec![BarSeries {
            name: "ccl-btree".into(),
            values: counts.iter().map(|&(_, units)| Some(units)).collect(),
            paper: Vec::new(),
        }],
        baseline: None,
        has_numbers: true,
    })
}

/// Returns the report of one thread of `threads` that share the device, with nodes of the paper's
/// size. `ccl-btree` and `lb-tree` have no others.
fn compared(
    bench: &mut Workbench<'_>,
    name: &str,
    workload: &Workload,
    threads: u32,
) -> Result<DeviceReport> {
    match name {
        "fptree" | "fast-fair" => bench.sized((name, NODE), DEVICE, workload, threads),
        _ => bench.crowded(name, DEVICE, workload, threads),
    }
}

fn prepare(bench: &mut Workbench<'_>) -> Result<()> {
    bench.prepare(&[&OTHERS[..], &["ccl-btree"]].concat(), &[DEVICE], &[THREADS])
}

pub(super) fn write_throughput(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    prepare(bench)?;
    let own = compared(bench, "ccl-btree", &Workload::Insert, THREADS)?;
    let own = own.demand.project(THREADS);
    let mut found = Vec::new();
    for name in COMPARED {
        let report = compared(bench, name, &Workload::Insert, THREADS)?;
        let base = report.demand.project(THREADS);
        let note = format!(
            "{:.1} against {:.1} million inserts a second of {name}, limited by {} and {}; {NOT_HERE}",
            own.ops_per_second * 1e-6,
            base.ops_per_second * 1e-6,
            own.bound.name(),
            base.bound.name(),
        );
        found.push((own.ops_per_second / base.ops_per_second, note));
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let measurements = measure_each(claim, |number| {
        let end = if number.baseline.contains("best") { found.first() } else { found.last() };
        end.map_or((None, String::new()), |(factor, note)| (Some(*factor), note.clone()))
    });
    let chart = by_threads(bench)?;
    let bars = comparison_chart(claim, &measurements, "factor", Some(1.0));
    Ok(ClaimResult {
        measurements,
        blocks: vec![bars, chart.into()],
        source: modelled(claim, DEVICE),
    })
}

/// Compares the other operations with the best of the other trees.
pub(super) fn other_operations(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    prepare(bench)?;
    let measurements = try_measure_each(claim, |number| {
        let workload = match number.case.as_str() {
            "update" => Workload::Update,
            "delete" => Workload::Delete,
            "search" => Workload::Get,
            _ => Workload::Scan,
        };
        let mut speed = |name: &str| -> Result<f64> {
            let report = compared(bench, name, &workload, THREADS)?;
            Ok(report.demand.project(THREADS).ops_per_second)
        };
        let own = speed("ccl-btree")?;
        let (mut best, mut of) = (0.0, "");
        for name in COMPARED {
            let base = speed(name)?;
            if base > best {
                (best, of) = (base, name);
            }
        }
        let note = format!(
            "{:.1} against {:.1} million operations a second of {of}; {NOT_HERE}",
            own * 1e-6,
            best * 1e-6
        );
        Ok((Some(own / best), note))
    })?;
    let bars = comparison_chart(claim, &measurements, "factor", Some(1.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: modelled(claim, DEVICE) })
}

/// Returns a chart of projected insert throughput by number of threads.
fn by_threads(bench: &mut Workbench<'_>) -> Result<Lines> {
    const AT: [u32; 5] = [1, 4, 8, 16, 48];
    let mut curves = Vec::new();
    for name in ["ccl-btree"].into_iter().chain(OTHERS) {
        let mut points = Vec::new();
        for threads in AT {
            let demand = bench.crowded(name, DEVICE, &Workload::Insert, threads)?.demand;
            let speed = demand.project(threads).ops_per_second;
            points.push(Point { x: f64::from(threads), y: Some(speed * 1e-6) });
        }
        curves.push(Curve { name: name.into(), stroke: Stroke::Projected, points });
    }
    Ok(Lines {
        title: "Insert throughput, by number of threads".into(),
        description: "Projected from one modelled thread with its share of the buffers; latches are not modelled."
            .into(),
        x: Axis { label: "threads".into(), scale: Scale::Log2 },
        y: Axis { label: "million inserts a second".into(), scale: Scale::Linear },
        curves,
        baseline: None,
    })
}

pub(super) fn xbi(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    prepare(bench)?;
    let mut names = vec!["ccl-btree"];
    names.extend(OTHERS);
    let (mut cli, mut xbi) = (Vec::new(), Vec::new());
    for name in &names {
        let report = bench.report(name, DEVICE, &Workload::Update)?;
        cli.push(report.cli);
        xbi.push(report.xbi);
    }
    let own = xbi[0].unwrap_or(f64::NAN);
    let (mut worst, mut of) = (0.0, "");
    for name in COMPARED {
        let found = compared(bench, name, &Workload::Update, 1)?.xbi.unwrap_or(f64::NAN);
        if found > worst {
            (worst, of) = (found, name);
        }
    }
    let measurements = measure_each(claim, |_| {
        let note = format!(
            "{own:.1} bytes on the media for each byte of the user, against {worst:.1} of {of}; \
             {} upserts of existing keys; {NOT_HERE}",
            bench.scale.modelled_ops
        );
        (Some(own / worst - 1.0), note)
    });
    let chart = Bars {
        title: "Write amplification of upserts".into(),
        description: "Bytes written for each byte that the user changes: as cache lines (CLI), and on the media (XBI)."
            .into(),
        category: "design".into(),
        value: "bytes written per byte changed".into(),
        categories: names.iter().map(|&name| name.to_owned()).collect(),
        series: vec![
            BarSeries { name: "lines (CLI)".into(), values: cli, paper: Vec::new() },
            BarSeries { name: "media (XBI)".into(), values: xbi, paper: Vec::new() },
        ],
        baseline: None,
        has_numbers: true,
    };
    Ok(ClaimResult { measurements, blocks: vec![chart.into()], source: modelled(claim, DEVICE) })
}
