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
