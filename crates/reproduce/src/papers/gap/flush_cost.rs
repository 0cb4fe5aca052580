//! The gap report's parts of an insert: the log, flushes and fences, each switched off in turn.
//!
//! On the device model a tree without flushes and fences takes what its other accesses take. A
//! tree that flushes nothing has no log either, so the log is what is left above it.

use super::device::{DEVICE, VOLATILE};
use crate::claims::Claim;
use crate::papers::finding::{ClaimResult, modelled, try_measure_each};
use crate::workbench::Workbench;
use bristlecone_lab::Result;
use bristlecone_lab::workload::Workload;

/// The inserts to which the seconds belong, and the threads that share them: those of the report's
/// Table 2, because its figure names none.
const INSERTS: f64 = 160e6;
const THREADS: f64 = 48.0;

/// The parts of the time of an insert, in nanoseconds.
struct Parts {
    flushing: f64,
    other: f64,
}

fn parts(bench: &mut Workbench<'_>, name: &str) -> Result<Parts> {
    let flush_ns = bench.profile(DEVICE)?.cpu.flush_ns;
    let report = bench.report(name, DEVICE, &Workload::Insert)?;
    let time = report.time_ns_per_op;
    let flushed = report.lines_per_op - report.evictions_per_op;
    let flushing = time.fences + time.issue + flushed * flush_ns;
    Ok(Parts { flushing, other: time.core + time.loads - flushed * flush_ns })
}

pub(in crate::papers) fn flush_cost(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    let seconds = |ns: f64| ns * INSERTS / THREADS * 1e-9;
    let measurements = try_measure_each(claim, |number| {
        if number.case == "flush time of persistent-unsorted" {
            let [own, base] =
                [parts(bench, "persistent-unsorted")?, parts(bench, &number.baseline)?];
            let note = format!("{:.0} against {:.0} ns an insert", own.flushing, base.flushing);
            return Ok((Some(own.flushing / base.flushing), note));
        }
        let (name, volatile) = if number.case.contains("btree-wal") {
            ("btree-wal", VOLATILE)
        } else {
            ("persistent-unsorted", "unsorted-leaf")
        };
        let (own, volatile) = (parts(bench, name)?, parts(bench, volatile)?);
        let is_log = number.case.starts_with("log");
        let ns = if is_log { own.other - volatile.other } else { own.flushing };
        let note = format!("{ns:.0} ns an insert; {INSERTS:.0} inserts by {THREADS} threads");
        Ok((Some(seconds(ns)), note))
    })?;
    Ok(ClaimResult { measurements, blocks: Vec::new(), source: modelled(claim, DEVICE) })
}
