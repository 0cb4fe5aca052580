//! Ranges of every kind, both ways, prefixes, and scans beside writers.

use crate::{place, small};
use bristlecone::{KeyRange, Store};
use std::collections::BTreeSet;
use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::sync::atomic::{AtomicBool, Ordering};

fn keys(store: &Store, range: impl KeyRange) -> Vec<String> {
    store.scan(range).map(|pair| String::from_utf8(pair.unwrap().0).unwrap()).collect()
}

#[test]
fn every_kind_of_range_is_a_range() {
    let place = place();
    let store = small().create(&place.path).unwrap();
    for key in ["a", "b", "c", "d"] {
        store.put(key, key).unwrap();
    }
    assert_eq!(keys(&store, ..), ["a", "b", "c", "d"]);
    assert_eq!(keys(&store, "b".."d"), ["b", "c"]);
    assert_eq!(keys(&store, "b"..="d"), ["b", "c", "d"]);
    assert_eq!(keys(&store, "c"..), ["c", "d"]);
    assert_eq!(keys(&store, .."c"), ["a", "b"]);
    assert_eq!(keys(&store, ..="c"), ["a", "b", "c"]);
    assert_eq!(keys(&store, (Excluded("a"), Included("c"))), ["b", "c"]);
    assert_eq!(keys(&store, (Excluded("a"), Unbounded)), ["b", "c", "d"]);
    assert_eq!(keys(&store, "aa".."bb"), ["b"]);
    assert_eq!(keys(&store, String::from("b")..String::from("c")), ["b"]);
    let none: [(Bound<&str>, Bound<&str>); 6] = [
        (Included("c"), Included("b")),
        (Included("b"), Excluded("b")),
        (Excluded("b"), Excluded("b")),
        (Excluded("b"), Included("b")),
        (Unbounded, Excluded("")),
        (Included("e"), Unbounded),
    ];
    for range in none {
        assert!(keys(&store, range).is_empty(), "{range:?}");
        assert!(store.scan(range).next_back().is_none(), "{range:?}");
    }
    let mut count = 0;
    for pair in &store {
        assert_eq!(pair.as_ref().unwrap().0, pair.as_ref().unwrap().1);
        count += 1;
    }
    assert_eq!(count, 4);
}

/// A scan is no snapshot: a pair was current in the call that fetched its batch, and may be older
/// than what was read since. A key that is there all the time comes once, in order.
#[test]
fn a_scan_returns_pairs_of_the_calls_that_fetched_them() {
    const BATCHES: usize = 8 + 16;
    let place = place();
    let store = small().create(&place.path).unwrap();
    let key = |i: usize| format!("{i:04}").into_bytes();
    for i in 0..200 {
        store.put(key(i), "old").unwrap();
    }
    let mut scan = store.iter();
    let mut seen = vec![scan.next().unwrap().unwrap()];
    for i in 0..200 {
        store.put(key(i), "new").unwrap();
        assert_eq!(store.get(key(i)).unwrap().unwrap(), b"new");
    }
    assert!(store.delete(key(2)).unwrap() && store.delete(key(100)).unwrap());
    store.put("0003 is new", "new").unwrap();
    store.put("0101 is new", "new").unwrap();
    seen.extend(scan.map(Result::unwrap));
    assert!(seen.is_sorted_by(|a, b| a.0 < b.0));
    for i in (0..200).filter(|i| ![2, 100].contains(i)) {
        let (_, value) = seen.iter().find(|pair| pair.0 == key(i)).unwrap();
        // The first call fetched the first batch, before the writes.
        assert!(value == b"new" || (i < BATCHES && value == b"old"), "{i}");
    }
    assert!(seen.iter().all(|pair| pair.0 != key(100)), "deleted before its batch was fetched");
    assert!(seen.iter().any(|pair| pair.0 == b"0101 is new"));
    assert!(store.iter().all(|pair| pair.unwrap().1 == b"new"));
}

#[test]
fn a_prefix_of_any_bytes_finds_the_keys_that_begin_with_it() {
    let place = place();
    let store = small().create(&place.path).unwrap();
    let all: Vec<&[u8]> = vec![
        b"",
        b"\0",
        b"a",
        b"a\0",
        b"a\xff",
        b"a\xff\xff",
        b"a\xff\xff\0",
        b"b",
        b"\xfe\xff",
        b"\xff",
        b"\xff\0",
        b"\xff\xff",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ];
    for key in &all {
        store.put(key, b"").unwrap();
    }
    for prefix in &all {
        let expected: Vec<_> = all.iter().filter(|key| key.starts_with(prefix)).collect();
        let found: Vec<_> = store.prefix(prefix).map(|pair| pair.unwrap().0).collect();
        assert!(found.iter().eq(expected.iter().copied()), "{prefix:?}");
        let found: Vec<_> = store.prefix(prefix).rev().map(|pair| pair.unwrap().0).collect();
        assert!(found.iter().eq(expected.iter().rev().copied()), "{prefix:?} reverse");
    }
}

/// Keys with the same first 8 B, some of them no longer than that, beside a writer.
#[test]
fn keys_that_begin_alike_come_in_order_both_ways() {
    let place = place();
    let store = small().create(&place.path).unwrap();
    let ends = (0..300u32).map(|i| [i.to_be_bytes().to_vec(), vec![0; (i % 40) as usize]].concat());
    let ends = ends.chain((0..20).map(|zeros| vec![0; zeros])).chain([vec![1], vec![0xff; 9]]);
    let keys: BTreeSet<Vec<u8>> = ends.map(|end| [b"prefix00".to_vec(), end].concat()).collect();
    for key in &keys {
        store.put(key, key).unwrap();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for key in keys.iter().cycle() {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                store.put(key, key).unwrap();
            }
        });
        for from in keys.iter().step_by(7) {
            let ahead = store.scan((Included(from), Unbounded)).map(Result::unwrap);
            assert!(
                ahead
                    .map(|(key, value)| (key == value, key))
                    .eq(keys.range(from.clone()..).map(|key| (true, key.clone())))
            );
            let back = store.scan((Unbounded, Excluded(from))).rev().map(|pair| pair.unwrap().0);
            assert!(back.eq(keys.range(..from.clone()).rev().cloned()));
        }
        done.store(true, Ordering::Relaxed);
    });
    store.close().unwrap();
    assert_eq!(small().open(&place.path).unwrap().check().unwrap().keys, keys.len() as u64);
}

/// Takes 5000 pairs, more than a batch has, from both ends in turn.
#[test]
fn both_ends_meet_in_the_middle() {
    let place = place();
    let store = small().create(&place.path).unwrap();
    for i in 0..5000u32 {
        store.put(i.to_be_bytes(), vec![0; 100]).unwrap();
    }
    for (front, back) in [(1, 1), (3, 1), (1, 700), (700, 1), (5000, 1)] {
        let (mut low, mut high) = (0, 5000u32);
        let mut scan = store.iter();
        let number = |pair: Option<Result<(Vec<u8>, _), _>>| {
            pair.map(|pair: Result<_, bristlecone::Error>| pair.unwrap().0.try_into().unwrap())
                .map(u32::from_be_bytes)
        };
        while low < high {
            for _ in 0..front.min(high - low) {
                assert_eq!(number(scan.next()), Some(low));
                low += 1;
            }
            for _ in 0..back.min(high - low) {
                high -= 1;
                assert_eq!(number(scan.next_back()), Some(high));
            }
        }
        assert!(scan.next().is_none() && scan.next_back().is_none() && scan.next().is_none());
    }
}

/// A scan that is kept while its range changes continues in order from its last key.
#[test]
fn a_scan_that_is_kept_continues_in_order() {
    let place = place();
    let store = small().create(&place.path).unwrap();
    for i in 0..1000u32 {
        store.put(i.to_be_bytes(), b"old").unwrap();
    }
    let mut scan = store.iter();
    assert_eq!(scan.next().unwrap().unwrap().0, 0u32.to_be_bytes());
    for i in 0..1000u32 {
        assert!(store.delete(i.to_be_bytes()).unwrap());
    }
    for i in (0..1000u32).step_by(2) {
        store.put(i.to_be_bytes(), b"new").unwrap();
    }
    let mut former = 0u32.to_be_bytes().to_vec();
    let mut fresh = 0;
    for pair in scan {
        let (key, value) = pair.unwrap();
        assert!(former < key);
        fresh += usize::from(value == b"new");
        former = key;
    }
    assert!((480..=500).contains(&fresh), "{fresh} of the new pairs were met");
}

/// Even keys stay, odd ones are put and deleted. Every scan, in either direction or both, returns
/// each even key once, all keys in order, and every value whole.
#[test]
fn scans_beside_writers_neither_repeat_nor_miss_nor_tear() {
    const KEYS: u32 = 2000;
    let place = place();
    let store = small().create(&place.path).unwrap();
    let value = |i: u32, round: u32| vec![(i ^ round) as u8; (i % 97 + round % 5 * 40) as usize];
    let is_whole = |value: &[u8]| value.windows(2).all(|pair| pair[0] == pair[1]);
    for i in (0..KEYS).step_by(2) {
        store.put(i.to_be_bytes(), value(i, 0)).unwrap();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (store, done) = (&store, &done);
        let writers: Vec<_> = (0..2)
            .map(|half| {
                scope.spawn(move || {
                    for round in 0..15 {
                        for i in (half * KEYS / 2..(half + 1) * KEYS / 2).rev() {
                            if i % 2 == 0 || round % 2 == 0 {
                                store.put(i.to_be_bytes(), value(i, round)).unwrap();
                            } else {
                                assert!(store.delete(i.to_be_bytes()).unwrap());
                            }
                        }
                    }
                })
            })
            .collect();
        for way in 0..3 {
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let mut scan = store.iter();
                    let (mut front, mut back) = (Vec::new(), Vec::new());
                    loop {
                        let from_front = way == 0 || (way == 2 && front.len() <= back.len());
                        let pair = if from_front { scan.next() } else { scan.next_back() };
                        let Some(pair) = pair else { break };
                        let (key, value) = pair.unwrap();
                        assert!(is_whole(&value));
                        let key = u32::from_be_bytes(key.try_into().unwrap());
                        if from_front { front.push(key) } else { back.push(key) }
                    }
                    back.reverse();
                    front.extend(back);
                    assert!(front.is_sorted_by(|a, b| a < b), "order, and each key once");
                    let evens = front.iter().filter(|key| *key % 2 == 0).count();
                    assert_eq!(evens, KEYS as usize / 2);
                }
            });
        }
        let ended: Vec<_> = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        for end in ended {
            end.expect("a writer failed");
        }
    });
}
