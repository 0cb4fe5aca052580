//! The explorer as one call: which designs, which modes, how far.

use crate::explore::{Exploration, RESERVE_BYTES, explore, guarded};
use crate::program::Mode;
use crate::recorder::Recorder;
use crate::report::{Outcome, Violation};
use crate::scenario::{Finding, Scenario};
use crate::tape::{Sabotage, Sites, Tape};
use crate::tree::{SampleKey, plans};
use bristlecone_trees::registry::{UnknownDesign, Visitor, specs, with_smallest};
use bristlecone_trees::{Design, Text};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::mpsc;

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

    fn list(self, relies_on_line_order: bool) -> &'static [Mode] {
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
    fn add(&mut self, outcome: &Outcome) {
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

/// A scenario to explore, in some modes.
struct Job {
    design: String,
    modes: &'static [Mode],
    scenario: Result<Box<dyn Scenario>, Finding>,
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
    let all = || specs().iter().map(|sizes| sizes[0].name.to_string()).collect::<Vec<_>>();
    let mut names = request.designs.clone();
    if names.is_empty() {
        names = all();
        names.insert(0, POOL.into());
    }
    let mut jobs = Vec::new();
    for name in names {
        if name == POOL {
            jobs.extend(crate::pool::scenarios().into_iter().map(|scenario| Job {
                design: POOL.into(),
                modes: request.modes.list(scenario.relies_on_line_order()),
                scenario: Ok(scenario),
            }));
            continue;
        }
        jobs.extend(with_smallest(&name, Lister(request.modes))?);
    }
    Ok(work(request, jobs, on_outcome))
}

/// Explores a design that is not in the registry.
pub fn run_design<D: Design>(request: &Request, on_outcome: &mut dyn FnMut(&Outcome)) -> Summary {
    work(request, Lister(request.modes).visit::<D>(), on_outcome)
}

struct Lister(Modes);

impl Visitor for Lister {
    type Output = Vec<Job>;

    fn visit<D: Design>(self) -> Vec<Job> {
        if !D::SPEC.persistent {
            return Vec::new();
        }
        let modes = self.0.list(D::SPEC.relies_on_line_order);
        let mut scenarios = list::<D, u64>();
        scenarios.extend(list::<D, Text>());
        let job = |scenario| Job { design: D::SPEC.name.into(), modes, scenario };
        scenarios.into_iter().map(job).collect()
    }
}

/// The scenarios of a design with one kind of key, or why there are none.
fn list<D: Design, K: SampleKey>() -> Vec<Result<Box<dyn Scenario>, Finding>> {
    let mut list = Vec::new();
    let outcome = guarded(|| {
        let plans = plans::<D, K>();
        let fails = "the design fails without a crash";
        let plans = plans.map_err(|error| Finding::new(fails, "no error", error.to_string()))?;
        list.extend(plans.into_iter().map(|plan| Ok(Box::new(plan) as Box<dyn Scenario>)));
        Ok(())
    });
    list.extend(outcome.err().map(Err));
    list
}

/// Explores `jobs` on all threads and shows their outcomes in order.
fn work(request: &Request, jobs: Vec<Job>, on_outcome: &mut dyn FnMut(&Outcome)) -> Summary {
    let matches = |job: &Job| match &job.scenario {
        Ok(scenario) => scenario.name().contains(&request.filter),
        Err(_) => true,
    };
    let jobs: Vec<Job> = jobs.into_iter().filter(matches).collect();
    let threads = match request.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    let mut summary = Summary::default();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(jobs.len()) {
            let (sender, jobs, next) = (sender.clone(), &jobs, &next);
            scope.spawn(move || {
                while let Some(index) = Some(next.fetch_add(1, Ordering::Relaxed))
                    && let Some(job) = jobs.get(index)
                    && sender.send((index, job.explore(request))).is_ok()
                {}
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut shown = 0;
        for (index, outcomes) in receiver {
            waiting.insert(index, outcomes);
            while let Some(outcomes) = waiting.remove(&shown) {
                for outcome in &outcomes {
                    summary.add(outcome);
                    on_outcome(outcome);
                }
                shown += 1;
            }
        }
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

/// Runs a scenario once, without a crash.
fn record(scenario: &dyn Scenario, sabotage: Option<Sabotage>) -> Result<(Tape, Sites), Finding> {
    let recorder = Recorder::new(scenario.bytes(), RESERVE_BYTES, sabotage);
    guarded(|| scenario.record(&recorder))?;
    recorder.finish().map_err(|bypassed| {
        let what = "a store went around the medium";
        Finding::new(
            what,
            "every store recorded",
            format!("the word at {:#x} differs", bypassed.at),
        )
    })
}
