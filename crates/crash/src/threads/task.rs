//! The tasks of a schedule campaign: one scenario with a number of threads.

use super::options::ScheduleOptions;
use super::scenario::ThreadScenario;
use super::tally::Tally;
use crate::config::{Limits, PersistenceModel};
use crate::medium::turns;
use crate::outcome::{Outcome, OutcomeCounts, ScheduleCounts};
use crate::task::{Task, TaskId};
use crate::trace::mutation::Mutation;
use bristlecone_trees::Key;

/// A scenario of several threads, in every persistence model that applies.
pub(crate) struct ScheduleTask<K: Key> {
    pub(crate) id: TaskId,
    pub(crate) scenario: ThreadScenario<K>,
    /// The seed of the first random schedule.
    pub(crate) seed: u64,
    /// The persistence models in which crashes are explored; none to judge results alone.
    pub(crate) modes: &'static [PersistenceModel],
}

impl<K: Key> ScheduleTask<K> {
    fn outcome(&self, mode: Option<PersistenceModel>, tally: Tally) -> Outcome {
        let Tally { schedules, incomplete, images, recoveries, violations, .. } = tally;
        let (mode, threads) = (mode.unwrap_or(PersistenceModel::Px86), self.scenario.threads.len());
        let counts = ScheduleCounts { mode, threads, schedules, images, recoveries };
        let outcome = self.id.outcome(OutcomeCounts::Schedules(counts));
        Outcome { violations, incomplete, ..outcome }
    }

    fn execute(&self, limits: &Limits, mutation: Option<Mutation>) -> Vec<Outcome> {
        let &Limits { schedules, violating, schedule_recoveries: recoveries, .. } = limits;
        let seed = self.seed;
        let options =
            ScheduleOptions { schedules, seed, recoveries, mutation, ..ScheduleOptions::default() };
        let tallies = self.scenario.run(options, violating, self.modes).into_iter();
        tallies.map(|(mode, tally)| self.outcome(mode, tally)).collect()
    }
}

impl<K: Key> Task for ScheduleTask<K> {
    fn id(&self) -> &TaskId {
        &self.id
    }

    /// Executes the scenario in `limits.schedules` random schedules. Returns an outcome for each
    /// persistence model.
    fn run(&self, limits: &Limits, mutation: Option<Mutation>) -> Vec<Outcome> {
        self.execute(limits, mutation)
    }

    /// Returns the version checks that the threads come by.
    fn mutations(&self, limits: &Limits) -> Vec<(Mutation, u32)> {
        let _ = turns::take_checks();
        self.execute(limits, None);
        turns::take_checks().into_iter().map(|at| (Mutation::NoCheck(at), 1)).collect()
    }
}
