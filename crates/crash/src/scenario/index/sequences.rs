//! Every sequence of operations up to a length, and long random sequences.
//!
//! 1. Only the last operation of a sequence is crashed. Those before it are the last operations of
//!    shorter sequences.
//! 2. An operation that changes nothing but latches is not continued: a sequence after it equals
//!    one without it. Its own crashes are explored.

use crate::scenario::index::scenario::{IndexScenario, Reuse};
use crate::scenario::index::session::Op;
use crate::scenario::index::trial::{IndexCase, STRIDE, Trial, fresh, grown, insert, remove};
use crate::scenario::{FamilyStep, Scenario, ScenarioFamily};
use crate::subject::design::SubjectDesign;
use crate::subject::keys::SampleKey;
use bristlecone_pmem::medium::schedule::Conditions;
use bristlecone_trees::{TreeError, TreeStats};

/// The number of keys that the operations of a sequence use.
const KEYS: usize = 5;
/// The bound of the length of a random setup.
const SETUP_MAX: u64 = 200;
/// The number of keys that random operations use.
const RANDOM_KEYS: u64 = 60;
/// The number of operations under test of a random sequence.
const TESTED: u64 = 4;
/// The number of attempts to shorten a failing sequence.
const SHRINKS_MAX: u32 = 400;

/// All sequences of operations on five keys from one state.
pub(crate) struct Sequences<K: SampleKey> {
    design: SubjectDesign<K>,
    name: String,
    start: Vec<Op<K>>,
    keys: [u64; KEYS],
    length: u32,
}

/// Returns the sequences of a design up to `length`: from an empty index, and with the keys around
/// a split, a merge and a split of the root.
///
/// # Errors
/// The design fails without any crash.
pub(crate) fn sequences<K: SampleKey>(
    design: SubjectDesign<K>,
    length: u32,
) -> Result<Vec<Sequences<K>>, TreeError> {
    let mut list = Vec::new();
    let mut add = |name: &str, start: Vec<Op<K>>, keys| {
        let name = format!("{}/sequences-{name}", K::NAME);
        list.push(Sequences { design, name, start, keys, length });
    };
    add("empty", fresh(), [0, STRIDE, 2 * STRIDE, 25, u64::MAX]);
    let around = |number: u64| [number - STRIDE, number - 5, number, number + 5, number + STRIDE];
    let ascending = || (1..).map(|count| count * STRIDE);
    let leaf =
        |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves && before.keys > 0;
    if let Some(IndexCase { mut setup, number, .. }) =
        Trial::new(design, &fresh())?.until(ascending(), insert, leaf)?
    {
        // With room for one more entry, the second insert splits.
        setup.pop();
        add("split", setup, [STRIDE, 15, number - 2 * STRIDE, number - STRIDE, number]);
    }
    let root = |before: &TreeStats, after: &TreeStats| before.height == 2 && after.height == 3;
    if let Some(case) = Trial::new(design, &fresh())?.until(ascending(), insert, root)? {
        add("root", case.setup, around(case.number));
    }
    if let Some((low, keys)) = grown(design, 2, 4)? {
        let merge = |before: &TreeStats, after: &TreeStats| after.leaves < before.leaves;
        let up = (1..=keys).map(|count| count * STRIDE).skip(keys as usize / 3);
        if let Some(case) = Trial::new(design, &low)?.until(up, remove, merge)? {
            add("merge", case.setup, around(case.number));
        }
    }
    Ok(list)
}

impl<K: SampleKey> Sequences<K> {
    /// Explores each operation after `done`, and its continuations. Returns `false` after a
    /// violation.
    fn grow(
        &self,
        done: &mut Vec<Op<K>>,
        explore: &mut dyn FnMut(&dyn Scenario) -> FamilyStep,
    ) -> bool {
        for number in self.keys {
            let key = || K::sample(number);
            let update = Op::Update(key(), number.wrapping_add(done.len() as u64));
            for op in [insert(number), update, remove(number)] {
                let setup: Vec<_> = self.start.iter().chain(&*done).cloned().collect();
                let near = self.keys.map(K::sample);
                let name = named(&self.name, done);
                let scenario =
                    IndexScenario::new(self.design, name, setup, vec![op.clone()], &near);
                // A block that is used again here holds what its former node held.
                let scenario = scenario.with(Conditions::USUAL, Reuse::Former);
                match explore(&scenario) {
                    FamilyStep::Idle => continue,
                    FamilyStep::Wrong => return false,
                    FamilyStep::Right => {}
                }
                done.push(op);
                let right = (done.len() as u32) >= self.length || self.grow(done, explore);
                done.pop();
                if !right {
                    return false;
                }
            }
        }
        true
    }
}

impl<K: SampleKey> ScenarioFamily for Sequences<K> {
    fn name(&self) -> &str {
        &self.name
    }

    fn each(&self, explore: &mut dyn FnMut(&dyn Scenario) -> FamilyStep) {
        self.grow(&mut Vec::new(), explore);
    }
}

/// Returns the name of a family with the operations before.
fn named<K: SampleKey>(name: &str, done: &[Op<K>]) -> String {
    let done: Vec<_> = done.iter().map(ToString::to_string).collect();
    if done.is_empty() { name.into() } else { format!("{name} after {}", done.join(", ")) }
}

/// Long random sequences, one for each seed. A failing one is shortened.
pub(crate) struct RandomSequences<K: SampleKey> {
    design: SubjectDesign<K>,
    name: String,
    seed: u64,
    count: u64,
}

impl<K: SampleKey> RandomSequences<K> {
    /// Returns the sequences of `count` seeds from `seed` on.
    pub(crate) fn new(design: SubjectDesign<K>, seed: u64, count: u64) -> Self {
        Self { design, name: format!("{}/random", K::NAME), seed, count }
    }

    /// Returns the sequence of a seed: the setup, and the operations under test.
    fn draw(seed: u64) -> (Vec<Op<K>>, Vec<Op<K>>) {
        let mut state = seed;
        let mut below = move |end: u64| {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            (mixed ^ (mixed >> 31)) % end
        };
        // Some sequences mostly insert, some mostly remove at the end.
        let (length, removes) = (below(SETUP_MAX), below(8));
        let mut draw = |place: u64| {
            let number = 1 + below(RANDOM_KEYS);
            let late = if place > length / 2 { removes } else { 1 };
            match below(4 + late) {
                0..=2 => insert(number),
                3 => [Op::Update(K::sample(number), place), Op::Upsert(K::sample(number), place)]
                    [below(2) as usize]
                    .clone(),
                _ => remove(number),
            }
        };
        let mut setup: Vec<_> = (0..length).map(&mut draw).collect();
        let tested = (0..TESTED).map(|place| draw(length + place)).collect();
        if seed.is_multiple_of(3) {
            // A third of the sequences reopens the index on the way.
            let at = setup.len() / 2;
            setup.splice(at..at, [[Op::Close, Op::Crash][seed as usize % 2].clone(), Op::Open]);
        }
        (setup, tested)
    }

    fn scenario(&self, seed: u64, setup: &[Op<K>], tested: &[Op<K>]) -> IndexScenario<K> {
        let done = fresh().into_iter().chain(setup.iter().cloned()).collect();
        let mut near: Vec<_> = tested.iter().filter_map(Op::key).collect();
        near.dedup();
        let name = named(&format!("seed {seed}"), setup);
        let scenario = IndexScenario::new(self.design, name, done, tested.to_vec(), &near);
        // Blocks are used again in all of them, in half of them with what they held. A third is
        // aged, and a fifth has a small scale.
        let conditions = Conditions { small_scale: seed.is_multiple_of(5), aged: seed % 3 == 1 };
        let reuse = if seed.is_multiple_of(2) { Reuse::Former } else { Reuse::Poisoned };
        scenario.with(conditions, reuse)
    }

    /// Removes as many operations of a failing sequence as possible.
    fn shrink(
        &self,
        seed: u64,
        (mut setup, mut tested): (Vec<Op<K>>, Vec<Op<K>>),
        explore: &mut dyn FnMut(&dyn Scenario) -> FamilyStep,
    ) {
        let mut left = SHRINKS_MAX;
        let mut fails = |setup: &[Op<K>], tested: &[Op<K>]| {
            left = left.saturating_sub(1);
            left > 0 && explore(&self.scenario(seed, setup, tested)) == FamilyStep::Wrong
        };
        // An operation under test can move to the setup if a later one fails.
        while tested.len() > 1 {
            let moved = [&setup[..], &tested[..1]].concat();
            if fails(&setup, &tested[..1]) {
                tested.truncate(1);
            } else if fails(&moved, &tested[1..]) {
                setup = moved;
                tested.remove(0);
            } else {
                break;
            }
        }
        let mut length = setup.len().next_power_of_two();
        while length > 0 {
            let mut at = 0;
            while at < setup.len() {
                let mut less = setup.clone();
                less.drain(at..(at + length).min(setup.len()));
                if fails(&less, &tested) {
                    setup = less;
                } else {
                    at += length;
                }
            }
            length /= 2;
        }
    }
}

impl<K: SampleKey> ScenarioFamily for RandomSequences<K> {
    fn name(&self) -> &str {
        &self.name
    }

    fn each(&self, explore: &mut dyn FnMut(&dyn Scenario) -> FamilyStep) {
        for seed in (self.seed..).take(self.count as usize) {
            let (setup, tested) = Self::draw(seed);
            if explore(&self.scenario(seed, &setup, &tested)) == FamilyStep::Wrong {
                return self.shrink(seed, (setup, tested), explore);
            }
        }
    }
}
