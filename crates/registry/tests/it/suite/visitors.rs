//! A scan holds no latch while it shows a pair: its visitor may read and change the index. Then the
//! scan goes on from the key that it has shown.
//!
//! One thread does it all, so each run is the same. A scan that would wait for a latch of its own
//! uses up its loads: see [`Bounded`].

use super::bounded::Bounded;
use super::scratch::{ROOT, check_settled, on};
use super::{Index, Subject};
use bristlecone_pmem::Mapped;
use bristlecone_trees::Order;
use core::ops::{Bound, ControlFlow};

/// The first of the keys that stay.
const FIRST: u64 = 1000;
const KEYS: u64 = 200;
const STEPS: i64 = 4_000_000;

/// Runs scans both ways whose visitors change pairs that were shown, that come next, and others.
pub(crate) fn run(subject: &Subject<u64>) {
    let medium = Bounded::over(Mapped::anonymous(1 << 20).unwrap(), STEPS);
    let index = (subject.create)(on(medium), ROOT).unwrap();
    for key in FIRST..FIRST + KEYS {
        index.insert(key, key).unwrap();
    }
    scan(&*index, Order::Ascending);
    for key in 0..KEYS {
        assert_eq!(index.remove(key).unwrap(), Some(key), "left behind by the scan");
    }
    scan(&*index, Order::Descending);
    for key in FIRST..FIRST + KEYS {
        assert_eq!(index.remove(key).unwrap(), Some(key + 2), "raised by both scans");
    }
    assert_eq!(check_settled(&*index).keys, KEYS);
}

fn scan(index: &Index<u64>, order: Order) {
    let mut shown = Vec::new();
    let outcome = index.scan((Bound::Unbounded, Bound::Unbounded), order, &mut |key, value| {
        Bounded::of(index.pool().medium()).allow(STEPS);
        shown.push(key);
        if !(FIRST..FIRST + KEYS).contains(&key) {
            return ControlFlow::Break(());
        }
        assert_eq!(index.get(key).unwrap(), Some(value));
        index.update(key, value + 1).unwrap();
        // Behind the scan keys are inserted for good, before it for a moment: enough to split
        // nodes.
        let (behind, before) = match order {
            Order::Ascending => (key - FIRST, key + FIRST),
            Order::Descending => (key + FIRST, key - FIRST),
        };
        index.insert(behind, behind).unwrap();
        index.insert(before, before).unwrap();
        index.remove(before).unwrap();
        ControlFlow::Continue(())
    });
    outcome.unwrap();
    let mut expected: Vec<_> = (FIRST..FIRST + KEYS).collect();
    if order == Order::Descending {
        expected.reverse();
    }
    assert!(shown == expected, "a scan {order:?} whose visitor writes shows {shown:?}");
}
