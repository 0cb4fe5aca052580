//! The explorer, tried on indexes whose defects are known.

mod catalogue;
mod chain;
mod exact;
mod media;
mod nested;
mod page;
mod seeded;
mod space;
mod threads;
mod toy;
mod witness;

use bristlecone_crash::{Modes, Outcome, Request, Summary, run_design};
use toy::Toy;

/// Explores the scenarios of a toy whose names contain `filter`.
fn explore<const DEFECT: u8>(filter: &str, modes: Modes) -> (Summary, Vec<Outcome>) {
    // The toy's log has no room for long sequences.
    let request = Request { filter: filter.into(), modes, random: 0, ..Request::default() };
    let mut outcomes = Vec::new();
    let summary =
        run_design::<Toy<DEFECT>>(&request, &mut |outcome| outcomes.push(outcome.clone()));
    (summary, outcomes)
}
