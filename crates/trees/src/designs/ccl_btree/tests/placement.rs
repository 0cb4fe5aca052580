//! NUMA placement, tested with two threads that are assigned to two nodes.

use super::*;
use bristlecone_pmem::numa::{self, Placement};

type Tree = Index<Mapped, 2>;

const NODES: [u16; 2] = [0, 1];
const STRIPE_BYTES: u64 = 64 << 10;

/// Returns the first key of the thread on `node`.
fn first_key(node: u16) -> u64 {
    u64::from(node) << 32
}

/// Returns the low key and the offset of each leaf.
fn leaves(index: &Tree) -> Vec<(u64, PmPtr)> {
    let medium = index.pool.medium();
    let mut at = PmPtr::new(medium.load(&index.root_words().unwrap()[0]));
    let mut leaves = Vec::new();
    while !at.is_null() {
        let leaf = index.leaf(at).unwrap();
        leaves.push((leaf.low(medium), at));
        at = leaf.next(medium);
    }
    leaves
}

/// Returns the number of leaves on another node than the thread that writes them, and of all
/// leaves.
fn count_remote_leaves(index: &Tree) -> (usize, usize) {
    let placement = *index.pool.placement().unwrap();
    let leaves = leaves(index);
    let is_remote = |(low, at): &&(u64, PmPtr)| {
        placement.node_of(at.offset()) != NODES[usize::from(*low >= first_key(1))]
    };
    (leaves.iter().filter(is_remote).count(), leaves.len())
}

/// Runs two threads, one after the other, that each insert keys of their own, remove a third and
/// update the others. Together they would split the leaf at the border of their keys by turns, and
/// so leave any number of leaves on the other's node.
fn work(index: &Tree, session: u64) {
    const KEYS: u64 = 3000;
    for node in NODES {
        let write = || {
            let _on = numa::override_node(node);
            let first = first_key(node) + session * KEYS;
            for key in first..first + KEYS {
                assert_eq!(index.insert(key, key).unwrap(), None);
            }
            for key in first..first + KEYS {
                if key % 3 == 0 {
                    assert_eq!(index.remove(key).unwrap(), Some(key));
                } else {
                    assert_eq!(index.update(key, !key).unwrap(), Some(key));
                }
            }
        };
        std::thread::scope(|scope| scope.spawn(write).join().unwrap());
    }
}

#[test]
fn leaves_are_on_the_nodes_of_the_threads_that_write_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let placement = Placement::as_it_lies(&NODES, STRIPE_BYTES).unwrap();
    let options = FileOptions {
        reserve_bytes: 1 << 28,
        placement: Some(placement),
        ..FileOptions::default()
    };
    let pool = Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap();
    let mut index = Tree::create(Arc::new(pool), "t").unwrap();
    for session in 0..4 {
        work(&index, session);
        let stats = index.check().unwrap();
        assert_eq!(stats.keys, (session + 1) * 4000);
        let (remote, all) = count_remote_leaves(&index);
        // At the border between the key ranges, a thread splits a leaf of the other thread.
        assert!(remote <= 1 && all > 400, "{remote} of {all}");
        let usages = index.pool.usage_of_nodes();
        assert!(usages.iter().all(|usage| usage.used_bytes > usage.pool_bytes / 8), "{usages:?}");
        if session % 2 == 0 {
            drop(index);
        } else {
            Arc::into_inner(Box::new(index).close().unwrap()).unwrap().close().unwrap();
        }
        let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
        assert_eq!(opened == Opened::Clean, session % 2 == 1);
        index = Tree::open(Arc::new(pool), "t", opened).unwrap();
        assert_eq!(index.check().unwrap().blocks + 1, index.pool.usage().blocks);
    }
    drop(index);
    let options = FileOptions { placement: None, ..options };
    let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
    let index = Tree::open(Arc::new(pool), "t", opened).unwrap();
    assert_eq!(index.check().unwrap().keys, 16_000);
}
