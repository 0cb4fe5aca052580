//! Cases of a leaf that a crash has left in need of a repair, where a writer repairs it and not
//! recovery.
//!
//! The setup ends with an insert that a crash stops just before the store that makes its pair
//! visible.

use crate::scenario::index::session::Op;
use crate::scenario::index::trial::{CaseList, IndexCase, STRIDE, Trial, fresh, insert, remove};
use crate::subject::keys::SampleKey;
use bristlecone_trees::{TreeError, TreeStats};

/// The designs whose writers repair leaves.
const DESIGNS: [&str; 2] = ["wb-tree", "wb-tree-r"];
/// The number of stores that no insert into a leaf reaches.
const STORES_MAX: u32 = 64;

impl<K: SampleKey> CaseList<K> {
    /// Adds operations on an unrepaired leaf, if the design has such leaves. `prefix` begins the
    /// names of the cases.
    pub(super) fn unrepaired(&mut self, prefix: &str) -> Result<(), TreeError> {
        if !DESIGNS.contains(&self.design.form.spec.name) {
            return Ok(());
        }
        let leaf =
            |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves && before.keys > 0;
        let ascending = (1..).map(|count| count * STRIDE);
        let first = Trial::new(self.design, &fresh())?.until(ascending, insert, leaf)?;
        let Some(IndexCase { mut setup, .. }) = first else { return Ok(()) };
        setup.pop(); // The leaf has room for one entry.
        let stores = self.stores_unseen(&setup)?;
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
        Ok(())
    }

    /// Returns the number of stores after which a crash may stop an insert at the front, so that
    /// one more would make its pair visible.
    fn stores_unseen(&self, setup: &[Op<K>]) -> Result<u32, TreeError> {
        for stores in 1..STORES_MAX {
            let mut trial = Trial::new(self.design, setup)?;
            let before = trial.stats()?.keys;
            trial.apply(&Op::CutShort(Box::new(insert(0)), stores))?;
            trial.apply(&Op::Open)?;
            if trial.stats()?.keys > before {
                return Ok(stores - 1);
            }
        }
        Ok(STORES_MAX)
    }
}
