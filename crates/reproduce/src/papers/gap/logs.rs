//! The gap report's log-structured tree: against fast-fair, and by the parameters that the report
//! varies.

use super::device::{DEVICE, by_threads, project, projection_note};
use crate::claims::Claim;
use crate::experiments::log_tuning::{Choice, TuningResult};
use crate::papers::finding::{ClaimResult, comparison_chart, modelled, try_measure_each};
use crate::workbench::Workbench;
use bristlecone_lab::Result;
use bristlecone_lab::device::DeviceReport;
use bristlecone_lab::workload::{Recipe, Workload};
use bristlecone_report::figure::{Axis, Baseline, Curve, Lines, Point, Scale, Stroke};
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
        let workload = match number.case.as_str() {
            case if case.starts_with("reads") => Workload::Get,
            _ => Workload::Insert,
        };
        let (own, own_report) = project(bench, ("btree-ls-r", DEVICE), &workload, MANY)?;
        if number.case.starts_with("write amplification") {
            let ends = [Choice::LOGS[0], Choice::LOGS[Choice::LOGS.len() - 1]];
            let logs = ends[usize::from(number.case.ends_with("most logs"))];
            let choice = Choice { logs, ..Choice::STANDARD };
            let recipe = bench.modelled_recipe(&Workload::Insert);
            let report = bench.tried(choice, &[recipe], (DEVICE, MANY))?.models[0].report.clone();
            let note = format!(
                "{logs} logs, {MANY} threads; {:.0} bytes of media for {:.2} lines an insert",
                report.media_bytes_per_op, report.lines_per_op
            );
            return Ok((report.write_amplification, note));
        }
        let (base, base_report) = project(bench, ("fast-fair", DEVICE), &workload, MANY)?;
        Ok((Some(own / base), projection_note(MANY, [own, base], [&own_report, &base_report])))
    })?;
    let bars = comparison_chart(claim, &measurements, "factor", Some(1.0));
    let what = [
        ("btree-ls-r", DEVICE, Workload::Insert),
        ("fast-fair", DEVICE, Workload::Insert),
        ("btree-ls-r", DEVICE, Workload::Get),
        ("fast-fair", DEVICE, Workload::Get),
    ];
    let curves = by_threads(bench, "Throughput, by number of threads", &what)?;
    let mut blocks = vec![bars, curves];
    blocks.extend(by_logs(bench)?);
    blocks.extend(by_garbage(bench)?);
    blocks.extend(by_deltas(bench)?);
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
            let choice = Choice { logs, ..Choice::STANDARD };
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
        "btree-ls-r: write amplification of the device, by number of logs",
        "Bytes written to the media for each byte that reaches the device, for inserts.",
        [logs(), axis("media bytes per byte received", Scale::Linear)],
        written,
    );
    let speeds = chart(
        "btree-ls-r: insert throughput of 48 threads, by number of logs",
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

/// Returns charts by the allowed share of garbage in a log (figure 18b of the report).
fn by_garbage(bench: &mut Workbench<'_>) -> Result<Vec<Block>> {
    const PAIR_BYTES: f64 = 16.0;
    const KINDS: [(usize, &str); 3] = [(3, "updates"), (1, "gets"), (2, SCANS)];
    const SHARES: [usize; Choice::LIVE_PERCENTS.len()] = Choice::LIVE_PERCENTS;
    let [update, get, scan] = [Workload::Update, Workload::Get, Workload::Scan]
        .map(|workload| bench.modelled_recipe(&workload));
    // The first updates fill the logs with garbage until GC keeps its share constant. One seed
    // gives gets and updates the same keys. So gets run before the updates that are counted, else
    // they would find the keys in the cache.
    let first = Recipe { ops: update.records, ..update.clone() };
    let recipes = [first, get, scan, update];
    let mut tried = Vec::new();
    for live_percent in SHARES {
        let choice = Choice { live_percent, ..Choice::STANDARD };
        tried.push(bench.tried(choice, &recipes, (DEVICE, MANY))?);
    }
    let own = index_of(&SHARES, Choice::STANDARD.live_percent);
    let updates = |at: usize| &tried[at].models[3].report;
    let room = |at: usize| {
        let stats = tried[at].stats;
        Some(stats.pm_bytes as f64 / (stats.keys as f64 * PAIR_BYTES))
    };
    let percent = || {
        axis("threshold of log GC: the greatest % of live lines in a collected log", Scale::Linear)
    };
    let bytes = chart(
        "btree-ls-r: bytes written by updates and space of pairs, by threshold of log GC",
        "Updates of random keys, after log GC has reached a steady state.",
        [percent(), axis("bytes per byte of a pair", Scale::Linear)],
        vec![
            curve("written to the media, an update", Stroke::Measured, &SHARES, |at| {
                updates(at).xbi
            }),
            curve("written in lines, an update", Stroke::Measured, &SHARES, |at| updates(at).cli),
            curve("space in the pool, a pair", Stroke::Measured, &SHARES, room),
        ],
    );
    let speeds = Lines {
        baseline: Some(Baseline { at: 1.0, name: "default, 50 %".into() }),
        ..chart(
            "btree-ls-r: throughput of 48 threads, by threshold of log GC",
            "Projected from one thread with a 48th of the buffers.",
            [percent(), axis("throughput relative to 50 %", Scale::Linear)],
            beside_own(&SHARES, &tried, own, &KINDS),
        )
    };
    let note = format!(
        "With 50 %: {} a second. {} updates of {} pairs run before anything is counted. The report limits garbage \
         in megabytes; here the limit is a share, which does not depend on the number of pairs.",
        in_words(&tried[own], &KINDS),
        recipes[0].ops,
        recipes[0].records,
    );
    Ok(vec![bytes.into(), speeds.into(), Block::Note(note)])
}

/// Returns a chart by the maximum length of delta chains (figure 18a of the report).
fn by_deltas(bench: &mut Workbench<'_>) -> Result<Vec<Block>> {
    const KINDS: [(usize, &str); 3] = [(2, "inserts"), (0, "gets"), (1, SCANS)];
    const LENGTHS: [usize; Choice::DELTAS.len()] = Choice::DELTAS;
    /// The report's speed-up of reads from one cached pointer to eight.
    const READS: f64 = 1.26;
    let recipes = [Workload::Get, Workload::Scan, Workload::Insert]
        .map(|workload| bench.modelled_recipe(&workload));
    let mut tried = Vec::new();
    for deltas in LENGTHS {
        let choice = Choice { deltas, ..Choice::STANDARD };
        tried.push(bench.tried(choice, &recipes, (DEVICE, MANY))?);
    }
    let own = index_of(&LENGTHS, Choice::STANDARD.deltas);
    let mut curves = beside_own(&LENGTHS, &tried, own, &KINDS);
    let ends = [(LENGTHS[0], 1.0 / READS), (LENGTHS[own], 1.0)];
    let points = ends.map(|(x, y)| Point { x: x as f64, y: Some(y) }).into();
    curves.push(Curve { name: KINDS[1].1.into(), stroke: Stroke::Paper, points });
    let speeds = chart(
        "btree-ls-r: throughput of 48 threads, by maximum number of deltas in a chain",
        "Projected from one thread with a 48th of the buffers.",
        [axis("deltas", Scale::Log2), axis("throughput relative to 8", Scale::Linear)],
        curves,
    );
    let lines = |at: usize| tried[at].models[2].report.lines_per_op;
    let note = format!(
        "With {}: {} a second. In the report, the number limits the deltas with a cached address, and a chain may \
         be longer. Here the mapping table has the addresses of all deltas, and a full chain is consolidated. The \
         table also has a fingerprint of each delta, so a get reads only the line with its key. An insert writes {:.2} lines with at most {} delta in a chain, and {:.2} lines with at most {}. Scans \
         read the whole chain.",
        LENGTHS[own],
        in_words(&tried[own], &KINDS),
        lines(0),
        LENGTHS[0],
        lines(own),
        LENGTHS[own],
    );
    Ok(vec![speeds.into(), Block::Note(note)])
}

/// Returns the index of the default parameter.
fn index_of(chosen: &[usize], own: usize) -> usize {
    chosen.iter().position(|&number| number == own).unwrap_or(0)
}
