//! Every design on this engine against a model, on a file, counted, and under several threads.

mod budgets;
mod model;

use crate::designs::{
    BTree, BTreeLog, BTreeShadow, IsleTreeAll, UnsortedBitmapLog, UnsortedBitmapShadow,
    UnsortedLeaf, UnsortedLeafLog, UnsortedLeafShadow, WbTree, WbTreeBitmapLeaf, WbTreeR,
    WbTreeSlotOnly,
};
use crate::index::{Design, Order, PmIndex, TreeError};
use crate::key::{Key, Text};
use bristlecone_pmem::medium::FileOptions;
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Mapped, Medium, Pool};
use core::ops::{Bound, ControlFlow};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use budgets::{budgets, structural_budgets};
use model::{agree, number, run_model, steps, string};

const ROOT: &str = "tree";

fn anonymous(bytes: u64) -> Arc<Pool<Mapped>> {
    Arc::new(Pool::create(Mapped::anonymous(bytes).unwrap()).unwrap())
}

fn on_file(path: &Path) -> Arc<Pool<Mapped>> {
    let medium = Mapped::create(path, 4 << 20, &FileOptions::default()).unwrap();
    Arc::new(Pool::create(medium).unwrap())
}

fn reopen<D: Design, K: Key>(path: &Path) -> (D::Index<Mapped, K>, Opened) {
    let (pool, opened) = Pool::open(Mapped::open(path, &FileOptions::default()).unwrap()).unwrap();
    (D::Index::open(Arc::new(pool), ROOT, opened).unwrap(), opened)
}

/// Everything between the bounds, as a scan shows it.
fn collect<M: Medium, K: Key, I: PmIndex<M, K>>(
    tree: &I,
    bounds: (Bound<K::Ref<'_>>, Bound<K::Ref<'_>>),
    order: Order,
) -> Vec<(K::Owned, u64)> {
    let mut shown = Vec::new();
    tree.scan(bounds, order, &mut |key, value| {
        shown.push((K::to_owned(key), value));
        ControlFlow::Continue(())
    })
    .unwrap();
    shown
}

const ALL: (Bound<u64>, Bound<u64>) = (Bound::Unbounded, Bound::Unbounded);

/// Loads keys in a mixed order, so that the tree has three levels at least, then takes most out
/// again, by stripes and then all.
fn grow_and_shrink<D: Design>() {
    let pool = anonymous(8 << 20);
    let tree = D::Index::<_, u64>::create(Arc::clone(&pool), ROOT).unwrap();
    let empty = pool.usage().blocks;
    let capacity = D::SPEC.node_bytes as u64 / 16;
    let count = capacity * capacity * 2;
    let mixed = |i: u64| (i * 7919) % count;
    let mut model = BTreeMap::new();
    for key in (0..count).map(mixed) {
        assert_eq!(tree.insert(key, !key).unwrap(), None);
        model.insert(key, !key);
    }
    let census = tree.check().unwrap();
    assert_eq!(census.keys, count);
    settles_at(&pool, census.blocks + 1);
    assert!(census.height >= 3, "{census:?}");
    for key in (0..count).map(mixed).filter(|key| key % 8 != 3) {
        assert_eq!(tree.remove(key).unwrap(), Some(!key));
        model.remove(&key);
    }
    agree::<_, u64, _>(&tree, &model);
    let sparse = tree.check().unwrap();
    assert!(sparse.leaves < census.leaves / 2, "{census:?} then {sparse:?}");
    for key in (0..count).rev() {
        assert_eq!(tree.remove(key).unwrap(), model.remove(&key));
    }
    let left = tree.check().unwrap();
    assert_eq!((left.height, left.leaves, left.inner_nodes), (1, 1, 0));
    settles_at(&pool, empty);
}

/// Waits until so many blocks are in use: retired ones are freed when no thread of any test that
/// was pinned then is pinned still.
fn settles_at<M: Medium>(pool: &Pool<M>, blocks: u64) {
    for _ in 0..1_000_000 {
        if pool.usage().blocks == blocks {
            return;
        }
        bristlecone_pmem::sync::collect();
        std::thread::yield_now();
    }
    assert_eq!(pool.usage().blocks, blocks);
}

fn reopen_clean_and_crashed<D: Design>() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    let mut model = BTreeMap::new();
    let change = |tree: &D::Index<Mapped, u64>, model: &mut BTreeMap<u64, u64>, round: u64| {
        for i in 0..3000u64 {
            let key = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52;
            if (i + round).is_multiple_of(3) {
                assert_eq!(tree.remove(key).unwrap(), model.remove(&key));
            } else {
                assert_eq!(tree.upsert(key, i + round).unwrap(), model.insert(key, i + round));
            }
        }
    };
    let mut tree = D::Index::<_, u64>::create(on_file(&path), ROOT).unwrap();
    for round in 0..6 {
        change(&tree, &mut model, round);
        let closes = round % 2 == 0;
        let pool = Arc::into_inner(tree.close().unwrap()).unwrap();
        if closes {
            pool.close().unwrap();
        } else {
            drop(pool);
        }
        let (again, opened) = reopen::<D, u64>(&path);
        assert_eq!(opened == Opened::Clean, closes);
        let census = again.check().unwrap();
        assert_eq!(census.blocks + 1, again.pool().usage().blocks, "nothing leaks");
        agree::<_, u64, _>(&again, &model);
        tree = again;
    }
}

fn text_survives<D: Design>() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    let tree = D::Index::<_, Text>::create(on_file(&path), ROOT).unwrap();
    let mut model = BTreeMap::new();
    for i in 0..2000u64 {
        let key = format!("{:x}", i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 50).into_bytes();
        assert_eq!(tree.upsert(&key, i).unwrap(), model.insert(key.clone(), i));
        if i % 3 == 0 {
            let key = format!("{:x}", i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 51).into_bytes();
            assert_eq!(tree.remove(&key).unwrap(), model.remove(&key));
        }
    }
    drop(tree);
    let (tree, opened) = reopen::<D, Text>(&path);
    assert_eq!(opened, Opened::Crashed);
    agree::<_, Text, _>(&tree, &model);
    assert_eq!(tree.check().unwrap().blocks + 1, tree.pool().usage().blocks);
    for key in model.keys() {
        assert!(tree.remove(key).unwrap().is_some());
    }
    assert_eq!(tree.check().unwrap().height, 1);
    settles_at(tree.pool(), 3); // The header, the root block, a leaf.
}

/// Removing, down to nothing, works in a pool without room; inserting fails and changes nothing.
fn full_pool<D: Design>() {
    let pool = anonymous(bristlecone_pmem::pool::POOL_BYTES_MIN);
    pool.limit(bristlecone_pmem::pool::POOL_BYTES_MIN);
    let tree = D::Index::<_, u64>::create(pool, ROOT).unwrap();
    let mut key = 0u64;
    let full = loop {
        if let Err(error) = tree.insert(key.wrapping_mul(0x9E37_79B9_7F4A_7C15), key) {
            break error;
        }
        key += 1;
    };
    assert!(matches!(full, TreeError::Pool(bristlecone_pmem::PoolError::Full { .. })), "{full}");
    let census = tree.check().unwrap();
    assert_eq!(census.keys, key);
    settles_at(tree.pool(), census.blocks + 1);
    for i in 0..key {
        assert_eq!(tree.remove(i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).unwrap(), Some(i));
    }
    assert_eq!(tree.check().unwrap().height, 1);
    settles_at(tree.pool(), 3); // The header, the root block, a leaf.
}

/// Threads on keys of their own, which each checks against its own model, and on shared ones, whose
/// values say who may have written them; scans meanwhile.
fn stress<D: Design>() {
    const THREADS: u64 = 4;
    let tree = D::Index::<_, u64>::create(anonymous(16 << 20), ROOT).unwrap();
    let fixed: Vec<u64> = (0..200).map(|i| i * 1000 + 999).collect();
    for &key in &fixed {
        tree.insert(key, key).unwrap();
    }
    let work = |thread: u64| {
        let mut model = BTreeMap::new();
        let mut state = thread + 1;
        for step in 0..6000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let draw = state >> 33;
            let own = (draw % 3000) * 64 + thread;
            let shared = (draw % 500) * 400 + 200;
            // The share of removes swings, so that the tree grows and shrinks.
            if draw / 3000 % 10 < 3 + 4 * (step / 1500 % 2) {
                assert_eq!(tree.remove(own).unwrap(), model.remove(&own));
                tree.remove(shared).unwrap();
            } else {
                assert_eq!(tree.upsert(own, draw).unwrap(), model.insert(own, draw));
                tree.upsert(shared, shared).unwrap();
            }
            assert_eq!(tree.get(own).unwrap(), model.get(&own).copied());
            assert!(tree.get(shared).unwrap().is_none_or(|value| value == shared));
            if step % 500 == thread * 100 {
                let order = if step % 1000 < 500 { Order::Ascending } else { Order::Descending };
                let mut shown = collect::<_, u64, _>(&tree, ALL, order);
                if order == Order::Descending {
                    shown.reverse();
                }
                assert!(shown.windows(2).all(|w| w[0].0 < w[1].0), "in order");
                assert_eq!(shown.iter().filter(|(k, v)| k % 1000 == 999 && k == v).count(), 200);
                let mut values = [None; 200];
                tree.multi_get(&fixed, &mut values).unwrap();
                assert!(values.iter().zip(&fixed).all(|(v, k)| *v == Some(*k)));
            }
        }
        model
    };
    let models: Vec<_> = std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..THREADS).map(|t| scope.spawn(move || work(t))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let census = tree.check().unwrap();
    settles_at(tree.pool(), census.blocks + 1);
    for (key, value) in models.into_iter().flatten() {
        assert_eq!(tree.get(key).unwrap(), Some(value));
    }
}

/// The tests of one design; the last argument is its name.
macro_rules! design_tests {
    ($name:ident, $small:ty, $($size:ty),+) => {
        mod $name {
            use super::*;
            proptest! {
                #![proptest_config(ProptestConfig::with_cases(48))]
                #[test]
                fn agrees_with_a_model(steps in steps(number(), 1500)) {
                    run_model::<$small, u64>(steps);
                }
                #[test]
                fn agrees_with_a_model_of_strings(steps in steps(string(), 800)) {
                    run_model::<$small, Text>(steps);
                }
            }
            #[test]
            fn grows_and_shrinks() { $(grow_and_shrink::<$size>();)+ }
            #[test]
            fn removes_in_a_full_pool() { $(full_pool::<$size>();)+ }
            #[test]
            fn stands_four_threads() { stress::<$small>(); }
        }
    };
}

/// The tests of what a design costs, where neither an operation nor a transaction costs more in one
/// place than in another.
macro_rules! cost_tests {
    ($name:ident, $($size:ty),+) => {
        mod $name {
            use super::*;
            #[test]
            fn keeps_its_budgets() { $(budgets::<$size>();)+ }
            #[test]
            fn a_structural_change_is_a_transaction() { $(structural_budgets::<$size>();)+ }
        }
    };
}

design_tests!(btree, BTree<256>, BTree<256>, BTree<512>);
design_tests!(unsorted_leaf, UnsortedLeaf<256>, UnsortedLeaf<256>, UnsortedLeaf<512>);
design_tests!(btree_log, BTreeLog<256>, BTreeLog<256>, BTreeLog<512>, BTreeLog<1024>);
design_tests!(
    unsorted_leaf_log,
    UnsortedLeafLog<256>,
    UnsortedLeafLog<256>,
    UnsortedLeafLog<512>,
    UnsortedLeafLog<1024>
);
design_tests!(
    unsorted_bitmap_log,
    UnsortedBitmapLog<256>,
    UnsortedBitmapLog<256>,
    UnsortedBitmapLog<512>,
    UnsortedBitmapLog<1024>
);
design_tests!(btree_shadow, BTreeShadow<256>, BTreeShadow<256>, BTreeShadow<512>);
design_tests!(
    unsorted_leaf_shadow,
    UnsortedLeafShadow<256>,
    UnsortedLeafShadow<256>,
    UnsortedLeafShadow<512>
);
design_tests!(
    unsorted_bitmap_shadow,
    UnsortedBitmapShadow<256>,
    UnsortedBitmapShadow<256>,
    UnsortedBitmapShadow<512>
);
design_tests!(wb_tree, WbTree<256>, WbTree<256>, WbTree<512>, WbTree<1024>);
design_tests!(
    wb_tree_bitmap_leaf,
    WbTreeBitmapLeaf<256>,
    WbTreeBitmapLeaf<256>,
    WbTreeBitmapLeaf<512>,
    WbTreeBitmapLeaf<1024>
);
design_tests!(wb_tree_r, WbTreeR<256>, WbTreeR<256>, WbTreeR<512>);
design_tests!(wb_tree_slot_only, WbTreeSlotOnly<128>, WbTreeSlotOnly<128>);
design_tests!(
    isle_tree_all,
    IsleTreeAll<256>,
    IsleTreeAll<256>,
    IsleTreeAll<512>,
    IsleTreeAll<2048>
);

cost_tests!(btree_costs, BTree<256>, BTree<512>);
cost_tests!(unsorted_leaf_costs, UnsortedLeaf<256>, UnsortedLeaf<512>);
cost_tests!(wb_tree_costs, WbTree<256>, WbTree<512>, WbTree<1024>);
cost_tests!(
    wb_tree_bitmap_leaf_costs,
    WbTreeBitmapLeaf<256>,
    WbTreeBitmapLeaf<512>,
    WbTreeBitmapLeaf<1024>
);
cost_tests!(wb_tree_slot_only_costs, WbTreeSlotOnly<128>);
cost_tests!(isle_tree_all_costs, IsleTreeAll<256>, IsleTreeAll<512>, IsleTreeAll<1024>);
cost_tests!(wb_tree_r_costs, WbTreeR<256>, WbTreeR<512>);

#[test]
fn what_a_tree_held_is_there_after_a_close_and_after_a_crash() {
    reopen_clean_and_crashed::<WbTree<512>>();
    reopen_clean_and_crashed::<WbTreeBitmapLeaf<256>>();
    reopen_clean_and_crashed::<WbTreeSlotOnly<128>>();
    reopen_clean_and_crashed::<WbTreeR<512>>();
    reopen_clean_and_crashed::<IsleTreeAll<256>>();
    reopen_clean_and_crashed::<IsleTreeAll<512>>();
    reopen_clean_and_crashed::<BTreeLog<256>>();
    reopen_clean_and_crashed::<UnsortedLeafLog<512>>();
    reopen_clean_and_crashed::<UnsortedBitmapLog<1024>>();
    reopen_clean_and_crashed::<BTreeShadow<256>>();
    reopen_clean_and_crashed::<UnsortedLeafShadow<512>>();
    reopen_clean_and_crashed::<UnsortedBitmapShadow<1024>>();
}

#[test]
fn strings_are_there_after_a_crash() {
    text_survives::<WbTree<256>>();
    text_survives::<WbTreeBitmapLeaf<512>>();
    text_survives::<WbTreeSlotOnly<128>>();
    text_survives::<IsleTreeAll<256>>();
    text_survives::<BTreeLog<512>>();
    text_survives::<UnsortedLeafLog<256>>();
    text_survives::<UnsortedBitmapLog<256>>();
}

#[test]
fn a_volatile_tree_says_that_it_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    drop(<BTree<512> as Design>::Index::<_, u64>::create(on_file(&path), ROOT).unwrap());
    let (pool, opened) = Pool::open(Mapped::open(&path, &FileOptions::default()).unwrap()).unwrap();
    let error = <BTree<512> as Design>::Index::<_, u64>::open(Arc::new(pool), ROOT, opened);
    assert!(matches!(error, Err(TreeError::Volatile("btree"))));
}
