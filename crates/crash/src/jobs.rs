//! The scenarios of a request, and the threads that work through them.

use crate::explore::RESERVE_BYTES;
use crate::guard::guarded;
use crate::program::Mode;
use crate::recorder::Recorder;
use crate::run::{Modes, POOL, Request};
use crate::scenario::{Finding, Scenario};
use crate::tape::{Sabotage, Sites, Tape};
use crate::tree::{SampleKey, plans};
use bristlecone_trees::registry::{UnknownDesign, Visitor, specs, with_smallest};
use bristlecone_trees::{Design, Text};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::mpsc;

/// A scenario to explore, in some modes.
pub(crate) struct Job {
    pub(crate) design: String,
    pub(crate) modes: &'static [Mode],
    pub(crate) scenario: Result<Box<dyn Scenario>, Finding>,
}

/// The scenarios that `request` asks for.
pub(crate) fn jobs(request: &Request) -> Result<Vec<Job>, UnknownDesign> {
    let mut names = request.designs.clone();
    if names.is_empty() {
        names.push(POOL.into());
        names.extend(specs().iter().map(|sizes| sizes[0].name.to_string()));
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
    Ok(jobs)
}

/// The scenarios of a design that may not be in the registry.
pub(crate) fn jobs_of<D: Design>(request: &Request) -> Vec<Job> {
    Lister(request.modes).visit::<D>()
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

/// Does `each` of `jobs` on all threads and shows what comes of them in the order of the jobs.
pub(crate) fn work<T: Send>(
    request: &Request,
    jobs: Vec<Job>,
    each: &(dyn Fn(&Job, &Request) -> Vec<T> + Sync),
    show: &mut dyn FnMut(&T),
) {
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
    std::thread::scope(|scope| {
        for _ in 0..threads.min(jobs.len()) {
            let (sender, jobs, next) = (sender.clone(), &jobs, &next);
            scope.spawn(move || {
                while let Some(index) = Some(next.fetch_add(1, Ordering::Relaxed))
                    && let Some(job) = jobs.get(index)
                    && sender.send((index, each(job, request))).is_ok()
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
