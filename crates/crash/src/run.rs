//! The explorer as one call: which designs, which modes, how far.

use crate::explore::{Exploration, Limits, explore};
use crate::jobs::{Job, Work, jobs, jobs_of, record, work};
use crate::program::Mode;
use crate::report::Outcome;
use crate::scenario::{Family, Finding, Scenario, Verdict};
use crate::tape::{Sabotage, Sites, Tape};
use bristlecone_trees::Design;
use bristlecone_trees::names::UnknownDesign;

/// Bytes of the pools that are explored: small, and yet no operation under test grows them by
/// chance.
pub(crate) const POOL_BYTES: u64 = 12 * bristlecone_pmem::pool::HEADER_BYTES;

/// The name under which the pool by itself is explored.
pub const POOL: &str = "pool";

/// Which modes to explore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Modes {
    /// Every mode that applies to the design; sequences and random ones in the strictest of them.
    #[default]
    Auto,
    /// That mode alone.
    Only(Mode),
}

impl Modes {
    /// The modes of that name: `auto`, `px86`, `word`.
    pub fn from_name(name: &str) -> Option<Self> {
        let modes = [Self::Auto, Self::Only(Mode::Px86), Self::Only(Mode::Word)];
        modes.into_iter().find(|modes| modes.name() == name)
    }

    /// Their name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Only(mode) => mode.name(),
        }
    }

    pub(crate) fn list(self, relies_on_line_order: bool) -> &'static [Mode] {
        match self {
            Self::Auto if relies_on_line_order => &[Mode::Px86],
            Self::Auto => &[Mode::Px86, Mode::Word],
            Self::Only(Mode::Px86) => &[Mode::Px86],
            Self::Only(Mode::Word) => &[Mode::Word],
        }
    }

    /// Of those modes the strictest: its images are those of the others, and more.
    pub(crate) fn strictest(self, relies_on_line_order: bool) -> &'static [Mode] {
        let list = self.list(relies_on_line_order);
        &list[list.len() - 1..]
    }
}

/// What to explore.
#[derive(Clone, Debug)]
pub struct Request {
    /// Names of designs, [`POOL`] among them; none for all.
    pub designs: Vec<String>,
    /// The modes.
    pub modes: Modes,
    /// Images after which an outcome is sampled only, and reported as incomplete. The images that
    /// its recoveries stand for count, as in [`Outcome::images`], so it is no more than so many
    /// recoveries either.
    pub budget: u128,
    /// Crashes one after the other: 1 is a crash of the operations, 2 one of the recovery from it as
    /// well. Up to 2 they are explored wholly, a third is sampled.
    pub depth: u32,
    /// Length up to which every sequence of operations is explored; 0 for none.
    pub sequences: u32,
    /// How many long sequences are drawn at random.
    pub random: u64,
    /// The seed of the first of them; each later one has the next number.
    pub seed: u64,
    /// Threads to explore with; 0 for as many as the machine runs at once.
    pub threads: usize,
    /// Explores only scenarios whose name contains this.
    pub filter: String,
    /// A defect to put into the operations under test.
    pub sabotage: Option<Sabotage>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            designs: Vec::new(),
            modes: Modes::Auto,
            budget: u128::MAX,
            depth: 2,
            sequences: 3,
            random: 20,
            seed: 1,
            threads: 0,
            filter: String::new(),
            sabotage: None,
        }
    }
}

/// All outcomes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Outcomes.
    pub scenarios: u64,
    /// Images covered; saturating.
    pub images: u128,
    /// Recoveries run.
    pub recoveries: u64,
    /// Outcomes that are incomplete.
    pub incomplete: u64,
    /// Outcomes with a violation.
    pub violated: u64,
}

impl Summary {
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        self.scenarios += 1;
        self.images = self.images.saturating_add(outcome.images);
        self.recoveries += outcome.recoveries;
        self.incomplete += u64::from(outcome.incomplete);
        self.violated += u64::from(!outcome.violations.is_empty());
    }

    /// Whether every image was covered and none violated anything.
    pub fn is_pass(&self) -> bool {
        self.incomplete == 0 && self.violated == 0
    }
}

/// Explores what `request` asks for. Each outcome is shown as soon as it and all before it are
/// there; their order is always the same.
///
/// # Errors
/// A design that is asked for does not exist.
pub fn run(
    request: &Request,
    on_outcome: &mut dyn FnMut(&Outcome),
) -> Result<Summary, UnknownDesign> {
    let jobs = jobs(request)?;
    let mut summary = Summary::default();
    work(request, jobs, &Job::explore, &mut |outcome| {
        summary.add(outcome);
        on_outcome(outcome);
    });
    Ok(summary)
}

/// Explores a design that is not in the registry.
pub fn run_design<D: Design>(request: &Request, on_outcome: &mut dyn FnMut(&Outcome)) -> Summary {
    explore_jobs(request, jobs_of::<D>(request), on_outcome)
}

/// Explores `jobs`.
pub(crate) fn explore_jobs(
    request: &Request,
    jobs: Vec<Job>,
    on_outcome: &mut dyn FnMut(&Outcome),
) -> Summary {
    let mut summary = Summary::default();
    work(request, jobs, &Job::explore, &mut |outcome| {
        summary.add(outcome);
        on_outcome(outcome);
    });
    summary
}

impl Job {
    fn explore(&self, request: &Request) -> Vec<Outcome> {
        match &self.work {
            Work::One(scenario) => match record(&**scenario, request.sabotage) {
                Ok((tape, sites)) => self.explore_one(request, &**scenario, &tape, sites),
                Err(finding) => self.failed(&finding),
            },
            Work::Many(family) => {
                let modes = self.modes.iter();
                modes.map(|&mode| self.explore_many(request, &**family, mode)).collect()
            }
            Work::Failed(finding) => self.failed(finding),
        }
    }

    fn outcome(&self, mode: Mode, explored: Exploration) -> Outcome {
        Outcome {
            design: self.design.clone(),
            scenario: self.work.name().into(),
            mode,
            depth: 1,
            images: explored.images,
            recoveries: explored.recoveries,
            incomplete: explored.incomplete,
            violations: explored.violations,
            sites: Sites::default(),
            threads: 1,
            schedules: 1,
        }
    }

    /// What is wrong without any crash, in every mode.
    fn failed(&self, finding: &Finding) -> Vec<Outcome> {
        let outcome = |&mode| {
            let violations = vec![finding.without_crash()];
            self.outcome(mode, Exploration { violations, ..Exploration::default() })
        };
        self.modes.iter().map(outcome).collect()
    }

    /// A scenario in every mode, and a row for each depth of crashes.
    fn explore_one(
        &self,
        request: &Request,
        scenario: &dyn Scenario,
        tape: &Tape,
        sites: Sites,
    ) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for &mode in self.modes {
            let limits =
                Limits { sabotage: request.sabotage, ..Limits::new(request.budget, request.depth) };
            let mut explored = explore(scenario, tape, mode, limits);
            let mut nested = explored.nested.take();
            outcomes.push(Outcome { sites, ..self.outcome(mode, explored) });
            for depth in 2_u32.. {
                let Some(mut explored) = nested.filter(|nested| nested.recoveries > 0) else {
                    break;
                };
                nested = explored.nested.take();
                let name = self.work.name();
                let scenario = format!("{name}{}", "+recovery".repeat(depth as usize - 1));
                outcomes.push(Outcome { scenario, depth, ..self.outcome(mode, *explored) });
            }
        }
        outcomes
    }

    /// The scenarios of a family as one outcome. Of those that are wrong the last is shown.
    fn explore_many(&self, request: &Request, family: &dyn Family, mode: Mode) -> Outcome {
        let mut total = Exploration::default();
        family.each(&mut |scenario| {
            let recorded = record(scenario, request.sabotage);
            let mut leads_on = true;
            let mut explored = match recorded {
                Ok((tape, _)) if !tape.has_stored() => return Verdict::Idle,
                Ok((tape, _)) => {
                    leads_on = tape.has_changed();
                    let images = request.budget.saturating_sub(total.covered);
                    let images = if request.budget == u128::MAX { u128::MAX } else { images };
                    let sabotage = request.sabotage;
                    explore(scenario, &tape, mode, Limits { sabotage, ..Limits::new(images, 1) })
                }
                Err(finding) => {
                    let violations = vec![finding.without_crash()];
                    Exploration { violations, ..Exploration::default() }
                }
            };
            for violation in &mut explored.violations {
                violation.trace = format!("  {}\n{}", scenario.name(), violation.trace);
            }
            let is_right = explored.violations.is_empty();
            if !is_right {
                total.violations.clear();
            }
            total.add(explored);
            match (is_right, leads_on) {
                (false, _) => Verdict::Wrong,
                (true, false) => Verdict::Idle,
                (true, true) => Verdict::Right,
            }
        });
        self.outcome(mode, total)
    }
}
