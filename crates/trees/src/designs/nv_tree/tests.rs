use super::NvTree;
use crate::index::{Design, PmIndex};
use bristlecone_pmem::medium::Count;
use bristlecone_pmem::{Mapped, Pool};
use std::sync::Arc;

/// Asserts that an insert into NV-Tree costs the lines of its element, the header and two fences,
/// each split the lines of both leaves and of the link more, and two fences, and a rebuild of the
/// inner nodes neither.
fn rebuilds_flush_nothing<const NODE: usize>(rebuilds_expected: u64) {
    type Tree<const NODE: usize> = <NvTree<NODE> as Design>::Index<Count<Mapped>, u64>;
    let pool = Pool::create(Count::new(Mapped::anonymous(4 << 20).unwrap())).unwrap();
    let tree = Tree::<NODE>::create(Arc::new(pool), "t").unwrap();
    let capacity = (NODE as u64 - 32) / 24;
    // A header of 32 B, and elements of 24 B.
    let lines = |elements: u64| (32 + 24 * elements).div_ceil(64);
    let upper = capacity.div_ceil(2);
    let (mut before, mut slot) = (tree.check().unwrap(), 0);
    let mut rebuilds = 0;
    for key in 0..4_000 {
        tree.pool().medium().take();
        assert_eq!(tree.insert(key, key).unwrap(), None);
        let counts = tree.pool().medium().take();
        let after = tree.check().unwrap();
        let split = u64::from(slot == capacity);
        assert_eq!(after.leaves - before.leaves, split, "insert {key}");
        // Keys ascend, so the element follows those of the upper leaf.
        slot = if split == 1 { upper } else { slot };
        let first = 32 + 24 * slot;
        let element = (first + 23) / 64 - first / 64 + 1;
        slot += 1;
        rebuilds += u64::from(after.inner_nodes != before.inner_nodes);
        let leaves = lines(capacity - upper) + lines(upper);
        assert_eq!(counts.lines, element + 1 + split * (leaves + 1), "insert {key}");
        assert_eq!(counts.fences, 2 + split * 2, "insert {key}");
        before = after;
    }
    assert_eq!(rebuilds, rebuilds_expected);
}

#[test]
fn an_insert_into_nv_tree_that_rebuilds_inner_nodes_costs_its_split() {
    rebuilds_flush_nothing::<256>(61);
    rebuilds_flush_nothing::<512>(23);
    rebuilds_flush_nothing::<2048>(4);
}

/// Threads insert ascending keys, each its own, so that they meet in rebuilds of the inner nodes.
#[test]
fn threads_that_insert_into_nv_tree_lose_no_key() {
    const THREADS: u64 = 4;
    const KEYS: u64 = 4_000;
    let pool = Pool::create(Mapped::anonymous(8 << 20).unwrap()).unwrap();
    let tree = <NvTree<256> as Design>::Index::<Mapped, u64>::create(Arc::new(pool), "t").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let tree = &tree;
            scope.spawn(move || {
                for i in 0..KEYS {
                    let key = i * THREADS + thread;
                    assert_eq!(tree.insert(key, !key).unwrap(), None);
                    assert_eq!(tree.get(key).unwrap(), Some(!key));
                }
            });
        }
    });
    let stats = tree.check().unwrap();
    assert_eq!((stats.keys, stats.height), (THREADS * KEYS, 4));
}
