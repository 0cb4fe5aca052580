//! Refused allocations: a right index passes, wrong ones are caught.

use crate::toy::{self, Toy};
use bristlecone_crash::{Campaign, Outcome, OutcomeCounts, Request, Subject, run};

fn request(filter: &str) -> Request {
    Request { filter: filter.into(), ..Request::new(Campaign::AllocFaults) }
}

/// Returns the outcomes of a toy.
fn refuse<const DEFECT: u8>(filter: &str) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let toy = [Subject::of::<Toy<DEFECT>>()];
    run(&toy, &request(filter), &mut |outcome| outcomes.push(outcome.clone()));
    outcomes
}

#[test]
fn every_design_passes_every_refusal() {
    let (mut refused, mut full, mut scenarios, mut wrong) = (0, 0, 0, Vec::new());
    run(&Subject::named(&[]).unwrap(), &request(""), &mut |outcome| {
        let (subject, scenario) = (&outcome.subject, &outcome.scenario);
        wrong.extend(outcome.violations.iter().map(|v| format!("{subject} {scenario}: {v}")));
        let OutcomeCounts::AllocFaults(counts) = &outcome.counts else { panic!("{outcome:?}") };
        refused += counts.refused;
        full += counts.full;
        scenarios += 1;
    });
    assert!(wrong.is_empty(), "{} are wrong: {}", wrong.len(), wrong.concat());
    eprintln!("{scenarios} scenarios, {refused} runs with a refusal, {full} full");
    assert!(scenarios > 100 && refused > 500 && full > 300, "{scenarios} {refused} {full}");
}

/// Returns the only violation of a toy in a scenario.
#[track_caller]
fn caught<const DEFECT: u8>(scenario: &str) -> String {
    let outcomes = refuse::<DEFECT>(scenario);
    let outcome = outcomes.iter().find(|outcome| outcome.scenario == scenario).unwrap();
    assert_eq!(outcome.violations.len(), 1, "{outcome:#?}");
    outcome.violations[0].to_string()
}

#[test]
fn an_operation_that_keeps_what_it_could_not_use() {
    let violation = caught::<{ toy::HOARD }>("text/insert-middle");
    assert!(violation.contains("what is allocated is not what is reachable"), "{violation}");
    assert!(violation.contains("reservation 1 is refused"), "{violation}");
}

#[test]
fn an_operation_that_changes_something_although_there_is_no_room() {
    let violation = caught::<{ toy::RASH }>("text/upsert-present");
    assert!(violation.contains("there are other pairs"), "{violation}");
}

#[test]
fn a_remove_that_needs_room() {
    // The toy stores a separator for the key that it removes, so even the right one fails here.
    let violation = caught::<{ toy::NONE }>("text/remove-middle");
    assert!(violation.contains("an operation that needs no room finds none"), "{violation}");
}
