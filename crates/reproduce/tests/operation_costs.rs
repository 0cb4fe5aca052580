//! Table 3 of the wB+-Tree study, pinned: a value that moves is a changed budget.
//!
//! ```text
//! cargo test -p bristlecone-reproduce --test operation_costs -- --nocapture
//! ```

#![expect(clippy::print_stdout, reason = "the table is what a user runs this for")]

use bristlecone_reproduce::experiments::operation_costs::{Means, OPERATIONS, Structure, table};

/// Words, lines and fences of each operation, as counted when they were last looked at.
const PINNED: &[(&str, [Means; 3])] = &[
    ("btree", [[24.0, 0.0, 0.0], [80.27, 0.0, 0.0], [21.0, 0.0, 0.0]]),
    ("btree-log", [[121.0, 29.36, 26.0], [276.75, 56.74, 37.75], [106.0, 26.43, 23.0]]),
    ("unsorted-leaf-log", [[12.0, 5.0, 4.0], [313.45, 65.97, 45.09], [15.52, 5.71, 4.9]]),
    ("unsorted-bitmap-log", [[12.0, 5.0, 4.0], [240.61, 48.43, 30.52], [6.0, 3.0, 3.0]]),
    ("btree-shadow", [[57.0, 11.0, 4.0], [126.39, 21.89, 3.86], [53.0, 11.0, 4.0]]),
    ("unsorted-leaf-shadow", [[57.0, 11.0, 4.0], [126.39, 21.89, 3.86], [53.0, 11.0, 4.0]]),
    ("unsorted-bitmap-shadow", [[57.0, 11.0, 4.0], [126.39, 21.89, 3.86], [53.0, 11.0, 4.0]]),
    ("wb-tree", [[6.68, 4.0, 3.0], [56.41, 10.47, 4.0], [4.67, 3.0, 3.0]]),
    ("wb-tree-bitmap-leaf", [[3.0, 2.0, 2.0], [52.99, 10.48, 4.0], [1.0, 1.0, 1.0]]),
    ("wb-tree-slot-only", [[3.0, 2.0, 2.0], [25.92, 7.46, 4.0], [1.0, 1.0, 1.0]]),
];

/// The paper's events that differ from its formulas by more than the rule allows: the formulas have
/// parts of the lines of slots, here they are whole.
const BEYOND: [&str; 3] = [
    "wb-tree, insert: lines",
    "wb-tree, remove: lines",
    "wb-tree-slot-only, insert, one split: lines",
];

/// The number of entries of a leaf before the insert or the remove.
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
/// from rank `first` to `last`. A header has two words.
fn changed_lines(first: usize, last: usize) -> usize {
    let line = |entry: usize| (2 + 2 * entry) / 8;
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
    let of_removes =
        |count: &dyn Fn(usize) -> usize| (0..ENTRIES).map(count).sum::<usize>() as f64 / m;
    let written_back = |lines| ("write-back of the words in place", [0.0, lines, 1.0]);
    let seals = |records| ("seal of each record", [records, 0.0, 0.0]);
    let copied = [("check and seal of the log", [3.0, 0.0, 0.0]), written_back(2.0), LOG_END];
    match (name, is_insert) {
        ("btree-log", true) => {
            let lines = mean(|rank| changed_lines(rank, ENTRIES));
            vec![seals(m + 3.0), written_back(lines), LOG_END]
        }
        ("btree-log", false) => {
            let lines = of_removes(&|rank| changed_lines(rank, ENTRIES - 2));
            vec![seals(m), written_back(lines), LOG_END]
        }
        ("unsorted-leaf-log" | "unsorted-bitmap-log", true) => {
            vec![seals(1.0), written_back(2.0), LOG_END]
        }
        ("unsorted-leaf-log", false) => {
            let lines =
                of_removes(&|rank| if rank + 1 < ENTRIES { changed_lines(rank, rank) } else { 1 });
            let last = ("the last entry goes in one of m cases", [-8.0 / m, -2.0 / m, -2.0 / m]);
            vec![last, seals(3.0 - 2.0 / m), written_back(lines), LOG_END]
        }
        ("unsorted-bitmap-log", false) => vec![seals(1.0), written_back(1.0), LOG_END],
        (name, is_insert) if name.ends_with("-shadow") => {
            let part = if is_insert { 0.25 } else { 0.75 };
            copied.into_iter().chain([("whole lines of the copy", [0.0, part, 0.0])]).collect()
        }
        ("wb-tree", true) => {
            let words = mean(|rank| changed_slot_words(rank, ENTRIES));
            vec![
                ("whole words of slots", [words - (0.125 * m + 0.25), 0.0, 0.0]),
                ("whole lines of slots and entry", [0.0, 1.0 - (m / 64.0 + 1.0 / 32.0), 0.0]),
            ]
        }
        ("wb-tree", false) => {
            let words = of_removes(&|rank| changed_slot_words(rank, ENTRIES - 2));
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

/// The paper's events agree with its formulas within 15 % or half a unit.
#[test]
fn events_of_the_paper_are_those_of_its_formulas() {
    let mut beyond = Vec::new();
    for structure in table().unwrap().iter().filter(|row| row.paper[0][0] > 0.0) {
        for (at, operation) in OPERATIONS.into_iter().enumerate() {
            for (unit, name) in ["words", "lines", "fences"].into_iter().enumerate() {
                let (paper, printed) = (structure.paper[at][unit], structure.printed[at][unit]);
                if (printed - paper).abs() > (0.15 * paper).max(0.5) {
                    beyond.push(format!("{}, {operation}: {name}", structure.name));
                }
            }
            let Structure { name, paper, printed, terms, .. } = &structure;
            let (paper, printed, terms) = (paper[at], printed[at], &terms[at]);
            println!("{name}, {operation}: {printed:.2?} for {paper:.2?}, and {terms:.2?}");
        }
    }
    assert_eq!(beyond, BEYOND);
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
