//! The pre-failure execution of a scenario, recorded.

use crate::config::RESERVE_BYTES;
use crate::guard::{UnderConditions, guarded};
use crate::medium::recorder::Recorder;
use crate::outcome::Finding;
use crate::scenario::Scenario;
use crate::trace::Trace;
use crate::trace::mutation::{Mutation, MutationSites};

/// Runs `scenario` once without a crash. Returns its trace, and the number of its ordering steps.
pub(crate) fn record(
    scenario: &dyn Scenario,
    mutation: Option<Mutation>,
) -> Result<(Trace, MutationSites), Finding> {
    let _conditions = UnderConditions::new(scenario.conditions());
    let recorder = Recorder::new(scenario.bytes(), RESERVE_BYTES, mutation);
    guarded(|| scenario.record(&recorder))?;
    recorder.finish().map_err(|bypassed| {
        let what = "a store went around the medium";
        let found = format!("the word at {:#x} differs", bypassed.at);
        Finding::new(what, "every store recorded", found)
    })
}
