//! The tables of a run.

use crate::table::{self, table};
use bristlecone_console::output::{Output, grouped, whole};
use bristlecone_lab::bench::{BenchRow, FloorRatio, Model, PerOp};
use std::io::Write;

/// Prints a table of `rows`. A ratio is to the first row of the same workload.
pub(super) fn print(rows: &[BenchRow], output: &mut Output) -> std::io::Result<()> {
    let mut titles = vec![
        "design",
        "workload",
        "ops/s",
        "ratio",
        "p50 ns",
        "p99 ns",
        "p99.9 ns",
        "lines",
        "fences",
        "words",
        "PM B/key",
        "DRAM B/key",
    ];
    let has_floor = rows.iter().any(|row| row.times_floor.is_some());
    if has_floor {
        titles.extend(["x serial", "x pipelined"]);
    }
    let mut shown = table(&titles, 2..titles.len());
    for row in rows {
        let first = rows.iter().find(|first| first.workload.name() == row.workload.name());
        let ratio = first.map_or(1.0, |first| row.ops_per_second / first.ops_per_second);
        let counted = |count: fn(&PerOp) -> f64| {
            row.per_op.as_ref().map_or("-".to_owned(), |per_op| format!("{:.2}", count(per_op)))
        };
        let mut cells = vec![
            row.design.clone(),
            row.workload.name().to_owned(),
            speed(row.ops_per_second),
            format!("{ratio:.2}"),
            row.latency_ns.p50.to_string(),
            row.latency_ns.p99.to_string(),
            row.latency_ns.p999.to_string(),
            counted(|per_op| per_op.lines),
            counted(|per_op| per_op.fences),
            counted(|per_op| per_op.words),
            format!("{:.1}", row.bytes_per_key.pm),
            format!("{:.1}", row.bytes_per_key.dram),
        ];
        if has_floor {
            let shown = |ratio: fn(FloorRatio) -> f64| {
                row.times_floor.map_or("-".to_owned(), |floor| format!("{:.2}", ratio(floor)))
            };
            cells.extend([shown(|floor| floor.serial), shown(|floor| floor.pipelined)]);
        }
        shown.add_row(cells);
    }
    table::print(&shown, output)?;
    write!(output, "{LEGEND}")?;
    if has_floor {
        write!(output, "{FLOOR_LEGEND}")?;
    }
    output.flush()
}

/// The meaning of the columns of a run.
const LEGEND: &str = "
ratio: ops/s divided by those of the first row with the same workload. p50, p99, p99.9: the
nanoseconds that this share of the operations does not exceed. lines, fences, words: cache lines of
64 B flushed, fences and words of 8 B stored, each an operation. PM, DRAM: bytes a key.
";

/// The meaning of the columns of a run with the floor.
const FLOOR_LEGEND: &str = "\
x serial, x pipelined: the time of an operation divided by that of floor-serial and of
floor-pipelined under the same workload.
";

/// The meaning of the columns of a modelled device.
const MODEL_LEGEND: &str = "
bound: the part of the device that limits the speed with so many threads. CLI and XBI, the
amplification in cache lines and in units of the medium: bytes flushed, and bytes that the medium
writes, divided by the bytes of keys and values that were written. wear: writes of a unit of the
medium, the most and on average. host ops/s: the speed of the simulation itself.
";

/// Prints a table of the modelled devices, if `rows` have any.
pub(super) fn print_models(
    rows: &[BenchRow],
    threads: u32,
    output: &mut Output,
) -> std::io::Result<()> {
    let modelled = rows
        .iter()
        .filter_map(|row| Some((row.design.as_str(), row.workload.name(), row.model.as_ref()?)));
    if modelled.clone().next().is_none() {
        return Ok(());
    }
    writeln!(output)?;
    print_each(modelled, threads, output)
}

/// Returns operations a second, with two decimals below 100.
fn speed(ops_per_second: f64) -> String {
    if ops_per_second < 100.0 {
        return format!("{ops_per_second:.2}");
    }
    grouped(whole(ops_per_second))
}

/// Prints a table of models: design, workload and result.
fn print_each<'a>(
    rows: impl Iterator<Item = (&'a str, &'a str, &'a Model)>,
    threads: u32,
    output: &mut Output,
) -> std::io::Result<()> {
    let at_threads = format!("ops/s at {threads}");
    let titles = [
        "design",
        "workload",
        "device",
        "ns/op",
        "p99 ns",
        at_threads.as_str(),
        "bound",
        "CLI",
        "XBI",
        "media B/op",
        "nJ/op",
        "wear max",
        "wear mean",
        "host ops/s",
    ];
    let mut shown = table(&titles, 3..14);
    let amplification =
        |ratio: Option<f64>| ratio.map_or("-".into(), |ratio| format!("{ratio:.2}"));
    for (design, workload, model) in rows {
        let report = &model.report;
        let projection = report.demand.project(threads);
        shown.add_row([
            design.to_owned(),
            workload.to_owned(),
            model.device.clone(),
            format!("{:.0}", report.demand.alone_ns),
            model.latency_ns.p99.to_string(),
            grouped(whole(projection.ops_per_second)),
            projection.bound.name().to_owned(),
            amplification(report.cli),
            amplification(report.xbi),
            format!("{:.1}", report.media_bytes_per_op),
            format!("{:.2}", report.energy_nj_per_op),
            report.wear_max.to_string(),
            format!("{:.2}", report.wear_mean),
            grouped(whole(model.host_ops_per_second)),
        ]);
    }
    table::print(&shown, output)?;
    write!(output, "{MODEL_LEGEND}")?;
    output.flush()
}
