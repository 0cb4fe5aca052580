//! The pre-failure execution of a scenario, recorded.

use crate::config::RESERVE_BYTES;
use crate::explore::trace_text::failure_text;
use crate::guard::{UnderConditions, guarded};
use crate::medium::recorder::Recorder;
use crate::outcome::{Finding, Violation};
use crate::scenario::Scenario;
use crate::trace::Trace;
use crate::trace::mutation::{Mutation, MutationSites};

/// Runs `scenario` once without a crash. Returns its trace, and the number of its ordering steps;
/// or the violation, with the trace of the last operation under test that began.
pub(crate) fn record(
    scenario: &dyn Scenario,
    mutation: Option<Mutation>,
) -> Result<(Trace, MutationSites), Violation> {
    let _conditions = UnderConditions::new(scenario.conditions());
    let recorder = Recorder::new(scenario.bytes(), RESERVE_BYTES, mutation);
    if let Err(finding) = guarded(|| scenario.record(&recorder)) {
        let trace = recorder.finish().map(|(trace, _)| trace).unwrap_or_default();
        let text = failure_text(&trace, &|number| scenario.operation(number));
        return Err(finding.with_trace(text, (0, 0)));
    }
    recorder.finish().map_err(|bypassed| {
        let what = "a store went around the medium";
        let found = format!("the word at {:#x} differs", bypassed.at);
        Finding::new(what, "every store recorded", found).without_crash()
    })
}
