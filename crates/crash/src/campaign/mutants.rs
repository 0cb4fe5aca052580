//! Mutation testing: every ordering step of a design, removed in turn, and every pair of ordered
//! stores, exchanged.
//!
//! 1. A mutant is a call site: the step is removed wherever the operations under test, or a
//!    recovery from their crashes, execute it. The setup runs without the mutation.
//! 2. A mutant is killed if any scenario of the design, in any of the design's persistence models,
//!    detects it.
//! 3. Mutants of version checks are looked for in schedules of several threads, and so are flushes
//!    and fences that no scenario of one thread misses. A check counts once for each call site that
//!    asks for it: helpers that ask for others are marked `#[track_caller]`.
//! 4. A mutant of a recovery is looked for among crashes of recoveries, all others among crashes of
//!    operations.
//! 5. Two exchanged stores, of which the second neither commits nor is the last to the line of
//!    both, are a mutant only if a scenario detects them. Otherwise no code asks for their order,
//!    and the order costs nothing.
//!
//! A flush or a fence that no scenario misses costs time for nothing.

use super::executor::in_order;
use super::options::CrashOptions;
use super::{Campaign, Request};
use crate::config::Limits;
use crate::outcome::Violation;
use crate::subject::Subject;
use crate::task::Task;
use crate::threads::options::ScheduleOptions;
use crate::trace::mutation::Mutation;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::OnceLock;

/// The number of recoveries of a mutant in a scenario after which the rest is sampled, in each
/// pass: most mutants die early, and the others get more recoveries.
const PASSES: [u64; 2] = [1000, 10_000];
/// The number of schedules of each scenario that look for version checks.
const SEARCH_SCHEDULES: u64 = 40;
/// The number of schedules of each scenario with a mutated version check.
const CHECK_SCHEDULES: u64 = 3000;
/// The number of schedules of each scenario with a removed flush or fence, where crashes are
/// explored.
const CRASH_SCHEDULES: u64 = 150;
/// The number of threads of a scenario.
const THREADS: usize = 3;

/// A design with one mutation.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The name of the subject.
    pub subject: String,
    /// The change of the code.
    pub mutation: Mutation,
    /// The number of scenarios, in each persistence model, that ran the mutant.
    pub tried: u64,
    /// The scenario that detected the mutant, and the violation; `None` if the mutant survives.
    pub killed: Option<(String, Violation)>,
}

/// The number of mutants, and of those that a scenario killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MutationScore {
    /// The number of mutants.
    pub total: u64,
    /// The number of mutants that a scenario detected.
    pub killed: u64,
    /// The number of mutants that no scenario detected.
    pub survived: u64,
}

impl MutationScore {
    /// Adds a mutant to the counts.
    pub fn add(&mut self, mutant: &Mutant) {
        self.total += 1;
        *(if mutant.killed.is_some() { &mut self.killed } else { &mut self.survived }) += 1;
    }
}

impl Mutant {
    fn new(subject: &str, mutation: Mutation) -> Self {
        Self { subject: subject.into(), mutation, tried: 0, killed: None }
    }

    /// Adds the result of one task, unless another task killed the mutant meanwhile.
    fn add(&mut self, (tried, killed): Attempt) {
        self.tried += tried;
        self.killed = self.killed.take().or(killed);
    }
}

type BoxedTask = Box<dyn Task>;

/// The number of scenarios that a task ran, and the detection of the mutant by one of them.
type Attempt = (u64, Option<(String, Violation)>);

/// Runs `task` with a mutation.
fn attempt(task: &dyn Task, limits: &Limits, mutation: Mutation) -> Attempt {
    let outcomes = task.run(limits, Some(mutation));
    let tried = outcomes.iter().filter(|outcome| outcome.depth() == 1).count() as u64;
    let first = outcomes.into_iter().find_map(|outcome| {
        let name = format!("{} {}", task.id().scenario, outcome.mode().name());
        outcome.violations.into_iter().next().map(|violation| (name, violation))
    });
    (tried, first)
}

/// Runs every mutant of `subjects`: in the scenarios of one thread, then in those of several
/// threads. Calls `show` with each mutant once its fate is known.
///
/// The options of [`Campaign::Crashes`] in `request` apply, or their defaults.
pub fn run_mutants(subjects: &[Subject], request: &Request, show: &mut dyn FnMut(&Mutant)) {
    let mut of_one_thread = Vec::new();
    run_crash_mutants(subjects, request, &mut |mutant| of_one_thread.push(mutant.clone()));
    let threaded: Vec<_> = subjects.iter().filter(|subject| subject.index.is_some()).collect();
    let crashed = ThreadScenarios::new(&threaded, request, true);
    let again = |mutant: &Mutant| {
        let mut mutant = mutant.clone();
        let is_step = matches!(mutant.mutation, Mutation::NoFlush(_) | Mutation::NoFence(_));
        if is_step
            && mutant.killed.is_none()
            && let Some(tasks) = crashed.of(&mutant.subject)
        {
            attempt_all(tasks, CRASH_SCHEDULES, &mut mutant);
        }
        vec![mutant]
    };
    in_order(request.workers, &request.progress, &of_one_thread, &again, show);
    let scenarios = ThreadScenarios::new(&threaded, request, false);
    for subject in threaded {
        let Some(tasks) = scenarios.of(subject.name()) else { continue };
        let each = |&check: &Mutation| {
            let mut mutant = Mutant::new(subject.name(), check);
            attempt_all(tasks, CHECK_SCHEDULES, &mut mutant);
            vec![mutant]
        };
        in_order(request.workers, &request.progress, &checks(tasks), &each, show);
    }
}

/// Runs every mutant of `subjects` in the scenarios of one thread alone. Calls `show` with each
/// mutant, ordered by subject and mutation.
pub fn run_crash_mutants(subjects: &[Subject], request: &Request, show: &mut dyn FnMut(&Mutant)) {
    let options = CrashOptions { sequences: 0, random: 0, ..request.crash_options() };
    let request = Request { campaign: Campaign::Crashes(options), ..request.clone() };
    let tasks = request.tasks(subjects);
    let found = Mutants::default();
    for (pass, recoveries) in PASSES.into_iter().enumerate() {
        let limits = Limits { recoveries, ..Limits::new(options.budget, 2) };
        let each = |task: &BoxedTask| -> Vec<()> {
            let mut mutations = task.mutations(&limits);
            // An order that no code asks for is tried once; it would take most of the time.
            mutations.retain(|(mutation, _)| pass == 0 || mutation.is_expected_to_die());
            for (mutation, depth) in mutations {
                let limits = Limits { violating: 1, depth, ..limits };
                found.attempt(&**task, &limits, mutation);
            }
            Vec::new()
        };
        in_order(request.workers, &request.progress, &tasks, &each, &mut |()| {});
    }
    found.sorted().iter().for_each(show);
}

/// The mutants of all subjects, by subject and mutation.
#[derive(Default)]
struct Mutants(Mutex<HashMap<(String, Mutation), Mutant>>);

impl Mutants {
    /// Runs `task` with a mutation, unless the mutant is dead already.
    fn attempt(&self, task: &dyn Task, limits: &Limits, mutation: Mutation) {
        let subject = &task.id().subject;
        let key = (subject.clone(), mutation.without_requirement());
        if self.0.lock().get(&key).is_some_and(|mutant| mutant.killed.is_some()) {
            return;
        }
        let result = attempt(task, limits, mutation);
        let mut mutants = self.0.lock();
        let mutant = mutants.entry(key).or_insert_with(|| Mutant::new(subject, mutation));
        mutant.add(result);
        if mutation.is_expected_to_die() {
            // Another scenario may have met this order where no code asks for it.
            mutant.mutation = mutation;
        }
    }

    fn sorted(self) -> Vec<Mutant> {
        let mut mutants: Vec<_> = self.0.into_inner().into_values().collect();
        mutants.retain(|mutant| mutant.killed.is_some() || mutant.mutation.is_expected_to_die());
        mutants.sort_by_cached_key(|mutant| (mutant.subject.clone(), mutant.mutation.to_string()));
        mutants
    }
}

/// The thread scenarios of some subjects, listed when they are first needed.
struct ThreadScenarios<'a> {
    request: Request,
    subjects: Vec<(&'a Subject, OnceLock<Vec<BoxedTask>>)>,
}

impl<'a> ThreadScenarios<'a> {
    fn new(subjects: &[&'a Subject], request: &Request, crashes: bool) -> Self {
        let options = ScheduleOptions { threads: THREADS, crashes, ..ScheduleOptions::default() };
        let request = Request { campaign: Campaign::Schedules(options), ..request.clone() };
        let subjects = subjects.iter().map(|&subject| (subject, OnceLock::new())).collect();
        Self { request, subjects }
    }

    fn of(&self, name: &str) -> Option<&[BoxedTask]> {
        let (subject, tasks) = self.subjects.iter().find(|(subject, _)| subject.name() == name)?;
        let list = || self.request.tasks(core::slice::from_ref(*subject));
        Some(tasks.get_or_init(list))
    }
}

/// Returns the version checks that `tasks` come by, in the order of the code.
fn checks(tasks: &[BoxedTask]) -> Vec<Mutation> {
    let limits = Limits { schedules: SEARCH_SCHEDULES, ..Limits::new(u128::MAX, 1) };
    let mut checks: Vec<Mutation> = Vec::new();
    for (check, _) in tasks.iter().flat_map(|task| task.mutations(&limits)) {
        if !checks.contains(&check) {
            checks.push(check);
        }
    }
    checks.sort_by_key(|check| check.check().map(|at| (at.file(), at.line(), at.column())));
    checks
}

/// Runs `tasks` with the mutation of `mutant` until one detects it.
fn attempt_all(tasks: &[BoxedTask], schedules: u64, mutant: &mut Mutant) {
    let limits = Limits { schedules, violating: 1, ..Limits::new(u128::MAX, 1) };
    for task in tasks {
        if mutant.killed.is_some() {
            return;
        }
        mutant.add(attempt(&**task, &limits, mutant.mutation));
    }
}
