//! Table 3 of the wB+-Tree study: words, lines and fences of an operation, by the paper's formulas
//! and as counted here.
//!
//! Events are counted twice. The paper's are the words that an operation and its log store, and the
//! lines and fences of both: it leaves out the end of the log and the lines in place, and counts a
//! part of a line as its bytes. All events are those and [named terms](Term). The source file that
//! makes an event tells what it belongs to.

use super::integer_form;
use bristlecone_lab::Result;
use bristlecone_lab::bench::{counter, counting_medium};
use bristlecone_lab::system::DesignTree;
use bristlecone_pmem::Simulated;
use bristlecone_pmem::medium::Counts;
use bristlecone_trees::ErasedDesign;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng};
use std::collections::BTreeMap;

/// The mean numbers of words, lines and fences.
pub type Means = [f64; 3];

/// A structure of the table, and the paper's formulas.
struct TableRow {
    name: &'static str,
    /// The number of entries of a leaf, and of the node above, before the operation: about 70 % of
    /// their slots.
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
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Structure {
    /// The name of the structure in the registry.
    pub name: &'static str,
    /// The paper's numbers for each of [`OPERATIONS`], with the counted number of entries. Zeros
    /// for `btree`, which is not in the table.
    pub paper: [Means; 3],
    /// The events of the paper for each of [`OPERATIONS`].
    pub printed: [Means; 3],
    /// The terms by which all events differ from those, for each of [`OPERATIONS`].
    pub terms: [BTreeMap<Term, Means>; 3],
    /// All events for each of [`OPERATIONS`].
    pub counted: [Means; 3],
}

/// The name of events that the paper leaves out or counts in another way.
pub type Term = &'static str;

/// The mean events of an operation.
#[derive(Clone, Debug, Default)]
struct Events {
    printed: Means,
    terms: BTreeMap<Term, Means>,
    operations: u64,
}

/// Counts the operations of all structures of the table.
///
/// # Errors
/// A tree failed.
///
/// # Panics
/// A source file made events that are neither the paper's nor a term.
pub fn table() -> Result<Vec<Structure>> {
    let structure = |row: &TableRow| {
        let TableRow { name, entries, .. } = *row;
        let slots = places(name)?;
        let (insert, remove) = in_one_leaf(name, entries, slots)?;
        let events = [insert, splits(name, entries)?, remove].map(Events::mean);
        let paper = (row.paper)(entries as f64, slots as f64);
        let printed = events.each_ref().map(|events| events.printed);
        let counted = events.each_ref().map(Events::all);
        Ok(Structure { name, paper, printed, counted, terms: events.map(|events| events.terms) })
    };
    ROWS.iter().map(structure).collect()
}

impl Events {
    /// Adds the events of an operation of the structure `name`, by the files that made them.
    ///
    /// # Panics
    /// A file is not known.
    fn add(&mut self, name: &str, by_file: &BTreeMap<&'static str, Counts>) {
        self.operations += 1;
        for (path, counts) in by_file {
            let [words, lines, fences] = totals(counts);
            let file = path.rsplit_once("src/").map_or(*path, |(_, file)| file);
            let (term, left_out): (Term, Means) = match file {
                "log/undo.rs" => ("seal of each record", [lines, 0.0, 0.0]),
                "log/redo.rs" => ("check and seal of a log line", [3.0 * lines, 0.0, 0.0]),
                // Its other words are those that a redo log stores in place.
                "log/apply.rs" => ("words written back, end of the log", [1.0, lines, fences]),
                // The paper's three fences of a tree with slots are those of the new nodes, of the
                // log and of the words in place; without slots it has two.
                "all_pm/protocol.rs" if fences > 0.0 => {
                    let extra = f64::from(name == "wb-tree-slot-only");
                    ("fence between new nodes and their log", [0.0, 0.0, extra])
                }
                "all_pm/protocol.rs" => {
                    ("whole lines of new nodes", [0.0, lines - words / 8.0, 0.0])
                }
                "log/undo/fresh.rs" | "log/undo/allocated.rs" | "all_pm/copy_on_write.rs" => {
                    ("", [0.0; 3])
                }
                _ if file.starts_with("node/") || file.starts_with("all_pm/words") => {
                    ("", [0.0; 3])
                }
                _ => panic!("events of {path} belong to nothing"),
            };
            for (unit, all) in [words, lines, fences].into_iter().enumerate() {
                self.printed[unit] += all - left_out[unit];
            }
            if !term.is_empty() {
                let of_term = self.terms.entry(term).or_default();
                for (total, of_file) in of_term.iter_mut().zip(left_out) {
                    *total += of_file;
                }
            }
        }
    }

    /// Returns the means.
    fn mean(mut self) -> Self {
        let operations = self.operations.max(1) as f64;
        for means in self.terms.values_mut().chain([&mut self.printed]) {
            for total in means {
                *total /= operations;
            }
        }
        self
    }

    /// Returns all events: those of the paper, and the terms.
    fn all(&self) -> Means {
        let sum = |unit: usize| self.terms.values().map(|term| term[unit]).sum::<f64>();
        [0, 1, 2].map(|unit| self.printed[unit] + sum(unit))
    }
}

fn totals(counts: &Counts) -> Means {
    [counts.words, counts.lines, counts.fences].map(|count| count as f64)
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

/// Counts inserts of a key at each rank of a leaf with `entries` entries, and removes of each of
/// its keys. The leaf has a left neighbour.
fn in_one_leaf(name: &str, entries: u64, slots: u64) -> Result<(Events, Events)> {
    // The lower half of the first leaf that splits. The first key of the upper one goes again, so
    // that a key fits between the separator and the next.
    let first = slots.div_ceil(2) + 1;
    let filled = || -> Result<_> {
        let tree = fresh(name)?;
        let index = tree.index();
        for number in 1..first + entries {
            assert!(index.insert(10 * number, 1)?.is_none());
        }
        assert_eq!(index.remove(10 * first)?, Some(1));
        assert!(index.insert(10 * (first + entries), 1)?.is_none());
        assert_eq!(index.check()?.leaves, 2);
        let _ = counter(tree.medium()).take();
        Ok(tree)
    };
    let (mut inserts, mut removes) = (Events::default(), Events::default());
    for place in first..=first + entries {
        let tree = filled()?;
        assert!(tree.index().insert(10 * place + 5, 2)?.is_none());
        inserts.add(name, &counter(tree.medium()).take_by_file());
        if place > first {
            let tree = filled()?;
            assert_eq!(tree.index().remove(10 * place)?, Some(1));
            removes.add(name, &counter(tree.medium()).take_by_file());
            assert_eq!(tree.index().check()?.leaves, 2);
        }
    }
    Ok((inserts, removes))
}

/// Counts inserts of random keys that split a leaf and no inner node, under a root with about
/// `entries` separators. All values differ, because a split logs no word that stays the same.
fn splits(name: &str, entries: u64) -> Result<Events> {
    const TREES: u64 = 8;
    let about = entries - entries / 4..=entries + entries / 4;
    let mut splits = Events::default();
    for seed in 0..TREES {
        let tree = fresh(name)?;
        let (index, counter) = (tree.index(), counter(tree.medium()));
        let mut rng = StdRng::seed_from_u64(seed);
        let mut before = index.check()?;
        while before.inner_nodes < 2 && before.leaves <= about.end() + 1 {
            let key: u64 = rng.random();
            let _ = counter.take();
            index.insert(key, !key)?;
            let counts = counter.take_by_file();
            let after = index.check()?;
            let is_split = after.leaves > before.leaves && after.inner_nodes == before.inner_nodes;
            if is_split && about.contains(&(before.leaves - 1)) {
                splits.add(name, &counts);
            }
            before = after;
        }
    }
    Ok(splits)
}
