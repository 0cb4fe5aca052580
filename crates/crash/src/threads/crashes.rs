//! Every crash of an execution, each different one once.
//!
//! 1. As for one thread, a crash is tried at the beginning and directly after each store. That
//!    store is then present, and every other unit is free between its guaranteed and its stored
//!    items. Recovery fixes the words that it reads, and the images of its runs add up to those of
//!    the crash.
//! 2. Executions of different schedules have most crashes in common. A crash is identified by all
//!    that its verdict depends on: the possible contents of memory, and the calls that were invoked
//!    and answered when each content came about and was ruled out. A known crash is not tried
//!    again.
//! 3. A digest of 128 bits stands for a crash. A collision is too unlikely to matter.

use crate::config::{PersistenceModel, RESERVE_BYTES};
use crate::guard::guarded;
use crate::medium::lazy_image::{LazyImage, LostWords};
use crate::model::history::{Step, StoreHistory};
use crate::model::residue::Residue;
use crate::outcome::Finding;
use crate::trace::NEVER;
use crate::trace::call::{Answer, Call};
use bristlecone_pmem::Defect;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Beyond the bound on all recoveries one of this many crashes is tried, by its digest.
const CRASHES_PER_SAMPLE: u128 = 4;
/// The part of the bound on all recoveries that those at the moments of stopped threads may take.
const MOMENTS_SHARE: u64 = 8;

/// The crashes of the executions of one scenario in one persistence model.
#[derive(Debug)]
pub(crate) struct Crashes {
    pub(crate) mode: PersistenceModel,
    image: LazyImage,
    base: Arc<[u64]>,
    seen: HashSet<u128>,
    /// The number of recoveries after which a sample of the crashes is tried, each with one.
    recoveries_max: u64,
    pub(crate) images: u128,
    pub(crate) recoveries: u64,
    /// The number of these recoveries at the moments of stopped threads.
    of_moments: u64,
    pub(crate) incomplete: bool,
}

/// A crash whose recovery is wrong.
pub(crate) struct FailedRecovery {
    pub(crate) finding: Finding,
    pub(crate) crash: u32,
    /// The time at which the image is ruled out.
    pub(crate) until: u32,
    pub(crate) lost: LostWords,
}

/// A recovered image: the time of its newest store, and the time at which it is ruled out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) since: u32,
    pub(crate) until: u32,
}

/// An oracle for a recovery. It asks for the span after it has read the state.
pub(crate) type Judge<'a> = &'a dyn Fn(&LazyImage, &dyn Fn() -> Span) -> Result<(), Finding>;

impl Crashes {
    /// Returns the crashes of executions that begin with `base`, all of it durable.
    pub(crate) fn new(
        mode: PersistenceModel,
        base: Arc<[u64]>,
        recoveries_max: u64,
        defect: Option<Defect>,
    ) -> Self {
        let bytes = base.len() as u64 * 8;
        let empty = Arc::new(StoreHistory::compile(&crate::trace::Trace::default(), mode));
        let image = LazyImage::new(empty, bytes, bytes.max(RESERVE_BYTES), defect);
        for (index, &word) in base.iter().enumerate() {
            image.arena().set(index, word);
        }
        let (seen, images, recoveries, of_moments, incomplete) = Default::default();
        Self { mode, image, base, seen, recoveries_max, images, recoveries, of_moments, incomplete }
    }

    /// Tries every new crash of an execution. Returns the first failed recovery.
    pub(crate) fn explore(
        &mut self,
        history: &Arc<StoreHistory>,
        calls: &[Call],
        judge: Judge<'_>,
    ) -> Option<FailedRecovery> {
        let events = Digests::of(history, &self.base, calls);
        self.explore_events(
            history,
            &events,
            |crashes, &CrashEvent { time, digest, has_newest, .. }| {
                if !crashes.takes(digest) {
                    return None;
                }
                let most = crashes.recoveries_max.saturating_sub(crashes.recoveries);
                crashes.event(history, time, has_newest, most, judge)
            },
        )
    }

    /// Tries every new crash of an execution at `moments`, which are in order. No store need be the
    /// newest. The first image of each has lost all that is not guaranteed. Returns the first
    /// failed recovery.
    pub(crate) fn explore_moments(
        &mut self,
        history: &Arc<StoreHistory>,
        calls: &[Call],
        moments: &[u32],
        judge: Judge<'_>,
    ) -> Option<FailedRecovery> {
        let events = Digests::at_moments(history, &self.base, calls, moments);
        self.explore_events(history, &events, |crashes, &CrashEvent { time, .. }| {
            crashes.image.lose_first();
            let most = (crashes.recoveries_max / MOMENTS_SHARE).saturating_sub(crashes.of_moments);
            let before = crashes.recoveries;
            let wrong = crashes.event(history, time, false, most, judge);
            crashes.of_moments += crashes.recoveries - before;
            wrong
        })
    }

    /// Calls `explore` at each of `events` that is new, until it returns a failed recovery.
    fn explore_events(
        &mut self,
        history: &Arc<StoreHistory>,
        events: &[CrashEvent],
        mut explore: impl FnMut(&mut Self, &CrashEvent) -> Option<FailedRecovery>,
    ) -> Option<FailedRecovery> {
        if events.iter().all(|event| self.seen.contains(&event.digest)) {
            return None;
        }
        self.image.follow(history);
        let mut wrong = None;
        let mut steps = history.steps.iter();
        for event in events {
            for &(_, step) in steps.by_ref().take(event.steps) {
                self.image.advance(step);
            }
            if self.seen.insert(event.digest) {
                wrong = explore(self, event);
                if wrong.is_some() {
                    break;
                }
            }
        }
        self.image.end(&self.base);
        wrong
    }

    /// Returns whether a crash is tried: beyond the bound on recoveries only one of the sample.
    fn takes(&mut self, digest: u128) -> bool {
        let is_within = self.recoveries < self.recoveries_max;
        self.incomplete |= !is_within;
        is_within || digest.is_multiple_of(CRASHES_PER_SAMPLE)
    }

    /// Runs recovery on every image of one crash, `most` times at most, but once.
    fn event(
        &mut self,
        history: &StoreHistory,
        time: u32,
        newest: bool,
        most: u64,
        judge: Judge<'_>,
    ) -> Option<FailedRecovery> {
        let (images, total) = self.image.arm(newest);
        self.images = self.images.saturating_add(images);
        let most = most.max(1);
        let (mut seen, mut runs) = (Residue::ZERO, 0);
        let mut wrong = None;
        loop {
            self.image.start(None);
            let verdict = guarded(|| {
                // Blocks that a run retires must not become free within it, at a moment that
                // depends on other threads.
                let _pinned = bristlecone_pmem::sync::pin();
                let span = || Span { since: time, until: self.image.ruled_out() };
                judge(&self.image, &span)
            });
            runs += 1;
            if let Err(finding) = verdict {
                let crash = finding.crash.map_or(time, |crash| crash.max(time));
                let (until, mut lost) = (self.image.ruled_out(), self.image.lost());
                lost.extend(history.stored_after(self.image.stored(), crash));
                wrong = Some(FailedRecovery { finding, crash, until, lost });
            }
            seen = seen.plus(self.image.weight(total));
            self.image.restore();
            if wrong.is_some() {
                break;
            }
            if runs == most {
                self.incomplete = true;
                break;
            }
            if !self.image.next_path() {
                assert!(
                    seen == total || !self.image.is_deterministic(),
                    "every image of a crash is seen exactly once"
                );
                if !self.image.is_deterministic() {
                    let what = "recovery read different words for the same contents";
                    let finding = Finding::new(what, "a deterministic recovery", "another path");
                    let (until, lost) = (time, self.image.lost());
                    wrong = Some(FailedRecovery { finding, crash: time, until, lost });
                }
                break;
            }
        }
        self.recoveries += runs;
        self.image.disarm();
        wrong
    }
}

/// The digests of the crashes of a history, computed without trying them.
struct Digests<'a> {
    history: &'a StoreHistory,
    /// The digest of all invocations and answers before each time at which it changes.
    past: Vec<(u32, u64)>,
    /// The newest item.
    stored: Option<u32>,
    /// The words that are guaranteed and differ from the beginning.
    sealed: HashMap<u32, u64>,
    sealed_digest: u128,
    /// The items of each unit that no fence has guaranteed.
    open: BTreeMap<u32, Vec<u32>>,
    /// The length of the medium if it has grown, else 0.
    bytes: u64,
}

/// A crash to try.
struct CrashEvent {
    time: u32,
    /// The number of steps since the crash before.
    steps: usize,
    digest: u128,
    /// Set if the last of these steps is a store, which the image then has.
    has_newest: bool,
}

impl<'a> Digests<'a> {
    fn of(history: &'a StoreHistory, base: &[u64], calls: &[Call]) -> Vec<CrashEvent> {
        let mut digests = Self::before(history, calls);
        let digest = digests.at(history.begin, None, true);
        let first = CrashEvent { time: history.begin, steps: 0, digest, has_newest: false };
        let mut events = vec![first];
        let mut steps = 0;
        for &(time, step) in &history.steps {
            steps += 1;
            digests.advance(step, base);
            if let Some(has_newest) = history.event(step) {
                let digest = digests.at(time, digests.stored, has_newest);
                events.push(CrashEvent { time, steps, digest, has_newest });
                steps = 0;
            }
        }
        events
    }

    /// Returns a crash at each of `moments`, which are in order.
    fn at_moments(
        history: &'a StoreHistory,
        base: &[u64],
        calls: &[Call],
        moments: &[u32],
    ) -> Vec<CrashEvent> {
        let mut digests = Self::before(history, calls);
        let mut rest = history.steps.iter().peekable();
        let events = moments.iter().map(|&time| {
            let mut steps = 0;
            while let Some(&(_, step)) = rest.next_if(|&&(at, _)| at < time) {
                digests.advance(step, base);
                steps += 1;
            }
            let digest = digests.at(time, digests.stored, false);
            CrashEvent { time, steps, digest, has_newest: false }
        });
        events.collect()
    }

    fn before(history: &'a StoreHistory, calls: &[Call]) -> Self {
        let (stored, sealed, sealed_digest, open, bytes) = Default::default();
        Self { history, past: past(calls), stored, sealed, sealed_digest, open, bytes }
    }

    fn advance(&mut self, step: Step, base: &[u64]) {
        match step {
            Step::Store(item) => {
                let unit = self.history.items[item as usize].unit;
                self.open.entry(unit).or_default().push(item);
                self.stored = Some(item);
            }
            Step::Seal { unit, upto } => self.seal(unit, upto, base),
            Step::Grow(bytes) => self.bytes = bytes,
            Step::Whole => {}
        }
    }

    fn seal(&mut self, unit: u32, upto: u32, base: &[u64]) {
        let Some(items) = self.open.get_mut(&unit) else { return };
        let all = &self.history.items;
        let sealed = items.partition_point(|&item| all[item as usize].time <= upto);
        for item in items.drain(..sealed) {
            let item = &all[item as usize];
            for place in (0..8).filter(|place| item.mask & (1 << place) != 0) {
                let word = unit * self.history.unit_words as u32 + place;
                let value = item.values[place as usize];
                let before = self
                    .sealed
                    .insert(word, value)
                    .unwrap_or_else(|| base.get(word as usize).copied().unwrap_or(0));
                self.sealed_digest ^= digest_of(word, before) ^ digest_of(word, value);
            }
        }
        if items.is_empty() {
            self.open.remove(&unit);
        }
    }

    /// Returns the digest of a crash after the store of item `last`, which the image has if
    /// `has_newest` is set.
    fn at(&self, time: u32, last: Option<u32>, has_newest: bool) -> u128 {
        let mut digest = Mix(self.sealed_digest ^ u128::from(self.bytes));
        let stored = last.map_or(0, |item| item as usize + 1);
        let newest = last.filter(|_| has_newest);
        let armed = newest.map_or(u32::MAX, |item| self.history.items[item as usize].unit);
        digest.add(u64::from(armed));
        digest.add(self.past_of(time));
        digest.add(self.past_of(self.history.sealed_from(stored)));
        for (&unit, items) in &self.open {
            digest.add(u64::from(unit) << 32 | items.len() as u64);
            for &item in items {
                let item = &self.history.items[item as usize];
                digest.add(u64::from(item.mask) << 1 | u64::from(item.is_transient));
                for place in (0..8).filter(|place| item.mask & (1 << place) != 0) {
                    digest.add(item.values[place]);
                }
                digest.add(self.past_of(item.sealed));
            }
        }
        digest.0
    }

    fn past_of(&self, time: u32) -> u64 {
        let before = self.past.partition_point(|&(at, _)| at < time);
        before.checked_sub(1).map_or(0, |last| self.past[last].1)
    }
}

/// Returns a digest of all invocations and answers up to each of them. The order of consecutive
/// invocations does not matter, nor that of consecutive answers: it puts no operation before
/// another.
fn past(calls: &[Call]) -> Vec<(u32, u64)> {
    let mut marks = Vec::with_capacity(2 * calls.len());
    for call in calls {
        let place = call.place << 8 | call.part;
        let name = (call.thread as u64) << 32 | place as u64;
        marks.push((call.invoked, false, digest_of(name as u32, name >> 32) as u64));
        if call.returned != NEVER {
            let answer = match call.answer {
                Answer::Silence => 0x51,
                Answer::Refused => 0xF011,
                Answer::Presence(present) => 0x9E + u64::from(present),
                Answer::Value(None) => 0x5EED,
                Answer::Value(Some(value)) => value.wrapping_mul(3) ^ 0xA5A5,
            };
            let name = name as u32 ^ 0x8000_0000 ^ ((call.thread as u32) << 16);
            marks.push((call.returned, true, digest_of(name, answer) as u64));
        }
    }
    marks.sort_unstable_by_key(|&(time, ..)| time);
    let mut past = Vec::with_capacity(marks.len());
    let (mut before, mut group, mut is_returning) = (0, 0_u64, false);
    for (time, returns, name) in marks {
        if returns != is_returning {
            before = digest_of(u32::from(returns), before ^ group.rotate_left(17)) as u64;
            (group, is_returning) = (0, returns);
        }
        group = group.wrapping_add(name);
        past.push((time, digest_of(2, before ^ group.rotate_left(17)) as u64));
    }
    past
}

/// Returns a digest of a word and its value.
fn digest_of(word: u32, value: u64) -> u128 {
    let mut mix = Mix(0x6C62_272E_07BB_0142_62B8_2175_6295_C58D ^ u128::from(word) << 64);
    mix.add(value);
    mix.0
}

/// A digest that takes one word after the other.
struct Mix(u128);

impl Mix {
    fn add(&mut self, word: u64) {
        let mixed =
            (self.0 ^ u128::from(word)).wrapping_mul(0xDA94_2042_E4DD_58B5_9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 67);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(thread: usize, invoked: u32, returned: u32, answer: Option<u64>) -> Call {
        Call { thread, place: 0, part: 0, invoked, returned, answer: Answer::Value(answer) }
    }

    #[test]
    fn a_past_is_what_the_order_of_operations_depends_on() {
        let last = |calls: &[Call]| past(calls).last().map(|&(_, digest)| digest);
        let one = [call(0, 1, 5, None), call(1, 2, 6, Some(3))];
        // Both begin before either ends, so their order does not matter.
        let swapped = [call(0, 2, 6, None), call(1, 1, 5, Some(3))];
        assert_eq!(last(&one), last(&swapped));
        // Sequential calls, another answer, no answer: all different.
        let after = [call(0, 1, 2, None), call(1, 5, 6, Some(3))];
        let answer = [call(0, 1, 5, None), call(1, 2, 6, Some(4))];
        let open = [call(0, 1, 5, None), call(1, 2, NEVER, None)];
        let all = [last(&one), last(&after), last(&answer), last(&open)];
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 4);
    }
}
