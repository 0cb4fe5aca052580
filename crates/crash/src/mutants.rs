//! Mutants: every ordering step of every scenario, left out in turn.
//!
//! A mutant that survives is a step that the scenario does not need. Either another scenario needs
//! it, or nothing does, and it costs time for nothing.

use crate::explore::{Limits, explore};
use crate::jobs::{Job, jobs, jobs_of, record, work};
use crate::report::Violation;
use crate::run::Request;
use crate::tape::Sabotage;
use bristlecone_trees::Design;
use bristlecone_trees::registry::UnknownDesign;

/// A scenario with one ordering step left out.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The design.
    pub design: String,
    /// The scenario.
    pub scenario: String,
    /// What was left out.
    pub sabotage: Sabotage,
    /// What gave it away; nothing if it survives.
    pub killed: Option<Violation>,
}

/// Tries every mutant of what `request` asks for, in the first mode of each design.
///
/// # Errors
/// A design that is asked for does not exist.
pub fn run_mutants(
    request: &Request,
    on_mutant: &mut dyn FnMut(&Mutant),
) -> Result<(), UnknownDesign> {
    work(request, jobs(request)?, &Job::mutate, on_mutant);
    Ok(())
}

/// Tries every mutant of a design that is not in the registry.
pub fn run_mutants_of<D: Design>(request: &Request, on_mutant: &mut dyn FnMut(&Mutant)) {
    work(request, jobs_of::<D>(request), &Job::mutate, on_mutant);
}

impl Job {
    /// Tries every mutant of the scenario. One that fails without any mutation has none.
    fn mutate(&self, request: &Request) -> Vec<Mutant> {
        let Ok(scenario) = &self.scenario else { return Vec::new() };
        let scenario = &**scenario;
        let Ok((_, sites)) = record(scenario, None) else { return Vec::new() };
        let mutant = |sabotage| {
            let (tape, _) = record(scenario, Some(sabotage)).ok()?;
            let limits = Limits { violating: 1, ..Limits::new(request.budget, 1) };
            let explored = explore(scenario, &tape, self.modes[0], limits);
            let killed = explored.first_violation().cloned();
            let (design, scenario) = (self.design.clone(), scenario.name().to_string());
            Some(Mutant { design, scenario, sabotage, killed })
        };
        sites.sabotages().filter_map(mutant).collect()
    }
}
