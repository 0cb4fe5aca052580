//! Lines and fences are what the spec states: never more in an operation that changes no structure,
//! and no less than stated in all of them.
//!
//! 1. An operation changes structure if a block was reserved or freed during it, or the numbers of
//!    leaves, inner nodes or levels changed. All retired blocks are waited for before it, so what is
//!    reserved shows.
//! 2. A design may put work off and do it now and then ([`Upkeep`]): an operation beyond the budget is
//!    within what that may cost, and there are no more of them than it says.
//! 3. Operations that change nothing (a get, a scan, a refused insert) cost nothing.

use super::bounded::Bounded;
use super::scratch::{ROOT, check_settled, on, rng};
use bristlecone_pmem::Mapped;
use bristlecone_pmem::medium::Counts;
use bristlecone_pmem::sync::pin;
use bristlecone_trees::{Budget, Census, Cost, Design, Order, PmIndex, Upkeep};
use core::ops::{Bound, ControlFlow};
use rand::RngExt;
use rand::seq::SliceRandom;

/// Keys that random operations draw from.
const KEYS: u64 = 600;
const OPERATIONS: u64 = 4000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Insert,
    Update,
    Remove,
}

/// The most that an operation of each kind cost.
#[derive(Debug, Default)]
struct Most {
    seen: [Option<Cost>; 3],
}

impl Most {
    fn note(&mut self, kind: Kind, counts: Counts) {
        let most = self.seen[kind as usize].get_or_insert(Cost::new(0, 0));
        most.lines = most.lines.max(counts.lines as u32);
        most.fences = most.fences.max(counts.fences as u32);
    }
}

/// Random operations, then keys in both sorted orders, which meet the dearest places of a node.
pub(crate) fn run<D: Design>() {
    let budget = D::SPEC.budget;
    let medium = Bounded::unbounded(Mapped::anonymous(1 << 20).unwrap());
    let index = D::Index::<Bounded, u64>::create(on(medium), ROOT);
    let mut probe = Probe {
        index: index.unwrap(),
        census: Census::default(),
        most: Most::default(),
        upkeep: D::UPKEEP.map(|upkeep| Beyond { upkeep, budget, count: 0 }),
        operations: 0,
    };
    let mut rng = rng(3);
    let mut keys: Vec<u64> = (0..KEYS).map(|n| n * 10 + 1).collect();
    keys.shuffle(&mut rng);
    for &key in &keys {
        probe.measure(Kind::Insert, key, key);
    }
    for _ in 0..OPERATIONS {
        let key = keys[rng.random_range(0..keys.len())];
        let kind = [Kind::Insert, Kind::Update, Kind::Remove][rng.random_range(0..3)];
        probe.measure(kind, key, rng.random());
        probe.nothing_for_free(key);
    }
    // Dense series: ascending inserts fill leaves at their end, descending ones at their beginning,
    // where a sorted leaf has to move everything; and removes meet full leaves at either end.
    for (order, forth) in [
        (Order::Ascending, true),
        (Order::Ascending, false),
        (Order::Descending, true),
        (Order::Descending, false),
    ] {
        let series = |i| if order == Order::Ascending { 100_000 + i } else { 200_000 - i };
        for i in 0..KEYS {
            probe.measure(Kind::Insert, series(i), i);
        }
        for i in 0..KEYS {
            probe.measure(Kind::Remove, series(if forth { i } else { KEYS - 1 - i }), i);
        }
    }
    if let Some(Beyond { upkeep, count: beyond, .. }) = probe.upkeep {
        let operations = probe.operations;
        assert!(beyond * upkeep.every <= operations, "{beyond} of {operations} beyond the budget");
    }
    let seen = probe.most.seen;
    let expected = [budget.insert, budget.update, budget.remove].map(Some);
    assert_eq!(seen, expected, "{}: most seen (insert, update, remove), and budget", D::SPEC.name);
}

/// Operations beyond the budget.
struct Beyond {
    upkeep: Upkeep,
    budget: Budget,
    count: u64,
}

impl Beyond {
    /// Whether an operation is beyond the budget, as it may be now and then.
    fn takes(&mut self, kind: Kind, counts: Counts) -> bool {
        let Budget { insert, update, remove } = self.budget;
        let budget = [insert, update, remove][kind as usize];
        let (lines, fences) = (counts.lines as u32, counts.fences as u32);
        if lines <= budget.lines && fences <= budget.fences {
            return false;
        }
        let most = self.upkeep.most;
        let within = lines <= budget.lines + most.lines && fences <= budget.fences + most.fences;
        assert!(within, "{kind:?} costs {counts:?}, budget {budget:?}, upkeep {most:?}");
        self.count += 1;
        true
    }
}

struct Probe<I> {
    index: I,
    census: Census,
    most: Most,
    upkeep: Option<Beyond>,
    operations: u64,
}

impl<I: PmIndex<Bounded, u64>> Probe<I> {
    fn measure(&mut self, kind: Kind, key: u64, value: u64) {
        let pool = self.index.pool();
        let before = pool.usage().blocks;
        let pinned = pin(); // What the operation retires stays in use until it is looked at.
        pool.medium().take();
        let there = match kind {
            Kind::Insert => self.index.insert(key, value),
            Kind::Update => self.index.update(key, value),
            Kind::Remove => self.index.remove(key),
        };
        let counts = pool.medium().take();
        let same_blocks = pool.usage().blocks == before;
        drop(pinned);
        let census = check_settled(&self.index);
        let shape = |census: &Census| (census.leaves, census.inner_nodes, census.height);
        let same_shape = shape(&census) == shape(&self.census);
        self.census = census;
        self.operations += 1;
        if !same_blocks || !same_shape {
            return;
        }
        if self.upkeep.as_mut().is_some_and(|upkeep| upkeep.takes(kind, counts)) {
            return;
        }
        if there.unwrap().is_some() == (kind == Kind::Insert) {
            assert_eq!((counts.lines, counts.fences), (0, 0), "a refused {kind:?} of {key}");
        } else {
            self.most.note(kind, counts);
        }
    }

    /// Reading costs nothing.
    fn nothing_for_free(&self, key: u64) {
        let index = &self.index;
        index.pool().medium().take();
        index.get(key).unwrap();
        index.multi_get(&[key, key + 1], &mut [None; 2]).unwrap();
        let bounds = (Bound::Included(key), Bound::Unbounded);
        let outcome = index.scan(bounds, Order::Ascending, &mut |_, _| ControlFlow::Break(()));
        outcome.unwrap();
        let counts = index.pool().medium().take();
        assert_eq!(counts, Counts::default(), "reading stored or flushed");
    }
}
