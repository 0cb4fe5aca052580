//! Functions of the caller that panic in a method of the store, or call other methods of it.

use crate::{pairs, place, small};
use bristlecone::{Batch, Order, Store};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

const KEYS: u32 = 100;

fn key(number: u32) -> String {
    format!("a key with a record/{number:03}")
}

/// Returns a store of values that lie in records.
fn filled(place: &crate::Place) -> Store {
    let store = small().create(&place.path).unwrap();
    for number in 0..KEYS {
        store.put(key(number), [1; 100]).unwrap();
    }
    store
}

/// Bytes whose use panics.
struct Unusable;

impl AsRef<[u8]> for Unusable {
    fn as_ref(&self) -> &[u8] {
        panic!("a function of the caller")
    }
}

/// A call of the store whose function panics.
type Panics = fn(&Store);

#[test]
fn a_panic_in_a_function_of_the_caller_leaves_no_latch_and_no_pin() {
    let place = place();
    let mut store = filled(&place);
    let panics: [(&str, Panics); 8] = [
        ("get_with", |store| drop(store.get_with(key(50), |_| panic!()))),
        ("scan_with", |store| {
            drop(store.scan_with(key(50).., Order::Ascending, |_, _| panic!()));
        }),
        ("scan_with, back", |store| {
            drop(store.scan_with(..=key(50), Order::Descending, |_, _| panic!()));
        }),
        ("multi_get_with", |store| {
            drop(store.multi_get_with(&[key(50), key(51)], |_, _| panic!()));
        }),
        ("fetch_update", |store| drop(store.fetch_update(key(50), |_| panic!()))),
        ("put", |store| drop(store.put(key(50), Unusable))),
        ("multi_get", |store| drop(store.multi_get(&[Unusable]))),
        ("commit", |store| drop(store.commit(&Batch::new().put(key(50), Unusable)))),
    ];
    for (name, panics) in panics {
        let ended = catch_unwind(AssertUnwindSafe(|| panics(&store)));
        assert!(ended.is_err(), "{name}");
        // A latch would be waited for, and a pin would hold back the former records.
        for number in 0..KEYS {
            assert!(store.swap(key(number), [2; 100]).unwrap().is_some());
        }
        store.compact().unwrap();
        assert_eq!(store.stats().waiting_blocks, 0, "{name}");
    }
    let report = store.check().unwrap();
    assert_eq!((report.keys, report.unreachable_blocks), (KEYS.into(), 0));
}

/// Writes, reads and removes pairs beside `key`, in the same leaf and in others.
fn use_beside(store: &Store, key: &[u8]) {
    let beside = [key, b"/beside"].concat();
    store.put(&beside, [3; 50]).unwrap();
    let batch = Batch::new().put(&beside, "4").put(key, [5; 60]).delete("absent");
    store.commit(&batch).unwrap().unwrap();
    assert_eq!(store.get(key).unwrap(), Some(vec![5; 60]));
    assert_eq!(store.fetch_update(&beside, |_| None).unwrap(), Some(b"4".to_vec()));
    assert_eq!(store.prefix(key).count(), 1);
    store.compact().unwrap();
}

#[test]
fn a_function_of_the_caller_may_call_all_methods_of_the_store() {
    let place = place();
    let mut store = filled(&place);
    for order in [Order::Ascending, Order::Descending] {
        let mut seen = Vec::new();
        let visit = |key: &[u8], _: &[u8]| {
            use_beside(&store, key);
            seen.push(key.to_vec());
            ControlFlow::Continue(())
        };
        store.scan_with(.., order, visit).unwrap();
        seen.sort_unstable();
        assert!(
            seen.iter()
                .eq((0..KEYS).map(|number| key(number).into_bytes()).collect::<Vec<_>>().iter())
        );
    }
    let keys: Vec<_> = (0..KEYS).map(key).collect();
    store
        .multi_get_with(&keys, |at, value| {
            assert_eq!(value, Some(&[5; 60][..]));
            use_beside(&store, keys[at].as_bytes());
        })
        .unwrap();
    for key in &keys {
        store.get_with(key, |_| use_beside(&store, key.as_bytes())).unwrap();
        let mut calls = 0;
        let update = |_: Option<&[u8]>| {
            calls += 1;
            if calls == 1 {
                use_beside(&store, key.as_bytes());
                store.put(key, "newer").unwrap(); // so the update begins again
            }
            Some(b"last".to_vec())
        };
        assert_eq!(store.fetch_update(key, update).unwrap().as_deref(), Some(&b"newer"[..]));
        assert_eq!(calls, 2);
    }
    assert!(pairs(&store).iter().all(|(_, value)| value == b"last"));
    let report = store.check().unwrap();
    assert_eq!((report.keys, report.unreachable_blocks), (KEYS.into(), 0));
}
