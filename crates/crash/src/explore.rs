//! The exact enumeration, and the proof that it was exact.
//!
//! 1. A crash is tried at the beginning of the operations under test, and right after each of their
//!    stores, with that store there and every other unit free between what is guaranteed and what
//!    is stored. So each reachable image belongs to exactly one of these events.
//! 2. Within an event recovery decides what it looks at. The images that its runs stand for add up
//!    to the images of the event; this is asserted.
//! 3. A recovery that stores more than the superblocks is itself explored: from the newest and from
//!    the oldest image of each event. It must come to a state that the first crash allowed, and,
//!    once it has returned, to the one that it came to.
//! 4. Past the budget the rest of the event, and of the scenario, is sampled, and reported as
//!    incomplete.

use crate::program::{Mode, Program, Step};
use crate::recorder::Recorder;
use crate::refiner::{Lost, Refiner, StepsExhausted};
use crate::report::{Violation, trace};
use crate::residue::Residue;
use crate::scenario::{Finding, Nested, Probe, Scenario};
use crate::tape::Tape;
use core::cell::{Cell, RefCell};
use core::hash::{Hash, Hasher};
use std::collections::HashSet;
use std::hash::DefaultHasher;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};

/// Bytes to which media under the explorer can grow.
pub(crate) const RESERVE_BYTES: u64 = 1 << 20;
/// Every open writes the superblocks, which lie below this; the scenarios of opening explore that.
const SUPERBLOCK_BYTES: u64 = 0x2000;
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
    /// Recoveries that were run to decide them.
    pub(crate) recoveries: u64,
    /// Whether the budget ended before the images did.
    pub(crate) incomplete: bool,
    pub(crate) violations: Vec<Violation>,
    /// What the crashes of recoveries came to.
    pub(crate) nested: Option<Box<Exploration>>,
    pub(crate) violating: u64,
}

struct Explorer<'a> {
    scenario: &'a dyn Scenario,
    tape: &'a Tape,
    program: Arc<Program>,
    medium: Refiner,
    budget: u64,
    violations_max: u64,
    /// If what is recorded is a recovery: what it may come to, and the trace of the crash before.
    recovery: Option<(Nested, String)>,
    /// Images from which a recovery was explored.
    recovered: HashSet<u64>,
    result: Exploration,
}

/// Explores every crash of the operations under test on `tape`, and of the recoveries from them,
/// with at most `budget` recoveries each.
pub(crate) fn explore(
    scenario: &dyn Scenario,
    tape: &Tape,
    mode: Mode,
    budget: u64,
) -> Exploration {
    let mut explorer = Explorer::new(scenario, tape, mode, budget, None);
    if mode == Mode::Px86 {
        explorer.result.nested = Some(Box::default());
    }
    explorer.run();
    explorer.result
}

/// Explores until the first violation, and gives it.
pub(crate) fn first_violation(
    scenario: &dyn Scenario,
    tape: &Tape,
    mode: Mode,
    budget: u64,
) -> Option<Violation> {
    let mut explorer = Explorer::new(scenario, tape, mode, budget, None);
    explorer.violations_max = 1;
    explorer.run();
    explorer.result.violations.pop()
}

impl<'a> Explorer<'a> {
    fn new(
        scenario: &'a dyn Scenario,
        tape: &'a Tape,
        mode: Mode,
        budget: u64,
        recovery: Option<(Nested, String)>,
    ) -> Self {
        let program = Arc::new(Program::compile(tape, mode));
        let medium = Refiner::new(Arc::clone(&program), &tape.initial, tape.bytes, RESERVE_BYTES);
        let (recovered, result) = (HashSet::new(), Exploration::default());
        let violations_max = VIOLATIONS_MAX;
        Self {
            scenario,
            tape,
            program,
            medium,
            budget,
            violations_max,
            recovery,
            recovered,
            result,
        }
    }

    fn run(&mut self) {
        let program = Arc::clone(&self.program);
        let setup = program.steps.partition_point(|&(time, _)| time < program.begin);
        let (setup, tested) = program.steps.split_at(setup);
        for &(_, step) in setup {
            self.medium.advance(step);
        }
        self.event(program.begin, false);
        for &(time, step) in tested {
            self.medium.advance(step);
            if matches!(step, Step::Store(_)) {
                self.event(time, true);
            }
            if self.result.violating >= self.violations_max {
                self.result.incomplete = true;
                return;
            }
        }
    }

    /// Tries every image of one event.
    fn event(&mut self, time: u32, newest: bool) {
        let (images, total) = self.medium.arm(newest);
        self.result.images = self.result.images.saturating_add(images);
        let probe = Probe {
            medium: self.medium.clone(),
            program: Arc::clone(&self.program),
            since: time,
            nested: self.recovery.as_ref().map(|&(nested, _)| nested),
        };
        let mut seen = Residue::ZERO;
        loop {
            if self.result.recoveries >= self.budget || self.result.violating >= self.violations_max
            {
                self.result.incomplete = true;
                self.sample(&probe);
                break;
            }
            self.medium.start(None);
            self.judge(&probe);
            seen = seen.plus(self.medium.weight(total));
            self.medium.restore();
            if !self.medium.next_path() {
                self.settle(&probe, seen, total);
                break;
            }
        }
        if self.result.nested.is_some() && self.result.violating == 0 {
            self.recover_from(&probe, true);
            self.recover_from(&probe, false);
        }
        self.medium.disarm();
    }

    /// Explores the crashes of the recovery from one image of the event.
    fn recover_from(&mut self, probe: &Probe, newest: bool) {
        self.medium.start(None);
        let (image, bytes) = self.medium.decide_all(newest);
        let admitted = probe.admitted();
        let trace = self.trace(probe.since, &self.medium.lost());
        let before = self.medium.writes();
        // What is wrong with the recovery itself was found before.
        let opened = guarded(|| self.scenario.open(&self.medium));
        let has_stored = self.medium.has_stored_past(SUPERBLOCK_BYTES, before);
        self.medium.restore();
        let mut hasher = DefaultHasher::new();
        (&image, admitted).hash(&mut hasher);
        if opened.is_err() || !has_stored || !self.recovered.insert(hasher.finish()) {
            return;
        }
        let recorder = Recorder::resume(image, bytes, RESERVE_BYTES);
        let mut settled = 0;
        let recorded = guarded(|| self.scenario.reopen(&recorder).map(|states| settled = states));
        let Ok((tape, _)) = recorder.finish() else { return };
        if recorded.is_err() {
            return;
        }
        let Some(nested) = &mut self.result.nested else { return };
        let recovery = Some((Nested { admitted, settled }, trace));
        let budget = self.budget.saturating_sub(nested.recoveries);
        let mut explorer = Explorer::new(self.scenario, &tape, Mode::Px86, budget, recovery);
        explorer.run();
        nested.add(explorer.result);
    }

    /// Writes down what led to an image.
    fn trace(&self, crash: u32, lost: &Lost) -> String {
        match &self.recovery {
            None => {
                let name = |number| self.scenario.operation(number);
                trace(self.tape, &self.program, &name, crash, lost)
            }
            Some((_, before)) => {
                let name = |_| "the recovery".into();
                format!("{before}{}", trace(self.tape, &self.program, &name, crash, lost))
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

    /// Tries images at random.
    fn sample(&mut self, probe: &Probe) {
        for sample in 0..SAMPLES {
            if self.result.violating >= self.violations_max {
                return;
            }
            let seed = u64::from(probe.since) << 32 | sample;
            self.medium.start(Some(seed));
            self.judge(probe);
            self.medium.restore();
        }
    }

    /// Recovers once.
    fn judge(&mut self, probe: &Probe) {
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
    fn add(&mut self, other: Self) {
        self.images = self.images.saturating_add(other.images);
        self.recoveries += other.recoveries;
        self.incomplete |= other.incomplete;
        for violation in other.violations {
            let known = self.violations.iter().any(|known| known.what == violation.what);
            if !known && self.violations.len() < VIOLATIONS_SHOWN {
                self.violations.push(violation);
            }
        }
    }
}

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs `judge`; a panic, or a run that does not end, is a finding.
pub(crate) fn guarded(judge: impl FnOnce() -> Result<(), Finding>) -> Result<(), Finding> {
    hook_panics();
    let was_quiet = IS_QUIET.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(judge));
    IS_QUIET.set(was_quiet);
    outcome.unwrap_or_else(|payload| {
        Err(if payload.is::<StepsExhausted>() {
            Finding::new("it does not end", "an end", "over two million accesses")
        } else {
            Finding::new("panic", "no panic", MESSAGE.take())
        })
    })
}

/// What the last panic under [`guarded`] on this thread said.
pub(crate) fn panic_message() -> String {
    MESSAGE.take()
}

/// Keeps panics under [`guarded`] off the terminal; others go where they went before.
fn hook_panics() {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if IS_QUIET.get() {
                MESSAGE.set(info.to_string());
            } else {
                previous(info);
            }
        }));
    });
}
