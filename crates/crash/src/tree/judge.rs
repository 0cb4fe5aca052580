//! The scenario of an index: records it, and judges what recovery makes of each crash.

use super::battery::Battery;
use super::life::{Life, Op, State, open, show};
use crate::kind::{Index, Kind};
use crate::recorder::Recorder;
use crate::refiner::Refiner;
use crate::run::POOL_BYTES;
use crate::scenario::{Finding, Probe, Scenario, Wrong};
use crate::space::Starved;
use bristlecone_pmem::Pool;
use bristlecone_pmem::Simulated;
use bristlecone_trees::{Key, Order, TreeError, TreeStats};
use core::fmt::Write as _;
use core::ops::{Bound, ControlFlow};

/// Operations on an index: a setup, and those under test.
pub(crate) struct TreeScenario<K: Key> {
    name: String,
    bytes: u64,
    pub(super) setup: Vec<Op<K>>,
    pub(super) tested: Vec<Op<K>>,
    /// State number i is the model after i operations under test.
    states: Vec<Stage<K>>,
    pub(super) kind: Kind<K>,
}

/// A state of the model, and what to do with an index in that state.
struct Stage<K: Key> {
    state: State<K>,
    pairs: Vec<(K::Owned, u64)>,
    battery: Battery<K>,
    /// Keys to get one by one, with their values.
    gets: Vec<(K::Owned, Option<u64>)>,
}

/// What recovery found: the states that it equals, a bit each.
struct Seen<K: Key> {
    life: Life<K>,
    equals: u32,
}

impl<K: Key> TreeScenario<K> {
    /// The scenario of that name. `near` are the keys around which a recovered index is used.
    pub(crate) fn new(
        kind: Kind<K>,
        name: impl Into<String>,
        setup: Vec<Op<K>>,
        tested: Vec<Op<K>>,
        near: &[K::Owned],
    ) -> Self {
        let mut model = State::NoPool;
        for op in &setup {
            let _ = model.apply(op);
        }
        let mut states = vec![Stage::new(&model, near)];
        for op in &tested {
            let _ = model.apply(op);
            states.push(Stage::new(&model, near));
        }
        let (name, bytes) = (name.into(), POOL_BYTES);
        Self { name, bytes, setup, tested, states, kind }
    }

    /// The same in a pool of so many bytes.
    pub(crate) fn in_bytes(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }

    /// Opens what is on `medium`, and tells the pool's generation as soon as it is known.
    fn open(&self, medium: Simulated, opened: impl FnOnce(u64)) -> Result<Life<K>, Finding> {
        let life = open(self.kind, medium, opened);
        life.map_err(|error| Finding::new("it does not open", "an index", error.to_string()))
    }

    /// Checks what is open and finds the states that it equals.
    fn look(&self, life: Life<K>) -> Result<Seen<K>, Finding> {
        let mut equals = 0;
        match &life {
            Life::Closed => equals = self.those(|state| matches!(state, State::NoPool)),
            Life::Pool(pool) => {
                leaks(pool, &TreeStats::default())?;
                equals = self.those(|state| matches!(state, State::NoIndex));
            }
            Life::Index(index) => {
                let census = check(&**index)?;
                leaks(index.pool(), &census)?;
                equals |= self.scan(&**index, census.keys)?;
            }
        }
        Ok(Seen { life, equals })
    }

    /// Recovers what is on `medium` and finds the states that it equals.
    fn recover(&self, medium: &Refiner) -> Result<Seen<K>, Finding> {
        self.look(self.open(medium.into(), |generation| medium.opened(generation))?)
    }

    fn those(&self, is: impl Fn(&State<K>) -> bool) -> u32 {
        let states = self.states.iter().enumerate();
        states.map(|(number, stage)| u32::from(is(&stage.state)) << number).sum()
    }

    /// The states whose pairs a full scan shows.
    fn scan(&self, index: &Index<K>, keys: u64) -> Result<u32, Finding> {
        let mut equals = self.those(|state| matches!(state, State::Index(_)));
        let mut count = 0;
        let outcome = index.scan(everything(), Order::Ascending, &mut |key, value| {
            for (number, stage) in self.states.iter().enumerate() {
                let same = stage.pairs.get(count).is_some_and(|(expected, expected_value)| {
                    *expected_value == value && K::compare(K::borrow(expected), key).is_eq()
                });
                equals &= !(u32::from(!same) << number);
            }
            count += 1;
            ControlFlow::Continue(())
        });
        outcome.map_err(|error| failed("a scan fails", &error))?;
        for (number, stage) in self.states.iter().enumerate() {
            equals &= !(u32::from(stage.pairs.len() != count) << number);
        }
        if keys != count as u64 {
            let what = "the check and the scan count different keys";
            return Err(Finding::new(what, format!("{keys} keys"), format!("{count} keys")));
        }
        Ok(equals)
    }

    /// What was expected and found, where they differ.
    fn mismatch(&self, wrong: Wrong, seen: &Seen<K>) -> Finding {
        let found = match &seen.life {
            Life::Closed => "no pool".into(),
            Life::Pool(_) => "no index".into(),
            Life::Index(index) => {
                let state = &self.states[wrong.right.trailing_zeros() as usize];
                differences(&state.pairs, &pairs(&**index))
            }
        };
        Finding::new(wrong.what, wrong.expected(|state| self.describe(state)), found)
    }

    fn describe(&self, number: usize) -> String {
        let stage = &self.states[number];
        match (&stage.state, number.checked_sub(1)) {
            (State::NoPool, _) => "no pool".into(),
            (State::NoIndex, _) => "no index".into(),
            (State::Index(pairs), None) => format!("the {} pairs of before", pairs.len()),
            (State::Index(pairs), Some(done)) => {
                format!("{} pairs, after {}", pairs.len(), self.tested[done])
            }
        }
    }

    /// Uses the recovered index.
    fn battery(&self, seen: Seen<K>, medium: &Refiner) -> Result<(), Finding> {
        let stage = &self.states[seen.equals.trailing_zeros() as usize];
        let index = match seen.life {
            Life::Closed => return Ok(()),
            Life::Index(index) => index,
            mut life @ Life::Pool(_) => {
                let created = life.apply(self.kind, &medium.into(), &Op::Create);
                created.map_err(|error| failed("the index cannot be created again", &error))?;
                let Life::Index(index) = life else { return Ok(()) };
                check(&*index)?;
                return Ok(());
            }
        };
        for (key, expected) in &stage.gets {
            let found = index.get(K::borrow(key)).map_err(|error| failed("a get fails", &error))?;
            if found != *expected {
                let what = "a get and the scan differ";
                let expected = format!("{}: {expected:?}", show::<K>(key));
                return Err(Finding::new(what, expected, format!("{found:?}")));
            }
        }
        stage.battery.run(&*index)?;
        check(&*index)?;
        let mut count = stage.battery.after.len();
        let mut same = true;
        let outcome = index.scan(everything(), Order::Descending, &mut |key, value| {
            count = count.wrapping_sub(1);
            same &= stage.battery.after.get(count).is_some_and(|(expected, expected_value)| {
                *expected_value == value && K::compare(K::borrow(expected), key).is_eq()
            });
            ControlFlow::Continue(())
        });
        outcome.map_err(|error| failed("a scan fails", &error))?;
        if !same || count != 0 {
            let what = "after recovery the index loses or invents pairs";
            let found = differences(&stage.battery.after, &pairs(&*index));
            return Err(Finding::new(what, "the pairs of the model", found));
        }
        Ok(())
    }
}

impl<K: Key> Scenario for TreeScenario<K> {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn record(&self, recorder: &Recorder) -> Result<(), Finding> {
        let _pinned = bristlecone_pmem::sync::pin();
        let mut life = Life::<K>::Closed;
        let mut model = State::NoPool;
        let medium = Simulated::from(recorder);
        let mut step = |life: &mut Life<K>, op: &Op<K>| {
            let expected = model.apply(op);
            let found = life
                .apply(self.kind, &medium, op)
                .map_err(|error| failed(&format!("{op} fails"), &error))?;
            if found == expected {
                return Ok(());
            }
            let what = format!("{op} gives a wrong answer, without a crash");
            Err(Finding::new(what, format!("{expected:?}"), format!("{found:?}")))
        };
        self.setup.iter().try_for_each(|op| step(&mut life, op))?;
        recorder.begin();
        for (number, op) in (0..).zip(&self.tested) {
            recorder.invoke(number);
            step(&mut life, op)?;
            recorder.acknowledge(number);
        }
        Ok(())
    }

    fn reopen(&self, recorder: &Recorder) -> Result<u32, Finding> {
        let _pinned = bristlecone_pmem::sync::pin();
        recorder.begin();
        recorder.invoke(0);
        let life = self.open(recorder.into(), |_| {})?;
        recorder.acknowledge(0);
        let mut seen = self.look(life)?;
        recorder.invoke(1);
        let closed = seen.life.apply(self.kind, &recorder.into(), &Op::Close);
        closed.map_err(|error| failed("it does not close", &error))?;
        recorder.acknowledge(1);
        Ok(seen.equals)
    }

    fn judge(&self, probe: &Probe) -> Result<(), Finding> {
        let opened =
            self.open((&probe.medium).into(), |generation| probe.medium.opened(generation))?;
        probe.medium.recovered();
        let first = self.look(opened)?;
        probe.verdict(first.equals).map_err(|wrong| self.mismatch(wrong, &first))?;
        let equals = first.equals;
        drop(first);
        let second = self.recover(&probe.medium)?;
        if second.equals != equals {
            let what = "recovering twice is not the same as once";
            let wrong = Wrong { what, right: equals, all: true };
            return Err(self.mismatch(wrong, &second));
        }
        self.battery(second, &probe.medium)
    }

    fn starve(&self, starved: &mut Starved) -> Result<(), Finding> {
        let _pinned = bristlecone_pmem::sync::pin();
        self.starve_all(starved)
    }

    fn operation(&self, number: u32) -> String {
        self.tested[number as usize].to_string()
    }
}

impl<K: Key> Stage<K> {
    fn new(model: &State<K>, near: &[K::Owned]) -> Self {
        let pairs: Vec<_> = match model {
            State::Index(pairs) => pairs.iter().map(|(key, value)| (key.clone(), *value)).collect(),
            State::NoPool | State::NoIndex => Vec::new(),
        };
        let value = |key: &K::Owned| model.clone().apply(&Op::Get(key.clone()));
        let ends = [pairs.first(), pairs.last()].into_iter().flatten().map(|(key, _)| key);
        let gets = near.iter().chain(ends).map(|key| (key.clone(), value(key))).collect();
        Self { state: model.clone(), pairs, battery: Battery::new(model, near), gets }
    }
}

/// The bounds of a full scan.
const fn everything<T>() -> (Bound<T>, Bound<T>) {
    (Bound::Unbounded, Bound::Unbounded)
}

pub(crate) fn failed(what: &str, error: &TreeError) -> Finding {
    Finding::new(what, "no error", error.to_string())
}

pub(crate) fn check<K: Key>(index: &Index<K>) -> Result<TreeStats, Finding> {
    index.check().map_err(|error| failed("the index fails its check", &error))
}

/// Whether what a close has named was durable by then: no crash may leave it to a checksum.
pub(crate) fn saved(pool: &Pool<Simulated>) -> Result<(), Finding> {
    match pool.rebuilt_count() {
        0 => Ok(()),
        times => {
            let what = "what a close had saved is damaged";
            Err(Finding::new(what, "nothing made anew", format!("{times} times")))
        }
    }
}

/// Whether what is reserved is what is reached, and what was saved was whole.
pub(crate) fn leaks(pool: &Pool<Simulated>, census: &TreeStats) -> Result<(), Finding> {
    saved(pool)?;
    let usage = pool.usage();
    let expected = (census.blocks + 1, census.pm_bytes + bristlecone_pmem::pool::HEADER_BYTES);
    let found = (usage.blocks, usage.used_bytes);
    if found == expected {
        return Ok(());
    }
    let what = "what is allocated is not what is reachable";
    let show = |(blocks, bytes)| format!("{blocks} blocks of {bytes} B, the header included");
    Err(Finding::new(what, show(expected), show(found)))
}

pub(crate) fn pairs<K: Key>(index: &Index<K>) -> Vec<(K::Owned, u64)> {
    let mut pairs = Vec::new();
    let _ = index.scan(everything(), Order::Ascending, &mut |key, value| {
        pairs.push((K::to_owned(key), value));
        ControlFlow::Continue(())
    });
    pairs
}

/// How `found` differs from `base`, as far as a person wants to read.
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
