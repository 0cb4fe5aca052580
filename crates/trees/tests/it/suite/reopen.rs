//! Nothing is lost by a close or by a death, and nothing leaks.
//!
//! A pool that is dropped without a close is what a killed process leaves: the page cache keeps
//! every store. What a power cut may leave is the crash explorer's affair.

use super::bounded::Bounded;
use super::keys::{SPACES, Space, TestKey};
use super::scratch::{ROOT, Scratch, check_exact, close, rng};
use bristlecone_pmem::pool::Opened;
use bristlecone_trees::{Design, Order, PmIndex, Text, TreeError};
use core::ops::{Bound, ControlFlow};
use rand::RngExt;
use std::collections::BTreeMap;

const ROUNDS: u64 = 6;
const STEPS: u64 = 1500;

/// Both kinds of key, in every space, through several lives; volatile designs have one life only.
pub(crate) fn run<D: Design>() {
    if !D::SPEC.persistent {
        return;
    }
    for space in SPACES {
        lives::<D, u64>(space);
        lives::<D, Text>(space);
    }
    empty_lives::<D>();
    refusals::<D>();
}

fn lives<D: Design, K: TestKey>(space: Space) {
    eprintln!("{} keys, {space:?}", K::NAME);
    let scratch = Scratch::new();
    let mut rng = rng(2);
    let mut model = BTreeMap::new();
    let mut index = D::Index::<Bounded, K>::create(scratch.create(1 << 20), ROOT).unwrap();
    for round in 0..ROUNDS {
        // Grows in the first rounds, shrinks in the last: deaths meet merges too.
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
        index = D::Index::<Bounded, K>::open(pool, ROOT, opened).unwrap();
        let census = check_exact(&index);
        assert_eq!(census.keys, model.len() as u64, "keys after {opened:?}");
        assert!(contents(&index) == model, "the contents changed; the open was {opened:?}");
        // The rest of this life begins with recovery's own work: what it built must serve.
        for (key, value) in model.iter().step_by(7) {
            assert_eq!(index.get(K::borrow(key)).unwrap(), Some(*value));
        }
    }
}

fn contents<K: TestKey, I: PmIndex<Bounded, K>>(index: &I) -> BTreeMap<K::Owned, u64> {
    let mut pairs = BTreeMap::new();
    let bounds = (Bound::Unbounded, Bound::Unbounded);
    let outcome = index.scan(bounds, Order::Ascending, &mut |key, value| {
        pairs.insert(K::to_owned(key), value);
        ControlFlow::Continue(())
    });
    outcome.unwrap();
    pairs
}

/// An index that never held anything lives through a death, a death again, and a close.
fn empty_lives<D: Design>() {
    let scratch = Scratch::new();
    drop(D::Index::<Bounded, u64>::create(scratch.create(1 << 20), ROOT).unwrap());
    for clean in [false, false, true, true] {
        let (pool, opened) = scratch.open().unwrap();
        let index = D::Index::<Bounded, u64>::open(pool, ROOT, opened).unwrap();
        assert_eq!(check_exact(&index).keys, 0);
        assert_eq!(index.get(0).unwrap(), None);
        if clean {
            close(index).unwrap();
        }
    }
    let (pool, opened) = scratch.open().unwrap();
    assert_eq!(opened, Opened::Clean);
    let index = D::Index::<Bounded, u64>::open(pool, ROOT, opened).unwrap();
    assert_eq!(index.insert(u64::MAX, 0).unwrap(), None);
    assert_eq!(index.get(u64::MAX).unwrap(), Some(0));
}

/// Roots that are missing, taken or of another kind are refused, and stay as they are.
fn refusals<D: Design>() {
    let scratch = Scratch::new();
    let index = D::Index::<Bounded, u64>::create(scratch.create(1 << 20), ROOT).unwrap();
    index.insert(1, 2).unwrap();
    let again = D::Index::<Bounded, u64>::create(index.pool().clone(), ROOT);
    assert!(again.is_err(), "a root was made twice");
    close(index).unwrap();
    for (root, texts) in [("other", false), (ROOT, true)] {
        let error = if texts {
            let (pool, opened) = scratch.open().unwrap();
            D::Index::<Bounded, Text>::open(pool, root, opened).err()
        } else {
            let (pool, opened) = scratch.open().unwrap();
            D::Index::<Bounded, u64>::open(pool, root, opened).err()
        };
        assert!(matches!(error, Some(TreeError::Foreign { .. })), "{error:?}");
    }
    let (pool, opened) = scratch.open().unwrap();
    let index = D::Index::<Bounded, u64>::open(pool, ROOT, opened).unwrap();
    assert_eq!(index.get(1).unwrap(), Some(2));
}
