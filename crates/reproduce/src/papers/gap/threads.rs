//! The gap report's reads and mixes, by the number of threads. All numbers come from the device
//! model.

use super::device::{DEVICE, DRAM, UNSORTED, VOLATILE, project, projection_note};
use crate::claims::Claim;
use crate::papers::finding::{ClaimResult, comparison_chart, modelled, try_measure_each};
use crate::workbench::Workbench;
use bristlecone_lab::Result;
use bristlecone_lab::workload::Workload;

/// The largest number of threads in the report.
const MANY: u32 = 48;

pub(in crate::papers) fn reads(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let measurements = try_measure_each(claim, |number| {
        let mut of = |design, threads| project(bench, design, &Workload::Get, threads);
        if number.baseline == VOLATILE {
            let (own, own_report) = of((UNSORTED, DEVICE), MANY)?;
            let (base, base_report) = of((VOLATILE, DEVICE), MANY)?;
            let note = projection_note(MANY, [own, base], [&own_report, &base_report]);
            return Ok((Some(own / base), note));
        }
        let mut gap = |threads| -> Result<f64> {
            Ok(of((VOLATILE, DRAM), threads)?.0 / of((VOLATILE, DEVICE), threads)?.0)
        };
        let [many, one] = [gap(MANY)?, gap(1)?];
        let note =
            format!("DRAM is {many:.2} times as fast with {MANY} threads, {one:.2} with one");
        Ok((Some(many / one), note))
    })?;
    let bars = comparison_chart(claim, &measurements, "factor", Some(1.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: modelled(claim, DEVICE) })
}

/// Projects inserts of the largest number of threads. The latency of an insert is the number of
/// threads over their throughput (Little's law): a lower bound, as the throughput is an upper one.
pub(in crate::papers) fn inserts(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let measurements = try_measure_each(claim, |number| {
        if let Some(memory) = number.case.strip_prefix("latency, ") {
            let device = if memory == "DRAM" { DRAM } else { DEVICE };
            let mut ns = |threads| -> Result<f64> {
                let (speed, _) =
                    project(bench, (&claim.system, device), &Workload::Insert, threads)?;
                Ok(f64::from(threads) / speed * 1e9)
            };
            let [many, one] = [ns(MANY)?, ns(1)?];
            let note = format!("at least {many:.0} ns with {MANY} threads, {one:.0} with one");
            return Ok((Some(many / one), note));
        }
        let mut of = |name: &str| project(bench, (name, DEVICE), &Workload::Insert, MANY);
        // The case with a time is that of the slowest tree: the baseline's speed over its own.
        let is_time = number.case.ends_with("btree-wal");
        let own = if is_time { "btree-wal" } else { claim.system.as_str() };
        let (own, base) = (of(own)?, of(&number.baseline)?);
        let note = projection_note(MANY, [own.0, base.0], [&own.1, &base.1]);
        let factor = if is_time { base.0 / own.0 } else { own.0 / base.0 };
        Ok((Some(factor), note))
    })?;
    let bars = comparison_chart(claim, &measurements, "factor", Some(1.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: modelled(claim, DEVICE) })
}

/// Projects mixes of lookups and inserts.
pub(in crate::papers) fn mix(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let measurements = try_measure_each(claim, |number| {
        let mut of = |design, writes: u32, threads| -> Result<_> {
            let mix: Workload = format!("get:{}+insert:{writes}", 100 - writes).parse()?;
            project(bench, design, &mix, threads)
        };
        let (threads, [own, base]) = if number.baseline == VOLATILE {
            (16, [of((UNSORTED, DEVICE), 40, 16)?, of((VOLATILE, DEVICE), 40, 16)?])
        } else {
            let device = if number.case.ends_with("DRAM") { DRAM } else { DEVICE };
            (MANY, [of((VOLATILE, device), 20, MANY)?, of((VOLATILE, device), 80, MANY)?])
        };
        let note = projection_note(threads, [own.0, base.0], [&own.1, &base.1]);
        Ok((Some(own.0 / base.0), note))
    })?;
    let bars = comparison_chart(claim, &measurements, "factor", Some(1.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: modelled(claim, DEVICE) })
}
