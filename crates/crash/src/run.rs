//! The explorer as one call: which designs, which modes, how far.

use crate::explore::{Exploration, explore};
use crate::jobs::{Job, jobs, jobs_of, record, work};
use crate::program::Mode;
use crate::report::{Outcome, Violation};
use crate::scenario::Finding;
use crate::tape::{Sabotage, Sites};
use bristlecone_trees::Design;
use bristlecone_trees::registry::UnknownDesign;

/// Bytes of the pools that are explored: small, and yet no operation under test grows them by
/// chance.
pub(crate) const POOL_BYTES: u64 = 12 * bristlecone_pmem::pool::HEADER_BYTES;

/// The name under which the pool by itself is explored.
pub const POOL: &str = "pool";

/// Which modes to explore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Modes {
    /// Every mode that applies to the design.
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
}

/// What to explore.
#[derive(Clone, Debug)]
pub struct Request {
    /// Names of designs, [`POOL`] among them; none for all.
    pub designs: Vec<String>,
    /// The modes.
    pub modes: Modes,
    /// Recoveries after which a scenario is sampled only, and reported as incomplete.
    pub budget: u64,
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
            budget: 20_000_000,
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
    let mut summary = Summary::default();
    work(request, jobs_of::<D>(request), &Job::explore, &mut |outcome| {
        summary.add(outcome);
        on_outcome(outcome);
    });
    summary
}

impl Job {
    fn explore(&self, request: &Request) -> Vec<Outcome> {
        let recorded = match &self.scenario {
            Ok(scenario) => record(&**scenario, request.sabotage).map(|tape| (scenario, tape)),
            Err(finding) => Err(finding.clone()),
        };
        let name = self.scenario.as_ref().map_or("cases", |scenario| scenario.name());
        let outcome = |mode, explored: Exploration| Outcome {
            design: self.design.clone(),
            scenario: name.into(),
            mode,
            images: explored.images,
            recoveries: explored.recoveries,
            incomplete: explored.incomplete,
            violations: explored.violations,
            sites: Sites::default(),
            threads: 1,
            schedules: 1,
        };
        let mut outcomes = Vec::new();
        for &mode in self.modes {
            match &recorded {
                Ok((scenario, (tape, sites))) => {
                    let mut explored = explore(&***scenario, tape, mode, request.budget);
                    let nested = explored.nested.take().filter(|nested| nested.recoveries > 0);
                    outcomes.push(Outcome { sites: *sites, ..outcome(mode, explored) });
                    if let Some(nested) = nested {
                        let scenario = format!("{name}+recovery");
                        outcomes.push(Outcome { scenario, ..outcome(mode, *nested) });
                    }
                }
                Err(Finding { what, expected, found }) => {
                    let (what, expected, found) = (what.clone(), expected.clone(), found.clone());
                    let trace = String::new();
                    let violation = Violation { what, expected, found, trace, rank: (0, 0) };
                    let violations = vec![violation];
                    outcomes
                        .push(outcome(mode, Exploration { violations, ..Exploration::default() }));
                }
            }
        }
        outcomes
    }
}
