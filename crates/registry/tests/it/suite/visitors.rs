//! A scan holds no latch while it shows a pair: its visitor may use the index, and change it; and
//! the scan goes on from the key that it has shown, whatever was changed.
//!
//! One thread does it all, so what happens is the same every time. A scan that would wait for a
//! latch of its own runs out of steps: see [`Bounded`].

use super::bounded::Bounded;
use super::scratch::{ROOT, check_settled, on};
use super::{Index, Subject};
use bristlecone_pmem::Mapped;
use bristlecone_trees::Order;
use core::ops::{Bound, ControlFlow};

/// Keys that stay are those from here on, so many.
const FIRST: u64 = 1000;
const KEYS: u64 = 200;
const STEPS: i64 = 4_000_000;

/// Scans both ways, whose visitors change what was shown, what is to come, and what is beside.
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
        // Behind the scan, for good; and before it, for a moment: enough to split nodes.
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
