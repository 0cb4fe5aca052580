//! The gap report's log-structured tree: against FAST & FAIR, and by the parameters that the report
//! varies.

use super::FAST_FAIR;
use super::device::{DEVICE, by_threads, project, projection_note};
use crate::claims::Claim;
use crate::experiments::log_tuning::{Choice, TuningResult};
use crate::papers::finding::{ClaimResult, comparison_chart, modelled, try_measure_each};
use crate::workbench::Workbench;
use bristlecone_lab::Result;
use bristlecone_lab::device::DeviceReport;
use bristlecone_lab::workload::{Recipe, Workload};
use bristlecone_report::figure::{Axis, Curve, Lines, Point, Scale, Stroke};
use bristlecone_report::page::Block;

/// The number of threads in the report's measurements.
const MANY: u32 = 48;
/// The name of a curve of scans, with their length.
const SCANS: &str = "scans of 100 pairs";

pub(in crate::papers) fn log_structured(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    let measurements = try_measure_each(claim, |number| {
        let case = number.case.as_str();
        let workload = if case.starts_with("reads") { Workload::Get } else { Workload::Insert };
        let recipe = bench.modelled_recipe(&workload);
        let of = |choice: Choice| -> Result<DeviceReport> {
            let tried = bench.tried(choice, core::slice::from_ref(&recipe), (DEVICE, MANY))?;
            Ok(tried.models[0].report.clone())
        };
        if case.starts_with("write amplification") {
            let ends = [Choice::LOGS[0], Choice::LOGS[Choice::LOGS.len() - 1]];
            let logs = ends[usize::from(case.ends_with("most logs"))];
            let report = of(Choice { logs, ..Choice::REPORT })?;
            let note = format!(
                "{logs} logs, {MANY} threads; {:.0} bytes of media for {:.2} lines an insert",
                report.media_bytes_per_op, report.lines_per_op
            );
            return Ok((report.write_amplification, note));
        }
        let own_report = of(Choice::REPORT)?;
        let own = speed(&own_report);
        if let Some(other) = case.strip_prefix("reads, 8 cached pointers over ") {
            let recent = if other == "one" { 1 } else { 4 };
            let [eight, other] = [8, recent].map(|recent| of(Choice { recent, ..Choice::REPORT }));
            let note = format!("{MANY} threads; {recent} and 8 pointers in a row");
            return Ok((Some(speed(&eight?) / speed(&other?)), note));
        }
        let (base, base_report) = project(bench, (FAST_FAIR, DEVICE), &workload, MANY)?;
        Ok((Some(own / base), projection_note(MANY, [own, base], [&own_report, &base_report])))
    })?;
    let bars = comparison_chart(claim, &measurements, "factor", Some(1.0));
    let what = [
        ("btree-ls", DEVICE, Workload::Insert),
        (FAST_FAIR, DEVICE, Workload::Insert),
        ("btree-ls", DEVICE, Workload::Get),
        (FAST_FAIR, DEVICE, Workload::Get),
    ];
    let curves = by_threads(bench, "Throughput, by number of threads", &what)?;
    let mut blocks = vec![bars, curves];
    blocks.extend(by_logs(bench)?);
    blocks.extend(by_pointers(bench)?);
    Ok(ClaimResult { measurements, blocks, source: modelled(claim, DEVICE) })
}

/// Creates a chart without a baseline.
fn chart(title: &str, description: &str, [x, y]: [Axis; 2], curves: Vec<Curve>) -> Lines {
    let (title, description) = (title.to_owned(), description.to_owned());
    Lines { title, description, x, y, curves, baseline: None }
}

fn axis(label: &str, scale: Scale) -> Axis {
    Axis { label: label.into(), scale }
}

/// Creates a curve over the values of a parameter.
fn curve(name: &str, stroke: Stroke, chosen: &[usize], of: impl Fn(usize) -> Option<f64>) -> Curve {
    let at = |(at, &x): (usize, &usize)| Point { x: x as f64, y: of(at) };
    Curve { name: name.into(), stroke, points: chosen.iter().enumerate().map(at).collect() }
}

/// Returns the projected operations a second of [`MANY`] threads.
fn speed(report: &DeviceReport) -> f64 {
    report.demand.project(MANY).ops_per_second
}

/// Returns curves of the throughput of each model, relative to the default parameters at index
/// `own`.
fn beside_own(
    chosen: &[usize],
    tried: &[TuningResult],
    own: usize,
    models: &[(usize, &str)],
) -> Vec<Curve> {
    let of = |at: usize, model: usize| speed(&tried[at].models[model].report);
    let one = |&(model, name): &(usize, &str)| {
        curve(name, Stroke::Projected, chosen, |at| Some(of(at, model) / of(own, model)))
    };
    models.iter().map(one).collect()
}

/// Returns a list of the throughput of each model at the default parameters.
fn in_words(own: &TuningResult, models: &[(usize, &str)]) -> String {
    let one = |&(model, name): &(usize, &str)| {
        format!("{:.1} M {name}", speed(&own.models[model].report) * 1e-6)
    };
    models.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Returns charts by the number of logs (figure 17 of the report).
fn by_logs(bench: &mut Workbench<'_>) -> Result<Vec<Block>> {
    /// The number of threads that share the device's buffers, with the name of the curve.
    const SHARED_BY: [(u32, &str); 2] =
        [(MANY, "with a 48th of the buffers"), (1, "with all of the buffers")];
    let (mut written, mut speeds) = (Vec::new(), Vec::new());
    for (threads, name) in SHARED_BY {
        let mut reports = Vec::new();
        for logs in Choice::LOGS {
            let choice = Choice { logs, ..Choice::REPORT };
            let recipe = bench.modelled_recipe(&Workload::Insert);
            let tried = bench.tried(choice, &[recipe], (DEVICE, threads))?;
            reports.push(tried.models[0].report.clone());
        }
        let added = |at: usize| reports[at].write_amplification;
        written.push(curve(name, Stroke::Measured, &Choice::LOGS, added));
        let million = |at: usize| Some(speed(&reports[at]) * 1e-6);
        speeds.push(curve(name, Stroke::Projected, &Choice::LOGS, million));
    }
    let logs = || axis("logs", Scale::Log2);
    let written = chart(
        "btree-ls: write amplification of the device, by number of logs",
        "Bytes written to the media for each byte that reaches the device, for inserts.",
        [logs(), axis("media bytes per byte received", Scale::Linear)],
        written,
    );
    let speeds = chart(
        "btree-ls: insert throughput of 48 threads, by number of logs",
        "Projected from one modelled thread; latches are not modelled.",
        [logs(), axis("million inserts a second", Scale::Linear)],
        speeds,
    );
    let Recipe { ops, records, .. } = bench.modelled_recipe(&Workload::Insert);
    let note = format!(
        "{ops} inserts on {records} pairs. In the tree, threads share the logs and the lines at their ends. The \
         model has one thread. With a 48th of the buffers, it behaves as if each thread had that many logs of \
         its own. With all buffers, it behaves as if the threads wrote in turns. Where the media receive fewer \
         bytes than the device, the buffer merged writes of a line: a new chunk of a log is filled with zeros, \
         then with records. The model has no latches, so the curves lack the gain from less contention."
    );
    Ok(vec![written.into(), speeds.into(), Block::Note(note)])
}

/// Returns a chart by the number of pointers in a row of the mapping table (figure 18a of the
/// report).
fn by_pointers(bench: &mut Workbench<'_>) -> Result<Vec<Block>> {
    const KINDS: [(usize, &str); 2] = [(0, "gets"), (1, SCANS)];
    const POINTERS: [usize; Choice::RECENT.len()] = Choice::RECENT;
    /// The report's speed-up of reads from one pointer to eight.
    const READS: f64 = 1.26;
    let recipes = [Workload::Get, Workload::Scan].map(|workload| bench.modelled_recipe(&workload));
    let mut tried = Vec::new();
    for recent in POINTERS {
        let choice = Choice { recent, ..Choice::REPORT };
        tried.push(bench.tried(choice, &recipes, (DEVICE, MANY))?);
    }
    let mut curves = beside_own(&POINTERS, &tried, 0, &KINDS);
    let ends = [(POINTERS[0], 1.0), (POINTERS[POINTERS.len() - 1], READS)];
    let points = ends.map(|(x, y)| Point { x: x as f64, y: Some(y) }).into();
    curves.push(Curve { name: KINDS[0].1.into(), stroke: Stroke::Paper, points });
    let speeds = chart(
        "btree-ls: throughput of 48 threads, by number of cached pointers",
        "Projected from one thread with a 48th of the buffers.",
        [axis("pointers", Scale::Log2), axis("throughput relative to 1", Scale::Linear)],
        curves,
    );
    let note = format!(
        "With {}: {} a second. A lookup prefetches the records to which the row points, then walks \
         the chain.",
        POINTERS[0],
        in_words(&tried[0], &KINDS),
    );
    Ok(vec![speeds.into(), Block::Note(note)])
}
