//! Random sequences of operations, closes and drops give the results of a `BTreeMap`.

use crate::{pairs, place, small};
use bristlecone::{Batch, Mismatch, Order, Pair, Store, Unmet};
use proptest::option;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;
/// A key and its value; `None` is an absent key.
type Written = (Vec<u8>, Option<Vec<u8>>);
type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>, Vec<u8>),
    Insert(Vec<u8>, Vec<u8>),
    Update(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Swap(Vec<u8>, Vec<u8>),
    /// A key, `true` to expect its value and not the other one, and the new value.
    CompareExchange(Vec<u8>, bool, Option<Vec<u8>>, Option<Vec<u8>>),
    FetchUpdate(Vec<u8>, Option<Vec<u8>>),
    /// Writes in their order, and perhaps a condition.
    Commit(Vec<Written>, Option<Written>),
    Get(Vec<u8>),
    MultiGet(Vec<Vec<u8>>),
    /// A range, and for each pair whether the scan takes it from the front.
    Scan(Bounds, Vec<bool>),
    Prefix(Vec<u8>),
    Close,
    Drop,
}

/// Keys over few letters, 0 and 0xff among them, so that steps often use the same key. Some have a
/// prefix longer than the 8 B that an entry holds.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let letter = prop::sample::select(vec![0, 1, b'a', 0xff]);
    let prefix = prop::sample::select(vec!["", "", "1234567", "a prefix of over eight bytes"]);
    (prefix, prop::collection::vec(letter, 0..4))
        .prop_map(|(prefix, rest)| [prefix.as_bytes(), &rest].concat())
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        Just(Bound::Unbounded),
        key().prop_map(Bound::Included),
        key().prop_map(Bound::Excluded),
    ]
}

/// Few or many writes, of one leaf or of several.
fn changes() -> impl Strategy<Value = Vec<Written>> {
    let value = prop::collection::vec(any::<u8>(), 0..30);
    let change = || (key(), option::weighted(0.8, value.clone()));
    prop_oneof![
        3 => prop::collection::vec(change(), 0..8),
        1 => prop::collection::vec(change(), 0..200),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    // About half of the values are short enough to lie in a leaf.
    let bytes = |lengths| prop::collection::vec(any::<u8>(), lengths);
    let value = || prop_oneof![bytes(0..10), bytes(0..100)];
    prop_oneof![
        12 => (key(), value()).prop_map(|(k, v)| Step::Put(k, v)),
        3 => (key(), value()).prop_map(|(k, v)| Step::Insert(k, v)),
        3 => (key(), value()).prop_map(|(k, v)| Step::Update(k, v)),
        6 => key().prop_map(Step::Delete),
        3 => (key(), value()).prop_map(|(k, v)| Step::Swap(k, v)),
        6 => (key(), any::<bool>(), option::of(value()), option::of(value()))
            .prop_map(|(key, is_current, other, new)| {
                Step::CompareExchange(key, is_current, other, new)
            }),
        3 => (key(), option::of(value())).prop_map(|(k, v)| Step::FetchUpdate(k, v)),
        6 => (changes(), option::of((key(), option::of(value()))))
            .prop_map(|(changes, required)| Step::Commit(changes, required)),
        3 => key().prop_map(Step::Get),
        1 => prop::collection::vec(key(), 0..80).prop_map(Step::MultiGet),
        2 => ((bound(), bound()), prop::collection::vec(any::<bool>(), 0..200))
            .prop_map(|(bounds, ends)| Step::Scan(bounds, ends)),
        1 => key().prop_map(Step::Prefix),
        1 => Just(Step::Close),
        1 => Just(Step::Drop),
    ]
}

fn within(model: &Model, (low, high): &Bounds) -> Vec<Pair> {
    let above = |key: &Vec<u8>| match low {
        Bound::Unbounded => true,
        Bound::Included(low) => key >= low,
        Bound::Excluded(low) => key > low,
    };
    let below = |key: &Vec<u8>| match high {
        Bound::Unbounded => true,
        Bound::Included(high) => key <= high,
        Bound::Excluded(high) => key < high,
    };
    let inside = model.iter().filter(|(key, _)| above(key) && below(key));
    inside.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Scans a range from the ends that `ends` lists, and the rest from the front.
fn check_scan(store: &Store, model: &Model, bounds: &Bounds, ends: &[bool]) {
    let expected = within(model, bounds);
    let mut left = expected.iter();
    let mut scan = store.scan(bounds.clone());
    for &from_front in ends {
        let (found, expected) = if from_front {
            (scan.next(), left.next())
        } else {
            (scan.next_back(), left.next_back())
        };
        assert_eq!(found.transpose().unwrap().as_ref(), expected);
    }
    let rest: Vec<_> = scan.collect::<Result<_, _>>().unwrap();
    assert!(rest.iter().eq(left), "what is left after both ends were asked");
    let reverse: Vec<_> = store.scan(bounds.clone()).rev().collect::<Result<_, _>>().unwrap();
    assert!(reverse.iter().eq(expected.iter().rev()), "descending");
    for limit in [ends.len().max(1), usize::MAX] {
        let shown = shown(store, bounds, Order::Ascending, limit);
        assert!(shown.iter().eq(expected.iter().take(limit)), "shown, up to {limit}");
    }
    let shown = shown(store, bounds, Order::Descending, usize::MAX);
    assert!(shown.iter().eq(expected.iter().rev()), "shown, descending");
}

/// Returns the pairs with which `scan_with` calls its function, up to `limit` of them.
fn shown(store: &Store, bounds: &Bounds, order: Order, limit: usize) -> Vec<Pair> {
    let mut shown = Vec::new();
    let outcome = store.scan_with(bounds.clone(), order, |key, value| {
        shown.push((key.to_vec(), value.to_vec()));
        if shown.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    outcome.unwrap();
    shown
}

fn check_all(store: &Store, model: &Model) {
    let expected: Vec<Pair> = model.clone().into_iter().collect();
    assert!(pairs(store) == expected, "the same pairs in the same order");
    assert_eq!(store.len().unwrap(), expected.len() as u64);
    assert_eq!(store.is_empty().unwrap(), expected.is_empty());
}

fn set(model: &mut Model, key: Vec<u8>, value: Option<Vec<u8>>) {
    match value {
        Some(value) => model.insert(key, value),
        None => model.remove(&key),
    };
}

fn commit(store: &Store, model: &mut Model, changes: Vec<Written>, required: Option<Written>) {
    let mut batch = changes.iter().fold(Batch::new(), |batch, (key, value)| match value {
        Some(value) => batch.put(&key[..], &value[..]),
        None => batch.delete(&key[..]),
    });
    if let Some((key, value)) = &required {
        batch = batch.require(&key[..], value.as_deref());
    }
    let done = store.commit(&batch).unwrap();
    match required {
        Some((key, value)) if model.get(&key) != value.as_ref() => {
            let current = model.get(&key).cloned();
            assert_eq!(done, Err(Unmet { key, current }));
        }
        _ => {
            assert_eq!(done, Ok(()));
            for (key, value) in changes {
                set(model, key, value);
            }
        }
    }
}

fn apply(store: &Store, model: &mut Model, step: Step) {
    match step {
        Step::Put(key, value) => {
            store.put(&key, &value).unwrap();
            model.insert(key, value);
        }
        Step::Insert(key, value) => {
            assert_eq!(store.insert(&key, &value).unwrap(), !model.contains_key(&key));
            model.entry(key).or_insert(value);
        }
        Step::Update(key, value) => {
            assert_eq!(store.update(&key, &value).unwrap(), model.contains_key(&key));
            model.entry(key).and_modify(|former| *former = value);
        }
        Step::Delete(key) => {
            assert_eq!(store.delete(&key).unwrap(), model.remove(&key).is_some());
        }
        Step::Swap(key, value) => {
            let former = store.swap(&key, &value).unwrap();
            assert_eq!(former, model.insert(key, value));
        }
        Step::CompareExchange(key, is_current, other, new) => {
            let current = model.get(&key).cloned();
            let expected = if is_current { current.clone() } else { other };
            let done = store.compare_exchange(&key, expected.as_deref(), new.as_deref()).unwrap();
            if expected == current {
                assert_eq!(done, Ok(()));
                set(model, key, new);
            } else {
                assert_eq!(done, Err(Mismatch { current }));
            }
        }
        Step::FetchUpdate(key, new) => {
            let former = store.fetch_update(&key, |_| new.clone()).unwrap();
            assert_eq!(former.as_ref(), model.get(&key));
            set(model, key, new);
        }
        Step::Commit(changes, required) => commit(store, model, changes, required),
        Step::Get(key) => {
            let expected = model.get(&key);
            assert_eq!(store.get(&key).unwrap().as_ref(), expected);
            assert_eq!(store.contains(&key).unwrap(), expected.is_some());
            assert_eq!(store.get_with(&key, <[u8]>::to_vec).unwrap().as_ref(), expected);
        }
        Step::MultiGet(keys) => {
            let expected: Vec<_> = keys.iter().map(|key| model.get(key).cloned()).collect();
            assert_eq!(store.multi_get(&keys).unwrap(), expected);
            let mut shown = Vec::new();
            store
                .multi_get_with(&keys, |at, value| shown.push((at, value.map(<[u8]>::to_vec))))
                .unwrap();
            assert!(shown.into_iter().eq(expected.into_iter().enumerate()));
        }
        Step::Scan(bounds, ends) => check_scan(store, model, &bounds, &ends),
        Step::Prefix(prefix) => {
            let expected = model.iter().filter(|(key, _)| key.starts_with(&prefix));
            let found: Vec<_> = store.prefix(&prefix).collect::<Result<_, _>>().unwrap();
            assert!(found.iter().map(|(key, value)| (key, value)).eq(expected));
        }
        Step::Close | Step::Drop => unreachable!("these take the store"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_store_is_an_ordered_map(steps in prop::collection::vec(step(), 1..300)) {
        let place = place();
        let mut model = Model::new();
        let mut store = small().create(&place.path).unwrap();
        for step in steps {
            match step {
                Step::Close => store.close().unwrap(),
                Step::Drop => drop(store),
                step => {
                    apply(&store, &mut model, step);
                    continue;
                }
            }
            store = small().open(&place.path).unwrap();
            check_all(&store, &model);
        }
        check_all(&store, &model);
        let report = store.check().unwrap();
        prop_assert_eq!(report.keys, model.len() as u64);
        prop_assert_eq!(report.unreachable_blocks, 0);
    }
}

/// 30 000 keys make several levels. They are put in three orders, and reopened after a close or a
/// drop.
#[test]
fn many_keys_in_any_order_survive() {
    let place = place();
    for (round, stride) in [1u64, 29_999, 7919].into_iter().enumerate() {
        let store = small().create(&place.path).unwrap();
        let mut model = Model::new();
        for i in 0..30_000 {
            let key = format!("user/{:08}", i * stride % 30_000).into_bytes();
            store.put(&key, i.to_le_bytes()).unwrap();
            model.insert(key, i.to_le_bytes().into());
        }
        check_all(&store, &model);
        for i in (0..30_000).step_by(3) {
            let key = format!("user/{i:08}").into_bytes();
            assert!(store.delete(&key).unwrap());
            model.remove(&key);
        }
        if round == 0 {
            store.close().unwrap();
        } else {
            drop(store);
        }
        let mut store = small().open(&place.path).unwrap();
        assert_eq!(store.was_recovered(), round != 0);
        check_all(&store, &model);
        assert_eq!(store.check().unwrap().unreachable_blocks, 0);
        drop(store);
        std::fs::remove_file(&place.path).unwrap();
    }
}
