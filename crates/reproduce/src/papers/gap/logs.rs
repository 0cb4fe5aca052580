//! The gap report, a tree in logs: beside one that is not, and by what its report varies.

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

/// Threads of the report's measurements.
const MANY: u32 = 48;
/// What a scan is.
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
        let (own, own_report) = project(bench, ("btree-ls", DEVICE), &workload, MANY)?;
        if number.case == "write amplification" {
            let note = format!(
                "{} logs, {MANY} threads; {:.0} bytes of media for {:.2} lines an insert",
                Choice::STANDARD.logs,
                own_report.media_bytes_per_op,
                own_report.lines_per_op
            );
            return Ok((own_report.write_amplification, note));
        }
        let (base, base_report) = project(bench, ("fast-fair", DEVICE), &workload, MANY)?;
        Ok((Some(own / base), projection_note(MANY, [own, base], [&own_report, &base_report])))
    })?;
    let bars = comparison_chart(claim, &measurements, "times", Some(1.0));
    let what = [
        ("btree-ls", DEVICE, Workload::Insert),
        ("fast-fair", DEVICE, Workload::Insert),
        ("btree-ls", DEVICE, Workload::Get),
        ("fast-fair", DEVICE, Workload::Get),
    ];
    let curves = by_threads(bench, "Operations a second, by threads", &what)?;
    let mut blocks = vec![bars, curves];
    blocks.extend(by_logs(bench)?);
    blocks.extend(by_garbage(bench)?);
    blocks.extend(by_deltas(bench)?);
    Ok(ClaimResult { measurements, blocks, source: modelled(claim, DEVICE) })
}

/// A chart without a line to compare with.
fn chart(title: &str, description: &str, [x, y]: [Axis; 2], curves: Vec<Curve>) -> Lines {
    let (title, description) = (title.to_owned(), description.to_owned());
    Lines { title, description, x, y, curves, baseline: None }
}

fn axis(label: &str, scale: Scale) -> Axis {
    Axis { label: label.into(), scale }
}

/// A curve over the numbers that were chosen.
fn curve(name: &str, stroke: Stroke, chosen: &[usize], of: impl Fn(usize) -> Option<f64>) -> Curve {
    let at = |(at, &x): (usize, &usize)| Point { x: x as f64, y: of(at) };
    Curve { name: name.into(), stroke, points: chosen.iter().enumerate().map(at).collect() }
}

/// Operations a second of many threads.
fn speed(report: &DeviceReport) -> f64 {
    report.demand.project(MANY).ops_per_second
}

/// Operations a second of each stroke in `models`, times those of the registry's choice, which is at `own`.
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

/// What the registry's choice does, of each stroke in `models`.
fn in_words(own: &TuningResult, models: &[(usize, &str)]) -> String {
    let one = |&(model, name): &(usize, &str)| {
        format!("{:.1} M {name}", speed(&own.models[model].report) * 1e-6)
    };
    models.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Figure 17: how many logs there are.
fn by_logs(bench: &mut Workbench<'_>) -> Result<Vec<Block>> {
    /// Threads that share the buffers of the device, and what is left of them.
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
        "btree-ls: what the device adds to what it writes, by the number of logs",
        "Inserts: bytes written to the media for each byte that reaches the device.",
        [logs(), axis("write amplification, bytes a byte", Scale::Linear)],
        written,
    );
    let speeds = chart(
        "btree-ls: inserts a second of 48 threads, by the number of logs",
        "Projected from one thread; without latches.",
        [logs(), axis("million inserts a second", Scale::Linear)],
        speeds,
    );
    let Recipe { ops, records, .. } = bench.modelled_recipe(&Workload::Insert);
    let note = format!(
        "{ops} inserts on {records} pairs. The threads share the logs, and so the lines at their ends. One \
         thread is modelled: with a 48th of the buffers, as in the other figures, as though each thread had \
         so many logs of its own; and with all of them, as though they wrote one after the other. Where less \
         is written than comes, writes of a line met in the buffer: a chunk that a log gets from the pool is \
         filled with zeros, then with records. Nobody waits for a latch, so what threads gain by logs of \
         their own is not in the curves."
    );
    Ok(vec![written.into(), speeds.into(), Block::Note(note)])
}

/// Figure 18b: how much of a log may be garbage.
fn by_garbage(bench: &mut Workbench<'_>) -> Result<Vec<Block>> {
    const PAIR_BYTES: f64 = 16.0;
    const KINDS: [(usize, &str); 3] = [(3, "updates"), (1, "gets"), (2, SCANS)];
    const SHARES: [usize; Choice::LIVE_PERCENTS.len()] = Choice::LIVE_PERCENTS;
    let [update, get, scan] = [Workload::Update, Workload::Get, Workload::Scan]
        .map(|workload| bench.modelled_recipe(&workload));
    // The first updates bring the logs to where they stay. Of one seed, gets and updates are of the same keys:
    // so gets come before the updates that are counted, and long after the first.
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
    let percent =
        || axis("% of a log's lines that are live at most when it is collected", Scale::Linear);
    let bytes = chart(
        "btree-ls: what updates write and what pairs take, by the garbage in the logs",
        "Updates of random keys, in logs that have been collected before.",
        [percent(), axis("bytes for each byte of a pair", Scale::Linear)],
        vec![
            curve("written to the media, an update", Stroke::Measured, &SHARES, |at| {
                updates(at).xbi
            }),
            curve("written in lines, an update", Stroke::Measured, &SHARES, |at| updates(at).cli),
            curve("room in the pool, a pair", Stroke::Measured, &SHARES, room),
        ],
    );
    let speeds = Lines {
        baseline: Some(Baseline { at: 1.0, name: "as in the registry, 50 %".into() }),
        ..chart(
            "btree-ls: operations a second of 48 threads, by the garbage in the logs",
            "Projected from one thread with a 48th of the buffers.",
            [percent(), axis("times those with 50 %", Scale::Linear)],
            beside_own(&SHARES, &tried, own, &KINDS),
        )
    };
    let note = format!(
        "With 50 %: {} a second. {} updates of {} pairs come before anything is counted. The report's limit is \
         so many megabytes of garbage; here it is a share, which does not depend on the number of pairs.",
        in_words(&tried[own], &KINDS),
        recipes[0].ops,
        recipes[0].records,
    );
    Ok(vec![bytes.into(), speeds.into(), Block::Note(note)])
}

/// Figure 18a: how long chains get.
fn by_deltas(bench: &mut Workbench<'_>) -> Result<Vec<Block>> {
    const KINDS: [(usize, &str); 3] = [(2, "inserts"), (0, "gets"), (1, SCANS)];
    const LENGTHS: [usize; Choice::DELTAS.len()] = Choice::DELTAS;
    /// What the report's reads gain from one cached pointer to eight.
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
        "btree-ls: operations a second of 48 threads, by the most deltas of a chain",
        "Projected from one thread with a 48th of the buffers.",
        [axis("deltas", Scale::Log2), axis("times those with 8", Scale::Linear)],
        curves,
    );
    let lines = |at: usize| tried[at].models[2].report.lines_per_op;
    let note = format!(
        "With {}: {} a second. In the report the number is of the deltas whose places are cached, of a chain \
         that may be longer; here the table has the places of all, and a chain that has no place left is put \
         together. So gets are no slower for it: the table has a fingerprint of each delta, and a get reads the \
         line that has its key. An insert writes {:.2} lines where chains have {} delta at most, and {:.2} where \
         they have {}. Scans read all of a chain.",
        LENGTHS[own],
        in_words(&tried[own], &KINDS),
        lines(0),
        LENGTHS[0],
        lines(own),
        LENGTHS[own],
    );
    Ok(vec![speeds.into(), Block::Note(note)])
}

/// The place of the registry's choice.
fn index_of(chosen: &[usize], own: usize) -> usize {
    chosen.iter().position(|&number| number == own).unwrap_or(0)
}
