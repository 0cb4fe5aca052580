//! Any sequence of operations gives the answers that a `BTreeMap` gives, and leaves a sound
//! structure.
//!
//! 1. Every answer is compared, refusals included: an insert of a present key, an update of an
//!    absent one.
//! 2. After each run of inserts or removes the structure is checked, and its statistics compared
//!    with the model.
//! 3. Each case grows the tree to several levels and empties it again, in both orders.

use super::keys::{SPACES, Space, TestKey};
use super::scratch::{ROOT, check_settled, dram, seed};
use super::{IS_THOROUGH, Index, Subject};
use bristlecone_trees::{Order, Text, TreeStats};
use core::ops::{Bound, ControlFlow};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::cell::Cell;
use std::collections::BTreeMap;

/// The number of keys that the end of a case inserts: enough for three levels of the smallest
/// nodes.
const DEEP_KEYS: u64 = 3000;

/// One step of a case. Keys are numbers, made keys by [`TestKey::nth`].
#[derive(Clone, Debug)]
enum Step {
    Get(u64),
    Insert(u64, u64),
    Update(u64, u64),
    Upsert(u64, u64),
    Remove(u64),
    MultiGet(Vec<u64>),
    Scan(Bound<u64>, Bound<u64>, Order, usize),
    /// Inserts `count` keys, `stride` apart.
    Fill {
        start: u64,
        count: u64,
        stride: u64,
        order: Order,
    },
    /// Removes the keys of such a fill.
    Drain {
        start: u64,
        count: u64,
        stride: u64,
        order: Order,
    },
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..64u64, 2 => 0..DEEP_KEYS]
}

fn value() -> impl Strategy<Value = u64> {
    prop_oneof![4 => any::<u64>(), 1 => Just(0), 1 => Just(u64::MAX)]
}

fn bound() -> impl Strategy<Value = Bound<u64>> {
    prop_oneof![
        3 => number().prop_map(Bound::Included),
        3 => number().prop_map(Bound::Excluded),
        1 => Just(Bound::Unbounded),
    ]
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Ascending), Just(Order::Descending)]
}

fn step() -> impl Strategy<Value = Step> {
    let series = || (number(), 1..1200u64, 1..7u64, order());
    prop_oneof![
        4 => number().prop_map(Step::Get),
        8 => (number(), value()).prop_map(|(n, v)| Step::Insert(n, v)),
        4 => (number(), value()).prop_map(|(n, v)| Step::Update(n, v)),
        4 => (number(), value()).prop_map(|(n, v)| Step::Upsert(n, v)),
        8 => number().prop_map(Step::Remove),
        2 => vec(number(), 0..40).prop_map(Step::MultiGet),
        4 => (bound(), bound(), order(), prop_oneof![1..20usize, Just(usize::MAX)])
            .prop_map(|(from, to, order, limit)| Step::Scan(from, to, order, limit)),
        2 => series().prop_map(|(start, count, stride, order)| {
            Step::Fill { start, count, stride, order }
        }),
        2 => series().prop_map(|(start, count, stride, order)| {
            Step::Drain { start, count, stride, order }
        }),
    ]
}

/// Runs the suite with integer keys.
pub(crate) fn integers(subject: &Subject<u64>) {
    run(subject, if IS_THOROUGH { 24 } else { 10 });
}

/// Runs the suite with byte-string keys.
pub(crate) fn texts(subject: &Subject<Text>) {
    run(subject, if IS_THOROUGH { 10 } else { 5 });
}

fn run<K: TestKey>(subject: &Subject<K>, cases: u32) {
    let config =
        Config { cases, failure_persistence: None, max_shrink_time: 10_000, ..Config::default() };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed().to_le_bytes());
    let generator = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let height = Cell::new(0);
    let strategy = (prop::sample::select(&SPACES[..]), vec(step(), 1..50));
    let outcome = TestRunner::new_with_rng(config, generator).run(&strategy, |(space, steps)| {
        height.set(height.get().max(play(subject, space, &steps)));
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{} is not a map: {error}", subject.spec.name);
    }
    let fits = subject.spec.node_bytes as u64 / 16;
    let levels = 1 + u32::from(fits < DEEP_KEYS) + u32::from(fits * fits < DEEP_KEYS);
    assert!(height.get() >= levels, "{} levels are too few to test", height.get());
}

/// Runs one case and returns the number of levels that it reached.
fn play<K: TestKey>(subject: &Subject<K>, space: Space, steps: &[Step]) -> u32 {
    let index = (subject.create)(dram(), ROOT).expect("an empty pool has room");
    let node_bytes = subject.spec.node_bytes;
    let mut pair = Pair { index, model: BTreeMap::new(), space, node_bytes };
    assert_eq!(pair.count().keys, 0);
    for step in steps {
        pair.apply(step);
    }
    pair.compare();
    let order = if steps.len().is_multiple_of(2) { Order::Ascending } else { Order::Descending };
    pair.apply(&Step::Fill { start: 0, count: DEEP_KEYS, stride: 1, order });
    pair.compare();
    let height = pair.count().height;
    pair.empty(steps.len() % 4 < 2);
    pair.compare();
    pair.apply(&Step::Fill { start: 0, count: 100, stride: 1, order });
    pair.compare();
    height
}

/// An index and its model.
struct Pair<K: TestKey> {
    index: Box<Index<K>>,
    model: BTreeMap<K::Owned, u64>,
    space: Space,
    node_bytes: usize,
}

impl<K: TestKey> Pair<K> {
    fn key(&self, n: u64) -> K::Owned {
        K::nth(self.space, n)
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Get(n) => self.get(*n),
            Step::Insert(n, value) => self.insert(*n, *value),
            Step::Update(n, value) => self.update(*n, *value),
            Step::Upsert(n, value) => {
                let key = self.key(*n);
                let former = self.index.upsert(K::borrow(&key), *value).unwrap();
                assert_eq!(former, self.model.insert(key, *value), "upsert of key {n}");
            }
            Step::Remove(n) => self.remove(&self.key(*n)),
            Step::MultiGet(numbers) => self.multi_get(numbers),
            Step::Scan(from, to, order, limit) => {
                let [from, to] = [from, to].map(|bound| bound.map(|n| self.key(n)));
                self.scan((from.as_ref(), to.as_ref()), *order, *limit);
            }
            Step::Fill { start, count, stride, order } => {
                for n in series(*start, *count, *stride, *order) {
                    self.insert(n, [0, u64::MAX, n][(n % 3) as usize]);
                }
                self.count();
            }
            Step::Drain { start, count, stride, order } => {
                for n in series(*start, *count, *stride, *order) {
                    self.remove(&self.key(n));
                }
                self.count();
            }
        }
    }

    fn get(&self, n: u64) {
        let key = self.key(n);
        let found = self.index.get(K::borrow(&key)).unwrap();
        assert_eq!(found, self.model.get(&key).copied(), "get of key {n}");
    }

    fn insert(&mut self, n: u64, value: u64) {
        let key = self.key(n);
        let there = self.index.insert(K::borrow(&key), value).unwrap();
        assert_eq!(there, self.model.get(&key).copied(), "insert of key {n}");
        self.model.entry(key).or_insert(value);
    }

    fn update(&mut self, n: u64, value: u64) {
        let key = self.key(n);
        let former = self.index.update(K::borrow(&key), value).unwrap();
        let entry = self.model.get_mut(&key);
        assert_eq!(former, entry.as_deref().copied(), "update of key {n}");
        if let Some(entry) = entry {
            *entry = value;
        }
    }

    fn remove(&mut self, key: &K::Owned) {
        let removed = self.index.remove(K::borrow(key)).unwrap();
        assert_eq!(removed, self.model.remove(key), "remove of {key:?}");
    }

    fn multi_get(&self, numbers: &[u64]) {
        let keys: Vec<_> = numbers.iter().map(|&n| self.key(n)).collect();
        let borrowed: Vec<_> = keys.iter().map(K::borrow).collect();
        let mut found = vec![Some(7); keys.len()];
        self.index.multi_get(&borrowed, &mut found).unwrap();
        let expected: Vec<_> = keys.iter().map(|key| self.model.get(key).copied()).collect();
        assert_eq!(found, expected, "multi_get of {numbers:?}");
    }

    fn scan(&self, bounds: (Bound<&K::Owned>, Bound<&K::Owned>), order: Order, limit: usize) {
        let within = |key: &K::Owned| {
            let above = match bounds.0 {
                Bound::Included(from) => key >= from,
                Bound::Excluded(from) => key > from,
                Bound::Unbounded => true,
            };
            above
                && match bounds.1 {
                    Bound::Included(to) => key <= to,
                    Bound::Excluded(to) => key < to,
                    Bound::Unbounded => true,
                }
        };
        let pairs = self.model.iter().filter(|(key, _)| within(key));
        let mut expected: Vec<_> = pairs.map(|(key, value)| (key.clone(), *value)).collect();
        if order == Order::Descending {
            expected.reverse();
        }
        expected.truncate(limit);
        let mut shown = Vec::new();
        let borrowed = (bounds.0.map(K::borrow), bounds.1.map(K::borrow));
        let outcome = self.index.scan(borrowed, order, &mut |key, value| {
            shown.push((K::to_owned(key), value));
            if shown.len() >= limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        outcome.unwrap();
        assert!(shown == expected, "scan {bounds:?} {order:?} up to {limit}: {shown:?}");
    }

    /// Compares all pairs, by scans both ways and one by one, and checks the structure.
    fn compare(&self) {
        for (key, value) in &self.model {
            assert_eq!(self.index.get(K::borrow(key)).unwrap(), Some(*value), "get of {key:?}");
        }
        for n in (0..DEEP_KEYS).step_by(13) {
            self.get(n);
        }
        self.multi_get(&(0..200).collect::<Vec<_>>());
        for order in [Order::Ascending, Order::Descending] {
            for limit in [usize::MAX, self.model.len().div_ceil(2).max(1)] {
                self.scan((Bound::Unbounded, Bound::Unbounded), order, limit);
            }
        }
        self.count();
    }

    /// Checks the structure and its statistics: as many keys as the model, in as many leaves as
    /// they need.
    fn count(&self) -> TreeStats {
        let census = check_settled(&*self.index);
        assert_eq!(census.keys, self.model.len() as u64, "keys counted");
        let room = census.leaves * (self.node_bytes as u64 / 16);
        assert!(census.keys <= room, "{} leaves cannot hold {} keys", census.leaves, census.keys);
        assert!(census.height >= 1 && (census.leaves <= 1 || census.height >= 2), "{census:?}");
        let reserved = self.index.pool().usage();
        assert!(census.pm_bytes <= reserved.used_bytes, "{census:?} in {reserved:?}");
        census
    }

    /// Removes every key, from one end or from both in turn.
    fn empty(&mut self, from_both_ends: bool) {
        let mut turn = false;
        while let Some(key) =
            if turn { self.model.keys().next_back() } else { self.model.keys().next() }
        {
            self.remove(&key.clone());
            turn ^= from_both_ends;
        }
        assert_eq!(self.count().keys, 0);
    }
}

fn series(start: u64, count: u64, stride: u64, order: Order) -> impl Iterator<Item = u64> {
    (0..count).map(move |i| {
        let i = if order == Order::Ascending { i } else { count - 1 - i };
        start + i * stride
    })
}
