//! Bulk loads: all pairs are there, in a sound structure that further operations change, and they
//! survive a crash and a close. A refused load changes nothing.

use super::keys::{SPACES, Space, TestKey};
use super::reopen::contents;
use super::scratch::{ROOT, Scratch, check_exact, check_settled, close, dram, rng};
use super::{Index, Subject};
use bristlecone_pmem::pool::Opened;
use bristlecone_trees::{Text, TreeError};
use rand::RngExt;
use std::collections::BTreeMap;

const PAIRS: u64 = 3000;
const STEPS: u64 = 2000;

/// The designs that have no bulk load.
const WITHOUT: [&str; 7] = [
    "fast-fair",
    "fast-fair-r",
    "fast-fair-wide",
    "btree-native",
    "btree-ls",
    "cell-tree",
    "unit-tree",
];

/// Runs loads with both kinds of key in every space, loads of all sizes, and loads that the index
/// refuses.
pub(crate) fn run(integers: &Subject<u64>, texts: &Subject<Text>) {
    for space in SPACES {
        loaded(integers, space);
        loaded(texts, space);
    }
    if !WITHOUT.contains(&integers.spec.name) {
        filled(integers);
        filled(texts);
        refused(integers);
        refused(texts);
    }
}

/// Loads `pairs` into nodes `fill_percent` % full. Returns `false` if the design has no bulk load.
fn load<K: TestKey>(index: &Index<K>, pairs: &BTreeMap<K::Owned, u64>, fill_percent: u32) -> bool {
    let mut given = pairs.iter().map(|(key, value)| (key.clone(), *value));
    match index.bulk_load(&mut given, fill_percent) {
        Err(TreeError::NoBulkLoad) => false,
        outcome => outcome.map(|()| true).expect("the index is empty, and the pairs are sorted"),
    }
}

fn loaded<K: TestKey>(subject: &Subject<K>, space: Space) {
    eprintln!("{} keys, {space:?}", K::NAME);
    let scratch = Scratch::new();
    let mut rng = rng(7);
    let mut model: BTreeMap<_, _> = (0..PAIRS).map(|n| (K::nth(space, n), !n)).collect();
    let mut index = (subject.create)(scratch.create(1 << 20), ROOT).unwrap();
    let has_load = load(&*index, &model, 70);
    assert_eq!(has_load, !WITHOUT.contains(&subject.spec.name), "{} loads", subject.spec.name);
    if !has_load {
        return;
    }
    agree(&*index, &model, "after the load");
    for expected in [Opened::Crashed, Opened::Clean] {
        if subject.spec.persistent {
            match expected {
                Opened::Crashed => drop(index),
                Opened::Clean => close(index).unwrap(),
            }
            let (pool, opened) = scratch.open().unwrap();
            index = (subject.open)(pool, ROOT, opened).unwrap();
            check_exact(&*index);
            agree(&*index, &model, "after an open");
        }
        for _ in 0..STEPS {
            let key = K::nth(space, rng.random_range(0..2 * PAIRS));
            if rng.random_range(0..2) == 0 {
                assert_eq!(index.remove(K::borrow(&key)).unwrap(), model.remove(&key));
            } else {
                let value = rng.random();
                let former = index.upsert(K::borrow(&key), value).unwrap();
                assert_eq!(former, model.insert(key, value));
            }
        }
        check_settled(&*index);
        agree(&*index, &model, "after changes");
    }
}

/// Asserts that the index holds the pairs of the model.
fn agree<K: TestKey>(index: &Index<K>, model: &BTreeMap<K::Owned, u64>, when: &str) {
    let census = index.check().expect("the structure is sound");
    assert_eq!(census.keys, model.len() as u64, "keys {when}");
    assert!(contents(index) == *model, "the contents {when}");
    for (key, value) in model.iter().step_by(5) {
        assert_eq!(index.get(K::borrow(key)).unwrap(), Some(*value), "a key {when}");
    }
}

/// Loads trees of up to 1000 pairs into nodes of one entry and into full ones, and changes them.
fn filled<K: TestKey>(subject: &Subject<K>) {
    for fill_percent in [1, 70, 100] {
        for count in [0, 1, 2, 14, 15, 29, 250, 1000] {
            let index = (subject.create)(dram(), ROOT).unwrap();
            let key = |n| K::nth(Space::Dense, n);
            let mut model: BTreeMap<_, _> = (0..count).map(|n| (key(3 * n), !n)).collect();
            load(&*index, &model, fill_percent);
            agree(&*index, &model, "after a load");
            for n in (0..3 * count).map(|n| n * 7919 % (3 * count)) {
                let here = key(n);
                if n % 5 == 0 {
                    assert_eq!(index.remove(K::borrow(&here)).unwrap(), model.remove(&here));
                } else {
                    let former = index.upsert(K::borrow(&here), n).unwrap();
                    assert_eq!(former, model.insert(here, n));
                }
            }
            agree(&*index, &model, "after changes");
        }
    }
}

/// Asserts that a load of unsorted pairs, and one into an index with a pair, are refused.
fn refused<K: TestKey>(subject: &Subject<K>) {
    let index = (subject.create)(dram(), ROOT).unwrap();
    let mut pairs: Vec<_> = (0..PAIRS).map(|n| (K::nth(Space::Dense, n), n)).collect();
    pairs.push(pairs[0].clone());
    let refusal = index.bulk_load(&mut pairs.clone().into_iter(), 100);
    assert!(matches!(refusal, Err(TreeError::Unsorted)), "{refusal:?}");
    assert_eq!(check_settled(&*index).keys, 0, "pairs of a load that was refused");
    pairs.pop();
    index.insert(K::borrow(&pairs[7].0), 1).unwrap();
    let refusal = index.bulk_load(&mut pairs.clone().into_iter(), 100);
    assert!(matches!(refusal, Err(TreeError::NotEmpty)), "{refusal:?}");
    assert_eq!(check_settled(&*index).keys, 1);
    assert_eq!(index.remove(K::borrow(&pairs[7].0)).unwrap(), Some(1));
    index.bulk_load(&mut pairs.clone().into_iter(), 100).expect("the index is empty again");
    agree(&*index, &pairs.into_iter().collect(), "after a load");
    check_settled(&*index);
}
