//! The sums over the executions of one scenario.

use super::crashes::Crashes;
use crate::config::VIOLATIONS_SHOWN;
use crate::outcome::{Finding, Violation};

/// The results of the executions of one scenario.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(super) schedules: u64,
    pub(super) violating: u64,
    pub(super) incomplete: bool,
    /// Set once an execution had no end: each further one may take as long.
    pub(super) hangs: bool,
    pub(super) images: u128,
    pub(super) recoveries: u64,
    pub(super) violations: Vec<Violation>,
}

impl Tally {
    /// Keeps a violation if it is the first of its kind, or simpler than the one that is kept.
    pub(super) fn add(&mut self, finding: Finding, trace: String, rank: (u32, u32)) {
        self.violating += 1;
        let violation = finding.with_trace(trace, rank);
        let known = self.violations.iter().position(|known| known.what == violation.what);
        match known {
            Some(known) if rank < self.violations[known].rank => {
                self.violations[known] = violation;
            }
            None if self.violations.len() < VIOLATIONS_SHOWN => self.violations.push(violation),
            _ => {}
        }
    }

    /// Returns this tally with the counts of `crashes`.
    pub(super) fn with(&self, crashes: &Crashes) -> Self {
        let mut tally = self.clone();
        tally.incomplete |= crashes.incomplete;
        (tally.images, tally.recoveries) = (crashes.images, crashes.recoveries);
        tally
    }
}
