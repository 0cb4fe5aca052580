//! Space faults: every reservation of every scenario, refused in turn.

use crate::frail::Refusal;
use crate::guard::guarded;
use crate::jobs::{Job, Work, jobs, jobs_of, work};
use crate::report::Violation;
use crate::run::Request;
use crate::scenario::Finding;
use bristlecone_trees::Design;
use bristlecone_trees::names::UnknownDesign;

/// What came of refusing every reservation of a scenario.
#[derive(Clone, Debug)]
pub struct Hunger {
    /// The design.
    pub design: String,
    /// The scenario.
    pub scenario: String,
    /// Runs in which something was refused: each reservation once alone, once with all after it.
    pub refused: u64,
    /// Runs in which an operation said that the pool is full. In the others it did without.
    pub full: u64,
    /// What was wrong; the scenario ends at the first.
    pub violations: Vec<Violation>,
}

/// A count of refusals, and the one that is being tried.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Starved {
    pub(crate) refused: u64,
    pub(crate) full: u64,
    pub(crate) refusal: Option<Refusal>,
}

/// Refuses every reservation of every scenario that `request` asks for.
///
/// # Errors
/// A design that is asked for does not exist.
pub fn run_space(
    request: &Request,
    on_hunger: &mut dyn FnMut(&Hunger),
) -> Result<(), UnknownDesign> {
    work(request, jobs(request)?, &Job::starve, on_hunger);
    Ok(())
}

/// Refuses every reservation of every scenario of a design that is not in the registry.
pub fn run_space_of<D: Design>(request: &Request, on_hunger: &mut dyn FnMut(&Hunger)) {
    work(request, jobs_of::<D>(request), &Job::starve, on_hunger);
}

impl Job {
    fn starve(&self, _: &Request) -> Vec<Hunger> {
        let Work::One(scenario) = &self.work else { return Vec::new() };
        let mut starved = Starved::default();
        let outcome = guarded(|| scenario.starve(&mut starved));
        let violations: Vec<_> =
            outcome.err().map(|f| violation(f, &starved)).into_iter().collect();
        if starved.refused == 0 && violations.is_empty() {
            return Vec::new();
        }
        let Starved { refused, full, .. } = starved;
        let (design, scenario) = (self.design.clone(), scenario.name().to_string());
        vec![Hunger { design, scenario, refused, full, violations }]
    }
}

fn violation(finding: Finding, starved: &Starved) -> Violation {
    let Finding { what, expected, found } = finding;
    let trace = match starved.refusal {
        Some(Refusal::Once(number)) => format!("  reservation {number} is refused\n"),
        Some(Refusal::From(number)) => {
            format!("  reservation {number} and all after it are refused\n")
        }
        None => String::new(),
    };
    Violation { what, expected, found, trace, rank: (0, 0) }
}
