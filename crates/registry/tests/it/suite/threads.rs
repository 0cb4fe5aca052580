//! The answers to several threads.
//!
//! 1. A thread with keys of its own gets the answers that it would get alone.
//! 2. A value never goes back: a thread that has read the newer one never reads the older one
//!    again.
//! 3. While nodes split and merge, a scan shows keys in strict order, each at most once, each with
//!    a value of its own, and every key that is there all the time.

use super::scratch::{ROOT, check_settled, plain, rng, wait_for_frees};
use bristlecone_registry::Memory;
use bristlecone_trees::{ErasedDesign, Order, PmIndex};
use core::ops::{Bound, ControlFlow};
use core::sync::atomic::{AtomicUsize, Ordering};
use rand::RngExt;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::Scope;

const THREADS: u64 = 4;

/// An index on the medium of the suites with several threads.
type Index = dyn PmIndex<Memory, u64>;

/// Tests all three obligations.
pub(crate) fn run(subject: &ErasedDesign<Memory, u64>) {
    let create = || (subject.create)(plain(), ROOT).unwrap();
    eprintln!("threads with keys of their own");
    own_keys(&*create());
    eprintln!("values that grow");
    growing_values(&*create());
    eprintln!("nodes that come and go");
    churn(&*create());
}

/// The number of writers at work; readers go on until it is 0.
pub(super) struct Writers(pub(super) AtomicUsize);

impl Writers {
    fn at_work(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }

    /// Calls `look` until no writer is at work, and at least once.
    pub(super) fn meanwhile(&self, mut look: impl FnMut()) {
        loop {
            look();
            if !self.at_work() {
                return;
            }
        }
    }
}

/// A writer at work, until it is dropped, by a panic too: otherwise readers would wait for ever.
pub(super) struct Writer<'a>(pub(super) &'a Writers);

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Release);
    }
}

/// Runs threads that each have every fourth key, so all of them share every node.
fn own_keys(index: &Index) {
    const STEPS: u64 = 12_000;
    const KEYS: u64 = 2_000;
    let models: Vec<BTreeMap<u64, u64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let mut rng = rng(32 + thread);
                    let mut model = BTreeMap::new();
                    for step in 0..STEPS {
                        let key = rng.random_range(0..KEYS) * THREADS + thread;
                        // Three waves: the tree grows, shrinks, grows again.
                        let removes = [2, 8, 3][(step * 3 / STEPS) as usize];
                        let expected = model.get(&key).copied();
                        let answer = match rng.random_range(0..12) {
                            choice if choice < removes => {
                                model.remove(&key);
                                index.remove(key)
                            }
                            10 => index.get(key),
                            11 if expected.is_some() => {
                                model.insert(key, step);
                                index.update(key, step)
                            }
                            _ => {
                                model.insert(key, step);
                                index.upsert(key, step)
                            }
                        };
                        assert_eq!(answer.unwrap(), expected, "thread {thread}, key {key}");
                    }
                    model
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread fails")).collect()
    });
    let expected: BTreeMap<u64, u64> = models.into_iter().flatten().collect();
    let mut found = BTreeMap::new();
    scan(index, Order::Ascending, &mut |key, value| {
        found.insert(key, value);
    });
    assert!(found == expected, "the contents are not those of the threads together");
    wait_for_frees(index);
    assert_eq!(check_settled(index).keys, expected.len() as u64);
}

/// Runs threads in a scope. If one panics, the panic names the request.
pub(super) fn scope<'env>(threads: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>)) {
    let joined = catch_unwind(AssertUnwindSafe(|| std::thread::scope(threads)));
    joined.expect("no thread fails");
}

/// Runs two writers that raise the values of their keys, and two readers of all keys, by every
/// method.
fn growing_values(index: &Index) {
    const KEYS: u64 = 300;
    const RAISES: u64 = 60_000;
    for key in 0..KEYS {
        index.insert(key, 0).unwrap();
    }
    let writers = Writers(AtomicUsize::new(2));
    scope(|scope| {
        for half in 0..2 {
            let writers = &writers;
            scope.spawn(move || {
                let _at_work = Writer(writers);
                let mut rng = rng(48 + half);
                let mut values = vec![0; KEYS as usize];
                for value in 1..=RAISES {
                    let key = rng.random_range(0..KEYS / 2) * 2 + half;
                    let former = if value % 2 == 0 {
                        index.update(key, value)
                    } else {
                        index.upsert(key, value)
                    };
                    assert_eq!(former.unwrap(), Some(values[key as usize]), "key {key}");
                    values[key as usize] = value;
                }
            });
        }
        for reader in 0..2 {
            let writers = &writers;
            scope.spawn(move || {
                let mut rng = rng(50 + reader);
                let mut seen = vec![0; KEYS as usize];
                let mut see = |key: u64, value: u64, how: &str| {
                    let last = &mut seen[key as usize];
                    assert!(value >= *last, "{how} of key {key} went back: {value} after {last}");
                    *last = value;
                };
                let all: Vec<u64> = (0..KEYS).collect();
                let mut values = vec![None; all.len()];
                writers.meanwhile(|| {
                    for _ in 0..200 {
                        let key = rng.random_range(0..KEYS);
                        see(key, index.get(key).unwrap().expect("it is never removed"), "get");
                    }
                    index.multi_get(&all, &mut values).unwrap();
                    for (&key, value) in all.iter().zip(&values) {
                        see(key, value.expect("it is never removed"), "multi_get");
                    }
                    for order in [Order::Ascending, Order::Descending] {
                        let mut shown = 0;
                        scan(index, order, &mut |key, value| {
                            see(key, value, "scan");
                            shown += 1;
                        });
                        assert_eq!(shown, KEYS);
                    }
                });
            });
        }
    });
    check_settled(index);
}

/// Runs two writers that insert and remove keys in waves, and two readers. At regular distances a
/// key stays.
fn churn(index: &Index) {
    const KEYS: u64 = 1600;
    const STAYS: u64 = 16;
    const WAVES: u64 = 24;
    let value_of = |key: u64| key * 3 + 1;
    for key in (0..KEYS).step_by(STAYS as usize) {
        index.insert(key, value_of(key)).unwrap();
    }
    let writers = Writers(AtomicUsize::new(2));
    scope(|scope| {
        for writer in 0..2 {
            let writers = &writers;
            scope.spawn(move || {
                let _at_work = Writer(writers);
                let mut rng = rng(64 + writer);
                for wave in 0..WAVES {
                    for i in 0..KEYS {
                        // One writer goes up, the other down; they share some keys.
                        let i = if writer == 0 { i } else { KEYS - 1 - i };
                        let key = if rng.random_range(0..8) == 0 { i ^ 1 } else { i };
                        if key.is_multiple_of(STAYS) || key % 2 != writer && i == key {
                            continue;
                        }
                        let answer = if wave % 2 == 0 {
                            index.insert(key, value_of(key))
                        } else {
                            index.remove(key)
                        };
                        let found = answer.unwrap();
                        assert!(found.is_none_or(|value| value == value_of(key)), "key {key}");
                    }
                }
            });
        }
        for reader in 0..2 {
            let writers = &writers;
            scope.spawn(move || {
                let mut rng = rng(66 + reader);
                writers.meanwhile(|| {
                    let order = if reader == 0 { Order::Ascending } else { Order::Descending };
                    let mut stayed = 0;
                    scan(index, order, &mut |key, value| {
                        assert_eq!(value, value_of(key), "key {key} with another's value");
                        stayed += u64::from(key.is_multiple_of(STAYS));
                    });
                    assert_eq!(stayed, KEYS / STAYS, "a scan {order:?} missed a key that stays");
                    let stays = rng.random_range(0..KEYS / STAYS) * STAYS;
                    for key in stays..stays + STAYS {
                        let found = index.get(key).unwrap();
                        assert!(found.is_none_or(|value| value == value_of(key)), "key {key}");
                        assert!(
                            key > stays || found.is_some(),
                            "key {key} stays, and is not found"
                        );
                    }
                });
            });
        }
    });
    check_settled(index);
}

/// Scans the whole index, and asserts the order.
pub(super) fn scan(index: &Index, order: Order, see: &mut dyn FnMut(u64, u64)) {
    let mut last = None;
    let outcome = index.scan((Bound::Unbounded, Bound::Unbounded), order, &mut |key, value| {
        let in_order = last.is_none_or(|last| match order {
            Order::Ascending => last < key,
            Order::Descending => last > key,
        });
        assert!(in_order, "a scan {order:?} shows {key} after {last:?}");
        last = Some(key);
        see(key, value);
        ControlFlow::Continue(())
    });
    outcome.unwrap();
}
