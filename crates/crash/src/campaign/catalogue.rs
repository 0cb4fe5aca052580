//! The catalogue of published defects: each injected into the code, and looked for.
//!
//! 1. The list is [`Defect::ALL`]. The defects are injected into the designs, and into toys where
//!    no design has the structure. Some were found by their authors or by RECIPE (SOSP 2019),
//!    others by checkers such as Witcher (SOSP 2021) and Durinn (OSDI 2022). Each entry names its
//!    source.
//! 2. The setup of a scenario runs without the defect; the operations under test, the recovery and
//!    the operations after it have the defect.
//! 3. The scenarios are those of every campaign, in their order, without a hint. A defect that
//!    takes several threads is looked for in their schedules. Any other one is looked for in
//!    crashes of operations, then in refused allocations, then in crashes of recoveries.
//! 4. The search runs in passes: most defects show early in some scenario, so a pass with few
//!    recoveries or schedules of each comes before the whole one.

use super::executor::in_order;
use super::options::CrashOptions;
use super::{Campaign, Request, run};
use crate::config::{Limits, Modes, PersistenceModel};
use crate::explore::task::no_crashes;
use crate::outcome::{Outcome, OutcomeCounts, Summary, Violation};
use crate::subject::Subject;
use crate::task::{Task, TaskId};
use crate::threads::options::ScheduleOptions;
use crate::trace::mutation::{Mutation, MutationSites};
use bristlecone_pmem::defect::{About, Defect};
use bristlecone_trees::names::UnknownDesign;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The number of recoveries of a defect in a scenario after which the rest is sampled, in each
/// pass.
const PASS_RECOVERIES: [u64; 2] = [500, 50_000];
/// The number of violating recoveries of a scenario among which the shortest trace is chosen.
const VIOLATING_MAX: u64 = 100;
/// The number of schedules of a defect in a scenario of several threads, in each pass.
const PASS_SCHEDULES: [u64; 2] = [20, 200];
/// The number of recoveries of a defect in a scenario of several threads after which a sample of
/// its crashes is tried, in each pass. Leaves of many cells have scenarios that would not end.
const PASS_SCHEDULE_RECOVERIES: [u64; 2] = [500, 20_000];

/// An injected defect, and the result of the search for it.
#[derive(Clone, Debug)]
pub struct CatalogueResult {
    /// The defect that was injected.
    pub defect: Defect,
    /// The sums over all that was explored; the scenario, the persistence model and the violation
    /// that detected the defect, if any did.
    pub outcome: Outcome,
}

impl CatalogueResult {
    /// Returns the violation that detected the defect, or `None` if no scenario did.
    pub fn caught(&self) -> Option<&Violation> {
        self.outcome.violations.first()
    }
}

/// Injects each defect of the catalogue into its design, one after the other, until a scenario
/// detects it. `designs` restricts the defects to those of some designs; empty for all.
///
/// # Errors
/// A defect names a design that does not exist.
pub fn run_catalogue(
    designs: &[String],
    request: &Request,
    show: &mut dyn FnMut(&CatalogueResult),
) -> Result<(), UnknownDesign> {
    search_all(&defects(designs, |_| true), request, 1, show)
}

/// Injects each of `defects` into its design, one after the other, until a scenario detects it.
///
/// # Errors
/// A defect names a design that does not exist.
pub fn run_defects(
    defects: &[Defect],
    request: &Request,
    show: &mut dyn FnMut(&CatalogueResult),
) -> Result<(), UnknownDesign> {
    search_all(defects, request, 1, show)
}

/// Explores `designs` as their papers print them: every scenario of each published defect, for the
/// shortest trace.
///
/// # Errors
/// A design does not exist.
pub fn run_as_printed(
    designs: &[String],
    request: &Request,
    show: &mut dyn FnMut(&CatalogueResult),
) -> Result<(), UnknownDesign> {
    search_all(&defects(designs, |about| about.as_printed), request, VIOLATING_MAX, show)
}

/// Explores the toys without any defect.
pub fn run_toys(request: &Request, show: &mut dyn FnMut(&Outcome)) -> Summary {
    run(&Subject::toys(), &of_cases(request), show)
}

/// Returns `request` for the crashes of single cases, without sequences.
fn of_cases(request: &Request) -> Request {
    let options = CrashOptions { sequences: 0, random: 0, ..request.crash_options() };
    Request { campaign: Campaign::Crashes(options), ..request.clone() }
}

fn defects(designs: &[String], wanted: impl Fn(&About) -> bool) -> Vec<Defect> {
    let is_wanted = |defect: &Defect| {
        let about = defect.about();
        let is_named = designs.is_empty() || designs.iter().any(|name| name == about.design);
        is_named && wanted(&about)
    };
    Defect::ALL.iter().copied().filter(is_wanted).collect()
}

/// A design into which defects are injected, with its scenarios, which are listed when they are
/// first needed.
struct Host {
    subject: Subject,
    request: Request,
    tasks: OnceLock<HostTasks>,
}

/// The scenarios of a host.
struct HostTasks {
    /// The schedules of several threads, or the crashes of one.
    faults: Vec<Box<dyn Task>>,
    /// The refused allocations of one thread.
    refusals: Vec<Box<dyn Task>>,
}

impl Host {
    fn new(about: &About, request: &Request) -> Result<Self, UnknownDesign> {
        let mut toys = Subject::toys().into_iter();
        let subject = match about.node_bytes {
            Some(node_bytes) => Subject::at_size(about.design, node_bytes)?,
            None => match toys.find(|toy| toy.name() == about.design) {
                Some(toy) => toy,
                None => Subject::one(about.design)?,
            },
        };
        let mut request = if about.threads {
            let campaign = Campaign::Schedules(ScheduleOptions::default());
            Request { campaign, ..request.clone() }
        } else {
            of_cases(request)
        };
        if about.on_disk && request.modes == Modes::Auto {
            request.modes = Modes::Only(PersistenceModel::Disk);
        }
        Ok(Self { subject, request, tasks: OnceLock::new() })
    }

    fn tasks(&self) -> &HostTasks {
        self.tasks.get_or_init(|| {
            let subjects = core::slice::from_ref(&self.subject);
            let refusals = match self.request.campaign {
                Campaign::Crashes(_) => {
                    let request =
                        Request { campaign: Campaign::AllocFaults, ..self.request.clone() };
                    request.tasks(subjects)
                }
                _ => Vec::new(),
            };
            HostTasks { faults: self.request.tasks(subjects), refusals }
        })
    }
}

fn search_all(
    defects: &[Defect],
    request: &Request,
    violating: u64,
    show: &mut dyn FnMut(&CatalogueResult),
) -> Result<(), UnknownDesign> {
    let key = |about: &About| (about.design, about.node_bytes, about.threads, about.on_disk);
    let mut hosts = BTreeMap::new();
    for about in defects.iter().map(|defect| defect.about()) {
        hosts.insert(key(&about), Host::new(&about, request)?);
    }
    let depth = request.crash_options().depth.min(2);
    let each = |defect: &Defect| {
        let about = defect.about();
        let tasks = hosts[&key(&about)].tasks();
        let (depth, violating) = if about.threads { (1, 1) } else { (depth, violating) };
        vec![search(*defect, &passes(tasks, depth, violating))]
    };
    in_order(request.workers, &request.progress, defects, &each, show);
    Ok(())
}

/// Scenarios, and the bounds within which each is explored.
type Pass<'a> = (&'a [Box<dyn Task>], Limits);

/// Returns the passes of a search up to crashes of `depth` in a row. A search for the shortest
/// trace, if `violating` is more than 1, takes a whole pass for each depth.
fn passes(tasks: &HostTasks, depth: u32, violating: u64) -> Vec<Pass<'_>> {
    let limits = |depth, part: usize| Limits {
        recoveries: PASS_RECOVERIES[part],
        schedules: PASS_SCHEDULES[part],
        schedule_recoveries: PASS_SCHEDULE_RECOVERIES[part],
        violating,
        ..Limits::new(u128::MAX, depth)
    };
    let whole = |depth| (&tasks.faults[..], limits(depth, 1));
    if violating > 1 {
        return (1..=depth).map(whole).collect();
    }
    let mut passes = vec![(&tasks.faults[..], limits(1, 0)), (&tasks.refusals[..], limits(1, 0))];
    passes.extend((1..=depth).map(whole));
    passes
}

/// Looks for `defect` in one pass after the other, until the first violation, or for the violation
/// with the shortest trace of a pass.
fn search(defect: Defect, passes: &[Pass<'_>]) -> CatalogueResult {
    let id = TaskId::new(defect.about().design, "");
    let mut best = id.outcome(no_crashes(PersistenceModel::Px86));
    let (mut images, mut recoveries) = (0_u128, 0);
    for &(tasks, limits) in passes {
        for task in tasks {
            let outcomes = task.run(&limits, Some(Mutation::Inject(defect)));
            for outcome in outcomes.iter().filter(|outcome| outcome.depth() == 1) {
                images = images.saturating_add(outcome.images());
                recoveries += outcome.recoveries();
            }
            let found = outcomes.into_iter().rfind(|outcome| !outcome.violations.is_empty());
            let Some(mut found) = found else { continue };
            let rank = |outcome: &Outcome| outcome.violations.first().map(|v| v.rank);
            if best.violations.is_empty() || rank(&found) < rank(&best) {
                found.scenario.clone_from(&task.id().scenario);
                if limits.violating > 1 {
                    found.violations.truncate(1);
                }
                best = found;
            }
            if limits.violating == 1 {
                return result(defect, best, images, recoveries);
            }
        }
        if !best.violations.is_empty() {
            break;
        }
    }
    result(defect, best, images, recoveries)
}

/// Returns the result of a search: the outcome that detected the defect, with the counts of all.
fn result(defect: Defect, mut outcome: Outcome, images: u128, recoveries: u64) -> CatalogueResult {
    match &mut outcome.counts {
        OutcomeCounts::Crashes(counts) => {
            (counts.images, counts.recoveries) = (images, recoveries);
            counts.sites = MutationSites::default();
        }
        OutcomeCounts::Schedules(counts) => {
            (counts.images, counts.recoveries) = (images, recoveries);
        }
        OutcomeCounts::AllocFaults(_) | OutcomeCounts::MediaFaults(_) => {}
    }
    CatalogueResult { defect, outcome }
}
