//! Cases of nodes that a crash has left in need of a repair, where a writer repairs them and not
//! recovery.
//!
//! The setup ends with an operation that a crash stops: an insert just before the store that makes
//! its pair visible, a split of a leaf or of an inner node just after the store that links the new
//! node, a merge just before the store that unlinks the old one.

use crate::scenario::index::session::Op;
use crate::scenario::index::trial::{
    CaseList, IndexCase, STRIDE, Trial, fresh, grown, insert, remove,
};
use crate::subject::keys::SampleKey;
use bristlecone_trees::{Order, TreeError, TreeStats};

/// The designs whose writers repair leaves.
const DESIGNS: [&str; 7] = [
    "wb-tree",
    "wb-tree-r",
    "fast-fair",
    "fast-fair-r",
    "fast-fair-wide",
    "fast-fair-sp",
    "fast-fair-sp-r",
];
/// The designs whose writers also complete splits and merges.
const COMPLETE: [&str; 3] = ["fast-fair", "fast-fair-r", "fast-fair-wide"];
/// The number of stores that no operation reaches before the one that counts.
const STORES_MAX: u32 = 200;

/// A change of the statistics.
type Changed = fn(&TreeStats, &TreeStats) -> bool;

impl<K: SampleKey> CaseList<K> {
    /// Adds operations on an unrepaired leaf, if the design has such leaves. `prefix` begins the
    /// names of the cases.
    pub(super) fn unrepaired(&mut self, prefix: &str) -> Result<(), TreeError> {
        let name = self.design.form.spec.name;
        if !DESIGNS.contains(&name) {
            return Ok(());
        }
        let leaf: Changed = |before, after| after.leaves > before.leaves && before.keys > 0;
        let ascending = (1..).map(|count| count * STRIDE);
        let first = Trial::new(self.design, &fresh())?.until(ascending, insert, leaf)?;
        let Some(IndexCase { mut setup, .. }) = first else { return Ok(()) };
        let full = setup.clone();
        setup.pop(); // The leaf has room for one entry.
        let pair: Changed = |before, after| after.keys > before.keys;
        let Some(stores) = self.stores_before(&setup, &insert(0), pair)? else { return Ok(()) };
        setup.extend([Op::CutShort(Box::new(insert(0)), stores), Op::Open]);
        let near = [0, STRIDE, 5, 20, 21];
        let mut add = |name: &str, tested: Vec<Op<K>>| {
            self.add(&format!("{prefix}unrepaired-{name}"), setup.clone(), tested, &near);
        };
        add("insert", vec![insert(5)]);
        add("insert-open", vec![insert(5), Op::Crash, Op::Open]);
        add("remove", vec![remove(20)]);
        add("update", vec![Op::Update(K::sample(20), 1)]);
        add("split", vec![Op::Close, Op::Open, insert(5), insert(15)]);
        if !COMPLETE.contains(&name) {
            return Ok(());
        }
        add("update-front", vec![Op::Update(K::sample(STRIDE), 1)]);
        self.unfinished_split(full, leaf)?;
        self.unfinished_inner_splits()?;
        self.unfinished_merge()
    }

    /// Adds operations on a leaf that still has the entries of its new sibling.
    fn unfinished_split(&mut self, mut setup: Vec<Op<K>>, leaf: Changed) -> Result<(), TreeError> {
        let keys = (setup.len() - fresh::<K>().len()) as u64;
        let (last, middle) = (keys * STRIDE, keys / 2 * STRIDE + 5);
        let Some(stores) = self.stores_before(&setup, &insert(middle), leaf)? else {
            return Ok(());
        };
        setup.extend([Op::CutShort(Box::new(insert(middle)), stores + 1), Op::Open]);
        let near = [middle, last, last - 1, STRIDE, middle - 5];
        let mut add = |name: &str, tested: Vec<Op<K>>| {
            self.add(&format!("unfinished-split-{name}"), setup.clone(), tested, &near);
        };
        add("insert-left", vec![insert(5)]);
        add("insert-right", vec![insert(last - 1), Op::Crash, Op::Open]);
        add("update-right", vec![Op::Update(K::sample(last), 1), Op::Get(K::sample(last))]);
        add("remove-right", vec![remove(last), Op::Reclaim, insert(last + 1)]);
        add("read", vec![Op::Scan(Order::Ascending), Op::Scan(Order::Descending), insert(middle)]);
        Ok(())
    }

    /// Adds operations below an inner node that still has the entries of its new sibling: the
    /// root, and one below the root.
    fn unfinished_inner_splits(&mut self) -> Result<(), TreeError> {
        let taller: Changed = |before, after| before.height == 2 && after.height == 3;
        let wider: Changed =
            |before, after| after.height == before.height && after.inner_nodes > before.inner_nodes;
        let ascending = (1..).map(|count| count * STRIDE);
        let case = Trial::new(self.design, &fresh())?.until(ascending, insert, taller)?;
        let Some(IndexCase { setup: full, op, number }) = case else { return Ok(()) };
        let mut tall = full.clone();
        tall.push(op); // It is alone below a second node, beside the former root.
        let edge = number - STRIDE;
        self.unfinished_inner_split("root", &full, edge, taller)?;
        self.unfinished_inner_split("inner", &tall, edge, wider)
    }

    /// Adds operations below the node called `node`, which is full after `setup` and has `edge` as
    /// its last key. Its split is `changed`.
    fn unfinished_inner_split(
        &mut self,
        node: &str,
        setup: &[Op<K>],
        edge: u64,
        changed: Changed,
    ) -> Result<(), TreeError> {
        // A new first leaf, not a new last one: then the node is split in the middle.
        let case = Trial::new(self.design, setup)?.until(1.., insert, changed)?;
        let Some(IndexCase { mut setup, op, number }) = case else { return Ok(()) };
        let linked: Changed = |before, after| after.inner_nodes > before.inner_nodes;
        let Some(stores) = self.stores_before(&setup, &op, linked)? else { return Ok(()) };
        // The pair was durable before the split of the inner node.
        setup.extend([Op::CutLate(Box::new(op), stores + 1), Op::Open]);
        let near = [edge, edge + 1, edge - STRIDE, STRIDE, number + 1];
        let upper = (1..STRIDE).map(|more| insert(edge + more));
        let lower = (1..STRIDE).map(|more| insert(number + more));
        self.add(
            &format!("unfinished-{node}-fill"),
            setup.clone(),
            upper.chain(lower).collect(),
            &near,
        );
        let removes = (0..14).map(|less| remove(edge - less * STRIDE));
        let tested = core::iter::once(insert(edge + 1)).chain(removes).collect();
        self.add(&format!("unfinished-{node}-empty"), setup, tested, &near);
        Ok(())
    }

    /// Adds operations on a leaf that has the entries of a sibling which is not unlinked yet.
    fn unfinished_merge(&mut self) -> Result<(), TreeError> {
        let Some((grown, keys)) = grown(self.design, 2, 4)? else { return Ok(()) };
        let merge: Changed = |before, after| after.leaves < before.leaves;
        let up = (1..=keys).map(|count| count * STRIDE);
        let sparse = up.clone().step_by(2).chain(up.skip(1).step_by(2));
        let case = Trial::new(self.design, &grown)?.until(sparse, remove, merge)?;
        let Some(IndexCase { mut setup, op, number }) = case else { return Ok(()) };
        let Some(stores) = self.stores_before(&setup, &op, merge)? else { return Ok(()) };
        setup.extend([Op::CutShort(Box::new(op), stores), Op::Open]);
        let left: Vec<_> = Self::keys_left(&setup);
        let right = left.iter().copied().find(|&key| key > number + STRIDE).unwrap_or(number);
        let near = [number, right, right + 1, number - 1, number + 1];
        let mut add = |name: &str, tested: Vec<Op<K>>| {
            self.add(&format!("unfinished-merge-{name}"), setup.clone(), tested, &near);
        };
        add("insert", vec![insert(number + 1)]);
        add("update", vec![Op::Update(K::sample(right), 1), Op::Get(K::sample(right))]);
        let tested = left.iter().take(8).map(|&key| remove(key)).collect();
        add("remove", tested);
        add(
            "read",
            vec![Op::Scan(Order::Ascending), Op::Scan(Order::Descending), insert(right + 1)],
        );
        Ok(())
    }

    /// Returns the multiples of [`STRIDE`] that `setup` inserts and does not remove.
    fn keys_left(setup: &[Op<K>]) -> Vec<u64> {
        let mut removed = std::collections::BTreeSet::new();
        let mut inserted = 0;
        for op in setup {
            match op {
                Op::Insert(..) => inserted += 1,
                Op::Remove(key) => drop(removed.insert(key.clone())),
                _ => {}
            }
        }
        let all = (1..=inserted).map(|count| count * STRIDE);
        all.filter(|&number| !removed.contains(&K::sample(number))).collect()
    }

    /// Returns the number of stores after which a crash may stop `op`, so that one more would
    /// change the statistics as `wanted`, or `None` if no number does.
    fn stores_before(
        &self,
        setup: &[Op<K>],
        op: &Op<K>,
        wanted: Changed,
    ) -> Result<Option<u32>, TreeError> {
        for stores in 1..STORES_MAX {
            let mut trial = Trial::new(self.design, setup)?;
            let before = trial.stats()?;
            trial.apply(&Op::CutShort(Box::new(op.clone()), stores))?;
            trial.apply(&Op::Open)?;
            if wanted(&before, &trial.stats()?) {
                return Ok(Some(stores - 1));
            }
        }
        Ok(None)
    }
}
