//! WO-tree: which tree is faster, and how that changes with the latency of writes.

use super::{DESIGNS, KEYS, LEAST_DELAY_NS, inserts, on_keys};
use crate::claims::Claim;
use crate::papers::finding::{
    ClaimResult, Measured, comparison_chart, index_of, measure_each, timed, timing_note,
};
use crate::papers::lead::at_latencies;
use crate::workbench::{Work, Workbench};
use bristlecone_lab::Result;
use bristlecone_lab::workload::Workload;

/// Compares inserts at the ends of Fig. 10(b).
pub(in crate::papers) fn latency(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    const DELAYS_NS: [u64; 2] = [600, LEAST_DELAY_NS];
    let work = inserts(bench);
    let [slow, fast] = at_latencies(bench, &DESIGNS, &work, DELAYS_NS)?;
    let measurements = measure_each(claim, |number| {
        let Some(at) = index_of(&DESIGNS, &number.baseline) else { return Measured::default() };
        let is_lead = number.case.starts_with("time at");
        if is_lead { slow.lead(at) } else { slow.growth(&fast, at) }
    });
    let bars = comparison_chart(claim, &measurements, "factor", Some(1.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: timed(claim) })
}

/// Compares searches of the system of the claim, `fast-fair`, with those of other trees.
pub(in crate::papers) fn search_order(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    let work = on_keys(bench, Workload::Get);
    let speeds = bench.speeds(&DESIGNS, &work)?;
    let measurements = measure_each(claim, |number| {
        let found = index_of(&DESIGNS, &claim.system).zip(index_of(&DESIGNS, &number.baseline));
        let Some((own, base)) = found.map(|(own, base)| (&speeds[own], &speeds[base])) else {
            return Measured::default();
        };
        Measured::timed(base.over(own), timing_note(own, base, &work), &[own, base])
    });
    let bars = comparison_chart(claim, &measurements, "search time, as a factor", Some(1.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: timed(claim) })
}

/// Compares the opening of a tree with that of a tree with a tenth of its keys.
pub(in crate::papers) fn recovery(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    // Ten times the scale at the most, as an open of fewer keys takes less than a millisecond.
    let most = 10 * bench.scaled(KEYS);
    let works = [most, most / 10].map(|keys| Work::new(Workload::ReopenCrash, keys, 1));
    let runs: Vec<_> = works.iter().map(|work| (DESIGNS[0], work)).collect();
    let speeds = bench.speeds_of(&runs)?;
    let (many, few) = (&speeds[0], &speeds[1]);
    let measurements = measure_each(claim, |_| {
        let note = format!(
            "{:.2} ms for {} keys, {:.2} ms for {}",
            many.ns() * 1e-6,
            works[0].records,
            few.ns() * 1e-6,
            works[1].records
        );
        Measured::timed(few.over(many), note, &[many, few])
    });
    Ok(ClaimResult { measurements, blocks: Vec::new(), source: timed(claim) })
}
