//! The scenarios of a request, and the threads that work through them.

use crate::explore::RESERVE_BYTES;
use crate::guard::guarded;
use crate::kind::{Both, Kind, Tells};
use crate::program::Mode;
use crate::recorder::Recorder;
use crate::run::{Modes, POOL, Request};
use crate::scenario::{Family, Finding, Scenario};
use crate::store::{STORE, StoreDesign};
use crate::tape::{Sabotage, Sites, Tape};
use crate::tree::{Random, SampleKey, plans, sequences};
use bristlecone_registry::with_size;
use bristlecone_trees::names::{UnknownDesign, specs};
use bristlecone_trees::{Design, Spec, TreeError};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::mpsc;

/// A scenario to explore, in some modes.
pub(crate) struct Job {
    pub(crate) design: String,
    pub(crate) modes: &'static [Mode],
    pub(crate) work: Work,
}

/// What a job explores.
pub(crate) enum Work {
    One(Box<dyn Scenario>),
    Many(Box<dyn Family>),
    /// The design did something wrong before there was anything to explore.
    Failed(Finding),
}

impl Job {
    /// A job of that design: families in the strictest of the modes alone, for they are long.
    fn new(design: &str, modes: Modes, relies_on_line_order: bool, work: Work) -> Self {
        let modes = match work {
            Work::Many(_) => modes.strictest(relies_on_line_order),
            Work::One(_) | Work::Failed(_) => modes.list(relies_on_line_order),
        };
        Self { design: design.into(), modes, work }
    }
}

impl Work {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::One(scenario) => scenario.name(),
            Self::Many(family) => family.name(),
            Self::Failed(_) => "cases",
        }
    }
}

/// The scenarios that `request` asks for.
pub(crate) fn jobs(request: &Request) -> Result<Vec<Job>, UnknownDesign> {
    let mut names = request.designs.clone();
    if names.is_empty() {
        names.push(POOL.into());
        names.extend(specs().iter().map(|sizes| sizes[0].name.to_string()));
        names.push(STORE.into());
    }
    let mut jobs = Vec::new();
    for name in names {
        if name == POOL {
            jobs.extend(crate::pool::scenarios().into_iter().map(|scenario| {
                let relies_on_line_order = scenario.relies_on_line_order();
                Job::new(POOL, request.modes, relies_on_line_order, Work::One(scenario))
            }));
            continue;
        }
        if name == STORE {
            jobs.extend(jobs_of::<StoreDesign>(request));
            continue;
        }
        jobs.extend(jobs_of_both(Both::named(&name)?, request));
    }
    Ok(jobs)
}

/// The scenarios of a design that may not be in the registry.
pub(crate) fn jobs_of<D: Design>(request: &Request) -> Vec<Job> {
    jobs_of_both(Both::of::<D>(), request)
}

/// The scenarios of a design that may not be in the registry, with numbers as keys alone.
pub(crate) fn jobs_of_numbers<D: Design>(request: &Request) -> Vec<Job> {
    jobs_of_kind(Kind::<u64>::of::<D>(), request)
}

/// The scenarios of a registered design at one of its node sizes, with numbers as keys alone.
pub(crate) fn jobs_at_size(
    name: &str,
    node_bytes: usize,
    request: &Request,
) -> Result<Vec<Job>, UnknownDesign> {
    let form = with_size(name, node_bytes)?.simulated.numbers;
    let design = form.ok_or_else(|| UnknownDesign::new(name, Some(node_bytes)))?;
    Ok(jobs_of_kind(Kind { design, tells: Tells::Values }, request))
}

fn jobs_of_kind<K: SampleKey>(kind: Kind<K>, request: &Request) -> Vec<Job> {
    let works = list(kind, request);
    works.into_iter().map(|work| job_of(&kind.design.spec, request, work)).collect()
}

fn job_of(spec: &Spec, request: &Request, work: Work) -> Job {
    Job::new(spec.name, request.modes, spec.relies_on_line_order, work)
}

fn jobs_of_both(design: Both, request: &Request) -> Vec<Job> {
    let spec = design.spec();
    if !spec.persistent {
        return Vec::new();
    }
    let mut works = list(design.numbers, request);
    works.extend(list(design.text, request));
    works.into_iter().map(|work| job_of(spec, request, work)).collect()
}

/// The scenarios of a design with one kind of key, or why there are none.
fn list<K: SampleKey>(kind: Kind<K>, request: &Request) -> Vec<Work> {
    let mut list = Vec::new();
    let outcome = guarded(|| {
        let fails = |error: TreeError| {
            let what = "the design fails without a crash";
            Finding::new(what, "no error", error.to_string())
        };
        let plans = plans(kind).map_err(fails)?;
        list.extend(plans.into_iter().map(|plan| Work::One(Box::new(plan))));
        if request.sequences > 0 {
            let families = sequences(kind, request.sequences).map_err(fails)?;
            list.extend(families.into_iter().map(|family| Work::Many(Box::new(family))));
        }
        if request.random > 0 {
            let random = Random::new(kind, request.seed, request.random);
            list.push(Work::Many(Box::new(random)));
        }
        Ok(())
    });
    list.extend(outcome.err().map(Work::Failed));
    list
}

/// Does `each` of `jobs` on all threads and shows what comes of them in the order of the jobs.
pub(crate) fn work<T: Send>(
    request: &Request,
    jobs: Vec<Job>,
    each: &(dyn Fn(&Job, &Request) -> Vec<T> + Sync),
    show: &mut dyn FnMut(&T),
) {
    let matches = |job: &Job| match &job.work {
        Work::Failed(_) => true,
        work => work.name().contains(&request.filter),
    };
    let jobs: Vec<Job> = jobs.into_iter().filter(matches).collect();
    in_order(request.threads, &jobs, &|job| each(job, request), show);
}

/// Does `each` of `jobs` on so many threads, or on all if 0, and shows what comes of them in their
/// order.
pub(crate) fn in_order<J: Sync, T: Send>(
    threads: usize,
    jobs: &[J],
    each: &(dyn Fn(&J) -> Vec<T> + Sync),
    show: &mut dyn FnMut(&T),
) {
    let threads = match threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(jobs.len()) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some(index) = Some(next.fetch_add(1, Ordering::Relaxed))
                    && let Some(job) = jobs.get(index)
                    && sender.send((index, each(job))).is_ok()
                {}
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut shown = 0;
        for (index, results) in receiver {
            waiting.insert(index, results);
            while let Some(results) = waiting.remove(&shown) {
                results.iter().for_each(&mut *show);
                shown += 1;
            }
        }
    });
}

/// Runs a scenario once, without a crash.
pub(crate) fn record(
    scenario: &dyn Scenario,
    sabotage: Option<Sabotage>,
) -> Result<(Tape, Sites), Finding> {
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
