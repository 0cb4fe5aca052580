//! The exact enumeration, and the proof that it was exact.
//!
//! 1. A crash is tried at the beginning of the operations under test, and right after each of their
//!    stores, with that store there and every other unit free between what is guaranteed and what
//!    is stored. So each reachable image belongs to exactly one of these events.
//! 2. Within an event recovery decides what it looks at. The images that its runs stand for add up
//!    to the images of the event; this is asserted.
//! 3. A recovery that stores more than the superblocks is itself explored: see `nested`.
//! 4. Past the budget the rest of the event, and of the scenario, is sampled, and reported as
//!    incomplete. What counts are the images that runs stand for.

use crate::guard::guarded;
use crate::nested::{Before, Nest};
use crate::program::{Mode, Program, Step};
use crate::refiner::{Lost, Refiner};
use crate::report::{Violation, trace};
use crate::residue::Residue;
use crate::scenario::{Finding, Probe, Scenario};
use crate::tape::{Sabotage, Tape};
use std::sync::Arc;

/// Bytes to which media under the explorer can grow.
pub(crate) const RESERVE_BYTES: u64 = 1 << 20;
/// Recoveries after which any exploration is sampled, whatever its budget: one that needs so many
/// has a fence missing, or too many operations.
const RECOVERIES_MAX: u64 = 20_000_000;
/// Runs with random choices for each event that the budget did not reach.
const SAMPLES: u64 = 200;
/// Violating runs after which a scenario is left: it has failed, and its least trace is near.
const VIOLATIONS_MAX: u64 = 400;
/// Different violations that are reported.
const VIOLATIONS_SHOWN: usize = 5;

/// What an exploration came to.
#[derive(Debug, Default)]
pub(crate) struct Exploration {
    /// Images that are reachable; saturating.
    pub(crate) images: u128,
    /// Those of them that runs stood for; saturating.
    pub(crate) covered: u128,
    /// Recoveries that were run to decide them.
    pub(crate) recoveries: u64,
    /// Whether the budget ended before the images did.
    pub(crate) incomplete: bool,
    pub(crate) violations: Vec<Violation>,
    /// What the crashes of recoveries came to.
    pub(crate) nested: Option<Box<Exploration>>,
    pub(crate) violating: u64,
    /// The defects that could be put into the recoveries.
    pub(crate) sabotages: Vec<Sabotage>,
}

/// How far an exploration goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Images to cover; from there on they are sampled.
    pub(crate) images: u128,
    /// Crashes one after the other: 1 is that of the operations alone.
    pub(crate) depth: u32,
    /// Recoveries to run at the most, at each depth.
    pub(crate) recoveries: u64,
    /// Violating runs after which a scenario is left.
    pub(crate) violating: u64,
    /// A defect that the recoveries have, too.
    pub(crate) sabotage: Option<Sabotage>,
}

impl Limits {
    pub(crate) fn new(images: u128, depth: u32) -> Self {
        let (recoveries, violating) = (RECOVERIES_MAX, VIOLATIONS_MAX);
        Self { images, depth, recoveries, violating, sabotage: None }
    }
}

/// An exploration under way, of the operations under test or of a recovery.
pub(crate) struct Explorer<'a> {
    pub(crate) scenario: &'a dyn Scenario,
    tape: &'a Tape,
    pub(crate) program: Arc<Program>,
    pub(crate) medium: Refiner,
    pub(crate) mode: Mode,
    pub(crate) limits: Limits,
    /// What there was before, if what is recorded is a recovery.
    pub(crate) before: Option<&'a Before<'a>>,
    /// Where recoveries are recorded and explored in their turn.
    pub(crate) nest: Option<Box<Nest>>,
    pub(crate) result: Exploration,
}

/// Explores every crash of the operations under test on `tape`, and of the recoveries from them.
pub(crate) fn explore(
    scenario: &dyn Scenario,
    tape: &Tape,
    mode: Mode,
    limits: Limits,
) -> Exploration {
    let program = Arc::new(Program::compile(tape, mode));
    let defect = limits.sabotage.and_then(Sabotage::defect);
    let medium = Refiner::new(Arc::clone(&program), tape.bytes, RESERVE_BYTES, defect);
    let nest = (limits.depth > 1).then(|| Box::new(Nest::new(&program, limits)));
    let mut explorer = Explorer {
        scenario,
        tape,
        program,
        medium,
        mode,
        limits,
        before: None,
        nest,
        result: Exploration::default(),
    };
    explorer.run();
    explorer.finish()
}

impl<'a> Explorer<'a> {
    /// An exploration of a recovery that was recorded on `tape`, which `program` is.
    pub(crate) fn of_recovery(
        scenario: &'a dyn Scenario,
        (tape, program): (&'a Tape, Arc<Program>),
        before: &'a Before<'a>,
        nest: &Nest,
        (mode, limits): (Mode, Limits),
    ) -> Self {
        let medium = nest.medium.clone();
        medium.follow(&program);
        let (before, nest, result) = (Some(before), None, Exploration::default());
        Self { scenario, tape, program, medium, mode, limits, before, nest, result }
    }

    /// Whether enough is wrong.
    pub(crate) fn is_over(&self) -> bool {
        let nested = self.result.nested.as_ref().map_or(0, |nested| nested.violating);
        self.result.violating.max(nested) >= self.limits.violating
    }

    /// What it came to.
    pub(crate) fn finish(self) -> Exploration {
        self.result
    }

    /// Explores all of it.
    pub(crate) fn run(&mut self) {
        let program = Arc::clone(&self.program);
        let setup = program.steps.partition_point(|&(time, _)| time < program.begin);
        let (setup, tested) = program.steps.split_at(setup);
        for &(_, step) in setup {
            self.medium.advance(step);
        }
        let mut repairing = self.before.is_none();
        if repairing {
            self.event(program.begin, false);
        }
        for &(time, step) in tested {
            self.medium.advance(step);
            repairing |= program.is_past_superblocks(step);
            if repairing && matches!(step, Step::Store(_)) {
                self.event(time, true);
            }
            if self.is_over() {
                self.result.incomplete = true;
                return;
            }
        }
    }

    /// Tries every image of one event.
    fn event(&mut self, time: u32, newest: bool) {
        let (images, total) = self.medium.arm(newest);
        self.result.images = self.result.images.saturating_add(images);
        let probe = self.probe(time);
        let mut seen = Residue::ZERO;
        // An event that fits into the budget as a whole is not counted run by run.
        let whole = self.result.covered.saturating_add(images) <= self.limits.images;
        loop {
            if self.is_spent(whole) || self.is_over() {
                self.result.incomplete = true;
                self.sample(&probe);
                break;
            }
            self.medium.start(None);
            self.judge(&probe);
            self.descend(&probe);
            seen = seen.plus(self.medium.weight(total));
            if !whole {
                let images = self.medium.images();
                self.result.covered = self.result.covered.saturating_add(images);
            }
            self.medium.restore();
            if !self.medium.next_path() {
                if whole {
                    self.result.covered = self.result.covered.saturating_add(images);
                }
                self.settle(&probe, seen, total);
                break;
            }
        }
        self.medium.disarm();
    }

    /// What a judge sees of a crash at `time`.
    pub(crate) fn probe(&self, time: u32) -> Probe {
        Probe {
            medium: self.medium.clone(),
            program: Arc::clone(&self.program),
            since: time,
            nested: self.before.map(|before| before.nested),
        }
    }

    /// Whether the budget has ended, in an event that fits into it as a `whole` or not.
    fn is_spent(&self, whole: bool) -> bool {
        let images = !whole && self.result.covered >= self.limits.images;
        images || self.result.recoveries >= self.limits.recoveries
    }

    /// Writes down what led to an image.
    pub(crate) fn trace(&self, crash: u32, lost: &Lost) -> String {
        match self.before {
            None => {
                let name = |number| self.scenario.operation(number);
                trace(self.tape, &self.program, &name, crash, lost)
            }
            Some(before) => {
                let name = |number| ["the recovery", "close"][number as usize & 1].into();
                let first = before.explorer.trace(before.crash, &before.lost);
                format!("{first}{}", trace(self.tape, &self.program, &name, crash, lost))
            }
        }
    }

    /// After all paths of an event: each image was seen once, or recovery did not repeat itself.
    fn settle(&mut self, probe: &Probe, seen: Residue, total: Residue) {
        if self.medium.is_deterministic() {
            assert_eq!(seen, total, "every image of an event is seen exactly once");
        } else {
            let what = "recovery read different words for the same contents";
            let finding = Finding::new(what, "a deterministic recovery", "another path");
            self.violation(probe, finding);
        }
    }

    /// Tries images at random: in all events together as many as were tried before, at the most.
    fn sample(&mut self, probe: &Probe) {
        let most = self.limits.recoveries.saturating_mul(2);
        for sample in 0..SAMPLES {
            if self.is_over() || self.result.recoveries >= most {
                return;
            }
            let seed = u64::from(probe.since) << 32 | sample;
            self.medium.start(Some(seed));
            self.judge(probe);
            self.medium.restore();
        }
    }

    /// Recovers once.
    pub(crate) fn judge(&mut self, probe: &Probe) {
        self.result.recoveries += 1;
        // Blocks that a run retires must not come free within it at a moment of chance.
        let pinned = bristlecone_pmem::sync::pin();
        let verdict = guarded(|| self.scenario.judge(probe));
        drop(pinned);
        if let Err(finding) = verdict {
            self.violation(probe, finding);
        }
    }

    /// Keeps a violation if it is the first of its kind, or has the least trace of it.
    fn violation(&mut self, probe: &Probe, finding: Finding) {
        self.result.violating += 1;
        let mut lost = self.medium.lost();
        // Of a fill, the units that come after the one whose store is the event.
        let later = self.program.items.iter().enumerate().skip(self.medium.stored());
        let later = later.take_while(|(_, item)| item.time == probe.since);
        lost.extend(later.map(|(index, item)| (index as u32, item.mask)));
        let weight: u32 = lost.iter().map(|&(_, words)| words.count_ones()).sum();
        let rank = (weight, probe.since);
        let shown = &mut self.result.violations;
        let known = shown.iter().position(|known| known.what == finding.what);
        if known.map_or(shown.len() < VIOLATIONS_SHOWN, |known| rank < shown[known].rank) {
            let trace = self.trace(probe.since, &lost);
            let shown = &mut self.result.violations;
            let Finding { what, expected, found } = finding;
            let violation = Violation { what, expected, found, trace, rank };
            match known {
                Some(known) => shown[known] = violation,
                None => shown.push(violation),
            }
        }
    }
}

impl Exploration {
    /// Adds what another came to.
    pub(crate) fn add(&mut self, other: Self) {
        self.images = self.images.saturating_add(other.images);
        self.covered = self.covered.saturating_add(other.covered);
        self.recoveries += other.recoveries;
        self.incomplete |= other.incomplete;
        self.violating += other.violating;
        for sabotage in other.sabotages {
            if !self.sabotages.contains(&sabotage) {
                self.sabotages.push(sabotage);
            }
        }
        for violation in other.violations {
            let known = self.violations.iter().any(|known| known.what == violation.what);
            if !known && self.violations.len() < VIOLATIONS_SHOWN {
                self.violations.push(violation);
            }
        }
        if let Some(nested) = other.nested {
            self.nested.get_or_insert_default().add(*nested);
        }
    }

    /// All of what went wrong, at whatever depth.
    pub(crate) fn first_violation(&self) -> Option<&Violation> {
        let deeper = || self.nested.as_ref().and_then(|nested| nested.first_violation());
        self.violations.first().or_else(deeper)
    }
}
