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

use crate::explore::{Limits, explore};
use crate::jobs::{Job, Work, in_order, jobs, jobs_of, jobs_of_numbers, record};
use crate::program::Mode;
use crate::report::Violation;
use crate::run::Request;
use crate::tape::Sabotage;
use crate::threads::{Drawn, wrong_with};
use bristlecone_pmem::Defect;
use bristlecone_trees::designs::WbTree;
use bristlecone_trees::registry::UnknownDesign;
use shapes::{Cells, Directory, Items, Prefixed, Summed};
use std::collections::BTreeMap;
use toy::{Shape, Toy};

/// Recoveries of a defect in a scenario after which the rest is sampled.
const RECOVERIES_MAX: u64 = 50_000;
/// Violating runs of a scenario among which the least trace is looked for.
const VIOLATING_MAX: u64 = 100;

/// Schedules of a defect in a scenario of several threads.
const SCHEDULES: u64 = 200;

/// A defect that was seeded, and what came of it.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The defect.
    pub defect: Defect,
    /// The mode of what gave it away, or the first that was tried.
    pub mode: Mode,
    /// Crashes one after the other that it took.
    pub depth: u32,
    /// Images of the scenarios that were tried; saturating.
    pub images: u128,
    /// Recoveries that were run.
    pub recoveries: u64,
    /// The scenario that gave it away, and how; nothing if it was not caught.
    pub caught: Option<(String, Violation)>,
}

/// Puts each defect of the catalogue into its design, one after the other, until it is caught.
///
/// # Errors
/// A defect names a design that does not exist.
pub fn run_catalogue(
    request: &Request,
    on_tried: &mut dyn FnMut(&Tried),
) -> Result<(), UnknownDesign> {
    try_all(request, Defect::ALL, 1, on_tried)
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
    let is_asked = |defect: &&Defect| {
        let about = defect.about();
        let named = request.designs.is_empty() || request.designs.iter().any(|d| d == about.design);
        about.as_printed && named
    };
    let defects: Vec<_> = Defect::ALL.iter().filter(is_asked).copied().collect();
    try_all(request, &defects, VIOLATING_MAX, on_tried)
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
        if let std::collections::btree_map::Entry::Vacant(entry) = subjects.entry(key) {
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
        ("wb-tree", Some(1024)) => jobs_of::<WbTree<1024>>(&request),
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
    let mode = jobs.first().map_or(Mode::Px86, |job| job.modes[0]);
    let mut tried = Tried { defect, mode, depth: 1, images: 0, recoveries: 0, caught: None };
    let sabotage = Some(Sabotage::Seed(defect));
    for depth in 1..=request.depth.clamp(1, 2) {
        for job in jobs {
            let Work::One(scenario) = &job.work else { continue };
            for &mode in job.modes {
                let recoveries = RECOVERIES_MAX;
                let limits = Limits {
                    violating,
                    recoveries,
                    sabotage,
                    ..Limits::new(request.budget, depth)
                };
                let violation = match record(&**scenario, sabotage) {
                    Ok((tape, _)) => {
                        let explored = explore(&**scenario, &tape, mode, limits);
                        tried.images = tried.images.saturating_add(explored.images);
                        tried.recoveries += explored.recoveries;
                        explored.first_violation().cloned()
                    }
                    Err(finding) => Some(finding.without_crash()),
                };
                let Some(violation) = violation else { continue };
                let best = tried.caught.as_ref().map(|(_, best)| best.rank);
                if best.is_none_or(|best| violation.rank < best) {
                    tried.caught = Some((scenario.name().into(), violation));
                    (tried.mode, tried.depth) = (mode, depth);
                }
                if violating == 1 {
                    return tried;
                }
            }
        }
        if tried.caught.is_some() {
            break;
        }
    }
    tried
}

/// Looks for `defect` in schedules of several threads.
fn attempt_threads(defect: Defect, request: &Request) -> Tried {
    let drawn = Drawn { schedules: SCHEDULES, defect: Some(defect), ..Drawn::default() };
    let mut tried =
        Tried { defect, mode: Mode::Px86, depth: 1, images: 0, recoveries: 0, caught: None };
    wrong_with(defect.about().design, request, drawn, &mut |mut outcome| {
        tried.images = tried.images.saturating_add(outcome.images);
        tried.recoveries += outcome.recoveries;
        if !outcome.violations.is_empty() {
            tried.mode = outcome.mode;
            tried.caught = Some((outcome.scenario, outcome.violations.swap_remove(0)));
        }
    });
    tried
}
