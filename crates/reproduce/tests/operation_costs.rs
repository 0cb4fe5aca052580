//! Table 3 of the wB+-Tree study, pinned: a value that moves is a changed budget.
//!
//! ```text
//! cargo test -p bristlecone-reproduce --test operation_costs -- --nocapture
//! ```

#![expect(clippy::print_stdout, reason = "the table is what a user runs this for")]

use bristlecone_reproduce::experiments::operation_costs::{Means, OPERATIONS, Structure, table};

/// Words, lines and fences of each operation, as counted when they were last looked at.
const PINNED: &[(&str, [Means; 3])] = &[
    ("btree", [[24.0, 0.0, 0.0], [67.57, 0.0, 0.0], [22.0, 0.0, 0.0]]),
    ("btree-log", [[121.0, 29.18, 26.0], [139.71, 31.64, 22.54], [111.0, 27.14, 24.0]]),
    ("unsorted-leaf-log", [[16.0, 5.0, 3.0], [241.86, 54.88, 42.97], [6.0, 3.0, 3.0]]),
    ("unsorted-bitmap-log", [[16.0, 5.0, 3.0], [113.53, 25.56, 17.31], [6.0, 3.0, 3.0]]),
    ("btree-shadow", [[49.0, 7.0, 2.0], [103.31, 16.94, 3.62], [47.0, 7.0, 2.0]]),
    ("unsorted-leaf-shadow", [[49.0, 7.0, 2.0], [103.31, 16.94, 3.62], [47.0, 7.0, 2.0]]),
    ("unsorted-bitmap-shadow", [[49.0, 7.0, 2.0], [103.31, 16.94, 3.62], [47.0, 7.0, 2.0]]),
    ("wb-tree", [[6.68, 4.0, 3.0], [57.15, 10.44, 4.0], [4.64, 3.0, 3.0]]),
    ("wb-tree-bitmap-leaf", [[3.0, 2.0, 2.0], [53.63, 10.4, 4.0], [1.0, 1.0, 1.0]]),
    ("wb-tree-slot-only", [[3.0, 2.0, 2.0], [25.79, 7.4, 4.0], [1.0, 1.0, 1.0]]),
];

/// The number of entries of a leaf before the insert; the remove takes the new entry away again.
const ENTRIES: usize = 21;

/// A term that the paper leaves out or counts in another way: its name, words, lines and fences.
type Term = (&'static str, Means);

/// The step after the commit that lets the log go, of which the paper prints nothing.
const LOG_END: Term = ("end of the log", [1.0, 1.0, 1.0]);

/// Returns the mean of `count` over the ranks at which a key is inserted and removed.
fn mean(count: impl Fn(usize) -> usize) -> f64 {
    (0..=ENTRIES).map(count).sum::<usize>() as f64 / (ENTRIES + 1) as f64
}

/// Returns the lines in which a leaf with an array changes: the header's, and those of the entries
/// from rank `first` to `last`. A header has four words.
fn changed_lines(first: usize, last: usize) -> usize {
    let line = |entry: usize| (4 + 2 * entry) / 8;
    let others = (line(first)..=line(last)).filter(|&line| line > 0).count();
    1 + if first > last { 0 } else { others }
}

/// Returns the words of a slot array that change: that of the number, and those of the slots from
/// rank `first` to `last`. The byte before the first slot holds the number.
fn changed_slot_words(first: usize, last: usize) -> usize {
    let word = |slot: usize| (1 + slot) / 8;
    let others = (word(first)..=word(last)).filter(|&word| word > 0).count();
    1 + if first > last { 0 } else { others }
}

/// Returns the terms by which a count of an insert (`is_insert`) or a remove, without a split or a
/// merge, differs from the paper's.
fn terms(name: &str, is_insert: bool) -> Vec<Term> {
    let m = ENTRIES as f64;
    let written_back = |lines| ("write-back of the words in place", [0.0, lines, 1.0]);
    let seals = |records| ("seal of each record", [records, 0.0, 0.0]);
    // A shadowed leaf that is the only one has no left neighbour, so one word leads to the copy.
    let one_leaf = [
        ("level and latch in the header of the copy", [2.0, 0.25, 0.0]),
        ("no log and no left neighbour in a tree of one leaf", [-5.0, -1.0, -1.0]),
        ("no record of an allocation", [-1.0, -1.0, -1.0]),
        ("fence after the copy", [0.0, 0.0, 1.0]),
        ("pointer in place", [0.0, 1.0, 1.0]),
    ];
    match (name, is_insert) {
        ("btree-log", true) => {
            let lines = mean(|rank| changed_lines(rank, ENTRIES));
            vec![seals(m + 3.0), written_back(lines), LOG_END]
        }
        ("btree-log", false) => {
            let lines = mean(|rank| changed_lines(rank, ENTRIES - 1));
            let count = ("record of the count", [4.0, 1.0, 1.0]);
            vec![count, seals(m + 1.0), written_back(lines), LOG_END]
        }
        ("unsorted-leaf-log" | "unsorted-bitmap-log", true) => vec![
            ("old value and seal in the records of both new words", [4.0, 0.0, 0.0]),
            ("one fence for all records", [0.0, 0.0, -1.0]),
            seals(1.0),
            written_back(2.0),
            LOG_END,
        ],
        ("unsorted-leaf-log", false) => {
            let last = ("the last entry goes, so none moves", [-8.0, -2.0, -2.0]);
            vec![last, seals(1.0), written_back(1.0), LOG_END]
        }
        ("unsorted-bitmap-log", false) => vec![seals(1.0), written_back(1.0), LOG_END],
        (name, true) if name.ends_with("-shadow") => one_leaf.to_vec(),
        (name, false) if name.ends_with("-shadow") => {
            let more = ("an entry more is left", [2.0, 0.25, 0.0]);
            one_leaf.into_iter().chain([more, ("whole lines", [0.0, 0.25, 0.0])]).collect()
        }
        ("wb-tree", true) => {
            let words = mean(|rank| changed_slot_words(rank, ENTRIES));
            vec![
                ("whole words of slots", [words - (0.125 * m + 0.25), 0.0, 0.0]),
                ("whole lines of slots and entry", [0.0, 1.0 - (m / 64.0 + 1.0 / 32.0), 0.0]),
            ]
        }
        ("wb-tree", false) => {
            let words = mean(|rank| changed_slot_words(rank, ENTRIES - 1));
            vec![
                ("whole words of slots", [words - 0.125 * m, 0.0, 0.0]),
                ("whole lines of slots", [0.0, 1.0 - m / 64.0, 0.0]),
            ]
        }
        _ => Vec::new(),
    }
}

/// Of an insert and a remove, each difference between the paper and the count has a name.
#[test]
fn counts_are_those_of_the_paper_and_named_terms() {
    let mut wrong = Vec::new();
    for structure in table().unwrap().iter().filter(|row| row.paper[0][0] > 0.0) {
        for (at, is_insert) in [(0, true), (2, false)] {
            let terms = terms(structure.name, is_insert);
            for (unit, counted) in structure.counted[at].into_iter().enumerate() {
                let named: f64 = terms.iter().map(|(_, counts)| counts[unit]).sum();
                let expected = structure.paper[at][unit] + named;
                if (counted - expected).abs() > 1e-9 {
                    wrong.push(format!(
                        "{} {}, unit {unit}: {counted}, not {expected} with {terms:?}",
                        structure.name, OPERATIONS[at]
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn counts_are_those_that_the_pages_explain() {
    println!(
        "| structure | operation | words: paper | here | lines: paper | here | fences: paper | here |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let table = table().unwrap();
    assert_eq!(table.len(), PINNED.len());
    let mut moved = Vec::new();
    for (Structure { name, paper, counted, .. }, (pinned_name, pinned)) in table.iter().zip(PINNED)
    {
        assert_eq!(name, pinned_name);
        for (number, what) in OPERATIONS.into_iter().enumerate() {
            let here = counted[number];
            let pairs: Vec<_> = paper[number]
                .iter()
                .zip(here)
                .map(|(paper, here)| format!("{paper:.2} | {here:.2}"))
                .collect();
            println!("| `{name}` | {what} | {} |", pairs.join(" | "));
            let expected = pinned[number];
            if here.iter().zip(expected).any(|(here, expected)| (here - expected).abs() > 0.006) {
                moved.push(format!("{name} {what}: {here:.2?}, pinned {expected:?}"));
            }
        }
    }
    assert!(moved.is_empty(), "{}", moved.join("\n"));
}
