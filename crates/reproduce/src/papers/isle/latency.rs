//! Isle-Tree, Fig. 8(c): inserts by the latency that is added to each flushed line.

use super::{DESIGNS, inserts};
use crate::claims::Claim;
use crate::papers::finding::{
    ClaimResult, Measured, comparison_chart, index_of, measure_each, timed, timing_note,
};
use crate::papers::lead::at_latencies;
use crate::workbench::{Named, Workbench};
use bristlecone_lab::Result;
use bristlecone_report::figure::{Axis, Curve, Lines, Point, Scale, Stroke};

pub(in crate::papers) fn latency_gap(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    const PAIR: [Named<'static>; 2] = [("isle-tree", None), ("fast-fair", None)];
    const DELAYS_NS: [u64; 4] = [0, 200, 400, 600];
    let mut ratios = Vec::new();
    for delay_ns in DELAYS_NS {
        let work = inserts(bench).with_flush_delay(delay_ns);
        let speeds = bench.speeds(&PAIR, &work)?;
        let (own, base) = (&speeds[0], &speeds[1]);
        let (ratio, note) = (own.over(base), timing_note(base, own, &work));
        ratios.push((delay_ns, ratio.value, Measured::timed(ratio, note, &[own, base])));
    }
    let measurements = measure_each(claim, |number| {
        let found = ratios.iter().find(|(delay, ..)| number.case == format!("{delay} ns"));
        found.map_or(Measured::default(), |(.., measured)| measured.clone())
    });
    let points = |ratio: &dyn Fn(usize) -> Option<f64>| {
        let point = |(at, &delay): (usize, &u64)| Point { x: delay as f64, y: ratio(at) };
        DELAYS_NS.iter().enumerate().map(point).collect()
    };
    let published = |at: usize| {
        let case = format!("{} ns", DELAYS_NS[at]);
        claim.numbers.iter().find(|number| number.case == case).map(|number| number.paper)
    };
    let chart = Lines {
        title: "Insert time of fast-fair over that of isle-tree, by flush latency".into(),
        description: "Solid: measured here; dotted: the paper.".into(),
        x: Axis { label: "nanoseconds added to each flushed line".into(), scale: Scale::Linear },
        y: Axis { label: "ratio of times".into(), scale: Scale::Linear },
        curves: vec![
            Curve {
                name: "measured here".into(),
                stroke: Stroke::Measured,
                points: points(&|at| Some(ratios[at].1)),
            },
            Curve { name: "the paper".into(), stroke: Stroke::Paper, points: points(&published) },
        ],
        baseline: None,
    };
    Ok(ClaimResult { measurements, blocks: vec![chart.into()], source: timed(claim) })
}

pub(in crate::papers) fn latency_others(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    const DELAYS_NS: [u64; 2] = [600, 0];
    let work = inserts(bench);
    let [slow, fast] = at_latencies(bench, &DESIGNS, &work, DELAYS_NS)?;
    let measurements = measure_each(claim, |number| {
        let at = index_of(&DESIGNS, &number.baseline);
        at.map_or(Measured::default(), |at| slow.growth(&fast, at))
    });
    let bars = comparison_chart(claim, &measurements, "growth of the lead", Some(1.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: timed(claim) })
}
