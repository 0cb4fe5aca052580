//! Table 3 of the wB+-Tree study: words, lines and fences of an operation, by the paper's formulas
//! and as counted here.
//!
//! The paper counts the words that an operation and its log store, and the lines and fences of
//! both. It leaves out the commit record, the end of the log, and the lines in place. Here all is
//! counted. So a difference is a term that the paper leaves out, or a change that the page of the
//! design describes.

use super::integer_form;
use bristlecone_lab::Result;
use bristlecone_lab::bench::{counter, counting_medium};
use bristlecone_lab::system::DesignTree;
use bristlecone_pmem::Simulated;
use bristlecone_pmem::medium::Counts;
use bristlecone_trees::ErasedDesign;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng};

/// The mean numbers of words, lines and fences.
pub type Means = [f64; 3];

/// A structure of the table, and the paper's formulas.
struct TableRow {
    name: &'static str,
    /// The number of entries of a leaf before the operation: about 70 % of its slots.
    entries: u64,
    /// The formulas for an insert without a split, an insert with one, and a remove without a
    /// merge. `m` is the number of entries and `n` the number of slots of a node.
    paper: fn(m: f64, n: f64) -> [Means; 3],
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

static ROWS: &[TableRow] = &[
    TableRow {
        name: "btree",
        entries: 21,
        paper: |_, _| [[0.0; 3]; 3], // It is volatile, and not in the table.
    },
    TableRow {
        name: "btree-log",
        entries: 21,
        paper: |m, n| [[4.0 * m + 12.0, m + 3.0, m + 3.0], log_split(m, n, 0.0), [4.0 * m, m, m]],
    },
    TableRow {
        name: "unsorted-leaf-log",
        entries: 21,
        paper: |m, n| [[10.0, 2.0, 2.0], log_split(m, n, 1.0), [12.0, 3.0, 3.0]],
    },
    TableRow {
        name: "unsorted-bitmap-log",
        entries: 21,
        paper: |m, n| [[10.0, 2.0, 2.0], log_split(m, n, -1.0), [4.0, 1.0, 1.0]],
    },
    TableRow { name: "btree-shadow", entries: 21, paper: shadow },
    TableRow { name: "unsorted-leaf-shadow", entries: 21, paper: shadow },
    TableRow { name: "unsorted-bitmap-shadow", entries: 21, paper: shadow },
    TableRow {
        name: "wb-tree",
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
    },
    TableRow {
        name: "wb-tree-bitmap-leaf",
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
    },
    TableRow {
        name: "wb-tree-slot-only",
        entries: 4,
        paper: |_, n| {
            [[3.0, 2.0, 2.0], [n + 9.0 + 7.0, 0.125 * n + 1.75 + 2.375, 2.0], [1.0, 1.0, 1.0]]
        },
    },
];

/// The operations of the table, in the order of its columns.
pub const OPERATIONS: [&str; 3] = ["insert", "insert, one split", "remove"];

/// A structure of the table, with the paper's numbers and those counted here.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Structure {
    /// The name of the structure in the registry.
    pub name: &'static str,
    /// The paper's numbers for each of [`OPERATIONS`], with the counted number of entries. Zeros
    /// for `btree`, which is not in the table.
    pub paper: [Means; 3],
    /// The counted numbers for each of [`OPERATIONS`].
    pub counted: [Means; 3],
}

/// Counts the operations of all structures of the table.
///
/// # Errors
/// A tree failed.
pub fn table() -> Result<Vec<Structure>> {
    let structure = |row: &TableRow| {
        let TableRow { name, entries, .. } = *row;
        let (insert, remove) = in_one_leaf(name, entries)?;
        let counted = [insert, splits(name)?, remove];
        let paper = (row.paper)(entries as f64, places(name)? as f64);
        Ok(Structure { name, paper, counted })
    };
    ROWS.iter().map(structure).collect()
}

/// Returns the node size of a structure of the study, in bytes.
fn node_bytes(name: &str) -> usize {
    if name == "wb-tree-slot-only" { 128 } else { 512 }
}

/// Returns the form of a structure of the study.
pub(crate) fn design(name: &str) -> Result<ErasedDesign<Simulated, u64>> {
    integer_form(name, node_bytes(name))
}

fn fresh(name: &str) -> Result<DesignTree<Simulated, u64>> {
    const POOL_BYTES: u64 = 1 << 20;
    DesignTree::create(&design(name)?, counting_medium(POOL_BYTES)?)
}

/// Returns the number of slots of a leaf: of ascending keys, those before the first split.
pub(crate) fn places(name: &str) -> Result<u64> {
    let tree = fresh(name)?;
    let index = tree.index();
    let mut key = 0;
    while index.check()?.leaves <= 1 {
        key += 1;
        index.insert(key, key)?;
    }
    Ok(key - 1)
}

/// Counts inserts of a key at each position among `entries` others, and removes of that key.
fn in_one_leaf(name: &str, entries: u64) -> Result<(Means, Means)> {
    let (mut inserts, mut removes) = (Vec::new(), Vec::new());
    for place in 0..=entries {
        let tree = fresh(name)?;
        let (index, counter) = (tree.index(), counter(tree.medium()));
        for number in 1..=entries {
            assert!(index.insert(10 * number, 1)?.is_none());
        }
        let _ = counter.take();
        assert!(index.insert(10 * place + 5, 2)?.is_none());
        inserts.push(counter.take());
        assert_eq!(index.remove(10 * place + 5)?, Some(2));
        removes.push(counter.take());
        assert_eq!(index.check()?.leaves, 1);
    }
    Ok((means(&inserts), means(&removes)))
}

/// Counts inserts of random keys that split a leaf and no inner node. All values differ, because a
/// split logs no word that stays the same.
fn splits(name: &str) -> Result<Means> {
    const TREES: u64 = 8;
    const LEAVES_MAX: u64 = 20;
    let mut splits = Vec::new();
    for seed in 0..TREES {
        let tree = fresh(name)?;
        let (index, counter) = (tree.index(), counter(tree.medium()));
        let mut rng = StdRng::seed_from_u64(seed);
        let mut before = index.check()?;
        while before.inner_nodes < 3 && before.leaves < LEAVES_MAX {
            let key: u64 = rng.random();
            let _ = counter.take();
            index.insert(key, !key)?;
            let counts = counter.take();
            let after = index.check()?;
            if after.leaves > before.leaves && after.inner_nodes == before.inner_nodes {
                splits.push(counts);
            }
            before = after;
        }
    }
    Ok(means(&splits))
}

fn means(list: &[Counts]) -> Means {
    let mean =
        |of: fn(&Counts) -> u64| list.iter().map(of).sum::<u64>() as f64 / list.len().max(1) as f64;
    [mean(|counts| counts.words), mean(|counts| counts.lines), mean(|counts| counts.fences)]
}
