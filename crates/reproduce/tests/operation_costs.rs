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
    ("btree-log", [[121.0, 29.18, 26.0], [124.64, 28.62, 19.53], [111.0, 27.14, 24.0]]),
    ("unsorted-leaf-log", [[16.0, 5.0, 3.0], [175.72, 41.65, 29.74], [6.0, 3.0, 3.0]]),
    ("unsorted-bitmap-log", [[16.0, 5.0, 3.0], [111.55, 25.17, 16.91], [6.0, 3.0, 3.0]]),
    ("btree-shadow", [[49.0, 7.0, 2.0], [146.12, 25.54, 7.36], [47.0, 7.0, 2.0]]),
    ("unsorted-leaf-shadow", [[49.0, 7.0, 2.0], [146.12, 25.54, 7.36], [47.0, 7.0, 2.0]]),
    ("unsorted-bitmap-shadow", [[49.0, 7.0, 2.0], [146.12, 25.54, 7.36], [47.0, 7.0, 2.0]]),
    ("wb-tree", [[6.68, 4.0, 3.0], [57.15, 10.44, 4.0], [4.64, 3.0, 3.0]]),
    ("wb-tree-bitmap-leaf", [[3.0, 2.0, 2.0], [53.63, 10.4, 4.0], [1.0, 1.0, 1.0]]),
    ("wb-tree-slot-only", [[3.0, 2.0, 2.0], [22.79, 7.4, 4.0], [1.0, 1.0, 1.0]]),
];

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
