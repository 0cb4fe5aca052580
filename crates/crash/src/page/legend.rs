//! The legend of the page: the terms, and the letters of a trace.

use bristlecone_report::page::{Block, Section};
use bristlecone_report::table::{Column, Table};

const TERMS: &[(&str, &str)] = &[
    ("scenario", "a setup, and the operations under test. A name ends in @N if N threads run them"),
    (
        "crash image",
        "contents of the pool that a crash can leave. The column `images` counts all that the \
         scenario can leave, at each moment of each operation",
    ),
    (
        "recovery",
        "a run of the code that opens the pool after a crash, and the check of what it finds. One \
         recovery covers all images that it cannot tell apart, so there are fewer recoveries than \
         images",
    ),
    (
        "px86",
        "the persistence model of x86 processors: the stores to one line of 64 B become durable \
         in their order, different lines in any order",
    ),
    (
        "word",
        "a stricter persistence model: each word of 8 B becomes durable by itself, in any order, \
         for designs that do not rely on the order within a line",
    ),
    ("flushes, fences", "the number of calls in the operations under test"),
    ("schedule", "an order in which threads take turns; a seed determines it"),
    (
        "mutant",
        "the design without one of its flushes, fences or version checks, or with two ordered \
         stores exchanged. A scenario kills the mutant if it detects the change",
    ),
    (
        "published defect",
        "an error in a paper, or in its authors' code, that is injected here into the design",
    ),
];

const LETTERS: &[(&str, &str)] = &[
    ("begin, acknowledge", "an operation begins; its method returns, so it must survive a crash"),
    ("W 0x40 0x1 -> 0x2", "a store of data: the word at offset 0x40 changes from 0x1 to 0x2"),
    ("C", "a commit store: the store that makes a change visible to recovery"),
    ("R", "a store to a latch or to a version, which recovery ignores"),
    ("N", "a fill: a bulk store of new words past the cache, durable after the next fence"),
    ("F", "a flush: starts to write a line back to memory"),
    ("|", "a fence: waits until all that its thread flushed or filled is durable"),
    ("LOST", "the crash image lacks this store: it was not durable at the crash"),
    ("crash", "the moment of the crash. After it the recovery begins"),
    ("1, 2, ..", "before a line: the thread, where there are several"),
];

/// Returns the section that defines what the page uses.
pub(super) fn section() -> Section {
    let table = |caption: &str, first: &str, rows: &[(&str, &str)]| Table {
        caption: caption.into(),
        header: [first, "meaning"].map(Column::words).to_vec(),
        rows: rows.iter().map(|&(term, meaning)| vec![term.into(), meaning.into()]).collect(),
    };
    Section {
        id: "legend".into(),
        heading: "How to read this page".into(),
        finding: String::new(),
        blocks: vec![
            Block::Table(table("Terms", "term", TERMS)),
            Block::Table(table(
                "Lines of a drawing, from the first event to the crash",
                "line",
                LETTERS,
            )),
        ],
        source: None,
    }
}
