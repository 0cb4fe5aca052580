//! The gap report's claims that need its device: 48 threads, bandwidth, group flushing. All numbers
//! come from the device model.

use crate::claims::Claim;
use crate::papers::finding::{
    ClaimResult, Measured, comparison_chart, measure_each, modelled, timing_note, try_measure_each,
};
use crate::workbench::{Work, Workbench};
use bristlecone_lab::Result;
use bristlecone_lab::bench::device_probe;
use bristlecone_lab::device::{DeviceReport, Profile};
use bristlecone_lab::workload::{Recipe, Workload};
use bristlecone_report::figure::{Axis, Curve, Lines, Point, Scale, Stroke};
use bristlecone_report::page::Block;

/// The device model of the report's hardware.
pub(super) const DEVICE: &str = "optane-100";
/// The report's volatile tree.
pub(super) const VOLATILE: &str = "btree-linear";
/// The report's volatile tree with unsorted leaves.
pub(super) const UNSORTED: &str = "unsorted-leaf";
/// The model that stands for DRAM: its persistence domain includes the cache, so flushes are free.
pub(super) const DRAM: &str = "nvdimm-n";
/// The numbers of threads in the charts.
const THREADS: [u32; 7] = [1, 2, 4, 8, 16, 32, 48];

/// Returns the number of threads in the name of a case, such as `insert, 48 threads`.
fn threads(case: &str) -> u32 {
    let number = case.split_ascii_whitespace().rev().nth(1);
    number.and_then(|number| number.parse().ok()).unwrap_or(1)
}

/// Projects the throughput of `threads` threads; also returns the report of one of them.
pub(in crate::papers) fn project(
    bench: &mut Workbench<'_>,
    (name, device): (&str, &str),
    workload: &Workload,
    threads: u32,
) -> Result<(f64, DeviceReport)> {
    let report = bench.crowded(name, device, workload, threads)?;
    Ok((report.demand.project(threads).ops_per_second, report))
}

/// Returns a chart of projected throughput by threads; a curve is a design, a device, a workload.
pub(in crate::papers) fn by_threads(
    bench: &mut Workbench<'_>,
    title: &str,
    what: &[(&str, &str, Workload)],
) -> Result<Block> {
    let mut curves = Vec::new();
    for (name, device, workload) in what {
        let mut points = Vec::new();
        for threads in THREADS {
            let (speed, _) = project(bench, (name, device), workload, threads)?;
            points.push(Point { x: f64::from(threads), y: Some(speed * 1e-6) });
        }
        let name = format!("{name}, {device}, {}", workload.name());
        curves.push(Curve { name, stroke: Stroke::Projected, points });
    }
    let chart = Lines {
        title: title.to_owned(),
        description: "Projected from one modelled thread with its share of the buffers; latches are not modelled."
            .into(),
        x: Axis { label: "threads".into(), scale: Scale::Log2 },
        y: Axis { label: "million operations a second".into(), scale: Scale::Linear },
        curves,
        baseline: None,
    };
    Ok(chart.into())
}

pub(in crate::papers) fn dram_pm(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let measurements = try_measure_each(claim, |number| {
        let (name, n) = (number.baseline.as_str(), threads(&number.case));
        let (in_dram, dram) = project(bench, (name, DRAM), &Workload::Insert, n)?;
        let (on_pm, pm) = project(bench, (name, DEVICE), &Workload::Insert, n)?;
        let note = format!(
            "{:.2} against {:.2} M inserts a second, the limit of persistent memory is {}; an insert takes {:.0} and {:.0} ns, of which {:.0} and {:.0} ns are core time",
            in_dram * 1e-6,
            on_pm * 1e-6,
            pm.demand.project(n).bound.name(),
            dram.demand.alone_ns,
            pm.demand.alone_ns,
            dram.time_ns_per_op.core,
            pm.time_ns_per_op.core,
        );
        Ok((Some(in_dram / on_pm), note))
    })?;
    let bars = comparison_chart(
        claim,
        &measurements,
        "insert throughput in DRAM, relative to persistent memory",
        Some(1.0),
    );
    let what = [VOLATILE, UNSORTED]
        .into_iter()
        .flat_map(|name| [DRAM, DEVICE].map(|device| (name, device, Workload::Insert)))
        .collect::<Vec<_>>();
    let curves = by_threads(bench, "Throughput of random inserts, by number of threads", &what)?;
    Ok(ClaimResult { measurements, blocks: vec![bars, curves], source: modelled(claim, DEVICE) })
}

pub(in crate::papers) fn unsorted(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    const PAIR: [&str; 2] = [UNSORTED, VOLATILE];
    /// The pairs of a scan: 0.001 % of the report's 160 M.
    const RANGE: u16 = 1600;
    let measurements = try_measure_each(claim, |number| {
        if number.case.contains("DRAM") {
            let keys = bench.scaled(u64::MAX);
            let is_range = number.case.starts_with("range");
            let work = if is_range {
                let scans = (4 * keys).div_ceil(RANGE.into()); // Each key is read some four times.
                Work::new(Workload::Scan, keys, scans).with_scans_of(RANGE)
            } else {
                Work::new(Workload::Insert, keys, keys)
            };
            let speeds = bench.speeds(&PAIR.map(|name| (name, None)), &work)?;
            let (own, base) = (&speeds[0], &speeds[1]);
            let factor = if is_range { base.over(own) } else { own.over(base) };
            return Ok(Measured::timed(factor, timing_note(own, base, &work), &[own, base]));
        }
        if number.case.starts_with("range") {
            let scans = bench.modelled_recipe(&Workload::Scan);
            let shorter = u64::from(RANGE / scans.scan_length);
            let scans = Recipe { scan_length: RANGE, ops: scans.ops.div_ceil(shorter), ..scans };
            let ns = |name| -> Result<f64> {
                let report = bench.modelled_run((name, None), DEVICE, scans.clone(), 1)?;
                Ok(report.demand.alone_ns)
            };
            let [own, base] = [ns(PAIR[0])?, ns(PAIR[1])?];
            let note = format!(
                "{own:.0} against {base:.0} ns for {RANGE} pairs; the model counts memory accesses, not the comparisons of a sort"
            );
            return Ok((Some(own / base), note).into());
        }
        let n = threads(&number.case);
        let (own, own_report) = project(bench, (PAIR[0], DEVICE), &Workload::Insert, n)?;
        let (base, base_report) = project(bench, (PAIR[1], DEVICE), &Workload::Insert, n)?;
        let note = projection_note(n, [own, base], [&own_report, &base_report]);
        Ok((Some(own / base), note).into())
    })?;
    let bars = comparison_chart(claim, &measurements, "factor", Some(1.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: modelled(claim, DEVICE) })
}

/// Returns a note on two projections: throughput, bounds, media bytes and lines.
pub(in crate::papers) fn projection_note(
    threads: u32,
    speeds: [f64; 2],
    reports: [&DeviceReport; 2],
) -> String {
    let [own, base] = reports;
    format!(
        "{:.2} against {:.2} million operations a second, limited by {} and {}; per operation {:.0} against {:.0} bytes written to the media, {:.2} against {:.2} lines, {:.0} against {:.0} bytes read",
        speeds[0] * 1e-6,
        speeds[1] * 1e-6,
        own.demand.project(threads).bound.name(),
        base.demand.project(threads).bound.name(),
        own.media_bytes_per_op,
        base.media_bytes_per_op,
        own.lines_per_op,
        base.lines_per_op,
        own.media_read_bytes_per_op,
        base.media_read_bytes_per_op,
    )
}

pub(in crate::papers) fn group_flush(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    let measurements = try_measure_each(claim, |number| {
        let n = threads(&number.case);
        let (own, own_report) = project(bench, ("btree-gf", DEVICE), &Workload::Insert, n)?;
        let base = (number.baseline.as_str(), DEVICE);
        let (base, base_report) = project(bench, base, &Workload::Insert, n)?;
        Ok((Some(own / base), projection_note(n, [own, base], [&own_report, &base_report])))
    })?;
    let bars = comparison_chart(
        claim,
        &measurements,
        "insert throughput, relative to the baseline",
        Some(1.0),
    );
    let what = ["btree-gf", VOLATILE, UNSORTED].map(|name| (name, DEVICE, Workload::Insert));
    let curves = by_threads(bench, "Throughput of random inserts, by number of threads", &what)?;
    Ok(ClaimResult { measurements, blocks: vec![bars, curves], source: modelled(claim, DEVICE) })
}

pub(in crate::papers) fn device(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    bench.say(DEVICE);
    let profile = Profile::named(DEVICE)?;
    let found = device_probe::probe(&profile)?;
    let measurements = measure_each(claim, |number| {
        let value = match number.case.as_str() {
            "sequential read, GB/s" => found.read_gb_per_s[0],
            "random read, GB/s" => found.read_gb_per_s[1],
            "sequential write, GB/s" => found.write_gb_per_s[0],
            "random write, GB/s" => found.write_gb_per_s[1],
            "sequential read, ns" => found.read_ns[0],
            "random read, ns" => found.read_ns[1],
            "streaming store, ns" => found.stream_ns,
            _ => found.flush_ns,
        };
        (Some(value), format!("of {} lines on the model", device_probe::LINES))
    });
    let bars = comparison_chart(claim, &measurements, "GB/s, or nanoseconds", None);
    Ok(ClaimResult { measurements, blocks: vec![bars], source: modelled(claim, DEVICE) })
}
