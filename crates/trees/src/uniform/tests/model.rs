//! Operations against a `BTreeMap`.

use super::{ROOT, anonymous, collect};
use crate::index::{Design, Order, PmIndex};
use crate::key::Key;
use bristlecone_pmem::Medium;
use core::ops::{Bound, ControlFlow};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// What a test does to a tree and to its model.
#[derive(Clone, Debug)]
pub(super) enum Step<O> {
    Insert(O, u64),
    Upsert(O, u64),
    Update(O, u64),
    Remove(O),
    Get(O),
    MultiGet(Vec<O>),
    Scan(Bound<O>, Bound<O>, bool, usize),
    /// Removes every key of the model in an interval.
    Clear(O, O),
}

pub(super) fn steps<O: Clone + core::fmt::Debug + 'static>(
    key: impl Strategy<Value = O> + Clone + 'static,
    most: usize,
) -> impl Strategy<Value = Vec<Step<O>>> {
    let bound = prop_oneof![
        key.clone().prop_map(Bound::Included),
        key.clone().prop_map(Bound::Excluded),
        Just(Bound::Unbounded),
    ];
    let step = prop_oneof![
        10 => (key.clone(), any::<u64>()).prop_map(|(k, v)| Step::Insert(k, v)),
        3 => (key.clone(), any::<u64>()).prop_map(|(k, v)| Step::Upsert(k, v)),
        2 => (key.clone(), any::<u64>()).prop_map(|(k, v)| Step::Update(k, v)),
        8 => key.clone().prop_map(Step::Remove),
        2 => key.clone().prop_map(Step::Get),
        1 => prop::collection::vec(key.clone(), 0..40).prop_map(Step::MultiGet),
        1 => (bound.clone(), bound, any::<bool>(), 0usize..200)
            .prop_map(|(a, b, up, n)| Step::Scan(a, b, up, n)),
        1 => (key.clone(), key).prop_map(|(a, b)| Step::Clear(a, b)),
    ];
    prop::collection::vec(step, 1..most)
}

fn expected_scan<O: Ord + Clone>(
    model: &BTreeMap<O, u64>,
    bounds: (&Bound<O>, &Bound<O>),
    up: bool,
    limit: usize,
) -> Vec<(O, u64)> {
    let within = |key: &O| {
        let above = match bounds.0 {
            Bound::Included(low) => key >= low,
            Bound::Excluded(low) => key > low,
            Bound::Unbounded => true,
        };
        let below = match bounds.1 {
            Bound::Included(high) => key <= high,
            Bound::Excluded(high) => key < high,
            Bound::Unbounded => true,
        };
        above && below
    };
    let pairs = model.iter().filter(|(key, _)| within(key)).map(|(k, v)| (k.clone(), *v));
    if up { pairs.take(limit).collect() } else { pairs.rev().take(limit).collect() }
}

fn run_step<M: Medium, K: Key, I: PmIndex<M, K>>(
    tree: &I,
    model: &mut BTreeMap<K::Owned, u64>,
    step: Step<K::Owned>,
) {
    match step {
        Step::Insert(key, value) => {
            let former = model.get(&key).copied();
            assert_eq!(tree.insert(K::borrow(&key), value).unwrap(), former);
            model.entry(key).or_insert(value);
        }
        Step::Upsert(key, value) => {
            let former = tree.upsert(K::borrow(&key), value).unwrap();
            assert_eq!(former, model.insert(key, value));
        }
        Step::Update(key, value) => {
            let former = model.get(&key).copied();
            assert_eq!(tree.update(K::borrow(&key), value).unwrap(), former);
            model.entry(key).and_modify(|v| *v = value);
        }
        Step::Remove(key) => {
            assert_eq!(tree.remove(K::borrow(&key)).unwrap(), model.remove(&key));
        }
        Step::Get(key) => {
            assert_eq!(tree.get(K::borrow(&key)).unwrap(), model.get(&key).copied());
        }
        Step::MultiGet(keys) => {
            let mut values = vec![Some(1); keys.len()];
            let borrowed: Vec<_> = keys.iter().map(K::borrow).collect();
            tree.multi_get(&borrowed, &mut values).unwrap();
            let expected: Vec<_> = keys.iter().map(|key| model.get(key).copied()).collect();
            assert_eq!(values, expected);
        }
        Step::Scan(low, high, up, limit) => {
            let order = if up { Order::Ascending } else { Order::Descending };
            let mut shown = Vec::new();
            let bounds = (low.as_ref().map(K::borrow), high.as_ref().map(K::borrow));
            tree.scan(bounds, order, &mut |key, value| {
                if shown.len() == limit {
                    return ControlFlow::Break(());
                }
                shown.push((K::to_owned(key), value));
                ControlFlow::Continue(())
            })
            .unwrap();
            assert_eq!(shown, expected_scan(model, (&low, &high), up, limit));
        }
        Step::Clear(a, b) => {
            let doomed: Vec<_> = model.keys().filter(|k| **k >= a && **k < b).cloned().collect();
            for key in doomed {
                assert_eq!(tree.remove(K::borrow(&key)).unwrap(), model.remove(&key));
            }
        }
    }
}

pub(super) fn agree<M: Medium, K: Key, I: PmIndex<M, K>>(
    tree: &I,
    model: &BTreeMap<K::Owned, u64>,
) {
    let pairs: Vec<_> = model.iter().map(|(k, v)| (k.clone(), *v)).collect();
    let all = (Bound::Unbounded, Bound::Unbounded);
    assert_eq!(collect::<M, K, I>(tree, all, Order::Ascending), pairs);
    let backwards: Vec<_> = pairs.into_iter().rev().collect();
    assert_eq!(collect::<M, K, I>(tree, all, Order::Descending), backwards);
    assert_eq!(tree.check().unwrap().keys, model.len() as u64);
}

pub(super) fn run_model<D: Design, K: Key>(steps: Vec<Step<K::Owned>>) {
    let tree = D::Index::<_, K>::create(anonymous(4 << 20), ROOT).unwrap();
    let mut model = BTreeMap::new();
    for step in steps {
        run_step::<_, K, _>(&tree, &mut model, step);
    }
    agree::<_, K, _>(&tree, &model);
}

/// Keys that collide often, both ends of the range among them.
pub(super) fn number() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![8 => 0u64..400, 1 => Just(u64::MAX), 1 => u64::MAX - 3..=u64::MAX]
}

pub(super) fn string() -> impl Strategy<Value = Vec<u8>> + Clone {
    prop::collection::vec(0u8..3, 0..12)
}
