//! Threads that lock leaves while the nodes above change.

use super::*;
use crate::node_latch::HeldLatch;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

type Locked = Inner<Mapped, LinearWithLocks>;

/// The leaves below inner nodes, as a model, and the leaves that threads are in.
struct Leaves {
    pool: Pool<Mapped>,
    inner: Locked,
    by_low: Mutex<BTreeMap<u64, PmPtr>>,
    inside: Mutex<BTreeSet<PmPtr>>,
    made: AtomicU64,
}

/// A leaf, its lock, and its low key.
type Entered<'a> = (PmPtr, HeldLatch<'a, Mapped>, u64);

impl Leaves {
    fn new() -> Self {
        let first = SeparatedLeaf { prefix: 0, word: 0, leaf: leaf(1) };
        Self {
            pool: pool(),
            inner: Locked::build(&[first], true).unwrap(),
            by_low: Mutex::new(BTreeMap::from([(0, PmPtr::new(leaf(1)))])),
            inside: Mutex::default(),
            made: AtomicU64::new(2),
        }
    }

    fn make(&self) -> PmPtr {
        PmPtr::new(leaf(self.made.fetch_add(1, core::sync::atomic::Ordering::Relaxed)))
    }

    fn covering(&self, key: u64) -> (u64, PmPtr) {
        let by_low = self.by_low.lock().unwrap();
        by_low.range(..=key).next_back().map(|(&low, &at)| (low, at)).unwrap()
    }

    /// Locks the leaf at the end of `route`, or the one that `key` leads to by then.
    fn enter(&self, route: &LeafRoute, key: u64) -> Option<Entered<'_>> {
        let locks = self.inner.locks(route.parent).unwrap();
        let (at, guard) =
            lock_leaf::<Mapped, u64, _>(&self.inner, &self.pool, route, locks, key, Direction::Key)
                .unwrap()
                .ok()?;
        let (low, expected) = self.covering(key);
        assert_eq!(at, expected, "the lock of another leaf for {key}");
        assert!(self.inside.lock().unwrap().insert(at), "two threads in one leaf");
        std::thread::yield_now();
        Some((at, guard, low))
    }

    fn leave(&self, entered: Entered<'_>) {
        assert!(self.inside.lock().unwrap().remove(&entered.0));
        drop(entered.1);
    }

    fn route(&self, key: u64) -> LeafRoute {
        self.inner.seek::<u64>(&self.pool, key, Direction::Key).unwrap()
    }

    fn visit(&self, key: u64) {
        if let Some(entered) = self.enter(&self.route(key), key) {
            self.leave(entered);
        }
    }

    /// Replaces the leaf of `key` by two that meet at `key`.
    fn split(&self, key: u64) {
        self.inner.make_room::<u64>(&self.pool, key).unwrap();
        let Some(entered) = self.enter(&self.route(key), key) else { return };
        let (full, low) = (entered.0, entered.2);
        if low < key {
            let (lower, upper) = (self.make(), self.make());
            let replaced = Replaced { full, lower, upper: Some((key, key, upper)) };
            let publish = || self.by_low.lock().unwrap().extend([(low, lower), (key, upper)]);
            replace_leaf::<Mapped, u64, _>(&self.inner, &self.pool, key, &replaced, publish)
                .unwrap();
        }
        self.leave(entered);
    }

    /// Replaces the leaf of `key` and its right neighbour under the same node by one.
    fn merge(&self, key: u64) {
        let [_, left, right] = self.inner.siblings::<u64>(&self.pool, key).unwrap();
        let Some((left_route, right_route)) = left.zip(right) else { return };
        let Some(left) = self.enter(&left_route, key) else { return };
        let right_low = self.by_low.lock().unwrap().range(key + 1..).next().map(|(&low, _)| low);
        if let Some(right_low) = right_low
            && self.inner.leaf_and_lock(&left_route).0 == left.0
            && let Some(right) = self.enter(&right_route, right_low)
        {
            let pair = (left.0, right.0);
            let merge = || {
                let fresh = self.make();
                let mut by_low = self.by_low.lock().unwrap();
                by_low.insert(left.2, fresh);
                by_low.remove(&right_low);
                Ok::<_, Corrupt>(fresh)
            };
            self.inner.replace_two::<u64, _>(&self.pool, key, pair, merge).unwrap();
            self.leave(right);
        }
        self.leave(left);
        self.inner.merge_path::<u64>(&self.pool, key).unwrap();
    }
}

/// Leaves split until lowest nodes split, then merge until those merge. A thread that holds a lock
/// is alone in the leaf, which covers its key.
#[test]
fn a_lock_protects_its_leaf_while_nodes_split_and_merge() {
    let leaves = Leaves::new();
    let run = |seed: u64, grows: bool| {
        let mut state = seed;
        for _ in 0..2_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = state >> 33 & 1023;
            match (state >> 60, grows) {
                (0..=7, _) => leaves.visit(key),
                (8..=13, true) | (14..=15, false) => leaves.split(key),
                _ => leaves.merge(key),
            }
        }
    };
    for grows in [true, false, true] {
        std::thread::scope(|scope| {
            for seed in 1..=4 {
                scope.spawn(move || run(seed, grows));
            }
        });
        let listed: Vec<_> =
            leaves.by_low.lock().unwrap().iter().map(|(&low, &at)| (low, at)).collect();
        let mut found = Vec::new();
        leaves.inner.for_each_leaf(&mut |l| found.push((l.prefix, PmPtr::new(l.leaf))));
        assert_eq!(found, listed);
        assert!(!grows || leaves.inner.node_count() > 2, "no lowest node has split");
    }
}
