//! wB+-Trees, Fig. 14: keys of 20 B, behind pointers.

use super::{BITMAP_LEAF, DESIGNS, FILLS, least, persistent, works};
use crate::claims::Claim;
use crate::interval::Interval;
use crate::papers::finding::{
    ClaimResult, Measured, comparison_chart, measure_each, timed, timing_note,
};
use crate::speed::Speed;
use crate::workbench::{Work, Workbench};
use bristlecone_lab::Result;
use bristlecone_lab::workload::Keys;

/// Returns runs of inserts, deletes and lookups as [`works`], with keys of 20 B.
fn of_strings(bench: &Workbench<'_>) -> [Work; 3] {
    works(bench, FILLS[0]).map(|work| Work { keys: Keys::User, ..work })
}

/// Times inserts of all persistent trees, with keys of 20 B.
pub(super) fn inserts(bench: &mut Workbench<'_>) -> Result<(Work, Vec<Speed>)> {
    let [work, ..] = of_strings(bench);
    let speeds = bench.speeds(&persistent(), &work)?;
    Ok((work, speeds))
}

pub(in crate::papers) fn strings(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let all = persistent();
    let works = of_strings(bench);
    let (insert, inserted) = inserts(bench)?;
    let (at, lead) = least(&inserted);
    let note =
        format!("against {}: {}", all[at].0, timing_note(&inserted[0], &inserted[at], &insert));
    let insert = Measured::timed(lead, note, &[&inserted[0], &inserted[at]]);
    let leaf = bitmap_leaf(bench, &works)?;
    let search = search(bench, &works[2])?;
    let measurements = measure_each(claim, |number| match number.baseline.as_str() {
        "" => search.clone(),
        name if name == DESIGNS[0] => leaf.clone(),
        _ => insert.clone(),
    });
    let bars = comparison_chart(claim, &measurements, "factor", Some(1.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: timed(claim) })
}

/// Compares the times of the trees with slots and with a bitmap alone: the least factor of inserts,
/// deletes and lookups.
fn bitmap_leaf(bench: &mut Workbench<'_>, works: &[Work]) -> Result<Measured> {
    let mut factors: Vec<(Interval, Measured)> = Vec::new();
    for work in works {
        let speeds = bench.speeds(&[(DESIGNS[0], None), (BITMAP_LEAF, None)], work)?;
        let (own, other) = (&speeds[0], &speeds[1]);
        let (name, note) = (work.workload.name(), timing_note(other, own, work));
        let factor = own.over(other);
        factors.push((factor, Measured::timed(factor, format!("{name}: {note}"), &[own, other])));
    }
    let least = factors.into_iter().min_by(|a, b| a.0.value.total_cmp(&b.0.value));
    Ok(least.map_or_else(Measured::default, |(_, least)| least))
}

/// Compares the times of lookups with keys of 20 B and of 8 B.
fn search(bench: &mut Workbench<'_>, strings: &Work) -> Result<Measured> {
    let [_, _, work] = works(bench, FILLS[0]);
    let own = (DESIGNS[0], None);
    let speeds = bench.speeds_of(&[(own, strings), (own, &work)])?;
    let (strings, numbers) = (&speeds[0], &speeds[1]);
    let note = timing_note(strings, numbers, &work);
    Ok(Measured::timed(numbers.over(strings), note, &[strings, numbers]))
}
