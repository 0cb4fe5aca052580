//! Threads: deterministic schedules of several threads, each with every crash.
//!
//! 1. A schedule says after which accesses to shared memory which thread goes on: to words of the
//!    medium, and to latches and words of inner nodes in DRAM. It is drawn from a seed, and the same
//!    seed draws the same one.
//! 2. What the threads were told must be linearizable. Of each crash, what is recovered must be a
//!    state that some order of the operations explains: all that were acknowledged before the image
//!    was ruled out, with the answers that they gave, and perhaps some that had been invoked. So a
//!    value that was read counts as one that was acknowledged.
//! 3. Threads see each other's stores in one order: what a processor may reorder is left to the
//!    kernels' own tests. What may be lost in a crash is not simplified: a flush is guaranteed by a
//!    fence of the same thread only.
//!
//! | module | what it is |
//! | --- | --- |
//! | `stage` | coroutines, and the turns that they take |
//! | `director` | who goes on |
//! | `medium` | records what each thread does |
//! | `history` | linearizability, key by key |
//! | `crashes` | every crash of a play, each different one once |
//! | `mutants` | checks that pass always, and steps that only threads miss |
//! | `piece`, `plan`, `inner`, `tended` | what is played, and the judge of it |

mod crashes;
mod director;
mod history;
mod inner;
mod medium;
mod mutants;
mod piece;
mod plan;
pub(crate) mod stage;
mod tended;

pub(crate) use mutants::{mutate, try_again};

use crate::kind::{Both, Kind, Tells};
use crate::program::Mode;
use crate::report::{Outcome, Violation};
use crate::run::{POOL, Request, Summary};
use crate::scenario::Finding;
use crate::store::{STORE, StoreDesign};
use crate::tape::{Sabotage, Sites};
use crate::tree::SampleKey;
use bristlecone_trees::names::{UnknownDesign, specs};
use bristlecone_trees::{Design, Spec};
use core::sync::atomic::{AtomicUsize, Ordering};
use crashes::Crashes;
use piece::Piece;
use plan::{PLAYERS_MAX, pieces};
use std::collections::BTreeMap;
use std::sync::mpsc;

/// Schedules of each piece unless more are asked for.
const CONTROLS_SCHEDULE: u64 = 400;
/// The seed of the first schedule unless another is asked for.
const SEED: u64 = 0xB215;
/// Different violations that are kept.
const VIOLATIONS_SHOWN: usize = 5;

/// Which schedules to explore.
#[derive(Clone, Copy, Debug)]
pub struct Drawn {
    /// Threads of a program; 0 for 2, 3 and 4.
    pub threads: usize,
    /// Schedules of each piece.
    pub schedules: u64,
    /// The seed of the first; each other has the next seed.
    pub seed: u64,
    /// Whether the crashes of each schedule are explored, or only what the threads see is judged.
    pub crashes: bool,
    /// What to put into what the threads do: a published defect, or a check that passes always.
    pub sabotage: Option<Sabotage>,
}

impl Default for Drawn {
    fn default() -> Self {
        Self { threads: 0, schedules: CONTROLS_SCHEDULE, seed: SEED, crashes: true, sabotage: None }
    }
}

/// What came of the plays of a piece.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    schedules: u64,
    violating: u64,
    incomplete: bool,
    images: u128,
    recoveries: u64,
    violations: Vec<Violation>,
}

impl Tally {
    /// Keeps a violation if it is the first of its kind, or simpler.
    fn add(&mut self, finding: Finding, trace: String, rank: (u32, u32)) {
        self.violating += 1;
        let Finding { what, expected, found } = finding;
        let violation = Violation { what, expected, found, trace, rank };
        let known = self.violations.iter().position(|known| known.what == violation.what);
        match known {
            Some(known) if rank < self.violations[known].rank => {
                self.violations[known] = violation;
            }
            None if self.violations.len() < VIOLATIONS_SHOWN => self.violations.push(violation),
            _ => {}
        }
    }

    fn with(&self, crashes: &Crashes) -> Self {
        let mut tally = self.clone();
        tally.incomplete |= crashes.incomplete;
        (tally.images, tally.recoveries) = (crashes.images, crashes.recoveries);
        tally
    }
}

/// A piece, ready to be played on any thread.
type Work = Box<dyn Fn(Drawn) -> Vec<Outcome> + Send + Sync>;

/// Explores the schedules that `drawn` asks for of what `request` asks for. Each outcome is shown as
/// soon as it and all before it are there.
///
/// # Errors
/// A design that is asked for does not exist.
pub fn run_threads(
    request: &Request,
    drawn: Drawn,
    on_outcome: &mut dyn FnMut(&Outcome),
) -> Result<Summary, UnknownDesign> {
    let mut names = request.designs.clone();
    if names.is_empty() {
        names.extend(specs().iter().map(|sizes| sizes[0].name.to_string()));
        names.push(STORE.into());
    }
    let mut works = Vec::new();
    for name in names.iter().filter(|&name| name != POOL) {
        let lister = Lister { request, drawn };
        works.extend(match name.as_str() {
            STORE => lister.store(),
            name => lister.list_both(Both::named(name)?),
        });
    }
    Ok(work(request, drawn, &works, on_outcome))
}

/// Explores the schedules of a design that is not in the registry.
pub fn run_threads_of<D: Design>(
    request: &Request,
    drawn: Drawn,
    on_outcome: &mut dyn FnMut(&Outcome),
) -> Summary {
    work(request, drawn, &Lister { request, drawn }.list_both(Both::of::<D>()), on_outcome)
}

/// Plays the pieces of `design`, one after the other, until an outcome is wrong.
pub(crate) fn wrong_with(
    design: &str,
    request: &Request,
    drawn: Drawn,
    on_outcome: &mut dyn FnMut(Outcome),
) {
    let lister = Lister { request, drawn };
    let works = Both::named(design).map(|both| lister.list_both(both)).unwrap_or_default();
    for work in works {
        let mut is_wrong = false;
        for outcome in work(drawn) {
            is_wrong |= !outcome.violations.is_empty();
            on_outcome(outcome);
        }
        if is_wrong {
            return;
        }
    }
}

#[derive(Clone, Copy)]
struct Lister<'a> {
    request: &'a Request,
    drawn: Drawn,
}

impl Lister<'_> {
    /// The pieces of the store.
    fn store(self) -> Vec<Work> {
        self.list_both(Both::of::<StoreDesign>().telling(Tells::Presence))
    }

    fn list_both(self, design: Both) -> Vec<Work> {
        let mut works = self.list(design.numbers);
        works.extend(self.list(design.text));
        works
    }

    fn list<K: SampleKey>(self, kind: Kind<K>) -> Vec<Work> {
        let modes: &[Mode] = if kind.design.spec.persistent && self.drawn.crashes {
            self.request.modes.list(kind.design.spec.relies_on_line_order)
        } else {
            &[]
        };
        let mut works: Vec<Work> = Vec::new();
        match pieces(kind) {
            Ok(pieces) => {
                for piece in pieces {
                    let threads = match self.drawn.threads {
                        0 => 2..=PLAYERS_MAX,
                        threads => threads..=threads,
                    };
                    for threads in threads {
                        let piece = piece.of(threads);
                        if !piece.name.contains(&self.request.filter) {
                            continue;
                        }
                        works.push(Box::new(move |drawn| outcomes(&piece, drawn, modes)));
                    }
                }
            }
            Err(error) => works.push(Box::new(move |_| {
                let what = "the design fails without a crash";
                let mut tally = Tally::default();
                let finding = Finding::new(what, "no error", error.to_string());
                tally.add(finding, String::new(), (0, 0));
                vec![outcome(&kind.design.spec, "pieces", 1, None, tally)]
            })),
        }
        works
    }
}

fn outcomes<K: SampleKey>(piece: &Piece<K>, drawn: Drawn, modes: &[Mode]) -> Vec<Outcome> {
    let tallies = piece.perform(drawn, modes).into_iter();
    let outcome = |(mode, tally)| {
        outcome(&piece.kind.design.spec, &piece.name, piece.parts.len(), mode, tally)
    };
    tallies.map(outcome).collect()
}

fn outcome(spec: &Spec, name: &str, threads: usize, mode: Option<Mode>, tally: Tally) -> Outcome {
    Outcome {
        design: spec.name.into(),
        scenario: name.into(),
        mode: mode.unwrap_or(Mode::Px86),
        depth: 1,
        images: tally.images,
        recoveries: tally.recoveries,
        incomplete: tally.incomplete,
        violations: tally.violations,
        sites: Sites::default(),
        threads,
        schedules: tally.schedules,
    }
}

/// Does `works` on all processors and shows what comes of them in their order.
fn work(
    request: &Request,
    drawn: Drawn,
    works: &[Work],
    show: &mut dyn FnMut(&Outcome),
) -> Summary {
    let threads = match request.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    let mut summary = Summary::default();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(works.len()) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some(index) = Some(next.fetch_add(1, Ordering::Relaxed))
                    && let Some(work) = works.get(index)
                    && sender.send((index, work(drawn))).is_ok()
                {}
            });
        }
        drop(sender);
        let (mut waiting, mut shown) = (BTreeMap::new(), 0);
        for (index, results) in receiver {
            waiting.insert(index, results);
            while let Some(results) = waiting.remove(&shown) {
                for outcome in &results {
                    summary.add(outcome);
                    show(outcome);
                }
                shown += 1;
            }
        }
    });
    summary
}
