//! The schedules of a campaign.

use crate::config::RECOVERIES_MAX;
use crate::trace::mutation::Mutation;

/// The default number of schedules of each scenario.
const DEFAULT_SCHEDULES: u64 = 400;
/// The default seed of the first schedule.
const SEED: u64 = 0xB215;

/// The schedules to explore.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleOptions {
    /// The number of threads under test; 0 for 2, 3 and 4.
    pub threads: usize,
    /// The number of random schedules of each scenario.
    pub schedules: u64,
    /// The seed of the first schedule; each later one has the next seed.
    pub seed: u64,
    /// Set to explore the crashes of each schedule, and not only the results that threads get.
    pub crashes: bool,
    /// The number of recoveries of a scenario in one persistence model, after which a sample of its
    /// crashes is tried, each with one recovery, and the outcome is incomplete.
    pub recoveries: u64,
    /// A mutation of the code under test, for instance an injected defect.
    pub mutation: Option<Mutation>,
}

impl Default for ScheduleOptions {
    fn default() -> Self {
        let (schedules, recoveries) = (DEFAULT_SCHEDULES, RECOVERIES_MAX);
        Self { threads: 0, schedules, seed: SEED, crashes: true, recoveries, mutation: None }
    }
}
