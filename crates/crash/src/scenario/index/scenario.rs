//! The scenario of an index: records it, and judges each recovery.

use super::session::{open, show};
use crate::config::POOL_BYTES;
use crate::medium::lazy_image::LazyImage;
use crate::medium::recorder::Recorder;
use crate::outcome::Finding;
use crate::scenario::checks::{check, everything, failed, leaks, pairs};
use crate::scenario::index::exercise::Exercise;
use crate::scenario::index::session::{IndexSession, ModelState, Op};
use crate::scenario::probe::{Mismatch, Probe};
use crate::scenario::{AllocFaultRun, Scenario};
use crate::subject::design::{Index, SubjectDesign};
use bristlecone_pmem::medium::schedule::Conditions;
use bristlecone_pmem::{Medium, Simulated};
use bristlecone_trees::{Key, Order, TreeStats};
use core::fmt::Write as _;
use core::ops::ControlFlow;

/// The pairs of an index in key order.
type Pairs<K> = [(<K as Key>::Owned, u64)];

/// The reuse of blocks within one life of the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reuse {
    /// Retired blocks come free where an operation of the scenario frees them.
    #[default]
    Explicit,
    /// Retired blocks are free after each operation, with what they held.
    Former,
    /// As `Former`, and a block that comes free is overwritten.
    Poisoned,
}

/// Operations on an index: a setup, and the operations under test.
pub(crate) struct IndexScenario<K: Key> {
    name: String,
    bytes: u64,
    conditions: Conditions,
    reuse: Reuse,
    near: Vec<K::Owned>,
    pub(super) setup: Vec<Op<K>>,
    pub(super) tested: Vec<Op<K>>,
    /// The states of the model: state i after i operations under test.
    states: Vec<ExpectedState<K>>,
    pub(super) design: SubjectDesign<K>,
}

/// A state of the model, and operations on an index in that state.
struct ExpectedState<K: Key> {
    state: ModelState<K>,
    pairs: Vec<(K::Owned, u64)>,
    exercise: Exercise<K>,
    /// Keys to look up one by one, with their values.
    gets: Vec<(K::Owned, Option<u64>)>,
}

/// A recovered session, with the states that it equals, one bit each.
struct Recovered<K: Key> {
    session: IndexSession<K>,
    equals: u32,
}

impl<K: Key> IndexScenario<K> {
    /// Returns the scenario called `name`. `near` are the keys around which a recovered index is
    /// used.
    pub(crate) fn new(
        design: SubjectDesign<K>,
        name: impl Into<String>,
        setup: Vec<Op<K>>,
        tested: Vec<Op<K>>,
        near: &[K::Owned],
    ) -> Self {
        let mut model = ModelState::NoPool;
        for op in &setup {
            let _ = model.apply(op);
        }
        let mut states = vec![ExpectedState::new(&model, near)];
        for op in &tested {
            let _ = model.apply(op);
            states.push(ExpectedState::new(&model, near));
        }
        let (name, bytes) = (name.into(), POOL_BYTES);
        let (conditions, reuse, near) = (Conditions::USUAL, Reuse::Explicit, near.to_vec());
        Self { name, bytes, conditions, reuse, near, setup, tested, states, design }
    }

    /// Returns the scenario under other conditions, with `prefix` before the name of its case.
    pub(super) fn under(&self, conditions: Conditions, prefix: &str) -> Self {
        let (kind, case) = self.name.split_once('/').unwrap_or((K::NAME, &self.name));
        let name = format!("{kind}/{prefix}-{case}");
        let (setup, tested) = (self.setup.clone(), self.tested.clone());
        let scenario = Self::new(self.design, name, setup, tested, &self.near);
        Self { conditions, bytes: self.bytes, ..scenario }
    }

    /// Returns the scenario with other conditions and another reuse of blocks.
    pub(super) fn with(self, conditions: Conditions, reuse: Reuse) -> Self {
        Self { conditions, reuse, ..self }
    }

    /// Returns `true` if the scenario is the case called `case`.
    pub(super) fn is_case(&self, case: &str) -> bool {
        self.name.split_once('/').is_some_and(|(_, name)| name == case)
    }

    /// Frees the retired blocks, as no reader is left, and overwrites them if the scenario says so.
    fn reclaim(&self, session: &IndexSession<K>, recorder: &Recorder) {
        let IndexSession::Index(index) = session else { return };
        if self.reuse == Reuse::Explicit || index.pool().waiting_blocks() == 0 {
            return;
        }
        for (at, bytes) in index.pool().reclaim_until(u64::MAX) {
            if self.reuse == Reuse::Poisoned {
                recorder.poison(at.offset(), index.pool().reserved_bytes(bytes));
            }
        }
        recorder.hand_over();
    }

    /// Checks the index after the last operation, without a crash: nothing leaks, at once and after
    /// a close and an open; all pairs can be removed, which merges what was split, and inserted
    /// again.
    fn play_on(
        &self,
        mut session: IndexSession<K>,
        mut model: ModelState<K>,
        medium: &Simulated,
    ) -> Result<(), Finding> {
        let ModelState::Index(pairs) = &model else { return Ok(()) };
        if matches!(session, IndexSession::Closed) {
            let opened = session.apply(self.design, medium, &Op::Open);
            opened.map_err(|error| failed("it does not open", &error))?;
        }
        let (keys, pairs): (Vec<_>, Vec<_>) =
            pairs.iter().map(|(key, value)| (key.clone(), (key.clone(), *value))).unzip();
        Self::settled(&session, &pairs, "after the last operation")?;
        let mut apply = |session: &mut IndexSession<K>, op: &Op<K>| {
            let expected = model.apply(op);
            let found = session.apply(self.design, medium, op);
            let found = found.map_err(|error| failed(&format!("{op} fails later"), &error))?;
            if found == expected {
                return Ok(());
            }
            let what = format!("{op} gives a wrong answer later, without a crash");
            Err(Finding::new(what, format!("{expected:?}"), format!("{found:?}")))
        };
        apply(&mut session, &Op::Close)?;
        apply(&mut session, &Op::Open)?;
        Self::settled(&session, &pairs, "after a close and an open")?;
        // From both ends inwards, so that the last leaves to merge are in the middle. Of an odd
        // number of keys, the middle one stays.
        let half = keys.len() / 2;
        let inwards = keys[..half].iter().zip(keys[half..].iter().rev());
        for (number, key) in inwards.flat_map(|(low, high)| [low, high]).enumerate() {
            apply(&mut session, &Op::Remove(key.clone()))?;
            if number % 16 == 0
                && let IndexSession::Index(index) = &session
            {
                check(&**index)?;
                index.pool().reclaim();
            }
        }
        let left = half..half + keys.len() % 2;
        Self::settled(&session, &pairs[left.clone()], "after removes")?;
        for (number, (key, value)) in pairs.iter().enumerate() {
            if !left.contains(&number) {
                apply(&mut session, &Op::Insert(key.clone(), *value))?;
            }
            if number % 64 == 0
                && let IndexSession::Index(index) = &session
            {
                check(&**index)?;
            }
        }
        Self::settled(&session, &pairs, "after removes and inserts")
    }

    /// Checks that the index holds `expected` and that no block leaks.
    fn settled(
        session: &IndexSession<K>,
        expected: &[(K::Owned, u64)],
        when: &str,
    ) -> Result<(), Finding> {
        let IndexSession::Index(index) = session else {
            return Err(Finding::new(format!("{when} there is no index"), "an index", "none"));
        };
        index.pool().reclaim();
        let at = |finding: Finding| Finding { what: format!("{when} {}", finding.what), ..finding };
        let stats = check(&**index).map_err(at)?;
        leaks(index.pool(), &stats).map_err(at)?;
        let found = pairs(&**index);
        if found == expected {
            return Ok(());
        }
        let what = format!("{when} there are other pairs");
        Err(Finding::new(what, "the pairs of the model", differences(expected, &found)))
    }

    /// Returns the scenario in a pool of `bytes` bytes.
    pub(crate) fn in_bytes(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }

    /// Opens the pool on `medium`, and calls `opened` with its nonce as soon as that is known.
    fn open(
        &self,
        medium: Simulated,
        opened: impl FnOnce(u64),
    ) -> Result<IndexSession<K>, Finding> {
        let session = open(self.design, medium, opened);
        session.map_err(|error| Finding::new("it does not open", "an index", error.to_string()))
    }

    /// Checks an open session and finds the states that it equals.
    fn look(&self, session: IndexSession<K>) -> Result<Recovered<K>, Finding> {
        let mut equals = 0;
        match &session {
            IndexSession::Closed => {
                equals = self.those(|state| matches!(state, ModelState::NoPool));
            }
            IndexSession::Pool(pool) => {
                leaks(pool, &TreeStats::default())?;
                equals = self.those(|state| matches!(state, ModelState::NoIndex));
            }
            IndexSession::Index(index) => {
                let stats = check(&**index)?;
                leaks(index.pool(), &stats)?;
                equals |= self.scan(&**index, stats.keys)?;
            }
        }
        Ok(Recovered { session, equals })
    }

    /// Recovers the pool on `medium` and finds the states that it equals.
    fn recover(&self, medium: &LazyImage) -> Result<Recovered<K>, Finding> {
        self.look(self.open(medium.into(), |nonce| medium.opened(nonce))?)
    }

    fn those(&self, is: impl Fn(&ModelState<K>) -> bool) -> u32 {
        let states = self.states.iter().enumerate();
        states.map(|(number, expected)| u32::from(is(&expected.state)) << number).sum()
    }

    /// Returns the states whose pairs a full scan finds.
    fn scan(&self, index: &Index<K>, keys: u64) -> Result<u32, Finding> {
        let mut equals = self.those(|state| matches!(state, ModelState::Index(_)));
        let mut count = 0;
        let outcome = index.scan(everything(), Order::Ascending, &mut |key, value| {
            for (number, expected) in self.states.iter().enumerate() {
                let same = expected.pairs.get(count).is_some_and(|(expected, expected_value)| {
                    *expected_value == value && K::compare(K::borrow(expected), key).is_eq()
                });
                equals &= !(u32::from(!same) << number);
            }
            count += 1;
            ControlFlow::Continue(())
        });
        outcome.map_err(|error| failed("a scan fails", &error))?;
        for (number, expected) in self.states.iter().enumerate() {
            equals &= !(u32::from(expected.pairs.len() != count) << number);
        }
        if keys != count as u64 {
            let what = "the check and the scan count different keys";
            return Err(Finding::new(what, format!("{keys} keys"), format!("{count} keys")));
        }
        Ok(equals)
    }

    /// Returns the expected and the found pairs, where they differ.
    fn mismatch(&self, wrong: Mismatch, seen: &Recovered<K>) -> Finding {
        let found = match &seen.session {
            IndexSession::Closed => "no pool".into(),
            IndexSession::Pool(_) => "no index".into(),
            IndexSession::Index(index) => {
                let state = &self.states[wrong.right.trailing_zeros() as usize];
                differences(&state.pairs, &pairs(&**index))
            }
        };
        Finding::new(wrong.what, wrong.expected(|state| self.describe(state)), found)
            .at(wrong.crash)
    }

    fn describe(&self, number: usize) -> String {
        let expected = &self.states[number];
        match (&expected.state, number.checked_sub(1)) {
            (ModelState::NoPool, _) => "no pool".into(),
            (ModelState::NoIndex, _) => "no index".into(),
            (ModelState::Index(pairs), None) => format!("the {} pairs of before", pairs.len()),
            (ModelState::Index(pairs), Some(done)) => {
                format!("{} pairs, after {}", pairs.len(), self.tested[done])
            }
        }
    }

    /// Recovers once more, after the life that a recovery began has ended in a crash which lost
    /// nothing.
    fn second_life(&self, expected: &[(K::Owned, u64)], medium: &LazyImage) -> Result<(), Finding> {
        let session = self.open(medium.into(), |nonce| medium.opened(nonce))?;
        Self::settled(&session, expected, "after a second life and a crash")
    }

    /// Uses the recovered index around the keys of the operations. Returns the pairs that it holds
    /// then, or `None` without an index.
    fn exercise(
        &self,
        seen: Recovered<K>,
        medium: &LazyImage,
    ) -> Result<Option<&Pairs<K>>, Finding> {
        let expected = &self.states[seen.equals.trailing_zeros() as usize];
        let index = match seen.session {
            IndexSession::Closed => return Ok(None),
            IndexSession::Index(index) => index,
            mut session @ IndexSession::Pool(_) => {
                let created = session.apply(self.design, &medium.into(), &Op::Create);
                created.map_err(|error| failed("the index cannot be created again", &error))?;
                let IndexSession::Index(index) = session else { return Ok(None) };
                check(&*index)?;
                return Ok(None);
            }
        };
        for (key, expected) in &expected.gets {
            let found = index.get(K::borrow(key)).map_err(|error| failed("a get fails", &error))?;
            if found != *expected {
                let what = "a get and the scan differ";
                let expected = format!("{}: {expected:?}", show::<K>(key));
                return Err(Finding::new(what, expected, format!("{found:?}")));
            }
        }
        expected.exercise.run(&*index)?;
        check(&*index)?;
        let mut count = expected.exercise.after.len();
        let mut same = true;
        let outcome = index.scan(everything(), Order::Descending, &mut |key, value| {
            count = count.wrapping_sub(1);
            same &= expected.exercise.after.get(count).is_some_and(|(expected, expected_value)| {
                *expected_value == value && K::compare(K::borrow(expected), key).is_eq()
            });
            ControlFlow::Continue(())
        });
        outcome.map_err(|error| failed("a scan fails", &error))?;
        if !same || count != 0 {
            let what = "after recovery the index loses or invents pairs";
            let found = differences(&expected.exercise.after, &pairs(&*index));
            return Err(Finding::new(what, "the pairs of the model", found));
        }
        Ok(Some(&expected.exercise.after))
    }
}

impl<K: Key> Scenario for IndexScenario<K> {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn conditions(&self) -> Conditions {
        self.conditions
    }

    fn record(&self, recorder: &Recorder) -> Result<(), Finding> {
        let _pinned = bristlecone_pmem::sync::pin();
        let mut session = IndexSession::<K>::Closed;
        let mut model = ModelState::NoPool;
        let medium = Simulated::from(recorder);
        let mut step = |session: &mut IndexSession<K>, op: &Op<K>| {
            let expected = model.apply(op);
            let found = session
                .apply(self.design, &medium, op)
                .map_err(|error| failed(&format!("{op} fails"), &error))?;
            if found == expected {
                self.reclaim(session, recorder);
                return Ok(());
            }
            let what = format!("{op} gives a wrong answer, without a crash");
            Err(Finding::new(what, format!("{expected:?}"), format!("{found:?}")))
        };
        self.setup.iter().try_for_each(|op| step(&mut session, op))?;
        recorder.begin();
        for (number, op) in (0..).zip(&self.tested) {
            recorder.invoke(number);
            step(&mut session, op)?;
            if !(self.design.settles && op.is_on_index()) {
                medium.settle_reads();
            }
            recorder.acknowledge(number);
        }
        recorder.end();
        self.play_on(session, model, &medium)
    }

    fn reopen(&self, recorder: &Recorder) -> Result<u32, Finding> {
        let _pinned = bristlecone_pmem::sync::pin();
        recorder.begin();
        recorder.invoke(0);
        let medium = Simulated::from(recorder);
        let session = self.open(medium.clone(), |_| {})?;
        medium.settle_reads();
        recorder.acknowledge(0);
        let mut seen = self.look(session)?;
        recorder.invoke(1);
        let closed = seen.session.apply(self.design, &medium, &Op::Close);
        closed.map_err(|error| failed("it does not close", &error))?;
        medium.settle_reads();
        recorder.acknowledge(1);
        Ok(seen.equals)
    }

    fn judge(&self, probe: &Probe) -> Result<(), Finding> {
        let opened = self.open((&probe.medium).into(), |nonce| probe.medium.opened(nonce))?;
        probe.medium.recovered();
        let first = self.look(opened)?;
        probe.verdict(first.equals).map_err(|wrong| self.mismatch(wrong, &first))?;
        let equals = first.equals;
        drop(first);
        let second = self.recover(&probe.medium)?;
        if second.equals != equals {
            let what = "recovering twice is not the same as once";
            let wrong = Mismatch { what, right: equals, all: true, crash: None };
            return Err(self.mismatch(wrong, &second));
        }
        let expected = self.exercise(second, &probe.medium)?;
        // Another crash, in the life after a recovery that repaired something.
        if probe.medium.has_repaired()
            && let Some(expected) = expected
        {
            return self.second_life(expected, &probe.medium);
        }
        Ok(())
    }

    fn refuse_allocations(&self, progress: &mut AllocFaultRun) -> Result<(), Finding> {
        let _pinned = bristlecone_pmem::sync::pin();
        self.refuse_each(progress)
    }

    fn operation(&self, number: u32) -> String {
        self.tested[number as usize].to_string()
    }
}

impl<K: Key> ExpectedState<K> {
    fn new(model: &ModelState<K>, near: &[K::Owned]) -> Self {
        let pairs: Vec<_> = match model {
            ModelState::Index(pairs) => {
                pairs.iter().map(|(key, value)| (key.clone(), *value)).collect()
            }
            ModelState::NoPool | ModelState::NoIndex => Vec::new(),
        };
        let value = |key: &K::Owned| model.clone().apply(&Op::Get(key.clone()));
        let ends = [pairs.first(), pairs.last()].into_iter().flatten().map(|(key, _)| key);
        let gets = near.iter().chain(ends).map(|key| (key.clone(), value(key))).collect();
        Self { state: model.clone(), pairs, exercise: Exercise::new(model, near), gets }
    }
}

/// Returns the first few differences of `found` from `base` as a text.
fn differences<O: Ord + core::fmt::Debug>(base: &[(O, u64)], found: &[(O, u64)]) -> String {
    const SHOWN: usize = 4;
    let missing = base.iter().filter(|pair| !found.contains(pair)).map(|pair| ("-", pair));
    let added = found.iter().filter(|pair| !base.contains(pair)).map(|pair| ("+", pair));
    let all: Vec<_> = missing.chain(added).collect();
    let mut text = format!("{} pairs", found.len());
    for (sign, (key, value)) in all.iter().take(SHOWN) {
        let _ = write!(text, ", {sign}{key:?} = {value}");
    }
    if all.len() > SHOWN {
        let _ = write!(text, " and {} differences more", all.len() - SHOWN);
    }
    text
}
