//! All designs on all modelled devices: the best of each, and the predictions of the cost model.

use crate::cost_model::OpProfile;
use crate::workbench::Workbench;
use bristlecone_lab::Result;
use bristlecone_lab::device::Profile;
use bristlecone_lab::workload::Workload;
use bristlecone_report::figure::{Best, Chart, Heat, Scale, Shade, Strip};
use bristlecone_report::page::{Block, Section, Source};
use bristlecone_report::table::{Cell, Column, Mark, Table};
use serde::Serialize;

/// The device whose counts the cost model uses to predict all others.
const COUNTED_ON: &str = "optane-200";
/// The number of threads of the projections; one thread is modelled too.
pub const THREADS: u32 = 48;
/// The workloads that are compared.
pub const WORKLOADS: [Workload; 5] =
    [Workload::Insert, Workload::Get, Workload::Update, Workload::Delete, Workload::Scan];

/// The result of a design on a device at a workload.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceResult {
    /// The name of the design.
    pub design: String,
    /// The name of the device.
    pub device: String,
    /// The name of the workload.
    pub workload: String,
    /// The operations a second of one thread, on the model.
    pub alone: f64,
    /// The operations a second of [`THREADS`] threads, projected from the model.
    pub many: f64,
    /// The prediction of `alone` by the cost model.
    pub alone_predicted: f64,
    /// The prediction of `many` by the cost model.
    pub many_predicted: f64,
    /// `true` if this is the best persistent design here with [`THREADS`] threads.
    pub wins: bool,
    /// `true` if the design is persistent; a volatile one cannot win.
    pub persistent: bool,
}

/// Returns all designs of the registry; the flag is `true` for a persistent one.
fn designs() -> Vec<(&'static str, bool)> {
    let specs = bristlecone_lab::bench::specs();
    specs.iter().map(|sizes| (sizes[0].name, sizes[0].persistent)).collect()
}

/// Models every design on every device at every workload, and predicts each by the cost model.
///
/// # Errors
/// A design failed.
pub fn compare(bench: &mut Workbench<'_>) -> Result<Vec<DeviceResult>> {
    let designs = designs();
    let names: Vec<&str> = designs.iter().map(|(name, _)| *name).collect();
    let devices: Vec<&str> = Profile::names().collect();
    bench.prepare(&names, &devices, &[THREADS])?;
    let counted_on = bench.profile(COUNTED_ON)?;
    let mut cells = Vec::new();
    for workload in &WORKLOADS {
        for &device in &devices {
            let profile = bench.profile(device)?;
            for &(name, persistent) in &designs {
                let op = OpProfile::of(&bench.report(name, COUNTED_ON, workload)?, &counted_on);
                let in_crowd = bench.crowded(name, COUNTED_ON, workload, THREADS)?;
                let in_crowd = OpProfile::of(&in_crowd, &counted_on);
                let demand = bench.report(name, device, workload)?.demand;
                let crowd = bench.crowded(name, device, workload, THREADS)?.demand;
                cells.push(DeviceResult {
                    design: name.to_owned(),
                    device: device.to_owned(),
                    workload: workload.name().to_owned(),
                    alone: demand.project(1).ops_per_second,
                    many: crowd.project(THREADS).ops_per_second,
                    alone_predicted: op.ops_per_second(&profile, 1),
                    many_predicted: in_crowd.ops_per_second(&profile, THREADS),
                    wins: false,
                    persistent,
                });
            }
        }
    }
    mark_winners(&mut cells);
    Ok(cells)
}

/// Marks the best persistent design of each device and workload.
fn mark_winners(cells: &mut [DeviceResult]) {
    for group in cells.chunk_by_mut(|a, b| a.device == b.device && a.workload == b.workload) {
        let best = group
            .iter_mut()
            .filter(|cell| cell.persistent)
            .max_by(|a, b| a.many.total_cmp(&b.many));
        if let Some(best) = best {
            best.wins = true;
        }
    }
}

/// Returns the sections of the report: results, cost model, and the wear of the media.
///
/// # Errors
/// A design failed.
pub fn sections(bench: &mut Workbench<'_>, cells: &[DeviceResult]) -> Result<Vec<Section>> {
    let source = || {
        Some(Source::Modelled { command: "bristlecone-lab reproduce".into(), model: "each".into() })
    };
    let heats = WORKLOADS.iter().map(|workload| Block::Chart(Chart::from(heat(cells, workload))));
    let mut blocks = vec![Block::Table(winners(cells))];
    blocks.extend(heats);
    let all = Section {
        id: "devices".into(),
        heading: "All designs on all devices".into(),
        finding: format!("Of all pairs of a device and a workload: {}.", winner_counts(cells)),
        blocks,
        source: source(),
    };
    let model = Section {
        id: "cost-model".into(),
        heading: "The cost model".into(),
        finding: format!(
            "With counts from {COUNTED_ON} alone, the formula is within a factor of 1.25 of the device model in {:.0} % of all cases for one thread, and in {:.0} % for {THREADS} threads.",
            near(cells, |cell| cell.alone_predicted / cell.alone) * 100.0,
            near(cells, |cell| cell.many_predicted / cell.many) * 100.0,
        ),
        blocks: vec![
            Block::Note(
                "One thread: the time of an operation is core + overlap x misses x read latency + lines x flush \
                 + fences x wait + (lines - fences) x time of a line. Many threads: the busiest part of the device \
                 limits them. For an operation it works for bytes written / write bandwidth, bytes read / read \
                 bandwidth, or lines x time of a line in the queue."
                    .into(),
            ),
            Block::Table(predictions(cells)),
        ],
        source: source(),
    };
    Ok(vec![all, model, wear(bench)?])
}

/// Returns how often each design wins, the most frequent winner first.
fn winner_counts(cells: &[DeviceResult]) -> String {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for cell in cells.iter().filter(|cell| cell.wins) {
        match names.iter_mut().find(|(name, _)| *name == cell.design) {
            Some((_, count)) => *count += 1,
            None => names.push((&cell.design, 1)),
        }
    }
    names.sort_by_key(|&(_, count)| core::cmp::Reverse(count));
    let each = names.iter().map(|(name, count)| format!("{name} wins {count}"));
    each.collect::<Vec<_>>().join(", ")
}

/// Returns the share of `cells` whose ratio differs from one by at most a factor of 1.25.
fn near(cells: &[DeviceResult], ratio: impl Fn(&DeviceResult) -> f64) -> f64 {
    const QUARTER: f64 = 1.25;
    let is_near = |cell: &&DeviceResult| (1.0 / QUARTER..=QUARTER).contains(&ratio(cell));
    cells.iter().filter(is_near).count() as f64 / cells.len().max(1) as f64
}

fn winners(cells: &[DeviceResult]) -> Table {
    let mut columns = vec![Column::words("device")];
    columns.extend(WORKLOADS.iter().map(|workload| Column::words(workload.name())));
    let row = |device: &str| {
        let mut row = vec![Cell::from(device)];
        for workload in &WORKLOADS {
            let best = cells.iter().find(|cell| {
                cell.wins && cell.device == device && cell.workload == workload.name()
            });
            let text = best.map_or(String::new(), |best| {
                format!("{}, {:.1} M/s", best.design, best.many * 1e-6)
            });
            row.push(Cell::from(text).marked(Mark::Good));
        }
        row
    };
    Table {
        caption:
            "Best persistent design, projected for 48 threads (M/s: million operations a second)"
                .into(),
        header: columns,
        rows: Profile::names().map(row).collect(),
    }
}

/// Returns the matrix of all designs on all devices at `workload`.
pub fn heat(cells: &[DeviceResult], workload: &Workload) -> Heat {
    let devices: Vec<String> = Profile::names().map(str::to_owned).collect();
    let designs = designs();
    let value = |design: &str, device: &str| {
        let found = cells.iter().find(|cell| {
            cell.design == design && cell.device == device && cell.workload == workload.name()
        });
        found.map(|cell| cell.many * 1e-6)
    };
    Heat {
        title: format!("{}: million operations a second, {THREADS} threads", workload.name()),
        description:
            "Projected from one modelled thread with its share of the device's buffers; latches are \
                      not modelled. Volatile designs are shown for comparison."
                .into(),
        row: "design".into(),
        column: "device".into(),
        value: "million operations a second".into(),
        rows: designs
            .iter()
            .map(
                |(name, persistent)| {
                    if *persistent { (*name).to_owned() } else { format!("{name} (volatile)") }
                },
            )
            .collect(),
        cells: designs
            .iter()
            .map(|(name, _)| devices.iter().map(|device| value(name, device)).collect())
            .collect(),
        columns: devices,
        shade: Shade::ByColumn,
        scale: Scale::Log10,
        best: Best::Highest,
    }
}

/// Returns a table of the winners, with the results of the device model and of the formula.
fn predictions(cells: &[DeviceResult]) -> Table {
    let columns = vec![
        Column::words("device"),
        Column::words("workload"),
        Column::words("design"),
        Column::numbers("model, M/s, 1 thread"),
        Column::numbers("formula"),
        Column::numbers("model, M/s, 48 threads"),
        Column::numbers("formula"),
    ];
    let number = |value: f64| Cell::number(Some(value * 1e-6));
    let row = |cell: &DeviceResult| {
        vec![
            Cell::from(cell.device.as_str()),
            Cell::from(cell.workload.as_str()),
            Cell::from(cell.design.as_str()),
            number(cell.alone),
            number(cell.alone_predicted),
            number(cell.many),
            number(cell.many_predicted),
        ]
    };
    Table {
        caption: "The best designs: device model and formula, in million operations a second (M/s)"
            .into(),
        header: columns,
        rows: cells.iter().filter(|cell| cell.wins).map(row).collect(),
    }
}

/// Returns the writes of the most written unit, relative to the mean of all units.
fn uneven(map: &[f64]) -> f64 {
    let mean = map.iter().sum::<f64>() / map.len().max(1) as f64;
    map.iter().copied().fold(0.0, f64::max) / mean.max(f64::MIN_POSITIVE)
}

/// Returns the section on wear: the distribution of writes over the pool.
fn wear(bench: &mut Workbench<'_>) -> Result<Section> {
    let (mut blocks, mut unevenness) = (Vec::new(), Vec::new());
    for name in ["fptree", "ccl-btree", "btree-ls-r", "btree-log"] {
        let map = bench.model(name, COUNTED_ON, &Workload::Insert)?.wear_map.clone();
        unevenness.push(format!("{:.0} times the mean in {name}", uneven(&map)));
        let strip = Strip {
            title: format!("{name}: media writes of inserts, by position in the pool"),
            description: format!(
                "The pool from its start to the last unit that was written, on the model {COUNTED_ON}. Darker cells are written more often."
            ),
            unit: "part of the pool".into(),
            value: "writes of a unit".into(),
            scale: Scale::Linear,
            values: map.into_iter().map(Some).collect(),
        };
        blocks.push(Block::Chart(Chart::from(strip)));
    }
    Ok(Section {
        id: "wear".into(),
        heading: "Wear".into(),
        finding: format!(
            "Inserts write the most worn part of the pool more often than the average part: {}.",
            unevenness.join(", ")
        ),
        blocks,
        source: Some(Source::Modelled {
            command: "bristlecone-lab reproduce".into(),
            model: COUNTED_ON.into(),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(device: &str, design: &str, persistent: bool, many: f64) -> DeviceResult {
        DeviceResult {
            design: design.into(),
            device: device.into(),
            workload: "insert".into(),
            alone: many / 10.0,
            many,
            alone_predicted: many / 10.0,
            many_predicted: many * 2.0,
            wins: false,
            persistent,
        }
    }

    #[test]
    fn unevenness_is_the_maximum_over_the_mean() {
        let is = |found: f64, expected: f64| (found - expected).abs() < 1e-12;
        assert!(is(uneven(&[2.0, 2.0, 2.0]), 1.0));
        assert!(is(uneven(&[0.0, 0.0, 9.0]), 3.0));
        assert!(is(uneven(&[]), 0.0));
    }

    #[test]
    fn the_best_persistent_design_of_each_device_wins() {
        let mut entries = vec![
            entry("a", "volatile", false, 9.0),
            entry("a", "x", true, 3.0),
            entry("a", "y", true, 4.0),
            entry("b", "x", true, 2.0),
            entry("b", "y", true, 1.0),
        ];
        mark_winners(&mut entries);
        let wins: Vec<_> = entries.iter().map(|entry| entry.wins).collect();
        assert_eq!(wins, [false, false, true, true, false]);
        assert_eq!(winner_counts(&entries), "y wins 1, x wins 1");
        let is = |found: f64, expected: f64| (found - expected).abs() < 1e-12;
        assert!(is(near(&entries, |entry| entry.alone_predicted / entry.alone), 1.0));
        assert!(is(near(&entries, |entry| entry.many_predicted / entry.many), 0.0));
    }
}
