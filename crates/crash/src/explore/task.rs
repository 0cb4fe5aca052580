//! The tasks of a crash campaign: one scenario, or a family of scenarios with one outcome.

use super::record::record;
use super::{Exploration, explore};
use crate::config::{Limits, PersistenceModel};
use crate::outcome::{CrashCounts, Outcome, OutcomeCounts, Violation};
use crate::scenario::{FamilyStep, Scenario, ScenarioFamily};
use crate::task::{Task, TaskId};
use crate::trace::Trace;
use crate::trace::mutation::{Mutation, MutationSites};
use std::sync::Arc;

/// A scenario in one persistence model.
pub(crate) struct CrashTask {
    pub(crate) id: TaskId,
    pub(crate) scenario: Arc<dyn Scenario>,
    pub(crate) mode: PersistenceModel,
    /// Set if the order of stores to one line is part of the design.
    pub(crate) relies_on_line_order: bool,
}

/// A family of scenarios in one persistence model.
pub(crate) struct FamilyTask {
    pub(crate) id: TaskId,
    pub(crate) family: Arc<dyn ScenarioFamily>,
    pub(crate) mode: PersistenceModel,
}

/// Returns the counts of a scenario that fails before any crash.
pub(crate) fn no_crashes(mode: PersistenceModel) -> OutcomeCounts {
    let (depth, images, recoveries, sites) = (1, 0, 0, MutationSites::default());
    OutcomeCounts::Crashes(CrashCounts { mode, depth, images, recoveries, sites })
}

fn outcome(
    id: &TaskId,
    (mode, depth): (PersistenceModel, u32),
    explored: Exploration,
    sites: MutationSites,
) -> Outcome {
    let Exploration { images, recoveries, incomplete, violations, .. } = explored;
    let counts = OutcomeCounts::Crashes(CrashCounts { mode, depth, images, recoveries, sites });
    Outcome { violations, incomplete, ..id.outcome(counts) }
}

fn failure(violation: Violation) -> Exploration {
    let violations = vec![violation];
    Exploration { violations, ..Exploration::default() }
}

impl Task for CrashTask {
    fn id(&self) -> &TaskId {
        &self.id
    }

    /// Explores the scenario. Returns an outcome for each depth of crashes.
    fn run(&self, limits: &Limits, mutation: Option<Mutation>) -> Vec<Outcome> {
        let (trace, sites) = match record(&*self.scenario, mutation) {
            Ok(recorded) => recorded,
            Err(violation) => {
                let (mode, failed) = ((self.mode, 1), failure(violation));
                return vec![outcome(&self.id, mode, failed, MutationSites::default())];
            }
        };
        let mut explored = self.explore(&trace, *limits, mutation);
        let mut nested = explored.nested.take();
        let mut outcomes = vec![outcome(&self.id, (self.mode, 1), explored, sites)];
        for depth in 2_u32.. {
            let Some(mut explored) = nested.filter(|nested| nested.recoveries > 0) else { break };
            nested = explored.nested.take();
            let TaskId { subject, scenario } = &self.id;
            let name = format!("{scenario}{}", "+recovery".repeat(depth as usize - 1));
            let (id, sites) = (TaskId::new(subject, name), MutationSites::default());
            outcomes.push(outcome(&id, (self.mode, depth), *explored, sites));
        }
        outcomes
    }

    fn mutations(&self, limits: &Limits) -> Vec<(Mutation, u32)> {
        let Ok((trace, _)) = record(&*self.scenario, None) else { return Vec::new() };
        let explored = self.explore(&trace, *limits, None);
        if explored.first_violation().is_some() {
            return Vec::new();
        }
        let of_recovery = explored.nested.map_or(Vec::new(), |nested| nested.mutations);
        let of_operations = trace.mutations(self.relies_on_line_order);
        let is_new = |mutation: &&Mutation| !of_operations.contains(mutation);
        let others = of_recovery.iter().filter(is_new).map(|&mutation| (mutation, 2));
        let depth = |mutation| if of_recovery.contains(mutation) { 2 } else { 1 };
        let first = of_operations.iter().map(|mutation| (*mutation, depth(mutation)));
        first.chain(others).collect()
    }
}

impl CrashTask {
    fn explore(&self, trace: &Trace, limits: Limits, mutation: Option<Mutation>) -> Exploration {
        explore(&*self.scenario, trace, self.mode, limits, mutation)
    }
}

impl Task for FamilyTask {
    fn id(&self) -> &TaskId {
        &self.id
    }

    /// Explores the scenarios of the family as one outcome. Of several violating scenarios the
    /// outcome shows the last, which is the shortest.
    fn run(&self, limits: &Limits, mutation: Option<Mutation>) -> Vec<Outcome> {
        let mut total = Exploration::default();
        self.family.each(&mut |scenario| {
            let mut leads_on = true;
            let mut explored = match record(scenario, mutation) {
                Ok((trace, _)) if !trace.has_stored() => return FamilyStep::Idle,
                Ok((trace, _)) => {
                    leads_on = trace.has_changed();
                    let images = match limits.images {
                        u128::MAX => u128::MAX,
                        images => images.saturating_sub(total.covered),
                    };
                    let limits = Limits { images, depth: 1, ..*limits };
                    explore(scenario, &trace, self.mode, limits, mutation)
                }
                Err(violation) => failure(violation),
            };
            for violation in &mut explored.violations {
                violation.trace = format!("  {}\n{}", scenario.name(), violation.trace);
            }
            let is_right = explored.violations.is_empty();
            if !is_right {
                total.violations.clear();
            }
            total.add(explored);
            match (is_right, leads_on) {
                (false, _) => FamilyStep::Wrong,
                (true, false) => FamilyStep::Idle,
                (true, true) => FamilyStep::Right,
            }
        });
        vec![outcome(&self.id, (self.mode, 1), total, MutationSites::default())]
    }
}
