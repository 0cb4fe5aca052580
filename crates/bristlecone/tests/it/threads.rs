//! Several threads on one store.

use crate::{journaled, mapped, place, small};
use bristlecone::{Durability, Store};
use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A generator with a fixed seed: the same steps in every run.
struct Steps(u64);

impl Steps {
    fn draw(&mut self, below: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// Returns a value that contains its key, its writer and a count, which sets its length.
fn value(key: u64, writer: u64, count: u64) -> Vec<u8> {
    let mut value = [key, writer, count].map(u64::to_le_bytes).concat();
    value.resize(24 + (count % 300) as usize, (key ^ writer ^ count) as u8);
    value
}

fn check(key: u64, found: &[u8]) -> (u64, u64) {
    let word = |at: usize| u64::from_le_bytes(found[at * 8..at * 8 + 8].try_into().unwrap());
    assert_eq!(found, value(key, word(1), word(2)));
    assert_eq!(word(0), key);
    (word(1), word(2))
}

#[test]
fn a_store_goes_to_threads_and_back() {
    const fn shared<T: Send + Sync + 'static>() {}
    shared::<Store>();
    let place = place();
    let store = Arc::new(small().create(&place.path).unwrap());
    let handle = std::thread::spawn({
        let store = Arc::clone(&store);
        move || store.put("from", "a thread").unwrap()
    });
    handle.join().unwrap();
    assert_eq!(store.get("from").unwrap().unwrap(), b"a thread");
    Arc::into_inner(store).unwrap().close().unwrap();
}

/// A user of stores at the very end of a thread.
struct AtEnd(Vec<Arc<Store>>, Arc<AtomicU64>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        let used = catch_unwind(AssertUnwindSafe(|| {
            for store in &self.0 {
                store.put("short", "pair").unwrap();
                store.put("long", [7; 5000]).unwrap();
                assert_eq!(store.get("long").unwrap().unwrap(), [7; 5000]);
                assert_eq!(store.scan("a".."z").count(), 3);
                assert!(store.delete("early").unwrap());
                // A new one has inner nodes of its own.
                small().create(store.path().with_extension("new")).unwrap().close().unwrap();
            }
        }));
        self.1.store(u64::from(used.is_ok()), Ordering::Relaxed);
    }
}

/// Destructors of thread-locals run in an order that no one chooses. A write in one panicked where
/// those of the store had run before, and that ends the process.
#[test]
fn the_destructor_of_a_thread_local_uses_stores() {
    thread_local!(static AT_END: OnceCell<AtEnd> = const { OnceCell::new() });
    let places = [place(), place(), place()];
    let options = [
        mapped(),
        journaled(Durability::Interval(Duration::from_secs(3600))),
        journaled(Durability::Commit),
    ];
    let all = || places.iter().zip(&options);
    let stores = all().map(|(place, options)| Arc::new(options.create(&place.path).unwrap()));
    let stores: Vec<_> = stores.collect();
    let used = Arc::new(AtomicU64::new(0));
    let at_end = AtEnd(stores.clone(), Arc::clone(&used));
    let thread = std::thread::spawn(|| {
        AT_END.with(|cell| {
            // Set before the thread uses a store, so it is dropped last.
            let at_end = cell.get_or_init(|| at_end);
            at_end.0.iter().for_each(|store| store.put("early", "1").unwrap());
        });
    });
    thread.join().unwrap();
    assert_eq!(used.load(Ordering::Relaxed), 1);
    drop(stores);
    for (place, options) in all() {
        let store = options.open(&place.path).unwrap();
        assert_eq!(store.len().unwrap(), 2);
        assert_eq!(store.get("long").unwrap().unwrap(), [7; 5000]);
    }
}

/// Four writers use the same keys. Every value that a thread reads is one that a writer wrote to
/// that key, whole. No pair is lost and no block leaks.
#[test]
fn writers_of_the_same_keys_leave_whole_values() {
    const KEYS: u64 = 500;
    let place = place();
    let store = small().create(&place.path).unwrap();
    let name = |key: u64| format!("a shared prefix/{key:04}");
    let balance = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (store, balance) = (&store, &balance);
            scope.spawn(move || {
                let mut steps = Steps(writer);
                for count in 0..8000 {
                    let key = steps.draw(KEYS);
                    match steps.draw(8) {
                        0..3 => store.put(name(key), value(key, writer, count)).unwrap(),
                        3 => {
                            let added = store.insert(name(key), value(key, writer, count)).unwrap();
                            balance.fetch_add(u64::from(added), Ordering::Relaxed);
                        }
                        4..6 => drop(store.delete(name(key)).unwrap()),
                        _ => {
                            if let Some(found) = store.get(name(key)).unwrap() {
                                check(key, &found);
                            }
                        }
                    }
                }
            });
        }
    });
    assert!(balance.into_inner() > 0, "some inserts found their key absent");
    let before: Vec<_> = store.iter().map(Result::unwrap).collect();
    drop(store);
    let mut store = small().open(&place.path).unwrap();
    let after: Vec<_> = store.iter().map(Result::unwrap).collect();
    assert!(before == after, "a crash changed nothing");
    for key in 0..KEYS {
        if let Some(found) = store.get(name(key)).unwrap() {
            check(key, &found);
        }
    }
    assert_eq!(store.check().unwrap().unreachable_blocks, 0);
}

/// Of concurrent inserts of one key exactly one returns `true`; of concurrent deletes likewise.
#[test]
fn each_key_is_added_once_and_taken_once() {
    let place = place();
    let store = small().create(&place.path).unwrap();
    let (added, taken) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for writer in 0..4u64 {
            let (store, added, taken) = (&store, &added, &taken);
            scope.spawn(move || {
                for key in 0..2000u64 {
                    let new = store.insert(key.to_be_bytes(), value(key, writer, 0)).unwrap();
                    added.fetch_add(u64::from(new), Ordering::Relaxed);
                }
                for key in 0..2000u64 {
                    // Each thread reaches this after every key was inserted at least once.
                    let gone = store.delete(key.to_be_bytes()).unwrap();
                    taken.fetch_add(u64::from(gone), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(added.into_inner() - taken.into_inner(), store.len().unwrap());
}

/// Each key has one writer, and a reader never finds an older value than before.
#[test]
fn readers_beside_deletes_see_whole_and_ever_newer_values() {
    const KEYS: u64 = 64;
    let place = place();
    let store = small().create(&place.path).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (store, done) = (&store, &done);
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                scope.spawn(move || {
                    for count in 1..600 {
                        for key in (writer..KEYS).step_by(2) {
                            if count % 3 == 0 {
                                assert!(store.delete(key.to_be_bytes()).unwrap());
                            } else {
                                let value = value(key, writer, count);
                                store.put(key.to_be_bytes(), value).unwrap();
                            }
                        }
                    }
                })
            })
            .collect();
        for reader in 0..2 {
            scope.spawn(move || {
                let mut newest = [0; KEYS as usize];
                let all: Vec<_> = (0..KEYS).map(u64::to_be_bytes).collect();
                let mut see = |key: u64, found: &[u8]| {
                    let (_, count) = check(key, found);
                    assert!(newest[key as usize] <= count, "key {key} went back");
                    newest[key as usize] = count;
                };
                while !done.load(Ordering::Relaxed) {
                    if reader == 0 {
                        for key in 0..KEYS {
                            store.get_with(key.to_be_bytes(), |found| see(key, found)).unwrap();
                        }
                    } else {
                        let found = store.multi_get(&all).unwrap();
                        for (key, found) in (0..).zip(found) {
                            found.inspect(|found| see(key, found));
                        }
                    }
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
