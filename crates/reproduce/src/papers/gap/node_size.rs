//! The gap report's node sizes: the best one, by device and operation.

use super::device::{DEVICE, DRAM, UNSORTED, VOLATILE};
use crate::claims::Claim;
use crate::interval::Interval;
use crate::papers::finding::{ClaimResult, Measured, timed, try_measure_each};
use crate::speed::Speed;
use crate::workbench::{Named, Work, Workbench};
use bristlecone_lab::Result;
use bristlecone_lab::workload::Workload;
use bristlecone_report::figure::{Axis, Curve, Lines, Point, Scale, Stroke};

const SIZES: [usize; 6] = [128, 256, 512, 1024, 2048, 4096];
/// The number of threads with which the report compares two sizes.
const MANY: u32 = 32;

pub(in crate::papers) fn node_size(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    let keys = bench.scaled(u64::MAX);
    let work = Work::new(Workload::Insert, keys, keys);
    let sized = |name| SIZES.iter().map(move |&size| (name, Some(size)));
    let designs: Vec<Named<'_>> = [VOLATILE, UNSORTED].into_iter().flat_map(sized).collect();
    let all = bench.speeds(&designs, &work)?;
    let (speeds, unsorted_speeds) = all.split_at(SIZES.len());
    let dram = millions(speeds);
    let pm = modelled(bench, VOLATILE, &Workload::Insert)?;
    let unsorted_pm = modelled(bench, UNSORTED, &Workload::Insert)?;
    let measurements = try_measure_each(claim, |number| {
        let is_in_dram = number.case.contains("DRAM");
        if number.case.ends_with("threads") {
            return two_sizes(bench, if is_in_dram { DRAM } else { DEVICE });
        }
        if is_in_dram {
            return Ok(best_timed(speeds, &dram));
        }
        let is_of_reads = number.case.contains("reads");
        let reads = is_of_reads.then(|| modelled(bench, VOLATILE, &Workload::Get)).transpose()?;
        let found = reads.as_ref().unwrap_or(&pm);
        Ok((best(found), shown(found)).into())
    })?;
    let curve = |name: &str, stroke, speeds: &[f64]| Curve {
        name: name.into(),
        stroke,
        points: SIZES
            .iter()
            .zip(speeds)
            .map(|(&size, &speed)| Point { x: size as f64, y: Some(speed) })
            .collect(),
    };
    let chart = Lines {
        title: "Insert throughput of the volatile trees, by node size".into(),
        description:
            "Solid: timed in the DRAM of this machine. Dashed: on the model of persistent memory."
                .into(),
        x: Axis { label: "node size in bytes".into(), scale: Scale::Log2 },
        y: Axis { label: "million inserts a second".into(), scale: Scale::Linear },
        curves: vec![
            curve("DRAM, timed", Stroke::Measured, &dram),
            curve("DRAM, timed, unsorted leaves", Stroke::Measured, &millions(unsorted_speeds)),
            curve("persistent memory, modelled", Stroke::Projected, &pm),
            curve("persistent memory, unsorted leaves", Stroke::Projected, &unsorted_pm),
        ],
        baseline: None,
    };
    Ok(ClaimResult { measurements, blocks: vec![chart.into()], source: timed(claim) })
}

/// Returns the million operations a second of each size on the model of persistent memory.
fn modelled(bench: &Workbench<'_>, name: &str, workload: &Workload) -> Result<Vec<f64>> {
    let speed = |size| {
        let report = bench.sized((name, size), DEVICE, workload, 1)?;
        Ok(1e3 / report.demand.alone_ns)
    };
    SIZES.into_iter().map(speed).collect()
}

/// Returns the million operations a second of each of `speeds`.
fn millions(speeds: &[Speed]) -> Vec<f64> {
    speeds.iter().map(|speed| speed.ops_per_second * 1e-6).collect()
}

/// Returns the size with the greatest of `speeds`.
fn best(speeds: &[f64]) -> Option<f64> {
    let best = (0..SIZES.len()).max_by(|&a, &b| speeds[a].total_cmp(&speeds[b]));
    best.map(|at| SIZES[at] as f64)
}

fn shown(speeds: &[f64]) -> String {
    let each = SIZES.iter().zip(speeds).map(|(size, speed)| format!("{speed:.2} ({size} B)"));
    format!("million operations a second: {}", each.collect::<Vec<_>>().join(", "))
}

/// Returns the best size of the timed runs, with the range of the repetitions. `medians` are in
/// millions a second.
fn best_timed(speeds: &[Speed], medians: &[f64]) -> Measured {
    let turns: Vec<_> = speeds.iter().map(Speed::speeds).collect();
    let of_turn = |turn: usize| turns.iter().map(|speeds| speeds[turn]).collect::<Vec<_>>();
    let each = (0..turns[0].len()).filter_map(|turn| best(&of_turn(turn)));
    let found = best(medians).map(|value| Interval::range(value, &each.collect::<Vec<_>>()));
    let timed = |found| Measured::timed(found, shown(medians), &speeds.iter().collect::<Vec<_>>());
    found.map_or(Measured::default(), timed)
}

/// Compares nodes of 512 B with those of 256 B, at inserts of many threads.
fn two_sizes(bench: &Workbench<'_>, device: &str) -> Result<Measured> {
    let speed = |size| -> Result<f64> {
        let report = bench.sized((VOLATILE, size), device, &Workload::Insert, MANY)?;
        Ok(report.demand.project(MANY).ops_per_second)
    };
    let [large, small] = [speed(512)?, speed(256)?];
    let note = format!(
        "{:.2} against {:.2} million inserts a second on the model {device}, {MANY} threads",
        large * 1e-6,
        small * 1e-6
    );
    Ok((Some(large / small), note).into())
}
