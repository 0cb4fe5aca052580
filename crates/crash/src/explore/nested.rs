//! Crashes of recoveries: the stores of a recovery are recorded and explored in turn.
//!
//! 1. A run of recovery stands for images that it cannot tell apart. The recovery stores the same
//!    in all of them, and the check, the scan and the exercise read the same. So each such run is
//!    explored once, with its newest image. If a second recovery reads a word in which those images
//!    differ, the run forks there: it then stands for the images that agree, and each other part is
//!    explored in its turn.
//! 2. The trace is that of the recovery and of a clean close. A repair that is not durable must not
//!    be trusted by an open after the close, which repairs nothing.
//! 3. A second recovery must come to a state that the first crash allowed. Once the first recovery
//!    has returned, it must come to the state of the first recovery.
//! 4. Crashes before the recovery has stored anything outside the superblocks leave the image of
//!    the first crash, apart from the superblocks. Scenarios of opening explore those.
//! 5. The result of a recovery follows from its stores, and from the words of its image that are
//!    read before they are stored. So recoveries that agree in both are explored once.
//! 6. The second crash is explored for every image. The third is sampled: a few crashes of each
//!    recovery, each with one image, from the same random numbers each time.

use crate::config::{Limits, RESERVE_BYTES};
use crate::explore::{Exploration, Explorer};
use crate::guard::guarded;
use crate::medium::lazy_image::{LazyImage, LostWords, Noted};
use crate::medium::recorder::Recorder;
use crate::model::contents::Cube;
use crate::model::history::{Step, StoreHistory};
use crate::scenario::probe::{Nested, Probe};
use crate::trace::mutation::Mutation;
use std::collections::HashMap;
use std::sync::Arc;

/// The number of crashes in a row that are explored for every image; deeper ones are sampled.
const DEPTH_WHOLE: u32 = 2;
/// The number of samples of each sampled recovery.
const SAMPLES: u64 = 3;

/// The media of a recovery that is recorded and explored, reused for each.
pub(crate) struct Nest {
    recorder: Recorder,
    pub(crate) medium: LazyImage,
    limits: Limits,
    /// The media of the next crash.
    deeper: Option<Box<Nest>>,
    /// The recoveries that were explored for every image, without a violation.
    known: HashMap<Recovery, Vec<Known>>,
    /// The number of sampled recoveries, which seeds their random numbers.
    sampled: u64,
}

/// The crash before a recovery.
pub(crate) struct Before<'a> {
    pub(crate) explorer: &'a Explorer<'a>,
    pub(crate) crash: u32,
    pub(crate) lost: LostWords,
    pub(crate) nested: Nested,
}

impl Nest {
    /// Returns media for the recoveries from crashes of an exploration with `limits`.
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
    /// Returns `true` if the budget allows to crash the recoveries of one more event. All
    /// recoveries of an event are crashed, or none: a crash tells images apart, and each is seen
    /// once.
    pub(crate) fn may_descend(&mut self) -> bool {
        match &mut self.result.nested {
            Some(nested) if nested.recoveries >= self.limits.nested => {
                nested.incomplete = true;
                false
            }
            _ => true,
        }
    }

    /// Explores the crashes of the recovery that has just been judged.
    pub(crate) fn descend(&mut self, probe: &Probe) {
        if self.nest.is_none() || self.is_over() || !self.medium.has_repaired() {
            return;
        }
        let mut run = self.medium.undecided();
        self.medium.restore();
        self.medium.take_rest(&mut run);
        // The lost words and the admitted states follow from the images that are left.
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

    /// Records the recovery from a crash, and explores it. Returns the result, and the words of the
    /// crash's image that any recovery read, if all were run.
    fn recover(&self, nest: &mut Nest, crash: Crash) -> Option<(Exploration, Vec<(u32, u64)>)> {
        self.medium.start(None);
        self.medium.decide(&crash.newest);
        nest.recorder.reset(self.medium.arena());
        nest.medium.reset(self.medium.arena());
        self.medium.restore();
        let mut settled = 0;
        let recorded =
            guarded(|| self.scenario.reopen(&nest.recorder).map(|states| settled = states));
        let (trace, _) = nest.recorder.finish().ok()?;
        // A failure of the recovery itself was reported before.
        recorded.ok()?;
        let nested = Nested { settled, ..crash.nested };
        let before = Before { explorer: self, crash: crash.time, lost: crash.lost, nested };
        let spent = self.result.nested.as_ref().map_or(0, |nested| nested.covered);
        // An unlimited budget stays unlimited.
        let images = match nest.limits.images {
            u128::MAX => u128::MAX,
            images => images.saturating_sub(spent),
        };
        let limits = Limits { images, ..nest.limits };
        let history = Arc::new(StoreHistory::compile(&trace, self.mode));
        let recovery = Recovery { history: Arc::clone(&history), bytes: trace.bytes, nested };
        // A third crash is sampled, with another sample each time, so its result is not reused.
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

    /// Returns the number of crashes so far.
    fn depth(&self) -> u32 {
        1 + self.before.map_or(0, |before| before.explorer.depth())
    }

    /// Runs recovery on a few images of a few events.
    fn sample_events(&mut self, number: u64) {
        let history = Arc::clone(&self.history);
        let setup = history.steps.partition_point(|&(time, _)| time < history.begin);
        let repairs = |&(_, step): &(u32, Step)| history.is_past_superblocks(step);
        let Some(first) = history.steps[setup..].iter().position(repairs) else { return };
        let stores: Vec<_> = (setup + first..history.steps.len())
            .filter(|&index| history.event(history.steps[index].1) == Some(true))
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
    /// Returns the result for `recovery` if all its crashes were explored, from an image with the
    /// same values in the words that a recovery read.
    fn recall(&self, recovery: &Recovery) -> Option<&Known> {
        let image = self.medium.arena();
        let agrees = |noted: &Noted| noted.agrees(image.get(noted.word as usize));
        self.known.get(recovery)?.iter().find(|known| known.read.iter().all(agrees))
    }
}

/// The stores of a recovery, and the states that are right after it.
#[derive(PartialEq, Eq, Hash)]
struct Recovery {
    history: Arc<StoreHistory>,
    bytes: u64,
    nested: Nested,
}

/// A recovery that was explored for every image without a violation, and the words that were read,
/// with their values.
struct Known {
    read: Vec<Noted>,
    /// The number of images of its crashes.
    images: u128,
}

fn words_of(read: &[Noted]) -> Vec<(u32, u64)> {
    read.iter().map(|noted| (noted.word, noted.mask)).collect()
}

/// A crash to recover from.
struct Crash {
    time: u32,
    lost: LostWords,
    nested: Nested,
    newest: Vec<(u32, Cube)>,
}
