//! Tests of the explorer on indexes whose defects are known.

mod alloc_faults;
mod catalogue;
mod chain;
mod exact;
mod hardware_trace;
mod injected;
mod media_faults;
mod nested;
mod page;
mod threads;
mod toy;

use bristlecone_crash::{Campaign, CrashOptions, Modes, Outcome, Request, Subject, Summary, run};
use toy::Toy;

/// Explores the scenarios of a toy whose names contain `filter`.
fn explore<const DEFECT: u8>(filter: &str, modes: Modes) -> (Summary, Vec<Outcome>) {
    // The toy's log has no room for long sequences.
    let options = CrashOptions { random: 0, ..CrashOptions::default() };
    let request =
        Request { filter: filter.into(), modes, ..Request::new(Campaign::Crashes(options)) };
    let mut outcomes = Vec::new();
    let toy = [Subject::of::<Toy<DEFECT>>()];
    let summary = run(&toy, &request, &mut |outcome| outcomes.push(outcome.clone()));
    (summary, outcomes)
}
