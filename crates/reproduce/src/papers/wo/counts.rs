//! WO-tree: flushed lines, counted.

use super::{DESIGNS, OPS, inserts, on_keys};
use crate::claims::{Claim, Number};
use crate::experiments::inner_shift;
use crate::papers::finding::{
    ClaimResult, comparison_chart, counted, index_of, measure_each, try_measure_each,
};
use crate::workbench::{Work, Workbench};
use bristlecone_lab::Result;
use bristlecone_lab::workload::Workload;
use bristlecone_report::figure::{Axis, Curve, Lines, Point, Scale, Stroke};
use bristlecone_report::page::Block;

/// The cases of Sec. 4.3.1, each with the tree whose inner nodes are measured for it.
const SHIFTING: [(&str, &str); 2] =
    [("a line at a time", "wo-tree"), ("an entry at a time", "btree-native")];

/// Counts flushed lines: the relative change of the system against each baseline.
fn lines(bench: &mut Workbench<'_>, claim: &Claim, work: &Work) -> Result<ClaimResult> {
    let counts: Vec<_> =
        DESIGNS.iter().map(|&design| bench.count(design, work)).collect::<Result<_>>()?;
    let measurements = measure_each(claim, |number| {
        let Some(at) = index_of(&DESIGNS, &number.baseline) else { return (None, String::new()) };
        let (own, base) = (counts[0], counts[at]);
        let note = format!(
            "{:.2} against {:.2} lines an operation, {:.2} against {:.2} fences; {} operations",
            own.lines, base.lines, own.fences, base.fences, work.ops
        );
        (Some(own.lines / base.lines - 1.0), note)
    });
    let by_size = by_node_size(bench, &work.workload)?;
    let bars = comparison_chart(claim, &measurements, "lines flushed, relative change", Some(0.0));
    Ok(ClaimResult { measurements, blocks: vec![bars, by_size], source: counted(claim) })
}

/// Returns a chart of flushed lines by node size.
fn by_node_size(bench: &mut Workbench<'_>, workload: &Workload) -> Result<Block> {
    const SIZES: [usize; 4] = [256, 512, 1024, 2048];
    const NAMES: [&str; 6] =
        ["wo-tree", "wo-tree-r", "btree-native", "wb-tree-words", "fast-fair", "fptree"];
    let records = if *workload == Workload::Insert { 0 } else { bench.scaled(OPS) };
    let work = Work::new(workload.clone(), records, bench.scaled(OPS));
    let mut curves = Vec::new();
    for name in NAMES {
        let mut points = Vec::new();
        for size in SIZES {
            // Some designs do not have nodes of this size.
            let known = bristlecone_lab::system::design(name, Some(size)).is_ok();
            let y = known.then(|| bench.count((name, Some(size)), &work)).transpose()?;
            points.push(Point { x: size as f64, y: y.map(|count| count.lines) });
        }
        curves.push(Curve { name: name.into(), stroke: Stroke::Measured, points });
    }
    let chart = Lines {
        title: format!("Lines flushed by an operation ({}), by node size", workload.name()),
        description: "Counted, for random keys of 8 B.".into(),
        x: Axis { label: "node size in bytes".into(), scale: Scale::Log2 },
        y: Axis { label: "lines per operation".into(), scale: Scale::Log10 },
        curves,
        baseline: None,
    };
    Ok(chart.into())
}

pub(in crate::papers) fn flush_insert(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    let work = inserts(bench);
    lines(bench, claim, &work)
}

pub(in crate::papers) fn flush_delete(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    let work = on_keys(bench, Workload::Delete);
    lines(bench, claim, &work)
}

/// Compares lines with nodes of 16 and of 32 lines.
pub(in crate::papers) fn node_size(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    const SIZES: [(&str, usize); 2] = [("16 lines", 1024), ("32 lines", 2048)];
    let work = inserts(bench);
    let own = DESIGNS[0].0;
    let measurements = try_measure_each(claim, |Number { baseline, case, .. }| {
        let named = SIZES.into_iter().find(|(name, _)| name == case);
        let [above, below] = match named {
            Some((_, bytes)) => [(baseline.as_str(), Some(bytes)), (own, Some(bytes))],
            None => [(own, Some(SIZES[1].1)), (own, Some(SIZES[0].1))],
        };
        let [above, below] = [bench.count(above, &work)?, bench.count(below, &work)?];
        let note = format!(
            "{:.2} against {:.2} lines an insert; {} inserts",
            above.lines, below.lines, work.ops
        );
        Ok((Some(above.lines / below.lines), note))
    })?;
    let bars = comparison_chart(claim, &measurements, "lines flushed, as a factor", Some(1.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: counted(claim) })
}

/// Counts inserts without a split: into a sorted leaf, and into small and large unordered ones.
pub(in crate::papers) fn shifts(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    /// The number of keys, which fit one leaf of 256 B.
    const FEW: u64 = 10;
    const SIZES: [usize; 2] = [1024, 256];
    let work = Work::new(Workload::Insert, 0, FEW);
    let measurements = try_measure_each(claim, |number| {
        if number.case.starts_with("sorted leaf") {
            return sorted_leaf();
        }
        let lines = |bench: &mut Workbench<'_>, bytes| {
            bench.count((DESIGNS[0].0, Some(bytes)), &work).map(|count| count.lines)
        };
        let [large, small] = [lines(bench, SIZES[0])?, lines(bench, SIZES[1])?];
        let note = format!(
            "{large:.2} against {small:.2} lines an insert in leaves of {} and {} B, of which one is the log's; {FEW} inserts",
            SIZES[0], SIZES[1]
        );
        Ok((Some(large / small), note))
    })?;
    Ok(ClaimResult { measurements, blocks: Vec::new(), source: counted(claim) })
}

/// Counts the flushes of entries in a sorted leaf, which has five after the insert.
fn sorted_leaf() -> Result<(Option<f64>, String)> {
    const TREE: &str = "btree-native";
    const ENTRIES: u64 = 5;
    /// The lines of the log and of the number of entries, which the paper does not count.
    const OTHERS: f64 = 2.0;
    let lines = inner_shift::in_leaf(TREE, ENTRIES)?;
    let note = format!("{lines:.2} lines an insert of {TREE}, without {OTHERS} of log and number");
    Ok((Some(lines - OTHERS), note))
}

pub(in crate::papers) fn inner_flush(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    let mut counts = Vec::new();
    for (case, name) in SHIFTING {
        bench.say(&format!("{name}: inner nodes"));
        counts.push((case, name, inner_shift::shifts(name)?));
    }
    let measurements = measure_each(claim, |number| {
        let of_case = counts.iter().find(|(case, ..)| *case == number.case);
        let Some((_, name, found)) = of_case else { return (None, String::new()) };
        let note = format!(
            "inner nodes of {name}: with {:.1} entries in 16 lines, an insert in the middle flushes {:.2} lines, \
             one at the end 1",
            found.entries, found.middle_lines
        );
        (Some(found.middle_lines), note)
    });
    let bars = comparison_chart(claim, &measurements, "lines flushed in the inner node", None);
    Ok(ClaimResult { measurements, blocks: vec![bars], source: counted(claim) })
}
