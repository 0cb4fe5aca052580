//! Table 3 of the wB+-Tree study: words, lines and fences of an operation, by the paper's formulas and as
//! counted here.
//!
//! ```text
//! cargo test -p bristlecone-trees --test table3 -- --nocapture
//! ```
//!
//! It is a process of its own: shadowing changes leaves in place while many of its former blocks wait for
//! readers, be they other tests'.
//!
//! The paper counts the words that an operation and its log store, and the lines and fences of both, but
//! neither the commit record nor the end of the log nor the lines in place. Here all is counted. So a
//! difference is a term that the paper leaves out, or a change that the design's page tells of; each value
//! is pinned, and one that moves is a changed budget.

#![expect(clippy::print_stdout, reason = "the table is what a user runs this for")]

use bristlecone_pmem::medium::{Count, Counts};
use bristlecone_pmem::{Mapped, Pool};
use bristlecone_trees::designs::{
    BTree, BTreeLog, BTreeShadow, UnsortedBitmapLog, UnsortedBitmapShadow, UnsortedLeafLog,
    UnsortedLeafShadow, WbTree, WbTreeBitmapLeaf, WbTreeSlotOnly,
};
use bristlecone_trees::{Design, PmIndex};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng};
use std::sync::Arc;

/// Words, lines and fences, on average.
type Means = [f64; 3];

/// A structure of the table.
struct Row {
    survey: fn(entries: u64) -> Surveyed,
    /// Entries of a leaf before the operation; about 70 % of its places.
    entries: u64,
    /// Insert without a split, insert with one, remove without a merge; of `m`, the entries, and `n`, the
    /// places of a node.
    paper: fn(m: f64, n: f64) -> [Means; 3],
    /// The same, counted.
    counted: [Means; 3],
}

const fn log_split(m: f64, n: f64, moved: f64) -> Means {
    let l = 1.0;
    [
        l * (4.0 * n + 15.0) + moved * n + 4.0 * m + 19.0,
        l * (0.375 * n + 3.25) + moved * 0.25 * n + m + 4.125,
        l * (0.25 * n + 2.0) + moved * 0.25 * n + m + 5.0,
    ]
}

const fn shadow(m: f64, n: f64) -> [Means; 3] {
    let split = [2.0 * n + 5.0 + 2.0 * m + 12.0, 0.25 * n + 1.5 + 0.25 * m + 2.625, 2.0];
    [[2.0 * m + 11.0, 0.25 * m + 2.5, 2.0], split, [2.0 * m + 7.0, 0.25 * m + 2.0, 2.0]]
}

const ROWS: &[Row] = &[
    Row {
        survey: survey::<BTree<512>>,
        entries: 21,
        paper: |_, _| [[0.0; 3]; 3], // It is volatile, and not in the table.
        counted: [[24.0, 0.0, 0.0], [65.89, 0.0, 0.0], [22.0, 0.0, 0.0]],
    },
    Row {
        survey: survey::<BTreeLog<512>>,
        entries: 21,
        paper: |m, n| [[4.0 * m + 12.0, m + 3.0, m + 3.0], log_split(m, n, 0.0), [4.0 * m, m, m]],
        counted: [[159.5, 31.18, 27.0], [248.2, 51.22, 37.57], [146.5, 29.14, 25.0]],
    },
    Row {
        survey: survey::<UnsortedLeafLog<512>>,
        entries: 21,
        paper: |m, n| [[10.0, 2.0, 2.0], log_split(m, n, 1.0), [12.0, 3.0, 3.0]],
        counted: [[23.0, 7.0, 4.0], [204.64, 45.03, 28.91], [10.0, 5.0, 4.0]],
    },
    Row {
        survey: survey::<UnsortedBitmapLog<512>>,
        entries: 21,
        paper: |m, n| [[10.0, 2.0, 2.0], log_split(m, n, -1.0), [4.0, 1.0, 1.0]],
        counted: [[23.0, 7.0, 4.0], [157.93, 35.28, 21.53], [10.0, 5.0, 4.0]],
    },
    Row {
        survey: survey::<BTreeShadow<512>>,
        entries: 21,
        paper: shadow,
        counted: [[49.0, 7.0, 2.0], [146.12, 25.54, 7.36], [47.0, 7.0, 2.0]],
    },
    Row {
        survey: survey::<UnsortedLeafShadow<512>>,
        entries: 21,
        paper: shadow,
        counted: [[49.0, 7.0, 2.0], [146.12, 25.54, 7.36], [47.0, 7.0, 2.0]],
    },
    Row {
        survey: survey::<UnsortedBitmapShadow<512>>,
        entries: 21,
        paper: shadow,
        counted: [[49.0, 7.0, 2.0], [146.12, 25.54, 7.36], [47.0, 7.0, 2.0]],
    },
    Row {
        survey: survey::<WbTree<512>>,
        entries: 21,
        paper: |m, n| {
            [
                [0.125 * m + 4.25, m / 64.0 + 3.0 + 1.0 / 32.0, 3.0],
                [
                    1.25 * n + 9.75 + 0.125 * m + 8.25,
                    19.0 / 128.0 * n + 1.0 + 105.0 / 128.0 + m / 64.0 + 3.0 + 13.0 / 32.0,
                    3.0,
                ],
                [0.125 * m + 2.0, m / 64.0 + 2.0, 3.0],
            ]
        },
        counted: [[6.68, 4.0, 3.0], [59.86, 14.0, 7.0], [4.64, 3.0, 3.0]],
    },
    Row {
        survey: survey::<WbTreeBitmapLeaf<512>>,
        entries: 21,
        paper: |m, n| {
            [
                [3.0, 2.0, 2.0],
                [
                    1.25 * n + 9.75 - 0.25 * n + 0.125 * m + 7.5,
                    16.0 / 128.0 * n + 1.0 + 105.0 / 128.0 + m / 64.0 + 3.0 + 43.0 / 128.0,
                    3.0,
                ],
                [1.0, 1.0, 1.0],
            ]
        },
        counted: [[3.0, 2.0, 2.0], [53.87, 12.0, 6.0], [1.0, 1.0, 1.0]],
    },
    Row {
        survey: survey::<WbTreeSlotOnly<128>>,
        entries: 4,
        paper: |_, n| {
            [[3.0, 2.0, 2.0], [n + 9.0 + 7.0, 0.125 * n + 1.75 + 2.375, 2.0], [1.0, 1.0, 1.0]]
        },
        counted: [[3.0, 2.0, 2.0], [25.0, 9.0, 6.0], [1.0, 1.0, 1.0]],
    },
];

/// What was counted, and the places of a leaf.
struct Surveyed {
    name: &'static str,
    means: [Means; 3],
    places: u64,
}

fn fresh<D: Design>() -> D::Index<Count<Mapped>, u64> {
    let medium = Count::new(Mapped::anonymous(1 << 20).unwrap());
    D::Index::create(Arc::new(Pool::create(medium).unwrap()), "table").unwrap()
}

/// Counts the operations of a row, and finds how many places a leaf has.
fn survey<D: Design>(entries: u64) -> Surveyed {
    let (insert, remove) = in_one_leaf::<D>(entries);
    Surveyed { name: D::SPEC.name, means: [insert, splits::<D>(), remove], places: places::<D>() }
}

/// Keys that ascend until the first leaf is full.
fn places<D: Design>() -> u64 {
    let index = fresh::<D>();
    let splits = |&key: &u64| {
        index.insert(key, key).unwrap();
        index.check().unwrap().leaves > 1
    };
    (1..1000).find(splits).expect("a leaf is full at some time") - 1
}

/// Inserts of a key at each place among `entries` others, and its removes.
fn in_one_leaf<D: Design>(entries: u64) -> (Means, Means) {
    let (mut inserts, mut removes) = (Vec::new(), Vec::new());
    for place in 0..=entries {
        let index = fresh::<D>();
        (1..=entries).for_each(|number| assert!(index.insert(10 * number, 1).unwrap().is_none()));
        let medium = index.pool().medium();
        let _ = medium.take();
        assert!(index.insert(10 * place + 5, 2).unwrap().is_none());
        inserts.push(medium.take());
        assert_eq!(index.remove(10 * place + 5).unwrap(), Some(2));
        removes.push(medium.take());
        assert_eq!(index.check().unwrap().leaves, 1);
    }
    (means(&inserts), means(&removes))
}

/// Inserts of random keys that split a leaf and nothing above.
fn splits<D: Design>() -> Means {
    let mut splits = Vec::new();
    for seed in 0..8 {
        let index = fresh::<D>();
        let mut rng = StdRng::seed_from_u64(seed);
        let mut before = index.check().unwrap();
        while before.inner_nodes < 3 && before.leaves < 20 {
            let _ = index.pool().medium().take();
            index.insert(rng.random(), 1).unwrap();
            let counts = index.pool().medium().take();
            let after = index.check().unwrap();
            if after.leaves > before.leaves && after.inner_nodes == before.inner_nodes {
                splits.push(counts);
            }
            before = after;
        }
    }
    means(&splits)
}

fn means(list: &[Counts]) -> Means {
    let mean =
        |of: fn(&Counts) -> u64| list.iter().map(of).sum::<u64>() as f64 / list.len().max(1) as f64;
    [mean(|counts| counts.words), mean(|counts| counts.lines), mean(|counts| counts.fences)]
}

#[test]
fn counts_are_those_that_the_pages_explain() {
    println!(
        "| structure | operation | words: paper | here | lines: paper | here | fences: paper | here |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let mut moved = Vec::new();
    for row in ROWS {
        let found = (row.survey)(row.entries);
        let paper = (row.paper)(row.entries as f64, found.places as f64);
        for (number, what) in ["insert", "insert, one split", "remove"].into_iter().enumerate() {
            let (paper, here) = (paper[number], found.means[number]);
            let pairs: Vec<_> = paper
                .iter()
                .zip(here)
                .map(|(paper, here)| format!("{paper:.2} | {here:.2}"))
                .collect();
            println!("| `{}` | {what} | {} |", found.name, pairs.join(" | "));
            let expected = row.counted[number];
            if here.iter().zip(expected).any(|(here, expected)| (here - expected).abs() > 0.006) {
                moved.push(format!("{} {what}: {here:.2?}, pinned {expected:?}", found.name));
            }
        }
    }
    assert!(moved.is_empty(), "{}", moved.join("\n"));
}
