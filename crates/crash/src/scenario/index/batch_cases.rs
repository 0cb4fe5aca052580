//! Cases of batches, in a design that has them: in one leaf and in several, with leaves that lack
//! space, with a key in each leaf.

use crate::scenario::index::session::Op;
use crate::scenario::index::trial::{
    CaseList, IndexCase, STRIDE, Trial, few, fresh, grown, insert, remove,
};
use crate::subject::keys::SampleKey;
use bristlecone_trees::{TreeError, TreeStats};

/// The number of leaves of a tree that a batch changes.
const LEAVES: u64 = 3;
/// The number of new keys that need several new leaves.
const MANY: u64 = 13;

/// Returns a batch of changes of the keys with these numbers.
fn commit<K: SampleKey>(changes: impl IntoIterator<Item = (u64, Option<u64>)>) -> Op<K> {
    let mut changes: Vec<_> =
        changes.into_iter().map(|(number, value)| (K::sample(number), value)).collect();
    changes.sort_unstable();
    Op::Commit(changes)
}

impl<K: SampleKey> CaseList<K> {
    pub(super) fn batches(&mut self) -> Result<(), TreeError> {
        let one = commit([(20, Some(u64::MAX)), (25, Some(7)), (30, None), (35, None)]);
        match Trial::new(self.design, &few())?.apply(&one) {
            Err(TreeError::NoBatch) => return Ok(()),
            done => done?,
        }
        let near = [20, 25, 30, 35, 21];
        self.add("commit-one", few(), vec![commit([(25, Some(7))])], &near);
        self.add("commit-leaf", few(), vec![one.clone()], &near);
        self.add("commit-nothing", few(), vec![commit([(25, None)])], &near);
        self.add("commit-then-insert", few(), vec![one, insert(26), remove(20)], &near);
        let many = |from: u64| (0..MANY).map(move |count| (from + count, Some(count)));
        let near = [20, 21, 21 + MANY, 30];
        self.add("commit-many-empty", fresh(), vec![commit(many(20)), insert(19)], &near);
        self.add("commit-many", few(), vec![commit(many(21)), remove(21 + MANY - 1)], &near);
        self.batches_of_leaves()
    }

    /// Adds batches that change several leaves, full ones among them.
    fn batches_of_leaves(&mut self) -> Result<(), TreeError> {
        let Some((setup, keys)) = grown(self.design, 2, LEAVES)? else { return Ok(()) };
        let key = |part: u64| keys * part / LEAVES * STRIDE;
        let near = [key(1), key(1) + 5, key(2), key(2) + 5, STRIDE];
        let each = || {
            let updates = (1..LEAVES).map(|part| (key(part), Some(part)));
            updates.chain((0..LEAVES).map(|part| (key(part) + 5, Some(part))))
        };
        self.add("commit-leaves", setup.clone(), vec![commit(each())], &near);
        let removals = (1..LEAVES).map(|part| (key(part), None));
        let both = removals.chain([(key(0) + 5, Some(1)), (key(2) + 5, Some(2))]);
        let then = vec![commit(both), insert(key(1)), remove(key(2) + 5)];
        self.add("commit-leaves-then-insert", setup.clone(), then, &near);
        let all = (1..keys).map(|number| (number * STRIDE, None));
        self.add("commit-remove-all", setup.clone(), vec![commit(all), insert(25)], &near);
        let split =
            |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves && before.keys > 0;
        let full = Trial::new(self.design, &setup)?.until(STRIDE + 1.., insert, split)?;
        if let Some(full) = full {
            let changes = each().chain([(full.number, Some(1)), (full.number + 1, Some(2))]);
            self.add("commit-leaves-full", full.setup, vec![commit(changes)], &near);
        }
        let ascending = (1..).map(|count| count * STRIDE);
        let tight = Trial::new(self.design, &fresh())?.until(ascending, insert, split)?;
        if let Some(IndexCase { setup, number, .. }) = tight {
            let updates = [1, 2, number / STRIDE - 1].map(|key| (key * STRIDE, Some(key)));
            self.add("commit-update-tight", setup, vec![commit(updates)], &near);
        }
        Ok(())
    }
}
