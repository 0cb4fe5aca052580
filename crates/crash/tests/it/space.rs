//! Refused reservations: a right index stands them, wrong ones are caught.

use crate::toy::{self, Toy};
use bristlecone_crash::{Hunger, Request, run_space, run_space_of};

fn request(filter: &str) -> Request {
    Request { filter: filter.into(), ..Request::default() }
}

/// What comes of a toy.
fn starve<const DEFECT: u8>(filter: &str) -> Vec<Hunger> {
    let mut hungers = Vec::new();
    run_space_of::<Toy<DEFECT>>(&request(filter), &mut |hunger| hungers.push(hunger.clone()));
    hungers
}

#[test]
fn every_design_stands_every_refusal() {
    let (mut refused, mut full, mut scenarios, mut wrong) = (0, 0, 0, Vec::new());
    run_space(&request(""), &mut |hunger| {
        let (design, scenario) = (&hunger.design, &hunger.scenario);
        wrong.extend(hunger.violations.iter().map(|v| format!("{design} {scenario}: {v}")));
        refused += hunger.refused;
        full += hunger.full;
        scenarios += 1;
    })
    .unwrap();
    assert!(wrong.is_empty(), "{} are wrong: {}", wrong.len(), wrong.concat());
    eprintln!("{scenarios} scenarios, {refused} runs with a refusal, {full} full");
    assert!(scenarios > 100 && refused > 500 && full > 300, "{scenarios} {refused} {full}");
}

/// The one thing that is wrong with a toy in a scenario.
#[track_caller]
fn caught<const DEFECT: u8>(scenario: &str) -> String {
    let hungers = starve::<DEFECT>(scenario);
    let hunger = hungers.iter().find(|hunger| hunger.scenario == scenario).unwrap();
    assert_eq!(hunger.violations.len(), 1, "{hunger:#?}");
    hunger.violations[0].to_string()
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
    // The toy plants the key of what it removes, so even the right one is wrong here.
    let violation = caught::<{ toy::NONE }>("text/remove-middle");
    assert!(violation.contains("an operation that needs no room finds none"), "{violation}");
}
