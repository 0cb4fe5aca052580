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
use bristlecone_pmem::Simulated;
use bristlecone_trees::{Key, Order, TreeStats};
use core::fmt::Write as _;
use core::ops::ControlFlow;

/// Operations on an index: a setup, and the operations under test.
pub(crate) struct IndexScenario<K: Key> {
    name: String,
    bytes: u64,
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
        Self { name, bytes, setup, tested, states, design }
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

    /// Uses the recovered index around the keys of the operations.
    fn exercise(&self, seen: Recovered<K>, medium: &LazyImage) -> Result<(), Finding> {
        let expected = &self.states[seen.equals.trailing_zeros() as usize];
        let index = match seen.session {
            IndexSession::Closed => return Ok(()),
            IndexSession::Index(index) => index,
            mut session @ IndexSession::Pool(_) => {
                let created = session.apply(self.design, &medium.into(), &Op::Create);
                created.map_err(|error| failed("the index cannot be created again", &error))?;
                let IndexSession::Index(index) = session else { return Ok(()) };
                check(&*index)?;
                return Ok(());
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
        Ok(())
    }
}

impl<K: Key> Scenario for IndexScenario<K> {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> u64 {
        self.bytes
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
            recorder.acknowledge(number);
        }
        Ok(())
    }

    fn reopen(&self, recorder: &Recorder) -> Result<u32, Finding> {
        let _pinned = bristlecone_pmem::sync::pin();
        recorder.begin();
        recorder.invoke(0);
        let session = self.open(recorder.into(), |_| {})?;
        recorder.acknowledge(0);
        let mut seen = self.look(session)?;
        recorder.invoke(1);
        let closed = seen.session.apply(self.design, &recorder.into(), &Op::Close);
        closed.map_err(|error| failed("it does not close", &error))?;
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
            let wrong = Mismatch { what, right: equals, all: true };
            return Err(self.mismatch(wrong, &second));
        }
        self.exercise(second, &probe.medium)
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
