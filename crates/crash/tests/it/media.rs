//! Damaged contents: right indexes stand them, wrong ones are caught.

use crate::toy::{self, Toy};
use bristlecone_crash::{Damages, Harm, STORE, run_media, run_media_of};

/// Of one case in `thin`: the toy's lookups are linear, and its pools are all looked at.
fn damage<const DEFECT: u8>(filter: &str, thin: u64) -> Vec<Harm> {
    let (filter, steps) = (filter.into(), 2_000_000);
    let damages = Damages { filter, garbage: 500, thin, steps, ..Damages::default() };
    let mut harms = Vec::new();
    run_media_of::<Toy<DEFECT>>(&damages, &mut |harm| harms.push(harm.clone()));
    harms
}

#[test]
fn no_damage_makes_a_design_or_the_store_panic_or_hang() {
    let damages = Damages { thin: 101, garbage: 500_000, ..Damages::default() };
    let (mut runs, mut named, mut wrong) = (0, 0, Vec::new());
    run_media(&damages, &mut |harm| {
        let (design, scenario) = (&harm.design, &harm.scenario);
        wrong.extend(harm.violations.iter().map(|v| format!("{design} {scenario}: {v}")));
        assert_eq!(harm.right + harm.named + harm.wrong, harm.cases, "{design} {scenario}");
        // A line as it was earlier has a sum of its own. All else the store's layout can tell, but for a damaged
        // key in 256 that a scan orders; none is among these cases, which are always the same.
        let can_tell = design == STORE && !scenario.contains("stale-lines");
        assert!(!can_tell || harm.wrong == 0, "{scenario}: {:?}", harm.example);
        runs += harm.runs;
        named += harm.named;
    })
    .unwrap();
    assert!(wrong.is_empty(), "{} are wrong: {}", wrong.len(), wrong.concat());
    assert!(runs > 5000 && named > 1000, "{runs} runs, {named} named");
}

#[test]
fn a_panic_on_damage_is_caught() {
    let harms = damage::<{ toy::PANIC }>("u64/killed/bit-flips", 2);
    let violation = &harms[0].violations[0];
    assert_eq!(violation.what, "panic");
    assert!(violation.found.contains("a record is cut off"), "{violation}");
}

#[test]
fn a_run_without_an_end_is_caught() {
    // A count that has become less: the record after the last one counted is there.
    let harms = damage::<{ toy::SPIN }>("u64/killed/bit-flips", 2);
    assert!(harms[0].violations.iter().any(|v| v.what == "it does not end"), "{harms:#?}");
}

#[test]
fn a_wrong_answer_is_counted() {
    // The toy keeps each value twice and no key twice: a flipped bit of a key is served.
    let harms = damage::<{ toy::NONE }>("u64/killed/bit-flips", 31);
    let harm = &harms[0];
    assert!(harm.wrong > 0 && harm.named > 0 && harm.violations.is_empty(), "{harm:#?}");
    assert!(harm.example.as_ref().is_some_and(|text| text.contains("and not")), "{harm:#?}");
}
