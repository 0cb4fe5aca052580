//! Batches: conditions, many leaves, threads, costs, full stores.

use crate::{mapped, pairs, place, small};
use bristlecone::{Batch, Error, KEY_BYTES_MAX, Store, Unmet};
use bristlecone_pmem::Mapped;
use bristlecone_pmem::medium::Count;
use std::fs;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

fn key(number: u64) -> Vec<u8> {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().into()
}

fn puts(keys: impl Iterator<Item = u64>, value: &[u8]) -> Batch {
    keys.fold(Batch::new(), |batch, number| batch.put(key(number), value))
}

#[test]
fn a_batch_whose_condition_does_not_hold_changes_nothing() {
    let place = place();
    let store = small().create(&place.path).unwrap();
    store.put("a", "1").unwrap();
    store.put("a long key with a record", "2").unwrap();
    let before = pairs(&store);
    let batch = Batch::new().put("a", "3").put("b", vec![4; 100]).delete("c");
    let refused = |batch: &Batch| store.commit(batch).unwrap().unwrap_err();
    let unmet = Unmet { key: b"c".into(), current: None };
    assert_eq!(refused(&batch.clone().require("c", Some(b""))), unmet);
    let unmet = Unmet { key: b"a".into(), current: Some(b"1".into()) };
    assert_eq!(refused(&batch.clone().require("a", None)), unmet);
    let long = "a long key with a record";
    let unmet = Unmet { key: long.into(), current: Some(b"2".into()) };
    assert_eq!(refused(&batch.clone().require(long, Some(b"3"))), unmet);
    assert_eq!(pairs(&store), before);
    let held = batch.require(long, Some(b"2")).require("a", Some(b"1")).require("c", None);
    assert_eq!(store.commit(&held).unwrap(), Ok(()));
    assert_eq!(store.get("a").unwrap().unwrap(), b"3");
    assert_eq!(store.len().unwrap(), 3);
    let (condition, nothing) = (Batch::new().require("a", Some(b"3")), Batch::new());
    assert_eq!(store.commit(&condition).unwrap(), Ok(()));
    assert_eq!(store.commit(&nothing).unwrap(), Ok(()));
    drop(store);
    let mut store = small().open(&place.path).unwrap();
    assert_eq!(store.check().unwrap().unreachable_blocks, 0);
}

#[test]
fn a_key_that_is_too_long_refuses_the_batch() {
    let place = place();
    let store = small().create(&place.path).unwrap();
    let batch = Batch::new().put("a", "1").delete(vec![0; KEY_BYTES_MAX + 1]);
    assert!(matches!(store.commit(&batch), Err(Error::KeyTooLong { .. })));
    assert!(store.is_empty().unwrap());
}

/// Batches over all leaves of a store, new ones among them, by keys in order and at random.
#[test]
fn a_batch_spans_many_leaves_and_adds_some() {
    let place = place();
    let store = small().create(&place.path).unwrap();
    store.commit(&puts(0..5000, b"first")).unwrap().unwrap();
    let ascending = (0..3000u64).fold(Batch::new(), |b, n| b.put(n.to_be_bytes(), "second"));
    store.commit(&ascending).unwrap().unwrap();
    let mut last = puts(0..2500, &[3; 50]);
    for number in 2500..5000 {
        last = last.delete(key(number));
    }
    store.commit(&last).unwrap().unwrap();
    let expected = store.len().unwrap();
    drop(store);
    let mut store = small().open(&place.path).unwrap();
    assert_eq!(store.len().unwrap(), expected);
    // Some of the keys in order are among the others.
    let common = (0..3000u64).filter(|n| (0..5000).any(|m| key(m) == n.to_be_bytes())).count();
    assert_eq!(expected as usize, 3000 + 2500 - common);
    for number in 1..2500 {
        assert_eq!(store.get(key(number)).unwrap().unwrap(), [3; 50]);
    }
    let report = store.check().unwrap();
    assert_eq!((report.keys, report.unreachable_blocks), (expected, 0));
}

/// Writers move units between keys of different leaves; a reader that finds a batch in one key
/// finds it, or a later one, in all.
#[test]
fn a_reader_that_sees_a_batch_sees_all_of_it() {
    const KEYS: u64 = 40;
    let place = place();
    let store = small().create(&place.path).unwrap();
    store.commit(&puts(0..2000, &[0; 8])).unwrap().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (store, done) = (&store, &done);
        scope.spawn(move || {
            for count in 1..400u64 {
                store.commit(&puts(0..KEYS, &count.to_le_bytes())).unwrap().unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        for step in [1, KEYS - 1] {
            scope.spawn(move || {
                let mut newest = 0;
                let keys = (0..KEYS).cycle().step_by(step as usize);
                for number in keys.take_while(|_| !done.load(Ordering::Relaxed)) {
                    let value = store.get(key(number)).unwrap().unwrap();
                    let count = u64::from_le_bytes(value.try_into().unwrap());
                    assert!(count >= newest, "key {number} is of batch {count}, not {newest}");
                    newest = count;
                }
            });
        }
    });
}

/// Threads move units from key to key under conditions: no unit is lost or made.
#[test]
fn transfers_between_accounts_keep_their_sum() {
    const ACCOUNTS: u64 = 16;
    let place = place();
    let store = small().create(&place.path).unwrap();
    store.commit(&puts(0..2000, &100u64.to_le_bytes())).unwrap().unwrap();
    let balance = |store: &Store, number| {
        u64::from_le_bytes(store.get(key(number)).unwrap().unwrap().try_into().unwrap())
    };
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let store = &store;
            scope.spawn(move || {
                for count in 0..500 {
                    let from = (count * 7 + thread) % ACCOUNTS;
                    let to = (from + 1 + count % (ACCOUNTS - 1)) % ACCOUNTS;
                    let (a, b) = (balance(store, from), balance(store, to));
                    if a == 0 {
                        continue;
                    }
                    let batch = Batch::new()
                        .require(key(from), Some(&a.to_le_bytes()))
                        .require(key(to), Some(&b.to_le_bytes()))
                        .put(key(from), (a - 1).to_le_bytes())
                        .put(key(to), (b + 1).to_le_bytes());
                    let _ = store.commit(&batch).unwrap(); // another thread may have been first
                }
            });
        }
    });
    let sum: u64 = (0..ACCOUNTS).map(|number| balance(&store, number)).sum();
    assert_eq!(sum, ACCOUNTS * 100);
}

#[test]
fn a_batch_that_does_not_fit_changes_nothing() {
    let place = place();
    let store = small().max_bytes(1 << 20).create(&place.path).unwrap();
    store.commit(&puts(0..2000, b"1")).unwrap().unwrap();
    let before = pairs(&store);
    let value = vec![7; 1000];
    let large = puts(0..2000, &value);
    assert!(matches!(store.commit(&large), Err(Error::Full { .. })));
    let leaves = (0..80_000u64).fold(Batch::new(), |batch, n| batch.put(key(n), "2"));
    assert!(matches!(store.commit(&leaves), Err(Error::Full { .. })));
    let refused = store.commit(&large.require(key(0), None)).unwrap().unwrap_err();
    assert_eq!(refused.current.as_deref(), Some(&b"1"[..]), "a condition takes no space");
    assert_eq!(pairs(&store), before);
    store.commit(&puts(0..500, b"3")).unwrap().unwrap();
    drop(store);
    let mut store = small().open(&place.path).unwrap();
    assert_eq!(store.len().unwrap(), 2000);
    assert_eq!(store.check().unwrap().unreachable_blocks, 0);
}

/// The log of a batch over more than 24 leaves took a block, and a full store had none.
#[test]
fn a_batch_of_deletes_takes_no_space_in_a_full_store() {
    let place = place();
    let store = small().max_bytes(1 << 20).create(&place.path).unwrap();
    let count = (0..10_000).find(|&number| store.put(key(number), [7; 100]).is_err()).unwrap();
    let deletes = |keys: Range<u64>| keys.fold(Batch::new(), |batch, n| batch.delete(key(n)));
    store.commit(&deletes(count / 2..count)).unwrap().unwrap();
    assert_eq!(store.len().unwrap(), count / 2);
    store.commit(&deletes(0..count / 2)).unwrap().unwrap();
    assert!(store.is_empty().unwrap());
}

/// The record of a key of another pair is damaged, and a batch moves that pair to a new leaf: it
/// lay where no lookup found it.
#[test]
fn a_batch_misplaces_no_pair_whose_key_is_damaged() {
    const HEAD: &str = "what many keys begin with, ";
    let key = |number: u32| format!("{HEAD}{number:02}").into_bytes();
    let place = place();
    let store = mapped().create(&place.path).unwrap();
    for number in (0..40).step_by(2) {
        store.put(key(number), "1").unwrap();
    }
    store.close().unwrap();
    let whole = fs::read(&place.path).unwrap();
    let heads = whole.windows(HEAD.len()).enumerate();
    let records = heads.filter(|(_, window)| *window == HEAD.as_bytes()).map(|(at, _)| at);
    let odd = (1..40).step_by(2).fold(Batch::new(), |batch, n| batch.put(key(n), "2"));
    let mut refused = 0;
    for at in records {
        let mut damaged = whole.clone();
        damaged[at + HEAD.len()] ^= 2; // the tens digit
        fs::write(&place.path, &damaged).unwrap();
        let store = mapped().open(&place.path).unwrap();
        refused += u32::from(store.commit(&odd).is_err());
        for number in (0..40).step_by(2) {
            if let Ok(found) = store.get(key(number)) {
                assert_eq!(found.as_deref(), Some(&b"1"[..]), "key {number}, {at:#x}");
            }
        }
    }
    assert!(refused > 0);
}

/// The records of a batch that damage refuses stayed in use until the next recovery.
#[test]
fn a_batch_that_damage_refuses_keeps_no_space() {
    let place = place();
    let store = mapped().create(&place.path).unwrap();
    for number in 0..100 {
        store.put(key(number), "1").unwrap();
    }
    store.put("shortkey", "shortval").unwrap();
    store.close().unwrap();
    let mut bytes = fs::read(&place.path).unwrap();
    let value = bytes.windows(8).position(|window| window == b"shortval").unwrap();
    bytes[value] ^= 1;
    fs::write(&place.path, &bytes).unwrap();
    let store = mapped().open(&place.path).unwrap();
    let blocks = store.stats().blocks;
    let batch = puts(0..100, &[1; 100]).delete("shortkey");
    assert!(matches!(store.commit(&batch), Err(Error::Damaged { .. })));
    assert_eq!(store.stats().blocks, blocks);
}

/// A batch takes two fences, or one if it changes one cell.
#[test]
fn batches_meet_their_budgets() {
    let store = Store::create_on(Count::new(Mapped::anonymous(4 << 20).unwrap())).unwrap();
    let cost = || {
        let counts = store.medium().take();
        (counts.lines, counts.fences)
    };
    store.put("a", "1").unwrap();
    cost();
    store.commit(&Batch::new().put("a", "2").put("b", "3")).unwrap().unwrap();
    assert_eq!(cost(), (3, 2), "two cells and the number");
    store.commit(&Batch::new().delete("b").require("a", Some(b"2"))).unwrap().unwrap();
    assert_eq!(cost(), (1, 1));
    assert!(store.commit(&Batch::new().put("a", "4").require("b", Some(b""))).unwrap().is_err());
    assert_eq!(cost(), (0, 0));
    for number in 0..4000 {
        store.put(key(number), "1").unwrap();
    }
    cost();
    store.commit(&Batch::new().delete(key(1)).delete(key(2))).unwrap().unwrap();
    assert_eq!(cost(), (3, 2), "two cells and the number");
    let many = (0..100).fold(Batch::new(), |batch, number| batch.delete(key(10 * number + 5)));
    store.commit(&many).unwrap().unwrap();
    assert_eq!(cost().1, 2, "the fences of any batch");
    store.commit(&puts((0..100).map(|number| 10 * number + 6), b"2")).unwrap().unwrap();
    let (lines, fences) = cost();
    assert!(lines < 220 && fences == 2, "{lines} lines: each cell once, and the number");
}

/// A pair above the keys of a batch moves to the last of its new leaves. While only the first of
/// them was known, a lookup found nothing there, and a write was lost: a thread may come between.
/// The engine asserts that no key leads to a leaf of another one.
#[test]
fn a_pair_that_a_batch_moves_is_always_there() {
    let place = place();
    let mut store = small().create(&place.path).unwrap();
    store.put("last", "here").unwrap();
    let batch = (0..1000).fold(Batch::new(), |batch, number| batch.put(format!("a {number}"), "1"));
    store.commit(&batch).unwrap().unwrap();
    assert_eq!(store.get("last").unwrap().as_deref(), Some(&b"here"[..]));
    assert_eq!(store.check().unwrap().keys, 1001);
}
