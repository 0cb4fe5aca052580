//! The catalogue of published defects: each put back into the code, and looked for.
//!
//! 1. The list is [`Defect::ALL`]; the seams are in the designs, and in toys where no design has the
//!    structure.
//! 2. The setup of a scenario is done as it should be; the operations under test, the recovery and
//!    what is done after it have the defect.
//! 3. Scenarios are those that are explored anyway, in their order, without a hint which of them it
//!    is: first for crashes of operations, then, if nothing shows, of recoveries.

mod shapes;
mod toy;

use crate::explore::{Exploration, Limits, explore};
use crate::jobs::{Job, Work, in_order, jobs, jobs_at_size, jobs_of_numbers, record};
use crate::program::Mode;
use crate::report::{Outcome, Violation};
use crate::run::{Request, Summary, explore_jobs};
use crate::tape::{Sabotage, Sites};
use crate::threads::{Drawn, wrong_with};
use bristlecone_pmem::defect::{About, Defect};
use bristlecone_trees::names::UnknownDesign;
use shapes::{Cells, Directory, Items, Prefixed, Summed};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use toy::{Shape, Toy};

/// Recoveries of a defect in a scenario after which the rest is sampled.
const RECOVERIES_MAX: u64 = 50_000;
/// Violating runs of a scenario among which the least trace is looked for.
const VIOLATING_MAX: u64 = 100;

/// Schedules of a defect in a scenario of several threads.
const CONTROLS_SCHEDULE: u64 = 200;

/// A defect that was seeded, and what came of it.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The defect.
    pub defect: Defect,
    /// All that was tried, together; the scenario, the mode and the violation that gave the defect
    /// away, if any did.
    pub outcome: Outcome,
}

impl Tried {
    fn new(defect: Defect) -> Self {
        let outcome = Outcome {
            design: defect.about().design.into(),
            scenario: String::new(),
            mode: Mode::Px86,
            depth: 1,
            images: 0,
            recoveries: 0,
            incomplete: false,
            violations: Vec::new(),
            sites: Sites::default(),
            threads: 1,
            schedules: 1,
        };
        Self { defect, outcome }
    }

    /// How the defect was given away; nothing if it was not.
    pub fn caught(&self) -> Option<&Violation> {
        self.outcome.violations.first()
    }
}

/// Puts each defect of the catalogue into its design, one after the other, until it is caught.
///
/// # Errors
/// A defect names a design that does not exist.
pub fn run_catalogue(
    request: &Request,
    on_tried: &mut dyn FnMut(&Tried),
) -> Result<(), UnknownDesign> {
    try_all(request, &asked(request, |_| true), 1, on_tried)
}

/// Explores the designs that `request` names as their papers print them: every scenario of each
/// published defect, for the least trace.
///
/// # Errors
/// A design does not exist.
pub fn run_as_printed(
    request: &Request,
    on_tried: &mut dyn FnMut(&Tried),
) -> Result<(), UnknownDesign> {
    let defects = asked(request, |about| about.as_printed);
    try_all(request, &defects, VIOLATING_MAX, on_tried)
}

/// Explores the toys as they are without any defect.
pub fn run_toys(request: &Request, on_outcome: &mut dyn FnMut(&Outcome)) -> Summary {
    let request = Request { sequences: 0, random: 0, ..request.clone() };
    let mut jobs = jobs_of_numbers::<Toy<Items>>(&request);
    jobs.extend(jobs_of_numbers::<Toy<Prefixed>>(&request));
    jobs.extend(jobs_of_numbers::<Toy<Directory>>(&request));
    jobs.extend(jobs_of_numbers::<Toy<Summed>>(&request));
    jobs.extend(jobs_of_numbers::<Toy<Cells>>(&request));
    explore_jobs(&request, jobs, on_outcome)
}

/// The defects of the designs that `request` names.
fn asked(request: &Request, wanted: impl Fn(&About) -> bool) -> Vec<Defect> {
    let is_asked = |defect: &Defect| {
        let about = defect.about();
        let named = request.designs.is_empty() || request.designs.iter().any(|d| d == about.design);
        named && wanted(&about)
    };
    Defect::ALL.iter().copied().filter(is_asked).collect()
}

fn try_all(
    request: &Request,
    defects: &[Defect],
    violating: u64,
    on_tried: &mut dyn FnMut(&Tried),
) -> Result<(), UnknownDesign> {
    let mut subjects = BTreeMap::new();
    for defect in defects {
        let about = defect.about();
        if about.threads {
            continue;
        }
        let key = (about.design, about.node_bytes);
        if let Entry::Vacant(entry) = subjects.entry(key) {
            entry.insert(subjects_of(request, about.design, about.node_bytes)?);
        }
    }
    let each = |defect: &Defect| {
        let about = defect.about();
        if about.threads {
            return vec![attempt_threads(*defect, request)];
        }
        let jobs = &subjects[&(about.design, about.node_bytes)];
        vec![attempt(*defect, jobs, request, violating)]
    };
    in_order(request.threads, defects, &each, on_tried);
    Ok(())
}

/// The scenarios of a design.
fn subjects_of(
    request: &Request,
    design: &str,
    node_bytes: Option<usize>,
) -> Result<Vec<Job>, UnknownDesign> {
    let request =
        Request { designs: vec![design.into()], sequences: 0, random: 0, ..request.clone() };
    let jobs = match (design, node_bytes) {
        (name, Some(node_bytes)) => jobs_at_size(name, node_bytes, &request)?,
        (Items::NAME, _) => jobs_of_numbers::<Toy<Items>>(&request),
        (Prefixed::NAME, _) => jobs_of_numbers::<Toy<Prefixed>>(&request),
        (Directory::NAME, _) => jobs_of_numbers::<Toy<Directory>>(&request),
        (Summed::NAME, _) => jobs_of_numbers::<Toy<Summed>>(&request),
        (Cells::NAME, _) => jobs_of_numbers::<Toy<Cells>>(&request),
        _ => jobs(&request)?,
    };
    Ok(jobs.into_iter().filter(|job| job.work.name().contains(&request.filter)).collect())
}

/// Looks for `defect`: until the first violation, or, if more are asked for, for the least.
fn attempt(defect: Defect, jobs: &[Job], request: &Request, violating: u64) -> Tried {
    let mut tried = Tried::new(defect);
    let outcome = &mut tried.outcome;
    for depth in 1..=request.depth.min(2) {
        for job in jobs {
            for &mode in job.modes {
                let Some(explored) = seeded(defect, job, mode, depth, violating) else { continue };
                outcome.images = outcome.images.saturating_add(explored.images);
                outcome.recoveries += explored.recoveries;
                let Some(violation) = explored.first_violation() else { continue };
                let best = outcome.violations.first().map(|best| best.rank);
                if best.is_none_or(|best| violation.rank < best) {
                    outcome.violations = vec![violation.clone()];
                    outcome.scenario = job.work.name().into();
                    (outcome.mode, outcome.depth) = (mode, depth);
                }
                if violating == 1 {
                    return tried;
                }
            }
        }
        if !outcome.violations.is_empty() {
            break;
        }
    }
    tried
}

/// Explores a scenario with `defect`.
fn seeded(
    defect: Defect,
    job: &Job,
    mode: Mode,
    depth: u32,
    violating: u64,
) -> Option<Exploration> {
    let Work::One(scenario) = &job.work else { return None };
    let sabotage = Some(Sabotage::Seed(defect));
    let recoveries = RECOVERIES_MAX;
    let limits = Limits { recoveries, violating, sabotage, ..Limits::new(u128::MAX, depth) };
    Some(match record(&**scenario, sabotage) {
        Ok((tape, _)) => explore(&**scenario, &tape, mode, limits),
        Err(finding) => {
            let violations = vec![finding.without_crash()];
            Exploration { violations, ..Exploration::default() }
        }
    })
}

/// Looks for `defect` in schedules of several threads.
fn attempt_threads(defect: Defect, request: &Request) -> Tried {
    let drawn = Drawn {
        schedules: CONTROLS_SCHEDULE,
        sabotage: Some(Sabotage::Seed(defect)),
        ..Drawn::default()
    };
    let mut tried = Tried::new(defect);
    let total = &mut tried.outcome;
    let request = Request { filter: String::new(), ..request.clone() };
    wrong_with(defect.about().design, &request, drawn, &mut |outcome| {
        let images = total.images.saturating_add(outcome.images);
        let recoveries = total.recoveries + outcome.recoveries;
        *total = Outcome { images, recoveries, ..outcome };
    });
    tried
}
