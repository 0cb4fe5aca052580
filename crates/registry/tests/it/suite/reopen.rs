//! A close or a death of the process loses and leaks nothing.
//!
//! A pool that is dropped without a close is what a killed process leaves: the page cache keeps
//! every store. The crash explorer covers power cuts.

use super::keys::{SPACES, Space, TestKey};
use super::scratch::{ROOT, Scratch, check_exact, close, rng};
use super::{Index, Subject};
use bristlecone_pmem::pool::Opened;
use bristlecone_trees::{Order, Text, TreeError};
use core::ops::{Bound, ControlFlow};
use rand::RngExt;
use std::collections::BTreeMap;

const ROUNDS: u64 = 6;
const STEPS: u64 = 1500;

/// Runs both kinds of key, in every space, through several sessions; volatile designs refuse a
/// second one.
pub(crate) fn run(integers: &Subject<u64>, texts: &Subject<Text>) {
    if !integers.spec.persistent {
        one_life(integers);
        return;
    }
    for space in SPACES {
        lives(integers, space);
        lives(texts, space);
    }
    empty_lives(integers);
    refusals(integers, texts);
}

fn one_life(subject: &Subject<u64>) {
    let scratch = Scratch::new();
    drop((subject.create)(scratch.create(1 << 20), ROOT).unwrap());
    let (pool, opened) = scratch.open().unwrap();
    let error = (subject.open)(pool, ROOT, opened).err();
    assert!(
        matches!(error, Some(TreeError::Volatile(name)) if name == subject.spec.name),
        "{error:?}"
    );
}

fn lives<K: TestKey>(subject: &Subject<K>, space: Space) {
    eprintln!("{} keys, {space:?}", K::NAME);
    let scratch = Scratch::new();
    let mut rng = rng(2);
    let mut model = BTreeMap::new();
    let mut index = (subject.create)(scratch.create(1 << 20), ROOT).unwrap();
    for round in 0..ROUNDS {
        // The tree grows in the first rounds and shrinks in the last, so deaths meet merges too.
        let removes = if round < ROUNDS / 2 { 2 } else { 7 };
        for _ in 0..STEPS {
            let key = K::nth(space, rng.random_range(0..STEPS));
            if rng.random_range(0..10) < removes {
                assert_eq!(index.remove(K::borrow(&key)).unwrap(), model.remove(&key));
            } else {
                let value = rng.random();
                let former = index.upsert(K::borrow(&key), value).unwrap();
                assert_eq!(former, model.insert(key, value));
            }
        }
        let expected = if round % 2 == 0 { Opened::Crashed } else { Opened::Clean };
        match expected {
            Opened::Crashed => drop(index),
            Opened::Clean => close(index).unwrap(),
        }
        let (pool, opened) = scratch.open().unwrap();
        assert_eq!(opened, expected);
        index = (subject.open)(pool, ROOT, opened).unwrap();
        let census = check_exact(&*index);
        assert_eq!(census.keys, model.len() as u64, "keys after {opened:?}");
        assert!(contents(&*index) == model, "the contents changed; the open was {opened:?}");
        // The rest of this session uses what recovery built.
        for (key, value) in model.iter().step_by(7) {
            assert_eq!(index.get(K::borrow(key)).unwrap(), Some(*value));
        }
    }
}

pub(crate) fn contents<K: TestKey>(index: &Index<K>) -> BTreeMap<K::Owned, u64> {
    let mut pairs = BTreeMap::new();
    let bounds = (Bound::Unbounded, Bound::Unbounded);
    let outcome = index.scan(bounds, Order::Ascending, &mut |key, value| {
        pairs.insert(K::to_owned(key), value);
        ControlFlow::Continue(())
    });
    outcome.unwrap();
    pairs
}

/// Opens an index without pairs after a death, after another, and after a close.
fn empty_lives(subject: &Subject<u64>) {
    let scratch = Scratch::new();
    drop((subject.create)(scratch.create(1 << 20), ROOT).unwrap());
    for clean in [false, false, true, true] {
        let (pool, opened) = scratch.open().unwrap();
        let index = (subject.open)(pool, ROOT, opened).unwrap();
        assert_eq!(check_exact(&*index).keys, 0);
        assert_eq!(index.get(0).unwrap(), None);
        if clean {
            close(index).unwrap();
        }
    }
    let (pool, opened) = scratch.open().unwrap();
    assert_eq!(opened, Opened::Clean);
    let index = (subject.open)(pool, ROOT, opened).unwrap();
    assert_eq!(index.insert(u64::MAX, 0).unwrap(), None);
    assert_eq!(index.get(u64::MAX).unwrap(), Some(0));
}

/// Asserts that roots that are missing, taken or of another kind are refused, and stay as they are.
fn refusals(subject: &Subject<u64>, texts: &Subject<Text>) {
    let scratch = Scratch::new();
    let index = (subject.create)(scratch.create(1 << 20), ROOT).unwrap();
    index.insert(1, 2).unwrap();
    let again = (subject.create)(index.pool().clone(), ROOT);
    assert!(again.is_err(), "a root was made twice");
    close(index).unwrap();
    for (root, of_texts) in [("other", false), (ROOT, true)] {
        let (pool, opened) = scratch.open().unwrap();
        let error = if of_texts {
            (texts.open)(pool, root, opened).err()
        } else {
            (subject.open)(pool, root, opened).err()
        };
        assert!(matches!(error, Some(TreeError::Foreign { .. })), "{error:?}");
    }
    let (pool, opened) = scratch.open().unwrap();
    let index = (subject.open)(pool, ROOT, opened).unwrap();
    assert_eq!(index.get(1).unwrap(), Some(2));
}
