//! The cost of a bulk load, and its errors. The conformance suite compares loaded trees with a
//! model, and the explorer crashes them.

use crate::designs::{BTreeLinear, BTreeLog, FpTreeR, LbTree, PersistentUnsorted, WbTree, WoTree};
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

fn text(number: u64) -> <Text as Key>::Owned {
    Text::of_bytes(format!("{number:06}").as_bytes()).unwrap()
}

/// Nodes of 256 B have 15 entries: 10 at 70 %.
#[test]
fn nodes_are_filled_as_asked() {
    for (fill_percent, per_leaf, separators) in [(100, 15, 15), (70, 10, 10)] {
        let tree = create::<BTreeLog<256>, u64>(4 << 20);
        let pairs: BTreeMap<u64, u64> = (0..2000).map(|key| (key, key)).collect();
        load::<BTreeLog<256>, u64>(&tree, &pairs, fill_percent).unwrap();
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
    // Four leaves of four lines, with seven entries of 32 B each, a root of three, and its log.
    assert_eq!(cost::<PersistentUnsorted<256>>(), (4 * 4 + 4, 2));
    // Two leaves of four lines and a root of one.
    assert_eq!(cost::<BTreeLog<256>>(), (9 + 1, 2));
    // Two leaves of fourteen entries, and a root of a separator.
    assert_eq!(cost::<WbTree<256>>(), (4 + 4 + 1 + 1, 2));
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
