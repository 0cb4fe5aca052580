//! Allocation-failure injection: every allocation of a scenario, refused in turn.

use super::{AllocFaultRun, Scenario};
use crate::config::Limits;
use crate::guard::guarded;
use crate::medium::fault::Refusal;
use crate::outcome::{AllocFaultCounts, Outcome, OutcomeCounts};
use crate::task::{Task, TaskId};
use crate::trace::mutation::Mutation;
use std::sync::Arc;

/// A scenario whose allocations are refused.
pub(crate) struct AllocFaultTask {
    pub(crate) id: TaskId,
    pub(crate) scenario: Arc<dyn Scenario>,
}

impl Task for AllocFaultTask {
    fn id(&self) -> &TaskId {
        &self.id
    }

    /// Refuses each allocation. Returns no outcome for a scenario that allocates nothing. Of the
    /// mutations it runs an injected defect alone.
    fn run(&self, _limits: &Limits, mutation: Option<Mutation>) -> Vec<Outcome> {
        let defect = mutation.and_then(Mutation::defect);
        let mut progress = AllocFaultRun { defect, ..AllocFaultRun::default() };
        let failed = guarded(|| self.scenario.refuse_allocations(&mut progress)).err();
        let AllocFaultRun { refused, full, refusal, .. } = progress;
        if refused == 0 && failed.is_none() {
            return Vec::new();
        }
        let violation = failed.map(|finding| finding.with_trace(trace_of(refusal), (0, 0)));
        let counts = OutcomeCounts::AllocFaults(AllocFaultCounts { refused, full });
        let violations = violation.into_iter().collect();
        vec![Outcome { violations, ..self.id.outcome(counts) }]
    }
}

fn trace_of(refusal: Option<Refusal>) -> String {
    match refusal {
        Some(Refusal::Once(number)) => format!("  reservation {number} is refused\n"),
        Some(Refusal::From(number)) => {
            format!("  reservation {number} and all after it are refused\n")
        }
        None => String::new(),
    }
}
