//! Cases of designs that put work off: a keeper does it.
//!
//! Writes while there is a keeper leave the work to it; so more gathers than a write alone would leave, and
//! all of it is done by what is under test.

use super::SampleKey;
use super::life::{Life, Op};
use super::plan::{Cases, STRIDE, Trial, few, grown};
use crate::kind::Kind;
use crate::tape::Event;
use bristlecone_pmem::sync::pin;
use bristlecone_trees::TreeError;

/// Leaves of a tree of which some share a log, if there are no more logs than in any design.
pub(crate) const LEAVES: u64 = 12;
/// Updates after which a design is taken to have put nothing off.
const UPDATES_MAX: u64 = 400;
/// Times that all there is to do is done, after each of which what is left may be another case.
const ROUNDS: usize = 6;
/// Steps under test of one case: states are counted in bits, and two operations may follow.
const STEPS_MAX: usize = 28;

/// Updates after which a log in a small pool has come round to where it was: a block of it has been given up,
/// begun anew, and written again.
const ROUND: u32 = 250;

/// Work that is left to a keeper.
pub(crate) struct Left<K: SampleKey> {
    /// What leaves it.
    pub(crate) ops: Vec<Op<K>>,
    /// Steps that it takes.
    steps: usize,
    /// Words that these store.
    stores: usize,
}

/// Updates of keys in turn, which leave work to a keeper, who does all of it some times and then no more: as often
/// as leaves most to store. `None` if nothing is left to anybody.
pub(crate) fn left<K: SampleKey>(
    kind: Kind<K>,
    setup: &[Op<K>],
    numbers: &[u64],
) -> Result<Option<Left<K>>, TreeError> {
    let mut most: Option<Left<K>> = None;
    for rounds in 0..ROUNDS {
        let left = left_after(kind, setup, numbers, rounds)?;
        let stores = most.as_ref().map_or(0, |most| most.stores);
        most = left.filter(|left| left.stores > stores).or(most);
    }
    Ok(most)
}

fn left_after<K: SampleKey>(
    kind: Kind<K>,
    setup: &[Op<K>],
    numbers: &[u64],
    rounds: usize,
) -> Result<Option<Left<K>>, TreeError> {
    // What is retired must not come free at a moment of chance.
    let _pinned = pin();
    let mut trial = Trial::taped(kind, setup)?;
    let mut done = 0;
    for (value, &number) in (0..UPDATES_MAX).zip(numbers.iter().cycle()) {
        trial.apply(&Op::Kept(Box::new(Op::Update(K::sample(number), value))))?;
        trial.medium.begin();
        let mut steps = 0;
        while steps < STEPS_MAX && tends(&trial.life)? {
            steps += 1;
        }
        if steps > 0 && done == rounds {
            let Ok((tape, _)) = trial.medium.finish() else { return Ok(None) };
            let of_steps = &tape.entries[tape.begin as usize..];
            let is_store = |event: &Event| matches!(event, Event::Store { .. });
            let stores = of_steps.iter().filter(|entry| is_store(&entry.event)).count();
            let ops = trial.done.split_off(setup.len());
            return Ok(Some(Left { ops, steps, stores }));
        }
        done += usize::from(steps > 0);
        trial.done.extend(vec![Op::Tend; steps]);
    }
    Ok(None)
}

/// Whether there was something to do for a keeper, who has then done a step of it.
fn tends<K: SampleKey>(life: &Life<K>) -> Result<bool, TreeError> {
    match life {
        Life::Index(index) => index.run_maintenance_step(),
        Life::Closed | Life::Pool(_) => Ok(false),
    }
}

impl<K: SampleKey> Cases<K> {
    /// All that there is to do for a keeper: in one leaf; and in a tree in which the first leaf has changed again
    /// and again, and what was said of the others counts still.
    pub(super) fn tended(&mut self) -> Result<(), TreeError> {
        if self.kind.design.maintenance.is_none() {
            return Ok(());
        }
        let updates = Op::Updates(K::sample(20), u64::MAX, ROUND);
        self.add("update-round", few(), vec![updates], &[20, 19, 21, STRIDE]);
        self.tended_after("tend", few(), &[20, 10, 40])?;
        let Some((setup, _)) = grown(self.kind, 2, LEAVES)? else { return Ok(()) };
        self.tended_after("tend-beside", setup, &[STRIDE, 2 * STRIDE])
    }

    fn tended_after(
        &mut self,
        name: &str,
        setup: Vec<Op<K>>,
        numbers: &[u64],
    ) -> Result<(), TreeError> {
        let Some(left) = left(self.kind, &setup, numbers)? else { return Ok(()) };
        let near = [numbers[0], numbers[0] + 1, numbers[1], LEAVES * STRIDE];
        let setup = [setup, left.ops].concat();
        let tested = vec![Op::Tend; left.steps];
        // Another thread goes on where the keeper left the log.
        let updates = Op::Updates(K::sample(numbers[0]), u64::MAX, ROUND);
        let round = [&tested[..], &[Op::Reclaim, updates]].concat();
        self.add(&format!("{name}-round"), setup.clone(), round, &near);
        self.add(name, setup, tested, &near);
        Ok(())
    }
}
