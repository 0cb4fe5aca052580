//! Tests of micro-logged splits and deletes, with the design `fptree`.

use super::*;
use crate::designs::FpTree;
use crate::index::{Design, Order, PmIndex, TreeError};
use bristlecone_pmem::medium::{Count, FileOptions};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Mapped, Pool, PoolError};
use core::ops::{Bound, ControlFlow};
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

type Tree<M, const NODE: usize> = <FpTree<NODE> as Design>::Index<M, u64>;

/// Inserts keys in a mixed order, updates them, and removes them in another order. Asserts the
/// exact cost of each operation, of each split and of each delete of a leaf.
fn operations_cost_what_is_published<const NODE: usize>() {
    const KEYS: u64 = 1_511;
    let pool = Pool::create(Count::new(Mapped::anonymous(4 << 20).unwrap())).unwrap();
    let tree = Tree::<Count<Mapped>, NODE>::create(Arc::new(pool), "t").unwrap();
    let leaf_lines = NODE as u64 / 64;
    let take = || {
        let counts = tree.pool().medium().take();
        (counts.lines, counts.fences)
    };
    let mut before = tree.check().unwrap();
    let mut splits = 0;
    for i in 0..2 * KEYS {
        take();
        if i < KEYS {
            assert_eq!(tree.insert(i * 2_909 % KEYS, i).unwrap(), None);
        } else {
            assert!(tree.update(i * 1_777 % KEYS, i).unwrap().is_some());
        }
        let counts = take();
        let after = tree.check().unwrap();
        let split = after.leaves - before.leaves;
        assert_eq!(counts, (3 + split * (leaf_lines + 6), 3 + split * 7), "write {i}");
        (splits, before) = (splits + split, after);
    }
    let (mut deletes, mut of_the_first) = (0, 0);
    for i in 0..KEYS {
        let first = tree.load(&tree.root_words().unwrap()[0]);
        take();
        assert!(tree.remove(i * 1_009 % KEYS).unwrap().is_some());
        let counts = take();
        let after = tree.check().unwrap();
        let is_first = first != tree.load(&tree.root_words().unwrap()[0]);
        match (before.leaves - after.leaves, is_first) {
            (0, false) => assert_eq!(counts, (1, 1), "remove {i}"),
            (1, false) => assert_eq!(counts, (4, 4), "remove {i}"),
            (1, true) => assert_eq!(counts, (4, 3), "remove {i}"),
            other => panic!("remove {i}: {other:?}"),
        }
        deletes += before.leaves - after.leaves;
        of_the_first += u64::from(is_first);
        before = after;
    }
    assert!(splits > 20 && deletes == splits && of_the_first > 0);
    assert_eq!((before.keys, before.leaves, before.height), (0, 1, 2));
}

#[test]
fn every_operation_has_the_published_cost() {
    operations_cost_what_is_published::<256>();
    operations_cost_what_is_published::<512>();
    operations_cost_what_is_published::<1024>();
}

/// A split of a leaf of 512 B, with the insert behind it.
#[test]
fn a_split_flushes_14_lines_and_fences_7_times() {
    let pool = Pool::create(Count::new(Mapped::anonymous(1 << 20).unwrap())).unwrap();
    let tree = Tree::<Count<Mapped>, 512>::create(Arc::new(pool), "t").unwrap();
    (0..27).for_each(|key| assert_eq!(tree.insert(key, key).unwrap(), None));
    tree.pool().medium().take();
    tree.insert(27, 27).unwrap();
    let counts = tree.pool().medium().take();
    assert_eq!((counts.lines, counts.fences), (14 + 3, 7 + 3));
    assert_eq!(tree.check().unwrap().leaves, 2);
}

/// Deletes whole subtrees from the front, from the back and from the middle, so that leaves are
/// removed whose neighbours are under other inner nodes.
#[test]
fn leaves_are_deleted_across_inner_nodes() {
    const KEYS: u64 = 3_000;
    type Text = <FpTree<256> as Design>::Index<Mapped, crate::Text>;
    let key = |key: u64| format!("a shared beginning/{key:05}").into_bytes();
    let orders: [Vec<u64>; 4] = [
        (0..KEYS).collect(),
        (0..KEYS).rev().collect(),
        (KEYS / 3..KEYS).chain((0..KEYS / 3).rev()).collect(),
        (0..KEYS).map(|i| i * 1_999 % KEYS).collect(),
    ];
    for order in orders {
        let pool = Pool::create(Mapped::anonymous(8 << 20).unwrap()).unwrap();
        let tree = Text::create(Arc::new(pool), "t").unwrap();
        let mut model = BTreeMap::new();
        for i in 0..KEYS {
            let number = i * 1_999 % KEYS;
            tree.insert(&key(number), i).unwrap();
            model.insert(key(number), i);
        }
        for (count, number) in order.into_iter().enumerate() {
            assert_eq!(tree.remove(&key(number)).unwrap(), model.remove(&key(number)));
            if count % 701 == 0 {
                assert_eq!(tree.check().unwrap().keys, model.len() as u64);
                for order in [Order::Ascending, Order::Descending] {
                    let mut listed = Vec::new();
                    tree.scan((Bound::Unbounded, Bound::Unbounded), order, &mut |key, value| {
                        listed.push((key.to_vec(), value));
                        ControlFlow::Continue(())
                    })
                    .unwrap();
                    if order == Order::Descending {
                        listed.reverse();
                    }
                    assert!(listed.iter().cloned().eq(model.clone()));
                }
            }
        }
        let stats = tree.check().unwrap();
        assert_eq!((stats.keys, stats.leaves, stats.height), (0, 1, 2));
        tree.pool().reclaim();
        assert_eq!(tree.pool().usage().blocks, stats.blocks + 1, "the pool's own block is beside");
    }
}

/// Opens the pool at `path`, which no close has marked as clean unless `is_clean`, and returns the
/// index and the way in which it was opened.
fn open(path: &Path) -> (Result<Tree<Mapped, 256>, TreeError>, Opened) {
    let options = FileOptions::default();
    let (pool, opened) = Pool::open(Mapped::open(path, &options).unwrap()).unwrap();
    (Tree::open(Arc::new(pool), "t", opened), opened)
}

/// Every pair of hostile words in a split log or a delete log is refused, or leads to a tree that
/// `check` accepts or refuses: no access outside the pool, and no walk without an end.
#[test]
fn hostile_micro_logs_are_refused_or_harmless() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let options = FileOptions::default();
    let pool = Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap();
    let bytes = pool.medium().len();
    let tree = Tree::<Mapped, 256>::create(Arc::new(pool), "t").unwrap();
    (0..100).for_each(|key| assert_eq!(tree.insert(key, key).unwrap(), None));
    let leaves: Vec<u64> = tree.links(false).unwrap().iter().map(|link| link.at.offset()).collect();
    let log = tree.root.offset() + LINE_BYTES * 4;
    let root = tree.root.offset();
    drop(tree);
    let image = std::fs::read(&path).unwrap();
    let last = *leaves.last().unwrap();
    let words =
        [0, 1, 8, 256, root, bytes - 8, bytes, bytes + 256, u64::MAX, u64::MAX - 255, 1 << 63]
            .into_iter()
            .chain([leaves[0], leaves[1], leaves[2], leaves[3], last, last + 8]);
    let (mut refused, mut opened) = (0, 0);
    for (half, current, other) in [0, 16].into_iter().flat_map(|half| {
        let words = words.clone();
        words.clone().flat_map(move |a| words.clone().map(move |b| (half, a, b)))
    }) {
        std::fs::write(&path, &image).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&current.to_le_bytes(), log + half).unwrap();
        file.write_all_at(&other.to_le_bytes(), log + half + 8).unwrap();
        match open(&path).0 {
            Err(_) => refused += 1,
            Ok(tree) => {
                opened += 1;
                let _ = (tree.check(), tree.get(50), tree.insert(1_000, 1), tree.remove(3));
            }
        }
    }
    assert!(refused > 300 && opened > 20, "{refused} refused, {opened} opened");
}

/// Creates a pool with a full leaf, or with a second one besides if `has_two`, and a log of a split
/// of the first leaf from key `low` on, in whose new leaf nothing is yet. Returns the outcome of an
/// open after a crash.
fn open_with_split_log(has_two: bool, low: u64) -> Result<Tree<Mapped, 256>, TreeError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let options = FileOptions::default();
    let pool = Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap();
    let tree = Tree::<Mapped, 256>::create(Arc::new(pool), "t").unwrap();
    let capacity = 12;
    (0..capacity).for_each(|key| assert_eq!(tree.insert(10 * key, key).unwrap(), None));
    let mut new = tree.pool.reserve(256).unwrap();
    let junk = [0x5a; 256];
    tree.pool.medium().fill(tree.pool.words(new, 32).unwrap(), &junk);
    if has_two {
        // The first leaf is full again after the split.
        (1..=capacity / 2).for_each(|key| assert_eq!(tree.insert(key, key).unwrap(), None));
        new = tree.links(false).unwrap()[1].at;
    }
    let leaf = tree.links(false).unwrap()[0].at;
    let words = tree.micro_log(7).unwrap();
    let medium = tree.pool.medium();
    medium.store(words.1, low);
    words.0[0].set_current(medium, leaf);
    words.0[0].set_other(medium, new);
    drop(tree);
    open(&path).0
}

/// The copy is made again, and the split completed.
#[test]
fn a_split_of_which_the_log_alone_is_durable_is_completed() {
    for low in [10, 55, 60, 110] {
        let tree = open_with_split_log(false, low).unwrap();
        let stats = tree.check().unwrap();
        assert_eq!((stats.keys, stats.leaves), (12, 2));
        assert_eq!(tree.low(&tree.leaf(tree.links(false).unwrap()[1].at).unwrap()), low);
        (0..12).for_each(|key| assert_eq!(tree.get(10 * key).unwrap(), Some(key)));
    }
}

/// A low key with all entries on one side, and a new leaf to which the chain leads.
#[test]
fn a_split_log_that_would_overwrite_a_leaf_is_refused() {
    for low in [0, 111, u64::MAX] {
        assert!(
            matches!(open_with_split_log(false, low), Err(TreeError::Pool(PoolError::Corrupt(_)))),
            "{low}"
        );
    }
    assert!(matches!(open_with_split_log(true, 5), Err(TreeError::Pool(PoolError::Corrupt(_)))));
}

/// No operation leaves a word in a micro-log, so a file of a clean close that has one is damaged.
#[test]
fn a_micro_log_in_a_closed_pool_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let pool =
        Pool::create(Mapped::create(&path, 1 << 20, &FileOptions::default()).unwrap()).unwrap();
    let tree = Tree::<Mapped, 256>::create(Arc::new(pool), "t").unwrap();
    (0..100).for_each(|key| assert_eq!(tree.insert(key, key).unwrap(), None));
    let log = tree.root.offset() + LINE_BYTES;
    Arc::into_inner(Box::new(tree).close().unwrap()).unwrap().close().unwrap();
    let image = std::fs::read(&path).unwrap();
    for word in 0..4 {
        std::fs::write(&path, &image).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&4096u64.to_le_bytes(), log + 8 * word).unwrap();
        let (tree, opened) = open(&path);
        assert_eq!(opened, Opened::Clean);
        assert!(tree.is_err(), "word {word}");
    }
}

/// Four threads split and delete the same leaves; a fifth scans in both directions.
#[test]
fn threads_split_and_delete_neighbouring_leaves() {
    const KEYS: u64 = 240;
    let pool = Pool::create(Mapped::anonymous(8 << 20).unwrap()).unwrap();
    let tree = Tree::<Mapped, 256>::create(Arc::new(pool), "t").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let tree = &tree;
            scope.spawn(move || {
                for round in 0..30 {
                    for key in (0..KEYS).filter(|key| key % 4 == thread) {
                        assert_eq!(tree.insert(key, round).unwrap(), None);
                    }
                    for key in (0..KEYS).filter(|key| key % 4 == thread) {
                        assert_eq!(tree.remove(key).unwrap(), Some(round));
                    }
                }
            });
        }
        scope.spawn(|| {
            for round in 0..200 {
                let order = if round % 2 == 0 { Order::Ascending } else { Order::Descending };
                let mut previous = None;
                tree.scan((Bound::Unbounded, Bound::Unbounded), order, &mut |key, _| {
                    let is_next = previous.is_none_or(|previous| match order {
                        Order::Ascending => previous < key,
                        Order::Descending => previous > key,
                    });
                    assert!(is_next, "{key} behind {previous:?}");
                    previous = Some(key);
                    ControlFlow::Continue(())
                })
                .unwrap();
            }
        });
    });
    let stats = tree.check().unwrap();
    assert_eq!((stats.keys, stats.leaves), (0, 1));
    tree.pool().reclaim();
    assert_eq!(tree.pool().usage().blocks, stats.blocks + 1, "the pool's own block is beside");
}

/// A scan stands at the last key of the first leaf. That leaf is deleted, its right neighbour
/// becomes the first one, gets keys that the scan has passed, and splits at one of them.
#[test]
fn a_scan_goes_on_behind_a_first_leaf_that_has_split_at_a_key_it_has_passed() {
    let pool = Pool::create(Mapped::anonymous(4 << 20).unwrap()).unwrap();
    let tree = Tree::<Mapped, 256>::create(Arc::new(pool), "t").unwrap();
    let keys: Vec<u64> = (1..=40).map(|key| 1_000 * key).collect();
    for &key in &keys {
        assert_eq!(tree.insert(key, key).unwrap(), None);
    }
    let first = tree.leaf(PmPtr::new(tree.load(&tree.root_words().unwrap()[0]))).unwrap();
    let second = tree.leaf(tree.next(&first)).unwrap();
    let bound = tree.low(&second);
    let last = keys[keys.partition_point(|&key| key < bound) - 1];
    let mut found = Vec::new();
    tree.scan((Bound::Unbounded, Bound::Unbounded), Order::Ascending, &mut |key, _| {
        found.push(key);
        if key == last {
            for &key in keys.iter().filter(|&&key| key <= last) {
                assert_eq!(tree.remove(key).unwrap(), Some(key));
            }
            for key in 1..=40 {
                assert_eq!(tree.insert(key, key).unwrap(), None);
            }
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(found, keys);
}

#[test]
fn a_micro_log_is_claimed_by_one_thread_and_given_back() {
    let queue = LogQueue::default();
    let mut claims: Vec<_> = (0..LOGS).map(|_| queue.claim::<Mapped>()).collect();
    assert!(claims.iter().map(|claim| claim.number).eq(0..LOGS));
    claims.remove(7);
    assert_eq!(queue.claim::<Mapped>().number, 7);
}
