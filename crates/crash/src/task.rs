//! A task: one scenario of one subject, explored in one way by one thread.

use crate::config::Limits;
use crate::outcome::{Finding, Outcome, OutcomeCounts};
use crate::trace::mutation::Mutation;

/// The name of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskId {
    /// The name of the subject.
    pub(crate) subject: String,
    /// The name of the scenario, unique among those of the subject.
    pub(crate) scenario: String,
}

impl TaskId {
    pub(crate) fn new(subject: impl Into<String>, scenario: impl Into<String>) -> Self {
        Self { subject: subject.into(), scenario: scenario.into() }
    }

    /// Returns an outcome of this task without violations.
    pub(crate) fn outcome(&self, counts: OutcomeCounts) -> Outcome {
        let Self { subject, scenario } = self.clone();
        Outcome { subject, scenario, violations: Vec::new(), incomplete: false, counts }
    }
}

/// Work of a campaign that one thread does by itself.
pub(crate) trait Task: Send + Sync {
    fn id(&self) -> &TaskId;

    /// Returns `true` if a campaign that is restricted to scenarios with `filter` in their name
    /// runs this task.
    fn matches(&self, filter: &str) -> bool {
        self.id().scenario.contains(filter)
    }

    /// Explores the scenario, with `mutation` in the code under test. The outcomes are the same
    /// each time.
    fn run(&self, limits: &Limits, mutation: Option<Mutation>) -> Vec<Outcome>;

    /// Returns the mutations of the ordering steps that the scenario executes, each with the depth
    /// of the crashes that can detect it. Empty if the scenario fails without any mutation.
    fn mutations(&self, _limits: &Limits) -> Vec<(Mutation, u32)> {
        Vec::new()
    }
}

/// A subject that failed before its scenarios were known.
pub(crate) struct FailedTask {
    pub(crate) id: TaskId,
    pub(crate) finding: Finding,
    pub(crate) counts: OutcomeCounts,
}

impl Task for FailedTask {
    fn id(&self) -> &TaskId {
        &self.id
    }

    fn matches(&self, _filter: &str) -> bool {
        true
    }

    /// Reports the failure, which no mutation caused.
    fn run(&self, _limits: &Limits, mutation: Option<Mutation>) -> Vec<Outcome> {
        if mutation.is_some() {
            return Vec::new();
        }
        let violations = vec![self.finding.clone().without_crash()];
        vec![Outcome { violations, ..self.id.outcome(self.counts.clone()) }]
    }
}
