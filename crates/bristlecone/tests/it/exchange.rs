//! Writes that depend on the value of their key: results, errors, threads.

use crate::{place, small};
use bristlecone::{Error, KEY_BYTES_MAX, Mismatch, Store, VALUE_BYTES_MAX};

const THREADS: u64 = 4;
const COUNTS: u64 = 3000;

/// Returns a count as a value of `bytes` bytes.
fn counted(count: u64, bytes: usize) -> Vec<u8> {
    let mut value = count.to_le_bytes().to_vec();
    value.resize(bytes, count as u8);
    value
}

fn count_of(value: &[u8]) -> u64 {
    let count = u64::from_le_bytes(value[..8].try_into().unwrap());
    assert_eq!(value, counted(count, value.len()));
    count
}

/// Returns `true` if increments that replaced the counts `formers` leave the count `end`: each
/// count was replaced once.
fn is_history(mut formers: Vec<u64>, end: u64) -> bool {
    formers.sort_unstable();
    formers.into_iter().eq(0..end)
}

/// Calls `increment` from several threads. Returns the counts that they replaced.
fn incremented(increment: impl Fn() -> u64 + Sync) -> Vec<u64> {
    std::thread::scope(|scope| {
        let work = || (0..COUNTS).map(|_| increment()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn increments_by_threads_are_all_counted() {
    let place = place();
    // A value in the leaf, and one in a record.
    for bytes in [8, 100] {
        let store = small().create(&place.path).unwrap();
        let formers = incremented(|| {
            let former = store
                .fetch_update("count", |value| Some(counted(value.map_or(0, count_of) + 1, bytes)));
            former.unwrap().as_deref().map_or(0, count_of)
        });
        assert!(is_history(formers, THREADS * COUNTS));
        drop(store);
        let mut store = small().open(&place.path).unwrap();
        assert_eq!(store.get("count").unwrap().unwrap(), counted(THREADS * COUNTS, bytes));
        assert_eq!(store.check().unwrap().unreachable_blocks, 0);
        drop(store);
        std::fs::remove_file(&place.path).unwrap();
    }
}

/// Increments the count under a key by a read and a write of which nothing makes one step.
fn increment_apart(store: &Store, between: impl FnOnce()) -> u64 {
    let former = store.get("count").unwrap().as_deref().map_or(0, count_of);
    between();
    store.put("count", counted(former + 1, 8)).unwrap();
    former
}

#[test]
fn a_lost_update_is_not_a_history() {
    let place = place();
    let store = small().create(&place.path).unwrap();
    let mut formers = vec![increment_apart(&store, || {})];
    assert!(is_history(formers.clone(), 1));
    let mut inner = 0;
    formers.push(increment_apart(&store, || inner = increment_apart(&store, || {})));
    formers.push(inner);
    let end = count_of(&store.get("count").unwrap().unwrap());
    assert!(!is_history(formers, end));
}

/// Threads take values out of a key, and put others in, always in exchange. Each value is taken
/// once.
#[test]
fn each_swapped_value_is_returned_once() {
    let place = place();
    let store = small().create(&place.path).unwrap();
    let mut taken: Vec<u64> = std::thread::scope(|scope| {
        let store = &store;
        let swaps = move |thread| {
            let counts = (0..COUNTS).map(move |n| thread * COUNTS + n);
            // Records of several sizes, and no record.
            let swap = |n: u64| store.swap("cell", counted(n, 8 + (n % 90) as usize)).unwrap();
            counts.filter_map(swap).map(|value| count_of(&value)).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || swaps(n))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    taken.push(count_of(&store.get("cell").unwrap().unwrap()));
    taken.sort_unstable();
    assert!(taken.into_iter().eq(0..THREADS * COUNTS));
}

/// Each thread inserts an absent key and removes its own value again. So the key is a lock, and the
/// counter beside it needs no other.
#[test]
fn a_key_that_is_exchanged_is_a_lock() {
    let place = place();
    let store = small().create(&place.path).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                let name = format!("the name of thread {thread}");
                let mine = Some(name.as_bytes());
                for _ in 0..COUNTS / 4 {
                    while store.compare_exchange("lock", None, mine).unwrap().is_err() {
                        std::thread::yield_now();
                    }
                    increment_apart(store, || {});
                    assert_eq!(store.compare_exchange("lock", mine, None).unwrap(), Ok(()));
                }
            });
        }
    });
    assert_eq!(count_of(&store.get("count").unwrap().unwrap()), COUNTS / 4 * THREADS);
    assert!(!store.contains("lock").unwrap());
}

#[test]
fn a_function_that_updates_may_use_the_store() {
    let place = place();
    let store = small().create(&place.path).unwrap();
    store.put("a", "1").unwrap();
    let mut calls = Vec::new();
    let former = store.fetch_update("a", |value| {
        calls.push(value.map(<[u8]>::to_vec));
        if calls.len() == 1 {
            store.put("a", "2").unwrap(); // comes between the read and the write
        }
        Some([value.unwrap(), b"+"].concat())
    });
    assert_eq!(former.unwrap().unwrap(), b"2");
    assert_eq!(calls, [Some(b"1".to_vec()), Some(b"2".to_vec())]);
    assert_eq!(store.get("a").unwrap().unwrap(), b"2+");
    assert_eq!(store.fetch_update("a", |_| None).unwrap().unwrap(), b"2+");
    assert_eq!(store.fetch_update("a", |_| None).unwrap(), None);
    assert!(store.is_empty().unwrap());
}

#[test]
fn what_is_too_long_is_an_error_or_a_mismatch() {
    let place = place();
    let store = small().create(&place.path).unwrap();
    let (key, value) = (vec![1; KEY_BYTES_MAX + 1], vec![2; VALUE_BYTES_MAX + 1]);
    let is_key = |error| matches!(error, Error::KeyTooLong { .. });
    assert!(is_key(store.compare_exchange(&key, None, None).unwrap_err()));
    assert!(is_key(store.swap(&key, "").unwrap_err()));
    assert!(is_key(store.fetch_update(&key, |_| None).unwrap_err()));
    let is_value = |error| matches!(error, Error::ValueTooLong { .. });
    assert!(is_value(store.compare_exchange("a", Some(b"b"), Some(&value)).unwrap_err()));
    assert!(is_value(store.swap("a", &value).unwrap_err()));
    assert!(is_value(store.fetch_update("a", |_| Some(value.clone())).unwrap_err()));
    store.put("a", "b").unwrap();
    let refused = store.compare_exchange("a", Some(&value), None).unwrap();
    assert_eq!(refused, Err(Mismatch { current: Some(b"b".to_vec()) }));
}
