//! Cases of designs that put work off: a keeper does it.
//!
//! Writes while there is a keeper leave the work to it; so more gathers than a write alone would leave, and
//! all of it is done by what is under test.

use super::SampleKey;
use super::life::{Life, Op};
use super::plan::{Cases, STRIDE, Trial, few, grown};
use bristlecone_trees::TreeError;

/// Updates after which a design is taken to have put nothing off.
const UPDATES_MAX: u64 = 400;
/// Steps under test of one case: states are counted in bits.
const STEPS_MAX: usize = 30;

/// Updates of keys in turn, each while there is a keeper who does nothing.
pub(crate) fn left<K: SampleKey>(numbers: &[u64]) -> impl Iterator<Item = Op<K>> {
    let update = |(value, &number)| Op::Kept(Box::new(Op::Update(K::sample(number), value)));
    (0..UPDATES_MAX).zip(numbers.iter().cycle()).map(update)
}

/// Whether there was something to do for a keeper, who has then done a step of it.
pub(crate) fn tends<K: SampleKey>(life: &Life<K>) -> Result<bool, TreeError> {
    match life {
        Life::Index(index) => index.tend(),
        Life::Closed | Life::Pool(_) => Ok(false),
    }
}

impl<K: SampleKey> Cases<K> {
    /// Everything that there is to do for a keeper, as soon as there is something: in one leaf, and in a tree.
    pub(super) fn tended(&mut self) -> Result<(), TreeError> {
        if self.kind.design.upkeep.is_none() {
            return Ok(());
        }
        self.tended_after("tend", few(), &[20, 10, 40])?;
        let Some((setup, keys)) = grown(self.kind, 2, 4)? else { return Ok(()) };
        let numbers: Vec<_> = (1..=keys).map(|count| count * STRIDE).collect();
        self.tended_after("tend-beside", setup, &numbers)
    }

    fn tended_after(
        &mut self,
        name: &str,
        setup: Vec<Op<K>>,
        numbers: &[u64],
    ) -> Result<(), TreeError> {
        let mut trial = Trial::new(self.kind, &setup)?;
        for op in left(numbers) {
            trial.apply(&op)?;
            if !tends(&trial.life)? {
                continue;
            }
            let mut tested = vec![Op::Tend];
            while tested.len() < STEPS_MAX && tends(&trial.life)? {
                tested.push(Op::Tend);
            }
            let near = [numbers[0], numbers[0] + 1, numbers[numbers.len() / 2], STRIDE];
            self.add(name, trial.done, tested, &near);
            break;
        }
        Ok(())
    }
}
