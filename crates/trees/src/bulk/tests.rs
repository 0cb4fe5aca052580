//! Tests of bulk loads. The explorer crashes them.

use crate::designs::{
    BTree, BTreeGf, BTreeLinear, BTreeLog, BTreeLsR, BTreeShadow, BTreeWal, Bristlecone, CclBTree,
    CircTree, FastFairSp, FpTree, FpTreeR, IsleTree, IsleTreeAll, LbTree, NvTree,
    PersistentUnsorted, UnsortedBitmapLog, UnsortedBitmapShadow, UnsortedLeaf, UnsortedLeafLog,
    UnsortedLeafShadow, WbTree, WbTreeBitmapLeaf, WbTreeR, WbTreeSlotOnly, WoTree, WoTreeR,
};
use crate::index::{Design, Order, PmIndex, TreeError};
use crate::key::{Key, Text};
use bristlecone_pmem::medium::Count;
use bristlecone_pmem::{Mapped, Pool, PoolError};
use core::ops::{Bound, ControlFlow};
use std::collections::BTreeMap;
use std::sync::Arc;

type Index<D, K> = <D as Design>::Index<Count<Mapped>, K>;

fn create<D: Design, K: Key>(bytes: u64) -> Index<D, K> {
    let pool = Pool::create(Count::new(Mapped::anonymous(bytes).unwrap())).unwrap();
    Index::<D, K>::create(Arc::new(pool), "tree").unwrap()
}

fn load<D: Design, K: Key>(
    tree: &Index<D, K>,
    pairs: &BTreeMap<K::Owned, u64>,
    fill_percent: u32,
) -> Result<(), TreeError> {
    let mut pairs = pairs.iter().map(|(key, value)| (key.clone(), *value));
    tree.bulk_load(&mut pairs, fill_percent)
}

/// Checks that the tree is sound and holds `expected`.
fn agrees<D: Design, K: Key>(tree: &Index<D, K>, expected: &BTreeMap<K::Owned, u64>) {
    assert_eq!(tree.check().unwrap().keys, expected.len() as u64, "{}", D::SPEC.name);
    for order in [Order::Ascending, Order::Descending] {
        let mut found = Vec::new();
        tree.scan((Bound::Unbounded, Bound::Unbounded), order, &mut |key, value| {
            found.push((K::to_owned(key), value));
            ControlFlow::Continue(())
        })
        .unwrap();
        if order == Order::Descending {
            found.reverse();
        }
        let expected = expected.iter().map(|(key, value)| (key.clone(), *value));
        assert!(found.into_iter().eq(expected), "{}", D::SPEC.name);
    }
    for (key, value) in expected {
        assert_eq!(tree.get(K::borrow(key)).unwrap(), Some(*value), "{}", D::SPEC.name);
    }
}

/// Loads trees of various sizes, then changes them, and compares them with a `BTreeMap`.
fn matches_the_model<D: Design, K: Key>(key: fn(u64) -> K::Owned) {
    for fill_percent in [1, 70, 100] {
        for count in [0, 1, 2, 14, 15, 29, 250, 1000] {
            let tree = create::<D, K>(4 << 20);
            let mut model: BTreeMap<_, _> = (0..count).map(|i| (key(3 * i), !i)).collect();
            load::<D, K>(&tree, &model, fill_percent).unwrap();
            agrees::<D, K>(&tree, &model);
            for i in (0..3 * count).map(|i| i * 7919 % (3 * count)) {
                let here = key(i);
                if i % 5 == 0 {
                    assert_eq!(tree.remove(K::borrow(&here)).unwrap(), model.remove(&here));
                } else {
                    let former = model.insert(here.clone(), i);
                    assert_eq!(tree.upsert(K::borrow(&here), i).unwrap(), former);
                }
            }
            agrees::<D, K>(&tree, &model);
        }
    }
}

fn text(number: u64) -> <Text as Key>::Owned {
    Text::of_bytes(format!("{number:06}").as_bytes()).unwrap()
}

#[test]
fn a_loaded_tree_matches_the_model() {
    matches_the_model::<BTree<256>, u64>(|number| number);
    matches_the_model::<BTreeLinear<256>, u64>(|number| number);
    matches_the_model::<BTreeGf<256>, u64>(|number| number);
    matches_the_model::<BTreeWal<256>, u64>(|number| number);
    matches_the_model::<UnsortedLeaf<256>, u64>(|number| number);
    matches_the_model::<PersistentUnsorted<256>, u64>(|number| number);
    matches_the_model::<IsleTreeAll<256>, u64>(|number| number);
}

#[test]
fn a_loaded_tree_of_the_wb_tree_study_matches_the_model() {
    matches_the_model::<BTreeLog<256>, u64>(|number| number);
    matches_the_model::<UnsortedLeafLog<256>, u64>(|number| number);
    matches_the_model::<UnsortedBitmapLog<256>, u64>(|number| number);
    matches_the_model::<BTreeShadow<256>, u64>(|number| number);
    matches_the_model::<UnsortedLeafShadow<256>, u64>(|number| number);
    matches_the_model::<UnsortedBitmapShadow<256>, u64>(|number| number);
    matches_the_model::<WbTree<256>, u64>(|number| number);
    matches_the_model::<WbTreeBitmapLeaf<256>, u64>(|number| number);
    matches_the_model::<WbTreeSlotOnly<128>, u64>(|number| number);
    matches_the_model::<WbTreeSlotOnly<64>, u64>(|number| number);
    matches_the_model::<WbTreeR<256>, u64>(|number| number);
}

#[test]
fn a_loaded_tree_with_inner_nodes_in_dram_matches_the_model() {
    matches_the_model::<FpTree<256>, u64>(|number| number);
    matches_the_model::<FpTreeR<256>, u64>(|number| number);
    matches_the_model::<IsleTree<256>, u64>(|number| number);
    matches_the_model::<NvTree<256>, u64>(|number| number);
    matches_the_model::<FastFairSp<256>, u64>(|number| number);
    matches_the_model::<WoTreeR<256>, u64>(|number| number);
    matches_the_model::<CircTree<256>, u64>(|number| number);
    matches_the_model::<Bristlecone, u64>(|number| number);
    matches_the_model::<LbTree, u64>(|number| number);
}

#[test]
fn a_loaded_tree_with_a_log_matches_the_model() {
    matches_the_model::<CclBTree<2>, u64>(|number| number);
    matches_the_model::<CclBTree<2>, Text>(text);
    matches_the_model::<BTreeLsR<256>, u64>(|number| number);
    matches_the_model::<BTreeLsR<256>, Text>(text);
}

#[test]
fn a_loaded_wo_tree_matches_the_model() {
    matches_the_model::<WoTree<256>, u64>(|number| number);
    matches_the_model::<WoTree<256>, Text>(text);
}

#[test]
fn a_loaded_tree_of_byte_strings_matches_the_model() {
    matches_the_model::<FpTree<256>, Text>(text);
    matches_the_model::<LbTree, Text>(text);
    matches_the_model::<Bristlecone, Text>(text);
    matches_the_model::<WbTree<256>, Text>(text);
    matches_the_model::<PersistentUnsorted<256>, Text>(text);
    matches_the_model::<IsleTreeAll<256>, Text>(text);
}

/// Nodes of 256 B have 14 entries: 9 at 70 %.
#[test]
fn nodes_are_filled_as_asked() {
    for (fill_percent, per_leaf, separators) in [(100, 14, 14), (70, 9, 9)] {
        let tree = create::<PersistentUnsorted<256>, u64>(4 << 20);
        let pairs: BTreeMap<u64, u64> = (0..2000).map(|key| (key, key)).collect();
        load::<PersistentUnsorted<256>, u64>(&tree, &pairs, fill_percent).unwrap();
        let stats = tree.check().unwrap();
        let mut nodes = 2000u64.div_ceil(per_leaf);
        assert_eq!(stats.leaves, nodes);
        let mut inner_nodes = 0;
        while nodes > 1 {
            nodes = nodes.div_ceil(separators + 1);
            inner_nodes += nodes;
        }
        assert_eq!(stats.inner_nodes, inner_nodes);
    }
}

/// A load costs the lines of its nodes, the root block's line, and two fences.
#[test]
fn a_load_has_its_budget() {
    fn cost<D: Design>() -> (u64, u64) {
        let tree = create::<D, u64>(4 << 20);
        let pairs = (0..28).map(|key| (key, key)).collect();
        tree.pool().medium().take();
        load::<D, u64>(&tree, &pairs, 100).unwrap();
        let counts = tree.pool().medium().take();
        (counts.lines, counts.fences)
    }
    // Two leaves of four lines and a root of one.
    assert_eq!(cost::<PersistentUnsorted<256>>(), (9 + 1, 2));
    assert_eq!(cost::<BTreeLog<256>>(), (9 + 1, 2));
    // Two leaves of thirteen entries, one of two, and a root of two separators.
    assert_eq!(cost::<WbTree<256>>(), (4 + 4 + 2 + 2 + 1, 2));
    assert_eq!(cost::<BTreeLinear<256>>(), (0, 0));
    // Two leaves of thirteen entries, and one of two.
    assert_eq!(cost::<FpTreeR<256>>(), (4 + 4 + 2 + 1, 2));
    // Two leaves of fourteen entries. A node is written whole.
    assert_eq!(cost::<LbTree>(), (4 + 4 + 1, 2));
    // Two leaves of twelve entries, one of four, and a root.
    assert_eq!(cost::<WoTree<256>>(), (4 * 4 + 1, 2));
}

#[test]
fn a_load_that_fails_changes_nothing() {
    type Design = WbTree<256>;
    let tree = create::<Design, Text>(1 << 20);
    let used = || {
        tree.pool().reclaim();
        tree.pool().usage().used_bytes
    };
    let before = used();
    let mut pairs = [1, 2, 2].map(text).into_iter().zip(0..);
    let failed = tree.bulk_load(&mut pairs, 100);
    assert!(matches!(failed, Err(TreeError::Unsorted)), "{failed:?}");
    tree.pool().limit(1 << 20);
    let failed = tree.bulk_load(&mut (0..100_000).map(|i| (text(i), i)), 100);
    assert!(matches!(failed, Err(TreeError::Pool(PoolError::Full { .. }))), "{failed:?}");
    assert_eq!(used(), before);
    agrees::<Design, Text>(&tree, &BTreeMap::new());
    let one = BTreeMap::from([(text(1), 1)]);
    load::<Design, Text>(&tree, &one, 100).unwrap();
    let failed = load::<Design, Text>(&tree, &BTreeMap::from([(text(2), 2)]), 100);
    assert!(matches!(failed, Err(TreeError::NotEmpty)), "{failed:?}");
    agrees::<Design, Text>(&tree, &one);
}
