//! Campaigns: which faults to inject, and the run of all tasks of some subjects.

pub(crate) mod catalogue;
pub(crate) mod executor;
pub(crate) mod mutants;
pub(crate) mod options;
mod tasks;

use crate::config::{Limits, Modes};
use crate::media_faults::media_fault_tasks;
use crate::media_faults::options::MediaOptions;
use crate::outcome::{Outcome, Summary};
use crate::subject::Subject;
use crate::task::Task;
use crate::threads::options::ScheduleOptions;
use crate::threads::schedule_tasks;
use crate::trace::mutation::Mutation;
use executor::in_order;
use options::CrashOptions;
use std::sync::Arc;
use tasks::{alloc_fault_tasks, crash_tasks};

/// The faults to inject.
#[derive(Clone, Copy, Debug)]
pub enum Campaign {
    /// Every crash of every scenario of one thread.
    Crashes(CrashOptions),
    /// Random schedules of several threads, with every crash.
    Schedules(ScheduleOptions),
    /// Every allocation refused, once alone and once with all after it.
    AllocFaults,
    /// Contents that no correct run wrote.
    MediaFaults(MediaOptions),
}

/// A campaign, and the scenarios to restrict it to.
#[derive(Clone, Debug)]
pub struct Request {
    /// The faults to inject.
    pub campaign: Campaign,
    /// The persistence models in which crashes are explored.
    pub modes: Modes,
    /// A part of the names of the scenarios to explore; empty for all.
    pub filter: String,
    /// The number of threads of the explorer; 0 for as many as the machine runs at once.
    pub workers: usize,
    /// The function that is told how much of the work is done; the default does nothing.
    pub progress: ProgressFn,
    /// The function that [`run`] calls with each outcome that has a violation as soon as it is
    /// there, before its turn comes; `None` for none.
    pub notice: Option<fn(&Outcome)>,
}

/// A function that is called with the number of finished tasks and the number of all tasks of the
/// phase that is running. A campaign has one phase; the search for mutants has several.
#[derive(Clone, Default)]
pub struct ProgressFn(Option<Arc<dyn Fn(u64, u64) + Send + Sync>>);

impl ProgressFn {
    /// Returns a progress function that calls `report`.
    pub fn new(report: impl Fn(u64, u64) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(report)))
    }

    fn report(&self, done: u64, total: u64) {
        if let Some(report) = &self.0 {
            report(done, total);
        }
    }
}

impl core::fmt::Debug for ProgressFn {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("ProgressFn").field(&self.0.is_some()).finish()
    }
}

impl Default for Request {
    fn default() -> Self {
        Self::new(Campaign::Crashes(CrashOptions::default()))
    }
}

impl Request {
    /// Returns a request for all scenarios of `campaign`.
    pub fn new(campaign: Campaign) -> Self {
        let progress = ProgressFn::default();
        let (filter, notice) = (String::new(), None);
        Self { campaign, modes: Modes::Auto, filter, workers: 0, progress, notice }
    }

    /// Returns the options of a crash campaign, or their defaults in another one.
    fn crash_options(&self) -> CrashOptions {
        match self.campaign {
            Campaign::Crashes(options) => options,
            _ => CrashOptions::default(),
        }
    }

    /// Returns the tasks of `subjects` that this request asks for, in the order of their outcomes.
    fn tasks(&self, subjects: &[Subject]) -> Vec<Box<dyn Task>> {
        let mut tasks = self.campaign.tasks(subjects, self.modes);
        tasks.retain(|task| task.matches(&self.filter));
        tasks
    }
}

impl Campaign {
    fn tasks(&self, subjects: &[Subject], modes: Modes) -> Vec<Box<dyn Task>> {
        let each = |tasks: &dyn Fn(&Subject) -> Vec<Box<dyn Task>>| {
            subjects.iter().flat_map(tasks).collect()
        };
        match *self {
            Self::Crashes(options) => each(&|subject| crash_tasks(subject, &options, modes)),
            Self::AllocFaults => each(&alloc_fault_tasks),
            Self::MediaFaults(options) => media_fault_tasks(subjects, options),
            Self::Schedules(options) => each(&|subject| {
                let Some(index) = subject.index else { return Vec::new() };
                let mut tasks = schedule_tasks(subject.name(), index.numbers, options, modes);
                if let Some(text) = index.text {
                    tasks.extend(schedule_tasks(subject.name(), text, options, modes));
                }
                tasks
            }),
        }
    }

    fn limits(&self) -> Limits {
        match self {
            Self::Crashes(options) => {
                let (recoveries, nested) = (options.recoveries, options.recoveries);
                Limits { recoveries, nested, ..Limits::new(options.budget, options.depth) }
            }
            Self::Schedules(options) => {
                let (schedules, schedule_recoveries) = (options.schedules, options.recoveries);
                Limits { schedules, schedule_recoveries, ..Limits::new(u128::MAX, 1) }
            }
            Self::AllocFaults | Self::MediaFaults(_) => Limits::new(u128::MAX, 1),
        }
    }

    fn mutation(&self) -> Option<Mutation> {
        match self {
            Self::Crashes(options) => options.mutation,
            Self::Schedules(options) => options.mutation,
            Self::AllocFaults | Self::MediaFaults(_) => None,
        }
    }
}

/// Runs a campaign on `subjects`. Calls `show` with each outcome as soon as it and all before it
/// are there; the order is the same each time.
pub fn run(subjects: &[Subject], request: &Request, show: &mut dyn FnMut(&Outcome)) -> Summary {
    let tasks = request.tasks(subjects);
    let (limits, mutation) = (request.campaign.limits(), request.campaign.mutation());
    let mut summary = Summary::default();
    let explore = |task: &dyn Task| {
        let outcomes = task.run(&limits, mutation);
        let violated = outcomes.iter().filter(|outcome| !outcome.violations.is_empty());
        if let Some(notice) = request.notice {
            violated.for_each(notice);
        }
        outcomes
    };
    in_order(
        request.workers,
        &request.progress,
        &tasks,
        &|task| explore(&**task),
        &mut |outcome| {
            summary.add(outcome);
            show(outcome);
        },
    );
    summary
}
