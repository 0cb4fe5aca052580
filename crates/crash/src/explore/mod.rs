//! The exact enumeration of crash images, and the proof that it is exact.
//!
//! 1. A crash is tried at the beginning of the operations under test, and directly after each of
//!    their stores. That store is then present, and every other unit is free between its guaranteed
//!    and its stored items. So each reachable image belongs to exactly one of these events.
//! 2. Within an event, recovery fixes the words that it reads. The images that its runs stand for
//!    add up to the images of the event; this is asserted.
//! 3. A recovery that stores anything outside the superblocks is itself explored: see `nested`.
//! 4. Past the budget, the rest of the event and of the scenario is sampled and reported as
//!    incomplete. The budget counts the images that runs stand for.

mod nested;
mod record;
pub(crate) mod task;
pub(crate) mod trace_text;

use crate::config::{Limits, PersistenceModel, RESERVE_BYTES, VIOLATIONS_SHOWN};
use crate::explore::nested::{Before, Nest};
use crate::explore::trace_text::{CrashImage, trace_text};
use crate::guard::{NEVER_ENDS, UnderConditions, guarded};
use crate::medium::lazy_image::LazyImage;
use crate::model::history::StoreHistory;
use crate::model::residue::Residue;
use crate::outcome::{Finding, Violation};
use crate::scenario::Scenario;
use crate::scenario::probe::Probe;
use crate::trace::Trace;
use crate::trace::mutation::Mutation;
use std::sync::Arc;

/// The number of random runs for each event that the budget did not reach.
const SAMPLES: u64 = 200;
/// The result of an exploration.
#[derive(Debug, Default)]
pub(crate) struct Exploration {
    /// The number of reachable images; saturating.
    pub(crate) images: u128,
    /// The number of images that runs stood for; saturating.
    pub(crate) covered: u128,
    /// The number of recoveries that covered them.
    pub(crate) recoveries: u64,
    /// Set if the budget ended before the images.
    pub(crate) incomplete: bool,
    pub(crate) violations: Vec<Violation>,
    /// The result of the crashes of recoveries.
    pub(crate) nested: Option<Box<Exploration>>,
    pub(crate) violating: u64,
    /// The mutations of the recoveries' ordering steps.
    pub(crate) mutations: Vec<Mutation>,
}

/// An exploration under way, of the operations under test or of a recovery.
pub(crate) struct Explorer<'a> {
    pub(crate) scenario: &'a dyn Scenario,
    trace: &'a Trace,
    pub(crate) history: Arc<StoreHistory>,
    pub(crate) medium: LazyImage,
    pub(crate) mode: PersistenceModel,
    pub(crate) limits: Limits,
    /// The crash before, if the trace is that of a recovery.
    pub(crate) before: Option<&'a Before<'a>>,
    /// The media on which recoveries are recorded and explored.
    pub(crate) nest: Option<Box<Nest>>,
    pub(crate) result: Exploration,
}

/// Explores every crash of the operations under test in `trace`, and of the recoveries from them,
/// with `mutation` in the recoveries.
pub(crate) fn explore(
    scenario: &dyn Scenario,
    trace: &Trace,
    mode: PersistenceModel,
    limits: Limits,
    mutation: Option<Mutation>,
) -> Exploration {
    let _conditions = UnderConditions::new(scenario.conditions());
    let history = Arc::new(StoreHistory::compile(trace, mode));
    let defect = mutation.and_then(Mutation::defect);
    let medium = LazyImage::new(Arc::clone(&history), trace.bytes, RESERVE_BYTES, defect);
    let nest = (limits.depth > 1).then(|| Box::new(Nest::new(&history, limits, mutation)));
    let mut explorer = Explorer {
        scenario,
        trace,
        history,
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
    /// Returns the exploration of a recovery with this trace and history.
    pub(crate) fn of_recovery(
        scenario: &'a dyn Scenario,
        (trace, history): (&'a Trace, Arc<StoreHistory>),
        before: &'a Before<'a>,
        nest: &Nest,
        (mode, limits): (PersistenceModel, Limits),
    ) -> Self {
        let medium = nest.medium.clone();
        medium.follow(&history);
        let (before, nest, result) = (Some(before), None, Exploration::default());
        Self { scenario, trace, history, medium, mode, limits, before, nest, result }
    }

    /// Returns `true` if enough runs have violated something.
    pub(crate) fn is_over(&self) -> bool {
        let nested = self.result.nested.as_ref().map_or(0, |nested| nested.violating);
        self.result.violating.max(nested) >= self.limits.violating
    }

    /// Ends the exploration and returns its result.
    pub(crate) fn finish(self) -> Exploration {
        self.result
    }

    /// Explores every event of the history.
    pub(crate) fn run(&mut self) {
        let history = Arc::clone(&self.history);
        let setup = history.steps.partition_point(|&(time, _)| time < history.begin);
        let (setup, tested) = history.steps.split_at(setup);
        for &(_, step) in setup {
            self.medium.advance(step);
        }
        let mut repairing = self.before.is_none();
        if repairing {
            self.event(history.begin, false);
        }
        for &(time, step) in tested {
            self.medium.advance(step);
            repairing |= history.is_past_superblocks(step);
            if let Some(newest) = history.event(step).filter(|_| repairing) {
                self.event(time, newest);
            }
            if self.is_over() {
                self.result.incomplete = true;
                return;
            }
        }
    }

    /// Runs recovery on every image of one event.
    fn event(&mut self, time: u32, newest: bool) {
        let (images, total) = self.medium.arm(newest);
        self.result.images = self.result.images.saturating_add(images);
        let probe = self.probe(time);
        let mut seen = Residue::ZERO;
        let descends = self.may_descend();
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
            if descends {
                self.descend(&probe);
            }
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

    /// Returns the view of a crash at `time` for the oracle.
    pub(crate) fn probe(&self, time: u32) -> Probe {
        Probe {
            medium: self.medium.clone(),
            history: Arc::clone(&self.history),
            since: time,
            nested: self.before.map(|before| before.nested),
        }
    }

    /// Returns `true` if the budget has ended, for an event that fits into it as a `whole` or not.
    fn is_spent(&self, whole: bool) -> bool {
        let images = !whole && self.result.covered >= self.limits.images;
        images || self.result.recoveries >= self.limits.recoveries
    }

    /// Returns the events that led to an image as a text.
    pub(crate) fn trace(&self, image: CrashImage<'_>) -> String {
        match self.before {
            None => {
                let name = |number| self.scenario.operation(number);
                trace_text(self.trace, &self.history, &name, image)
            }
            Some(before) => {
                let name = |number| ["the recovery", "close"][number as usize & 1].into();
                let (crash, lost) = (before.crash, &before.lost);
                let first = CrashImage { crash, until: crash, lost };
                let first = before.explorer.trace(first);
                format!("{first}{}", trace_text(self.trace, &self.history, &name, image))
            }
        }
    }

    /// Checks, after all paths of an event, that each image was covered once, or reports a recovery
    /// that is not deterministic.
    fn settle(&mut self, probe: &Probe, seen: Residue, total: Residue) {
        if self.medium.is_deterministic() {
            assert_eq!(seen, total, "every image of an event is seen exactly once");
        } else {
            let what = "recovery read different words for the same contents";
            let finding = Finding::new(what, "a deterministic recovery", "another path");
            self.violation(probe, finding);
        }
    }

    /// Runs recovery on random images, in all events together at most as often as before.
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

    /// Runs one recovery, and keeps its violation.
    pub(crate) fn judge(&mut self, probe: &Probe) {
        self.result.recoveries += 1;
        // Blocks that a run retires must not become free within it, at a moment that depends on
        // other threads.
        let pinned = bristlecone_pmem::sync::pin();
        let verdict = guarded(|| self.scenario.judge(probe));
        drop(pinned);
        if let Err(finding) = verdict {
            self.violation(probe, finding);
        }
    }

    /// Keeps a violation if it is the first of its kind, or has the shortest trace of it.
    fn violation(&mut self, probe: &Probe, finding: Finding) {
        self.result.violating += 1;
        if finding.what == NEVER_ENDS {
            // Each further run that hangs would take as long as thousands that end.
            self.result.violating = self.limits.violating.max(1);
        }
        let crash = finding.crash.map_or(probe.since, |crash| crash.max(probe.since));
        let mut lost = self.medium.lost();
        lost.extend(self.history.stored_after(self.medium.stored(), crash));
        let weight: u32 = lost.iter().map(|&(_, words)| words.count_ones()).sum();
        let rank = (weight, crash);
        let shown = &mut self.result.violations;
        let known = shown.iter().position(|known| known.what == finding.what);
        if known.map_or(shown.len() < VIOLATIONS_SHOWN, |known| rank < shown[known].rank) {
            let until = self.medium.ruled_out();
            let trace = self.trace(CrashImage { crash, until, lost: &lost });
            let shown = &mut self.result.violations;
            let violation = finding.with_trace(trace, rank);
            match known {
                Some(known) => shown[known] = violation,
                None => shown.push(violation),
            }
        }
    }
}

impl Exploration {
    /// Adds the result of another exploration.
    pub(crate) fn add(&mut self, other: Self) {
        self.images = self.images.saturating_add(other.images);
        self.covered = self.covered.saturating_add(other.covered);
        self.recoveries += other.recoveries;
        self.incomplete |= other.incomplete;
        self.violating += other.violating;
        for mutation in other.mutations {
            if !self.mutations.contains(&mutation) {
                self.mutations.push(mutation);
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

    /// Returns the first violation, at the least depth.
    pub(crate) fn first_violation(&self) -> Option<&Violation> {
        let deeper = || self.nested.as_ref().and_then(|nested| nested.first_violation());
        self.violations.first().or_else(deeper)
    }
}
