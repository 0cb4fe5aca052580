//! Maintainers do the deferred work where there are any, and no work is deferred for ever.
//!
//! 1. A design that defers nothing has no maintainers, and nothing for them to do.
//! 2. Maintainers come and go while other threads write; no pair is lost, and the deferred work
//!    comes to an end.
//! 3. While a maintainer keeps up, no operation costs more than its budget.
//! 4. A maintainer that does nothing costs space, up to a bound, until it goes.

use super::bounded::Bounded;
use super::scratch::{ROOT, check_settled, dram, plain, rng};
use super::threads::{Writer, Writers, scan, scope};
use super::{Index, Subject};
use bristlecone_pmem::Medium;
use bristlecone_registry::Memory;
use bristlecone_trees::{ErasedDesign, Order, PmIndex};
use core::sync::atomic::AtomicUsize;
use rand::RngExt;
use std::collections::BTreeMap;

/// The number of steps after which the deferred work counts as endless.
const STEPS_MAX: u64 = 1_000_000;

/// Tests all four obligations.
pub(crate) fn run(subject: &Subject<u64>, threaded: &ErasedDesign<Memory, u64>) {
    if subject.maintenance.is_none() {
        let index = (subject.create)(dram(), ROOT).unwrap();
        for key in 0..1000 {
            index.insert(key, key).unwrap();
        }
        assert!(index.maintainer().is_none(), "a design that defers no work needs no maintainer");
        assert!(!index.run_maintenance_step().unwrap(), "who puts nothing off has nothing to tend");
        return;
    }
    eprintln!("maintainers that come and go");
    come_and_go(&*(threaded.create)(plain(), ROOT).unwrap());
    eprintln!("costs");
    assert!(beyond(subject, false) > 0, "nothing is put off");
    assert_eq!(beyond(subject, true), 0, "updates do more though there is a maintainer");
    eprintln!("a maintainer that stalls");
    stalls(subject);
}

/// Does all deferred work.
fn tend_all<M: Medium>(index: &dyn PmIndex<M, u64>) {
    let steps = (0..STEPS_MAX).take_while(|_| index.run_maintenance_step().unwrap()).count() as u64;
    assert!(steps < STEPS_MAX, "what is put off has no end");
}

/// Runs two threads that write, each its own keys, and two that are maintainers again and again.
fn come_and_go(index: &dyn PmIndex<Memory, u64>) {
    const STEPS: u64 = 20_000;
    const KEYS: u64 = 1_000;
    const TERM: u64 = 64;
    let writers = Writers(AtomicUsize::new(2));
    let mut models = [BTreeMap::new(), BTreeMap::new()];
    scope(|scope| {
        for (model, thread) in models.iter_mut().zip(0..) {
            let writers = &writers;
            scope.spawn(move || {
                let _at_work = Writer(writers);
                let mut rng = rng(80 + thread);
                for step in 0..STEPS {
                    let key = rng.random_range(0..KEYS) * 2 + thread;
                    let removes = [1, 7, 2][(step * 3 / STEPS) as usize];
                    let (expected, answer) = if rng.random_range(0..10) < removes {
                        (model.remove(&key), index.remove(key))
                    } else {
                        (model.insert(key, step), index.upsert(key, step))
                    };
                    assert_eq!(answer.unwrap(), expected, "key {key}");
                }
            });
        }
        for _ in 0..2 {
            let writers = &writers;
            scope.spawn(move || {
                writers.meanwhile(|| {
                    let maintainer =
                        index.maintainer().expect("a design that defers work has maintainers");
                    for _ in 0..TERM {
                        index.run_maintenance_step().unwrap();
                    }
                    drop(maintainer);
                    std::thread::yield_now();
                });
            });
        }
    });
    let expected: BTreeMap<u64, u64> = models.into_iter().flatten().collect();
    for is_tended in [false, true] {
        if is_tended {
            tend_all(index);
        }
        let mut found = BTreeMap::new();
        scan(index, Order::Ascending, &mut |key, value| {
            found.insert(key, value);
        });
        assert!(found == expected, "the contents are not those of the threads together");
        assert_eq!(check_settled(index).keys, expected.len() as u64);
    }
}

/// Returns an index of so many keys.
fn filled(subject: &Subject<u64>, keys: u64) -> Box<Index<u64>> {
    let index = (subject.create)(dram(), ROOT).unwrap();
    for key in 0..keys {
        index.insert(key, key).unwrap();
    }
    index
}

/// Returns the number of updates that fence more often than their budget states and change the
/// numbers of neither blocks nor leaves, with a maintainer that does the deferred work before each
/// of them, or without.
fn beyond(subject: &Subject<u64>, is_kept: bool) -> u64 {
    const KEYS: u64 = 400;
    const UPDATES: u64 = 10_000;
    let index = filled(subject, KEYS);
    let maintainer =
        is_kept.then(|| index.maintainer().expect("a design that defers work has maintainers"));
    let (mut rng, mut beyond) = (rng(84), 0);
    let mut leaves = check_settled(&*index).leaves;
    for value in 0..UPDATES {
        if maintainer.is_some() {
            tend_all(&*index);
        }
        // No block that was retired earlier may come free within the update: it could hide one that
        // the update takes.
        index.pool().reclaim();
        let _pinned = index.pool().pin();
        let blocks = index.pool().usage().blocks;
        Bounded::of(index.pool().medium()).take();
        assert!(index.update(rng.random_range(0..KEYS), value).unwrap().is_some());
        let fences = Bounded::of(index.pool().medium()).take().fences;
        let is_same = index.pool().usage().blocks == blocks;
        // A split or merge exceeds the budget, so no other update changes the number of leaves.
        if fences > u64::from(subject.spec.budget.update.fences) {
            let now = index.check().unwrap().leaves;
            beyond += u64::from(core::mem::replace(&mut leaves, now) == now && is_same);
        }
    }
    check_settled(&*index);
    beyond
}

/// Registers a maintainer that does nothing, then drops it.
fn stalls(subject: &Subject<u64>) {
    const KEYS: u64 = 200;
    let usual = peak_bytes(&*filled(subject, KEYS));
    let index = filled(subject, KEYS);
    let maintainer = index.maintainer();
    let stalled = peak_bytes(&*index);
    assert!(stalled <= 3 * usual, "{stalled} B while a maintainer stalls, {usual} B without it");
    drop(maintainer);
    peak_bytes(&*index);
    let after = check_settled(&*index).pm_bytes;
    assert!(after <= usual, "{after} B when the maintainer has gone, {usual} B without it");
    for key in 0..KEYS {
        assert!(index.get(key).unwrap().is_some(), "key {key}");
    }
}

/// Returns the most bytes of the pool that the index takes while keys are updated.
fn peak_bytes(index: &Index<u64>) -> u64 {
    const UPDATES: u64 = 40_000;
    const LOOK_EVERY: u64 = 50;
    let mut peak = 0;
    for step in 0..UPDATES {
        assert!(index.update(step % 200, step).unwrap().is_some());
        if step % LOOK_EVERY == 0 {
            peak = peak.max(index.check().unwrap().pm_bytes);
        }
    }
    peak
}
