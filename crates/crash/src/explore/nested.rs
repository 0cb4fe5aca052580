//! Crashes of recoveries: what a recovery stores is itself recorded and explored.
//!
//! 1. A run that recovery decided stands for images that it cannot tell apart: the recovery stores the
//!    same in all of them, and everything that was read afterwards, by the check, the scan and the
//!    battery, is the same as well. So each such run is explored once, with its newest image. If a
//!    second recovery reads a word in which those images differ, the run forks there: then it stands
//!    for the images that agree with what was read, and each of the others is explored in its turn.
//! 2. What is recorded is the recovery and then a clean close: what the recovery repaired and did not
//!    make durable must not be believed by an open that repairs nothing.
//! 3. A second recovery must come to a state that the first crash allowed, and, once the first
//!    recovery has returned, to the one that it came to.
//! 4. Crashes before the recovery has stored anything but the superblocks leave what the first crash
//!    left, but for the superblocks, which scenarios of opening explore.
//! 5. What is found of a recovery follows from what it stores and from those words of the image it
//!    begins with that are read before they are stored. So recoveries that agree in both are explored
//!    once, whatever else their images hold.
//! 6. At the second crash that is done for every image, at the third for a sample: a few crashes of
//!    each recovery, each with one image, chosen at random, from the same numbers each time.

use crate::config::{Limits, RESERVE_BYTES};
use crate::explore::{Exploration, Explorer};
use crate::guard::guarded;
use crate::medium::lazy_image::{LazyImage, LostWords};
use crate::medium::recorder::Recorder;
use crate::model::contents::Cube;
use crate::model::history::{Step, StoreHistory};
use crate::scenario::probe::{Nested, Probe};
use crate::trace::mutation::Mutation;
use std::collections::HashMap;
use std::sync::Arc;

/// Crashes one after the other that are explored wholly; deeper ones are sampled.
const DEPTH_WHOLE: u32 = 2;
/// Samples of each recovery that is sampled.
const SAMPLES: u64 = 3;

/// The media of a recovery that is recorded and explored, used again for each.
pub(crate) struct Nest {
    recorder: Recorder,
    pub(crate) medium: LazyImage,
    limits: Limits,
    /// The crash after that.
    deeper: Option<Box<Nest>>,
    /// Recoveries that were explored wholly, with nothing wrong.
    known: HashMap<Recovery, Vec<Known>>,
    /// Counts samples, as a source of their numbers.
    sampled: u64,
}

/// The crash that a recovery follows.
pub(crate) struct Before<'a> {
    pub(crate) explorer: &'a Explorer<'a>,
    pub(crate) crash: u32,
    pub(crate) lost: LostWords,
    pub(crate) nested: Nested,
}

impl Nest {
    /// For recoveries from crashes of what is explored with `limits`.
    pub(crate) fn new(
        history: &Arc<StoreHistory>,
        limits: Limits,
        mutation: Option<Mutation>,
    ) -> Self {
        let recorder = Recorder::spare(RESERVE_BYTES, mutation);
        let defect = mutation.and_then(Mutation::defect);
        let medium = LazyImage::new(Arc::clone(history), 0, RESERVE_BYTES, defect);
        let less = Limits { depth: limits.depth - 1, ..limits };
        let deeper = (less.depth > 1).then(|| Box::new(Self::new(history, less, mutation)));
        Self { recorder, medium, limits: less, deeper, known: HashMap::new(), sampled: 0 }
    }
}

impl Explorer<'_> {
    /// Explores the crashes of the recovery that has just been judged.
    pub(crate) fn descend(&mut self, probe: &Probe) {
        if self.nest.is_none() || self.is_over() || !self.medium.has_repaired() {
            return;
        }
        let mut run = self.medium.undecided();
        self.medium.restore();
        self.medium.take_rest(&mut run);
        // What is lost, and what may be, follows from the images that are left.
        self.medium.go_back(run.clone());
        let (time, lost, admitted) = (probe.since, self.medium.lost(), probe.admitted());
        self.medium.restore();
        let Some(mut nest) = self.nest.take() else { return };
        let nested = Nested { admitted, settled: 0 };
        let crash = Crash { time, lost, nested, newest: run.newest() };
        if let Some((result, read)) = self.recover(&mut nest, crash) {
            self.result.nested.get_or_insert_default().add(result);
            self.medium.tell_apart(&mut run, read.into_iter());
        }
        self.medium.go_back(run);
        self.nest = Some(nest);
    }

    /// Records the recovery from a crash, and explores it. Gives the words of the crash's image that any
    /// recovery read, too, if all were tried.
    fn recover(&self, nest: &mut Nest, crash: Crash) -> Option<(Exploration, Vec<u32>)> {
        self.medium.start(None);
        self.medium.decide(&crash.newest);
        nest.recorder.reset(self.medium.arena());
        nest.medium.reset(self.medium.arena());
        self.medium.restore();
        let mut settled = 0;
        let recorded =
            guarded(|| self.scenario.reopen(&nest.recorder).map(|states| settled = states));
        let (trace, _) = nest.recorder.finish().ok()?;
        // What is wrong with the recovery itself was found before.
        recorded.ok()?;
        let nested = Nested { settled, ..crash.nested };
        let before = Before { explorer: self, crash: crash.time, lost: crash.lost, nested };
        let spent = self.result.nested.as_ref().map_or(0, |nested| nested.covered);
        // No limit stays none, whatever was spent.
        let images = match nest.limits.images {
            u128::MAX => u128::MAX,
            images => images.saturating_sub(spent),
        };
        let limits = Limits { images, ..nest.limits };
        let history = Arc::new(StoreHistory::compile(&trace, self.mode));
        let recovery = Recovery { history: Arc::clone(&history), bytes: trace.bytes, nested };
        // A third crash is sampled, and so is another sample each time.
        let is_whole = self.depth() < DEPTH_WHOLE;
        let may_be_known = is_whole && nest.deeper.is_none();
        if may_be_known && let Some(Known { read, images }) = nest.recall(&recovery) {
            let (images, covered, mutations) = (*images, *images, trace.mutations(false));
            let known = Exploration { images, covered, mutations, ..Exploration::default() };
            return Some((known, words_of(read)));
        }
        let with = (self.mode, limits);
        let mut explorer =
            Explorer::of_recovery(self.scenario, (&trace, history), &before, nest, with);
        if is_whole {
            explorer.nest = nest.deeper.take();
            explorer.run();
            nest.deeper = explorer.nest.take();
            explorer.result.mutations = trace.mutations(false);
        } else {
            nest.sampled += 1;
            explorer.sample_events(nest.sampled);
        }
        let result = explorer.finish();
        let read = if is_whole { nest.medium.noted() } else { Vec::new() };
        let words = words_of(&read);
        if may_be_known && result.violating == 0 && !result.incomplete {
            let known = Known { read, images: result.images };
            nest.known.entry(recovery).or_default().push(known);
        }
        Some((result, words))
    }

    /// Crashes so far.
    fn depth(&self) -> u32 {
        1 + self.before.map_or(0, |before| before.explorer.depth())
    }

    /// Tries a few images of a few events.
    fn sample_events(&mut self, number: u64) {
        let history = Arc::clone(&self.history);
        let setup = history.steps.partition_point(|&(time, _)| time < history.begin);
        let repairs = |&(_, step): &(u32, Step)| history.is_past_superblocks(step);
        let Some(first) = history.steps[setup..].iter().position(repairs) else { return };
        let stores: Vec<_> = (setup + first..history.steps.len())
            .filter(|&index| matches!(history.steps[index].1, Step::Store(_)))
            .collect();
        let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut next = || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            state >> 33
        };
        let mut chosen: Vec<_> =
            (0..SAMPLES).map(|_| stores[next() as usize % stores.len()]).collect();
        chosen.sort_unstable();
        chosen.dedup();
        let mut done = 0;
        for event in chosen {
            for &(_, step) in &history.steps[done..=event] {
                self.medium.advance(step);
            }
            done = event + 1;
            let (time, _) = history.steps[event];
            self.medium.arm(true);
            let probe = self.probe(time);
            self.medium.start(Some(next()));
            self.judge(&probe);
            self.medium.restore();
            self.medium.disarm();
            self.result.images += 1;
        }
    }
}

impl Nest {
    /// What came of the crashes of `recovery`, if they were all explored, with the words that anybody
    /// read as they are now.
    fn recall(&self, recovery: &Recovery) -> Option<&Known> {
        let image = self.medium.arena();
        let agrees = |&(word, value): &(u32, u64)| image.get(word as usize) == value;
        self.known.get(recovery)?.iter().find(|known| known.read.iter().all(agrees))
    }
}

/// What a recovery stores, and what is expected of it.
#[derive(PartialEq, Eq, Hash)]
struct Recovery {
    history: Arc<StoreHistory>,
    bytes: u64,
    nested: Nested,
}

/// A recovery, explored wholly with nothing wrong, from an image in which these words held these values.
struct Known {
    read: Vec<(u32, u64)>,
    /// Images of its crashes.
    images: u128,
}

fn words_of(read: &[(u32, u64)]) -> Vec<u32> {
    read.iter().map(|&(word, _)| word).collect()
}

/// A crash to recover from.
struct Crash {
    time: u32,
    lost: LostWords,
    nested: Nested,
    newest: Vec<(u32, Cube)>,
}
