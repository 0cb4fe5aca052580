//! Lines and fences, counted.

use super::ROOT;
use crate::index::{Design, PmIndex};
use bristlecone_pmem::medium::{Count, Counts};
use bristlecone_pmem::{Mapped, Medium, Pool};
use std::sync::Arc;

/// Counts one operation.
fn counted<M: Medium>(pool: &Pool<Count<M>>, operation: impl FnOnce()) -> Counts {
    pool.medium().take();
    operation();
    pool.medium().take()
}

/// The budgets hold for every operation that changes no structure, and are reached.
pub(super) fn budgets<D: Design>() {
    let pool = Pool::create(Count::new(Mapped::anonymous(4 << 20).unwrap())).unwrap();
    let tree = D::Index::<_, u64>::create(Arc::new(pool), ROOT).unwrap();
    let pool = tree.pool();
    let budget = D::SPEC.budget;
    let room = D::SPEC.node_bytes as u64 / 16 - 6;
    let mut worst = [Counts::default(); 3];
    let mut note = |which: usize, counts: Counts, cost: crate::Cost| {
        assert!(counts.lines <= u64::from(cost.lines), "{which}: {counts:?} over {cost:?}");
        assert_eq!(counts.fences, u64::from(cost.fences), "{which}: {counts:?}");
        worst[which].lines = worst[which].lines.max(counts.lines);
    };
    for round in 0..3u64 {
        let keys: Vec<_> =
            (0..room.min(7)).chain(7..room).map(|i| (i * 37 + round) % 101).collect();
        for &key in &keys {
            note(
                0,
                counted(pool, || assert_eq!(tree.insert(key, 1).unwrap(), None)),
                budget.insert,
            );
        }
        for &key in &keys {
            note(
                1,
                counted(pool, || assert_eq!(tree.update(key, 2).unwrap(), Some(1))),
                budget.update,
            );
            let nothing = counted(pool, || assert_eq!(tree.insert(key, 9).unwrap(), Some(2)));
            assert_eq!(nothing, Counts::default());
            let nothing = counted(pool, || assert_eq!(tree.get(key).unwrap(), Some(2)));
            assert_eq!(nothing, Counts::default());
        }
        for &key in keys.iter().rev() {
            note(
                2,
                counted(pool, || assert_eq!(tree.remove(key).unwrap(), Some(2))),
                budget.remove,
            );
        }
        assert_eq!(tree.check().unwrap().leaves, 1);
    }
    let reached = worst.map(|counts| counts.lines as u32);
    assert_eq!(reached, [budget.insert.lines, budget.update.lines, budget.remove.lines]);
}

/// Each node that splits costs one transaction, and each that merges or moves a child.
pub(super) fn structural_budgets<D: Design>() {
    let pool = Pool::create(Count::new(Mapped::anonymous(4 << 20).unwrap())).unwrap();
    let tree = D::Index::<_, u64>::create(Arc::new(pool), ROOT).unwrap();
    let transaction = if D::SPEC.persistent { 4 } else { 0 };
    let budget = D::SPEC.budget;
    let mut before = tree.check().unwrap();
    let mut splits_seen = 0;
    for i in 0..3000u64 {
        let key = (i * 7919) % 3001;
        let fences = counted(tree.pool(), || assert_eq!(tree.insert(key, 1).unwrap(), None)).fences;
        let after = tree.check().unwrap();
        let splits = after.leaves + after.inner_nodes + u64::from(before.height)
            - (before.leaves + before.inner_nodes + u64::from(after.height));
        assert_eq!(fences, u64::from(budget.insert.fences) + transaction * splits, "{key}");
        splits_seen += splits;
        before = after;
    }
    assert!(splits_seen > 50 && before.height > 2, "{before:?}");
    let mut merges_seen = 0;
    for key in 0..3001u64 {
        let fences = counted(tree.pool(), || assert!(tree.remove(key).is_ok())).fences;
        let after = tree.check().unwrap();
        let collapses = u64::from(before.height - after.height);
        if let Some(rest) = fences.checked_sub(u64::from(budget.remove.fences))
            && D::SPEC.persistent
        {
            assert_eq!((rest - collapses) % transaction, 0, "{key}: {fences} fences");
            merges_seen += (rest - collapses) / transaction;
        }
        before = after;
    }
    assert!(merges_seen >= transaction * 10, "{merges_seen}");
}
