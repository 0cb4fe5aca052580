//! Lines and fences are what the spec states: never more in an operation that changes no structure,
//! and over all such operations no less.
//!
//! 1. An operation changes structure if a block was reserved or freed during it, or the numbers of
//!    leaves, inner nodes or levels changed. The suite waits for all retired blocks before it, so
//!    that each reservation shows. A design that shadows reserves a block for each change and
//!    releases one; this alone changes no structure.
//! 2. A design may defer work ([`MaintenanceCost`]): an operation beyond the budget costs at most
//!    what that states, and there are at most as many of them as it states.
//! 3. Operations that change nothing (a get, a scan, a refused insert) cost nothing.

use super::bounded::Bounded;
use super::scratch::{ROOT, check_settled, on, rng};
use super::{IS_THOROUGH, Index, Subject};
use bristlecone_pmem::Mapped;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::medium::Counts;
use bristlecone_trees::spec::{CIRCULAR, SHADOWING};
use bristlecone_trees::{Budget, Cost, MaintenanceCost, Order, TreeStats};
use core::ops::{Bound, ControlFlow};
use rand::RngExt;
use rand::seq::SliceRandom;

/// The number of keys from which random operations draw.
const KEYS: u64 = 600;
const OPERATIONS: u64 = if IS_THOROUGH { 4000 } else { 1500 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Insert,
    Update,
    Remove,
}

/// The greatest cost of an operation of each kind.
#[derive(Debug, Default)]
struct Most {
    seen: [Option<Cost>; 3],
    operations: u64,
    maintenance: Option<Beyond>,
}

impl Most {
    fn of(subject: &Subject<u64>) -> Self {
        let budget = subject.spec.budget;
        let maintenance =
            subject.maintenance.map(|maintenance| Beyond { maintenance, budget, count: 0 });
        Self { maintenance, ..Self::default() }
    }

    fn note(&mut self, kind: Kind, counts: Counts) {
        self.operations += 1;
        if self.maintenance.as_mut().is_some_and(|maintenance| maintenance.takes(kind, counts)) {
            return;
        }
        let most = self.seen[kind as usize].get_or_insert(Cost::new(0, 0));
        most.lines = most.lines.max(counts.lines as u32);
        most.fences = most.fences.max(counts.fences as u32);
    }
}

/// The operations beyond the budget.
#[derive(Debug)]
struct Beyond {
    maintenance: MaintenanceCost,
    budget: Budget,
    count: u64,
}

impl Beyond {
    /// Counts an operation beyond the budget, and returns `true` for it. Panics if the design's
    /// maintenance cost does not cover it.
    fn takes(&mut self, kind: Kind, counts: Counts) -> bool {
        let Budget { insert, update, remove } = self.budget;
        let budget = [insert, update, remove][kind as usize];
        let (lines, fences) = (counts.lines as u32, counts.fences as u32);
        if lines <= budget.lines && fences <= budget.fences {
            return false;
        }
        let most = self.maintenance.most;
        let within = lines <= budget.lines + most.lines && fences <= budget.fences + most.fences;
        assert!(within, "{kind:?} costs {counts:?}, budget {budget:?}, maintenance {most:?}");
        self.count += 1;
        true
    }
}

/// Runs random operations, keys in both sorted orders, which meet the dearest places of a node, and
/// operations on a full leaf.
pub(crate) fn run(subject: &Subject<u64>) {
    let budget = subject.spec.budget;
    let mut probe = probe(subject, Most::of(subject));
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
    let mut most = fullest(subject, probe.most);
    if subject.spec.features.contains(&CIRCULAR) {
        most = every_turn(subject, most);
    }
    let Most { seen, operations, maintenance } = most;
    if let Some(Beyond { maintenance, count, .. }) = maintenance {
        assert!(
            count * maintenance.every <= operations,
            "{count} of {operations} beyond the budget"
        );
    }
    let expected = [budget.insert, budget.update, budget.remove].map(Some);
    assert_eq!(
        seen, expected,
        "{}: most seen (insert, update, remove), and budget",
        subject.spec.name
    );
}

/// Inserts the last entry of a leaf at its front, and removes it first: in a sorted leaf all others
/// move.
fn fullest(subject: &Subject<u64>, most: Most) -> Most {
    let mut filled = probe(subject, most);
    let fits = (1..=KEYS).take_while(|&key| filled.measure(Kind::Insert, key, key)).count() as u64;
    let more = (fits + 2..=KEYS).take_while(|&key| filled.measure(Kind::Insert, key, key)).count();
    let mut probe = probe(subject, filled.most);
    for key in (1..=fits).rev() {
        probe.measure(Kind::Insert, key, key);
    }
    probe.measure(Kind::Remove, 1, 1);
    // A full leaf below an inner node: the last one before the second split.
    let mut below = self::probe(subject, probe.most);
    let last = fits + 1 + more as u64;
    for key in 1..=last {
        below.measure(Kind::Insert, key, key);
    }
    below.measure(Kind::Remove, last, last);
    below.most
}

/// Removes and inserts each entry of a full leaf, with the first entry at each place of its line:
/// after each round the least key is removed, and one above all others is inserted.
fn every_turn(subject: &Subject<u64>, most: Most) -> Most {
    let mut filled = probe(subject, most);
    let fits = (1..=KEYS).take_while(|&key| filled.measure(Kind::Insert, key, key)).count() as u64;
    let mut probe = probe(subject, filled.most);
    for key in 1..=fits {
        probe.measure(Kind::Insert, key, key);
    }
    for first in 1..=LINE_WORDS as u64 {
        for key in first..first + fits {
            probe.measure(Kind::Remove, key, key);
            probe.measure(Kind::Insert, key, key);
        }
        probe.measure(Kind::Remove, first, first);
        probe.measure(Kind::Insert, first + fits, first);
    }
    probe.most
}

fn probe(subject: &Subject<u64>, most: Most) -> Probe {
    let medium = Bounded::unbounded(Mapped::anonymous(1 << 20).unwrap());
    let index = (subject.create)(on(medium), ROOT).unwrap();
    let census = check_settled(&*index);
    let by_copy = subject.spec.features.contains(&SHADOWING);
    Probe { index, census, most, by_copy }
}

struct Probe {
    index: Box<Index<u64>>,
    census: TreeStats,
    most: Most,
    /// `true` if a change of a leaf reserves a block.
    by_copy: bool,
}

impl Probe {
    /// Runs an operation. Returns `true` if it changed no structure, and so counts.
    fn measure(&mut self, kind: Kind, key: u64, value: u64) -> bool {
        let pool = self.index.pool();
        let before = pool.usage().blocks;
        let pinned = pool.pin(); // What the operation retires stays in use until it is looked at.
        Bounded::of(pool.medium()).take();
        let there = match kind {
            Kind::Insert => self.index.insert(key, value),
            Kind::Update => self.index.update(key, value),
            Kind::Remove => self.index.remove(key),
        };
        let counts = Bounded::of(pool.medium()).take();
        let changed = pool.usage().blocks.abs_diff(before);
        drop(pinned);
        let census = check_settled(&*self.index);
        let shape = |census: &TreeStats| (census.leaves, census.inner_nodes, census.height);
        let same_shape = shape(&census) == shape(&self.census);
        self.census = census;
        if changed > u64::from(self.by_copy) || !same_shape {
            return false;
        }
        if there.unwrap().is_some() == (kind == Kind::Insert) {
            assert_eq!((counts.lines, counts.fences), (0, 0), "a refused {kind:?} of {key}");
        } else {
            self.most.note(kind, counts);
        }
        true
    }

    /// Asserts that reading costs nothing.
    fn nothing_for_free(&self, key: u64) {
        let index = &self.index;
        Bounded::of(index.pool().medium()).take();
        index.get(key).unwrap();
        index.multi_get(&[key, key + 1], &mut [None; 2]).unwrap();
        let bounds = (Bound::Included(key), Bound::Unbounded);
        let outcome = index.scan(bounds, Order::Ascending, &mut |_, _| ControlFlow::Break(()));
        outcome.unwrap();
        let counts = Bounded::of(index.pool().medium()).take();
        assert_eq!(counts, Counts::default(), "reading stored or flushed");
    }
}
