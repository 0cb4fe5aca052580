//! Cases of whole trees: chains of splits, merges to an empty tree, full leaves, reused blocks,
//! growth.

use crate::scenario::index::scenario::IndexScenario;
use crate::scenario::index::session::Op;
use crate::scenario::index::trial::{
    CaseList, IndexCase, KEYS_MAX, STRIDE, Trial, few, fresh, grown, insert, remove,
};
use crate::subject::keys::SampleKey;
use crate::subject::store::{LONG_VALUE, QUARTER_VALUE};
use bristlecone_pmem::PoolError;
use bristlecone_pmem::pool::POOL_BYTES_MIN;
use bristlecone_trees::spec::PARENTS_MENDED;
use bristlecone_trees::{TreeError, TreeStats};

/// The number of keys after which a small pool counts as one that never grows.
const GROWTH_KEYS_MAX: u64 = 4 * KEYS_MAX;

/// The keys of a leaf of `isle-tree-all` that was split by ascending inserts, at 256 B.
pub(crate) const LEAF_KEYS: u64 = 6;
/// The number, from 1, of the least key below the second inner node once the root has split there:
/// eight leaves are below the first.
pub(crate) const FIRST_OF_SECOND: u64 = 8 * LEAF_KEYS + 1;

/// The number of updates of one key in a row.
const UPDATES: u64 = 12;
/// The number of pairs of a bulk load.
const LOADED: u64 = 60;
/// The operations under test of one scenario. States are bits of a word.
const TESTED_MAX: usize = 30;

/// Returns the setup of a store with two chunks of four records each. One has a single record left,
/// that of 50, which a compaction moves into the other one.
pub(crate) fn sparse_chunks<K: SampleKey>() -> Vec<Op<K>> {
    let numbers = (1..=8).map(|count| count * STRIDE);
    let mut setup = fresh();
    setup.extend(numbers.map(|number| Op::Upsert(K::sample(number), QUARTER_VALUE + number)));
    setup.extend([20, 30, 60, 70, 80].map(remove));
    setup.extend([Op::Reclaim, Op::Reclaim]);
    setup
}

impl<K: SampleKey> CaseList<K> {
    pub(super) fn structures(&mut self) -> Result<(), TreeError> {
        self.full()?;
        self.often()?;
        self.chain()?;
        self.first_child()?;
        self.emptied()?;
        self.separator_removed()?;
        self.moved_removed()?;
        self.used_again()?;
        self.collapsed_used_again()?;
        self.used_at_once()?;
        self.long();
        self.loaded()?;
        self.growth()
    }

    /// Adds a bulk load of several leaves, if the design has one, and an insert that splits one of
    /// them.
    fn loaded(&mut self) -> Result<(), TreeError> {
        let mut pairs: Vec<_> =
            (1..=LOADED).map(|count| (K::sample(count * STRIDE), count)).collect();
        pairs.sort_unstable();
        let load = Op::Load(pairs);
        match Trial::new(self.design, &fresh())?.apply(&load) {
            Err(TreeError::NoBulkLoad) => return Ok(()),
            done => done?,
        }
        let near = [STRIDE, 5, LOADED * STRIDE, LOADED / 2 * STRIDE];
        self.add("load", fresh(), vec![load, insert(LOADED / 2 * STRIDE + 5)], &near);
        Ok(())
    }

    /// Adds updates in a leaf without room for another entry.
    fn full(&mut self) -> Result<(), TreeError> {
        let leaf =
            |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves && before.keys > 0;
        let ascending = (1..).map(|count| count * STRIDE);
        let case = Trial::new(self.design, &fresh())?.until(ascending, insert, leaf)?;
        let Some(IndexCase { setup, .. }) = case else { return Ok(()) };
        let near = [20, 19, 21, STRIDE];
        let value = u64::MAX;
        let mut add = |name, tested: Vec<Op<K>>| self.add(name, setup.clone(), tested, &near);
        add("update-full", vec![Op::Update(K::sample(20), value)]);
        add("upsert-full", vec![Op::Upsert(K::sample(20), value)]);
        add(
            "update-full-twice",
            vec![Op::Update(K::sample(20), value), Op::Update(K::sample(STRIDE), 0)],
        );
        add("remove-insert-full", vec![remove(20), insert(21)]);
        Ok(())
    }

    /// Adds as many updates of one key as fill a leaf that appends them, and two more: in the only
    /// leaf, and in a leaf between others.
    fn often(&mut self) -> Result<(), TreeError> {
        let updates = |number| (0..UPDATES).map(move |n| Op::Update(K::sample(number), n));
        self.add("update-often", few(), updates(20).collect(), &[20, 19, 21, STRIDE]);
        let Some((setup, keys)) = grown(self.design, 2, 4)? else { return Ok(()) };
        let middle = keys / 2 * STRIDE;
        let near = [middle, middle - 1, middle + 1, middle - STRIDE, middle + STRIDE];
        self.add("update-often-beside", setup, updates(middle).collect(), &near);
        Ok(())
    }

    /// Adds a split of an inner node other than the root.
    fn chain(&mut self) -> Result<(), TreeError> {
        let inner = |before: &TreeStats, after: &TreeStats| {
            before.height >= 3
                && after.height == before.height
                && after.inner_nodes > before.inner_nodes
        };
        let ascending = (1..).map(|count| count * STRIDE);
        let case = Trial::new(self.design, &fresh())?.until(ascending, insert, inner)?;
        self.found("split-inner", case);
        Ok(())
    }

    /// Adds a split and a merge of the first leaf below the second inner node: its left neighbour
    /// has another parent.
    fn first_child(&mut self) -> Result<(), TreeError> {
        if !self.design.form.spec.features.contains(&PARENTS_MENDED) {
            return Ok(());
        }
        let root = |_: &TreeStats, after: &TreeStats| after.height >= 3;
        let ascending = (1..).map(|count| count * STRIDE);
        let case = Trial::new(self.design, &fresh())?.until(ascending, insert, root)?;
        let Some(IndexCase { mut setup, op, .. }) = case else { return Ok(()) };
        setup.push(op);
        let split = |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves;
        let first = FIRST_OF_SECOND * STRIDE;
        let case = Trial::new(self.design, &setup)?.until(first + 1.., insert, split)?;
        self.found("split-first-child", case);
        let merge = |before: &TreeStats, after: &TreeStats| after.leaves < before.leaves;
        let fewer = [first, first + LEAF_KEYS * STRIDE];
        let case = Trial::new(self.design, &setup)?.until(fewer, remove, merge)?;
        self.found("merge-first-child", case);
        Ok(())
    }

    /// Adds merges to an empty tree, and an insert after them.
    fn emptied(&mut self) -> Result<(), TreeError> {
        let Some((mut setup, keys)) = grown(self.design, 2, 3)? else { return Ok(()) };
        setup.extend((3..=keys).map(|count| remove(count * STRIDE)));
        let near = [STRIDE, 2 * STRIDE, 3 * STRIDE, 5];
        let tested = vec![remove(STRIDE), remove(2 * STRIDE), insert(STRIDE)];
        self.add("remove-to-empty", setup, tested, &near);
        Ok(())
    }

    /// Adds a remove of the key that a split in halves has made the separator of two leaves, and
    /// then inserts: the first one can get the block of its record, and all compare with it.
    fn separator_removed(&mut self) -> Result<(), TreeError> {
        let Some((setup, keys)) = grown(self.design, 2, 2)? else { return Ok(()) };
        let middle = (keys / 2 + 1) * STRIDE;
        let last = keys * STRIDE;
        let near = [middle, middle - STRIDE, last, last - 5];
        let tested = vec![remove(middle), Op::Reclaim, insert(last + STRIDE), insert(last - 5)];
        self.add("remove-separator", setup, tested, &near);
        Ok(())
    }

    /// Adds a split, the remove of a key that it has moved, and the insert of the least key, into
    /// another leaf. That can get the block of the removed key's record: the records of the two
    /// have the same length.
    fn moved_removed(&mut self) -> Result<(), TreeError> {
        let Some((mut setup, keys)) = grown(self.design, 2, 3)? else { return Ok(()) };
        let Some(split) = setup.pop() else { return Ok(()) };
        let moved = (keys - 1) * STRIDE;
        let least = 3 + moved % 3;
        let near = [least, STRIDE, moved, moved + 1];
        let tested = vec![split, remove(moved), Op::Reclaim, insert(least)];
        self.add("remove-moved", setup, tested, &near);
        Ok(())
    }

    /// Adds a merge, and then a split that gets the block that the merge freed. The unlink must be
    /// durable before the block is reused.
    fn used_again(&mut self) -> Result<(), TreeError> {
        let Some((low, keys)) = grown(self.design, 2, 4)? else { return Ok(()) };
        let merge = |before: &TreeStats, after: &TreeStats| after.leaves < before.leaves;
        let split = |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves;
        let up = || (1..=keys).map(|count| count * STRIDE);
        let middle: Vec<_> = up().skip(keys as usize / 3).collect();
        for (name, less) in [("reuse-front", up().collect()), ("reuse-middle", middle)] {
            let case = Trial::new(self.design, &low)?.until(less, remove, merge)?;
            let Some(IndexCase { setup, op, number }) = case else { continue };
            let mut trial = Trial::new(self.design, &[&setup[..], &[op, Op::Reclaim]].concat())?;
            let after = (keys * STRIDE + 1..).step_by(STRIDE as usize);
            let Some(found) = trial.until(after, insert, split)? else { continue };
            let tested: Vec<_> = trial.done.drain(setup.len()..).collect();
            if tested.len() < TESTED_MAX {
                let near = [number, number + STRIDE, found.number, found.number - 1];
                self.add(name, setup, tested, &near);
            }
        }
        Ok(())
    }

    /// Adds a root that gives way to its only child, and then a split that gets both freed blocks:
    /// the lower one, of the leaf, and that of the root.
    fn collapsed_used_again(&mut self) -> Result<(), TreeError> {
        let Some((low, keys)) = grown(self.design, 2, 2)? else { return Ok(()) };
        let lower = |before: &TreeStats, after: &TreeStats| after.height < before.height;
        let higher = |before: &TreeStats, after: &TreeStats| after.height > before.height;
        let down = (1..=keys).rev().map(|count| count * STRIDE);
        let case = Trial::new(self.design, &low)?.until(down, remove, lower)?;
        let Some(IndexCase { setup, op, number }) = case else { return Ok(()) };
        let mut trial = Trial::new(self.design, &[&setup[..], &[op, Op::Reclaim]].concat())?;
        let after = (keys * STRIDE + 1..).step_by(STRIDE as usize);
        let Some(found) = trial.until(after, insert, higher)? else { return Ok(()) };
        let tested: Vec<_> = trial.done.drain(setup.len()..).collect();
        if tested.len() < TESTED_MAX {
            let near = [number, STRIDE, found.number, found.number - 1];
            self.add("reuse-root", setup, tested, &near);
        }
        Ok(())
    }

    /// Adds a merge and a split directly after it, without a fence of another operation between
    /// them. Free blocks are used up as far as the lowest block, which the merge frees and the
    /// split gets. Adds both once more, with an open of the killed pool between them: the merge
    /// ends the newest leaf, whose number the open must not give to the next one.
    fn used_at_once(&mut self) -> Result<(), TreeError> {
        let Some((mut low, keys)) = grown(self.design, 2, 4)? else { return Ok(()) };
        low.push(Op::Reclaim);
        let merge = |before: &TreeStats, after: &TreeStats| after.leaves < before.leaves;
        let split = |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves;
        let after = (keys * STRIDE + 1..).step_by(STRIDE as usize);
        let more = Trial::new(self.design, &low)?.until(after, insert, split)?;
        let Some(IndexCase { setup, op, number: last }) = more else { return Ok(()) };
        let front =
            Trial::new(self.design, &[setup, vec![op]].concat())?.until(1.., insert, split)?;
        let Some(IndexCase { setup, op: splits, number: at }) = front else { return Ok(()) };
        let down = (1..=last).rev().filter(|number| number % STRIDE <= 1);
        let back = Trial::new(self.design, &setup)?.until(down, remove, merge)?;
        let Some(IndexCase { setup, op: merges, number }) = back else { return Ok(()) };
        let near = [number, number - STRIDE, at, at + 1];
        let opened = |merges, splits| vec![merges, Op::Crash, Op::Open, splits];
        self.add("merge-open-split", setup.clone(), opened(merges.clone(), splits.clone()), &near);
        self.add("reuse-at-once", setup, vec![merges, Op::Reclaim, splits], &near);
        Ok(())
    }

    /// Adds a value that takes more than a chunk of the pool, in a design that stores one.
    fn long(&mut self) {
        if !self.design.is_store() {
            return;
        }
        let near = [20, 25, 30];
        let long = |number| Op::Upsert(K::sample(number), LONG_VALUE);
        self.add("put-long", few(), vec![long(25)], &near);
        let mut setup = few();
        setup.push(long(20));
        let short = Op::Upsert(K::sample(20), 3);
        self.add("put-long-then-short", setup.clone(), vec![long(30), short], &near);
        self.add("remove-long", setup, vec![remove(20)], &near);
        self.compactions();
    }

    /// Adds compactions of sparse chunks. Then a record of another size takes the empty chunk.
    fn compactions(&mut self) {
        let setup = sparse_chunks();
        let near = [10, 50, 60, 25];
        self.add("compact", setup.clone(), vec![Op::RunMaintenance], &near);
        let short = Op::Upsert(K::sample(50), 3);
        let long = Op::Upsert(K::sample(25), LONG_VALUE);
        let then = vec![Op::RunMaintenance, Op::Reclaim, long, short];
        self.add("compact-then-put", setup, then, &near);
    }

    /// Adds an insert that makes the pool grow.
    fn growth(&mut self) -> Result<(), TreeError> {
        let mut trial = Trial::in_bytes(self.design, POOL_BYTES_MIN, &fresh())?;
        for number in (1..GROWTH_KEYS_MAX).map(|count| count * STRIDE) {
            let before = trial.medium.len();
            match trial.apply(&insert(number)) {
                Err(TreeError::Pool(PoolError::Full { .. })) => break,
                done => done?,
            }
            if trial.medium.len() > before {
                trial.done.pop();
                let done = trial.done;
                let name = format!("{}/insert-growing", K::NAME);
                let near = [number, number - STRIDE, number + 1].map(K::sample);
                let scenario =
                    IndexScenario::new(self.design, name, done, vec![insert(number)], &near);
                self.list.push(scenario.in_bytes(POOL_BYTES_MIN));
                break;
            }
        }
        Ok(())
    }
}
