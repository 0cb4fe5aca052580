//! Mutants: every ordering step of a design, left out in turn; every ordered store, come early.
//!
//! 1. A mutant is a place in the code: the step is left out wherever the operations under test, or a
//!    recovery from their crashes, come by. The setup is done as it should be.
//! 2. It is killed if any scenario of the design, in any of the design's modes, gives it away.
//! 3. A mutant of a check of a version is looked for in schedules of threads: see `threads::mutants`. There
//!    too is looked for a flush or a fence that no scenario of one thread misses.
//! 4. A mutant of a recovery is looked for among crashes of recoveries, all others among crashes of
//!    operations.
//!
//! 5. Two stores of which the second neither commits nor ends the line of both are a mutant only where something gives
//!    their exchange away: else nobody has asked for their order, and none of it costs anything.
//!
//! A flush or a fence that nothing misses costs time for nothing.

use crate::explore::{Limits, explore};
use crate::jobs::{Job, Work, in_order, jobs, jobs_of, record};
use crate::program::Mode;
use crate::report::Violation;
use crate::run::{POOL, Request};
use crate::scenario::Scenario;
use crate::store::STORE;
use crate::tape::Sabotage;
use crate::threads;
use bristlecone_trees::Design;
use bristlecone_trees::names::{UnknownDesign, specs};
use parking_lot::Mutex;
use std::collections::HashMap;

/// Recoveries of a mutant in a scenario after which the rest is sampled: most die early, and what is
/// left is tried harder.
const PASSES: [u64; 2] = [1000, 10_000];

/// A design with one ordering step left out, or one store come early.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The design.
    pub design: String,
    /// What was done to it.
    pub sabotage: Sabotage,
    /// Scenarios and modes in which it was tried.
    pub tried: u64,
    /// What gave it away, and in which scenario; nothing if it survives.
    pub killed: Option<(String, Violation)>,
}

/// Mutants and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Toll {
    /// Mutants tried.
    pub total: u64,
    /// Those that a scenario gave away.
    pub killed: u64,
    /// Those that none did.
    pub survived: u64,
}

impl Toll {
    /// Counts a mutant.
    pub fn add(&mut self, mutant: &Mutant) {
        self.total += 1;
        *(if mutant.killed.is_some() { &mut self.killed } else { &mut self.survived }) += 1;
    }
}

/// Mutants of the designs, by name and by what was done.
type Found = Mutex<HashMap<(String, Sabotage), Mutant>>;

/// Tries every mutant of what `request` asks for.
///
/// # Errors
/// A design that is asked for does not exist.
pub fn run_mutants(
    request: &Request,
    on_mutant: &mut dyn FnMut(&Mutant),
) -> Result<(), UnknownDesign> {
    let mut of_one_thread = Vec::new();
    try_all(request, jobs(request)?, &mut |mutant| of_one_thread.push(mutant.clone()));
    let is_step = |mutant: &Mutant| {
        let is_step = matches!(mutant.sabotage, Sabotage::NoFlush(_) | Sabotage::NoFence(_));
        is_step && mutant.killed.is_none() && mutant.design != POOL && mutant.design != STORE
    };
    let again = |mutant: &Mutant| {
        let mut mutant = mutant.clone();
        if is_step(&mutant) {
            // The design was registered when its jobs were listed.
            let _ = threads::try_again(&mut mutant, request);
        }
        vec![mutant]
    };
    in_order(request.threads, &of_one_thread, &again, on_mutant);
    let mut names = request.designs.clone();
    if names.is_empty() {
        names.extend(specs().iter().map(|sizes| sizes[0].name.to_string()));
    }
    for name in names.iter().filter(|&name| name != POOL && name != STORE) {
        threads::mutate(name, request, on_mutant)?;
    }
    Ok(())
}

/// Tries every mutant of a design that is not in the registry.
pub fn run_mutants_of<D: Design>(request: &Request, on_mutant: &mut dyn FnMut(&Mutant)) {
    try_all(request, jobs_of::<D>(request), on_mutant);
}

fn try_all(request: &Request, mut jobs: Vec<Job>, on_mutant: &mut dyn FnMut(&Mutant)) {
    jobs.retain(|job| job.work.name().contains(&request.filter));
    let found = Found::default();
    for (pass, recoveries) in PASSES.into_iter().enumerate() {
        // What nobody asks for is tried once, or it would take most of the time.
        let is_tried = |sabotage: Sabotage| pass == 0 || sabotage.should_die();
        let each = |job: &Job| -> Vec<()> {
            job.mutate(request, recoveries, &is_tried, &found);
            Vec::new()
        };
        in_order(request.threads, &jobs, &each, &mut |()| {});
    }
    let mut mutants: Vec<_> = found.into_inner().into_values().collect();
    mutants.retain(|mutant| mutant.killed.is_some() || mutant.sabotage.should_die());
    mutants.sort_by_cached_key(|mutant| (mutant.design.clone(), mutant.sabotage.to_string()));
    mutants.iter().for_each(on_mutant);
}

impl Job {
    /// Tries every mutant that the scenario comes by and that is still alive. A scenario that fails
    /// without any mutation tells nothing.
    fn mutate(
        &self,
        request: &Request,
        recoveries: u64,
        is_tried: &dyn Fn(Sabotage) -> bool,
        found: &Found,
    ) {
        let Work::One(scenario) = &self.work else { return };
        for &mode in self.modes {
            let Ok((tape, _)) = record(&**scenario, None) else { return };
            let limits = Limits { recoveries, ..Limits::new(request.budget, 2) };
            let right = explore(&**scenario, &tape, mode, limits);
            if right.first_violation().is_some() {
                return;
            }
            let of_recovery = right.nested.map_or(Vec::new(), |nested| nested.sabotages);
            let mut of_operations = tape.sabotages(mode == Mode::Px86 && self.modes.len() == 1);
            of_operations.retain(|&sabotage| is_tried(sabotage));
            for &sabotage in &of_operations {
                let depth = if of_recovery.contains(&sabotage) { 2 } else { 1 };
                self.attempt(&**scenario, mode, (sabotage, depth), limits, found);
            }
            let others = of_recovery
                .iter()
                .filter(|&&sabotage| is_tried(sabotage) && !of_operations.contains(&sabotage));
            for &sabotage in others {
                self.attempt(&**scenario, mode, (sabotage, 2), limits, found);
            }
        }
    }

    /// Tries a mutant, unless it is dead already.
    fn attempt(
        &self,
        scenario: &dyn Scenario,
        mode: Mode,
        (sabotage, depth): (Sabotage, u32),
        limits: Limits,
        found: &Found,
    ) {
        let key = (self.design.clone(), sabotage.unasked());
        if found.lock().get(&key).is_some_and(|mutant| mutant.killed.is_some()) {
            return;
        }
        let limits = Limits { violating: 1, depth, sabotage: Some(sabotage), ..limits };
        let Ok((tape, _)) = record(scenario, Some(sabotage)) else { return };
        let explored = explore(scenario, &tape, mode, limits);
        let mut found = found.lock();
        let mutant = found.entry(key).or_insert_with(|| Mutant {
            design: self.design.clone(),
            sabotage,
            tried: 0,
            killed: None,
        });
        mutant.tried += 1;
        if sabotage.should_die() {
            mutant.sabotage = sabotage; // Where an order was met before, nobody may have asked for it.
        }
        if let Some(violation) = explored.first_violation()
            && mutant.killed.is_none()
        {
            mutant.killed =
                Some((format!("{} {}", scenario.name(), mode.name()), violation.clone()));
        }
    }
}
