//! The explorer, tried on indexes whose defects are known.

mod catalogue;
mod exact;
mod seeded;
mod toy;

use bristlecone_crash::{Modes, Outcome, Request, Summary, run_design};
use toy::Toy;

/// Explores the scenarios of a toy whose names contain `filter`.
fn explore<const DEFECT: u8>(filter: &str, modes: Modes) -> (Summary, Vec<Outcome>) {
    let request = Request { filter: filter.into(), modes, ..Request::default() };
    let mut outcomes = Vec::new();
    let summary =
        run_design::<Toy<DEFECT>>(&request, &mut |outcome| outcomes.push(outcome.clone()));
    (summary, outcomes)
}
