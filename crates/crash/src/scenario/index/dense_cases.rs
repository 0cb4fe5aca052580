//! Cases of leaves whose cells keep a part of each key: keys that are far from each other, so that
//! the ranges of leaves are about as wide as such a leaf can have.

use crate::scenario::index::session::Op;
use crate::scenario::index::trial::{CaseList, Trial, fresh, insert, remove};
use crate::subject::keys::SampleKey;
use bristlecone_trees::spec::DENSE;
use bristlecone_trees::{TreeError, TreeStats};

/// The distance of keys: a dense leaf covers at most four times as many numbers.
const FAR: u64 = 1 << 46;
/// The number of keys that are inserted in ascending order.
const KEYS: u64 = 24;
/// The number of keys between two of them that are inserted next.
const PARTS: u64 = 16;

fn splits(before: &TreeStats, after: &TreeStats) -> bool {
    after.leaves > before.leaves && before.keys > 0
}

fn merges(before: &TreeStats, after: &TreeStats) -> bool {
    after.leaves < before.leaves
}

/// Yields the numbers of the keys between a few of the first ones, far ones first.
fn between() -> impl DoubleEndedIterator<Item = u64> {
    (1..PARTS).flat_map(|part| (8..14).map(move |count| count * FAR + part * (FAR / PARTS)))
}

impl<K: SampleKey> CaseList<K> {
    /// Adds splits of wide leaves into dense ones, splits of these, changes in them, and merges of
    /// leaves whose ranges together are too wide for a dense leaf, and are not.
    pub(super) fn dense(&mut self) -> Result<(), TreeError> {
        if !K::EXACT || !self.design.form.spec.features.contains(&DENSE) {
            return Ok(());
        }
        let mut setup = fresh();
        setup.extend((1..=KEYS).map(|count| insert(count * FAR)));
        self.dense_wide(&setup)?;
        let mut trial = Trial::new(self.design, &setup)?;
        let mut numbers = between();
        for split in 1..=10 {
            let Some(case) = trial.until(&mut numbers, insert, splits)? else { break };
            let number = case.number;
            let near = [number, number - FAR / PARTS, number + FAR, number + 1];
            let tested = vec![
                case.op.clone(),
                Op::Update(K::sample(number), 7),
                insert(number + 1),
                remove(number - FAR / PARTS),
                Op::Update(K::sample(number + 1), 8),
            ];
            self.add(&format!("dense-change-{split}"), case.setup.clone(), tested, &near);
            self.found(&format!("dense-split-{split}"), Some(case));
        }
        self.dense_merges("ascending", &trial.done, &mut all().into_iter())?;
        self.dense_merges("descending", &trial.done, &mut all().into_iter().rev())?;
        self.dense_merges("scattered", &trial.done, &mut between())
    }

    /// Adds the split of a dense leaf whose range is as wide as it can be. A leaf of six keys gets
    /// more ones at its low end, so that a split makes a dense leaf of the four others; and that
    /// one gets more at its high end, so that the moved entries are far from the low key.
    fn dense_wide(&mut self, setup: &[Op<K>]) -> Result<(), TreeError> {
        let mut trial = Trial::new(self.design, setup)?;
        let after = |count: u64| (1..PARTS).map(move |part| count * FAR + part * (FAR / PARTS));
        trial.until(after(13), insert, splits)?;
        let Some(case) = trial.until(after(18), insert, splits)? else { return Ok(()) };
        let near = [15 * FAR, 16 * FAR, 17 * FAR, case.number, case.number - FAR / PARTS];
        let tested = vec![
            case.op.clone(),
            insert(15 * FAR + 1),
            Op::Update(K::sample(15 * FAR), 7),
            Op::Close,
            Op::Open,
            remove(16 * FAR),
        ];
        self.add("dense-wide-change", case.setup.clone(), tested, &near);
        self.found("dense-wide-split", Some(case));
        Ok(())
    }

    /// Adds the merges of removes of these numbers.
    fn dense_merges(
        &mut self,
        name: &str,
        setup: &[Op<K>],
        numbers: &mut dyn Iterator<Item = u64>,
    ) -> Result<(), TreeError> {
        let mut trial = Trial::new(self.design, setup)?;
        for merge in 1..=6 {
            let Some(case) = trial.until(&mut *numbers, remove, merges)? else { break };
            self.found(&format!("dense-merge-{name}-{merge}"), Some(case));
        }
        Ok(())
    }
}

/// Returns the numbers of all keys, in order.
fn all() -> Vec<u64> {
    let mut numbers: Vec<_> = between().chain((1..=KEYS).map(|count| count * FAR)).collect();
    numbers.sort_unstable();
    numbers
}
