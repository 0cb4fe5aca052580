//! Many keys are inserted, in random and in both sorted orders, and removed again; then nothing may
//! be left.

use super::keys::{Space, TestKey};
use super::scratch::{ROOT, Scratch, check_exact, check_settled, close, rng};
use super::{IS_THOROUGH, Index, Subject};
use bristlecone_pmem::pool::Opened;
use bristlecone_trees::spec::INNER_ARRAY;
use bristlecone_trees::{Order, Text, TreeStats};
use core::ops::{Bound, ControlFlow};
use rand::seq::SliceRandom;

/// The number of integer keys. Only the nightly build has all node sizes.
const INTEGERS: u64 = if IS_THOROUGH { 100_000 } else { 20_000 };
const TEXTS: u64 = if IS_THOROUGH { 15_000 } else { 8000 };
/// The number of blocks that an emptied index may hold beyond those of a new one: a node at each
/// level.
const LEFT_BLOCKS: u64 = 4;

/// The number of records of removed keys that an emptied index may keep until its next log GC.
const LOGGED_RECORDS: u64 = 512;

/// The order in which keys are inserted.
#[derive(Clone, Copy, Debug)]
enum Arrival {
    Random,
    Ascending,
    Descending,
}

/// Runs all orders with integers, the random one with strings.
pub(crate) fn run(integers: &Subject<u64>, texts: &Subject<Text>) {
    for arrival in [Arrival::Random, Arrival::Ascending, Arrival::Descending] {
        eprintln!("integers, {arrival:?}");
        fill_and_empty(integers, INTEGERS, arrival);
    }
    eprintln!("strings");
    fill_and_empty(texts, TEXTS, Arrival::Random);
}

/// Returns the largest number of blocks of empty leaves: a leaf, and the record of its low key, for
/// each inner node of an array.
fn left_leaf_blocks<K: TestKey>(subject: &Subject<K>, left: &TreeStats) -> u64 {
    if !subject.spec.features.contains(&INNER_ARRAY) {
        return 0;
    }
    assert!(left.leaves <= left.inner_nodes, "more than one leaf below a lowest node: {left:?}");
    if K::EXACT { left.leaves } else { 2 * left.leaves }
}

fn fill_and_empty<K: TestKey>(subject: &Subject<K>, count: u64, arrival: Arrival) {
    let scratch = Scratch::new();
    let pool = scratch.create(1 << 20);
    let index = (subject.create)(pool, ROOT).unwrap();
    let empty = check_settled(&*index);

    let mut rng = rng(1);
    let mut keys: Vec<_> = (0..count).map(|n| K::nth(Space::Scattered, n)).collect();
    keys.sort_unstable();
    keys.dedup();
    match arrival {
        Arrival::Random => keys.shuffle(&mut rng),
        Arrival::Ascending => {}
        Arrival::Descending => keys.reverse(),
    }
    for (value, key) in (0..).zip(&keys) {
        assert_eq!(index.insert(K::borrow(key), value).unwrap(), None, "{key:?} is new");
    }
    let full = check_settled(&*index);
    assert_eq!(full.keys, keys.len() as u64);
    let room = full.leaves * (subject.spec.node_bytes as u64 / 16);
    let sparse = full.leaves > 1 && full.keys * 8 < room;
    assert!(!sparse, "leaves hold less than an eighth of their size: {full:?}");
    for (value, key) in (0..).zip(&keys) {
        assert_eq!(index.get(K::borrow(key)).unwrap(), Some(value), "{key:?} is there");
    }
    verify_order(&*index, keys.len());

    keys.shuffle(&mut rng);
    for key in &keys {
        assert!(index.remove(K::borrow(key)).unwrap().is_some(), "{key:?} was there");
    }
    let left = check_settled(&*index);
    assert_eq!(left.keys, 0);
    verify_order(&*index, 0);
    let kept = left_leaf_blocks(subject, &left);
    let is_logged = !K::EXACT && subject.spec.features.contains(&"write-ahead-log");
    let most = if is_logged { LEFT_BLOCKS + LOGGED_RECORDS } else { LEFT_BLOCKS };
    assert!(left.blocks <= empty.blocks + most + kept, "empty: {empty:?}, emptied: {left:?}");

    if subject.spec.persistent {
        close(index).unwrap();
        let (pool, opened) = scratch.open().unwrap();
        assert_eq!(opened, Opened::Clean);
        let index = (subject.open)(pool, ROOT, opened).unwrap();
        let reopened = check_exact(&*index);
        assert_eq!(reopened.keys, 0);
        assert!(reopened.blocks <= empty.blocks + LEFT_BLOCKS + kept, "{reopened:?}");
    }
}

/// Asserts that scans both ways show `count` keys in strict order.
fn verify_order<K: TestKey>(index: &Index<K>, count: usize) {
    for order in [Order::Ascending, Order::Descending] {
        let mut last: Option<K::Owned> = None;
        let mut shown = 0;
        let bounds = (Bound::Unbounded, Bound::Unbounded);
        let outcome = index.scan(bounds, order, &mut |key, _| {
            let key = K::to_owned(key);
            let in_order = last.as_ref().is_none_or(|last| match order {
                Order::Ascending => *last < key,
                Order::Descending => *last > key,
            });
            assert!(in_order, "{key:?} comes after {last:?}, {order:?}");
            last = Some(key);
            shown += 1;
            ControlFlow::Continue(())
        });
        outcome.unwrap();
        assert_eq!(shown, count);
    }
}
