//! The legend of the report: verdicts and terms.

use crate::claims::SIZE_FACTOR;
use crate::verdict::SPREAD_MAX;
use bristlecone_report::page::{Block, Section};
use bristlecone_report::table::{Cell, Column, Mark, Table};

const TERMS: &[(&str, &str)] = &[
    ("line", "a cache line: 64 B, the unit in which a processor writes back to memory"),
    ("flush", "an instruction that starts to write a line back; `lines` counts flushed lines"),
    ("fence", "an instruction that waits until the flushed lines are durable"),
    ("word", "8 B, the greatest unit that the processor stores at once"),
    (
        "media block",
        "256 B, the unit in which Optane memory writes its media. Its buffer merges lines of one \
         block. Write amplification of the device: bytes written to the media for each byte that \
         reaches the device",
    ),
    (
        "CLI, XBI",
        "bytes written for each byte that the user changes: CLI counts flushed lines, XBI counts \
         writes of the media",
    ),
    ("system", "the design that the claim is about, such as wo-tree"),
    (
        "baseline",
        "the design that the system is compared with, in the column `compared with`. A dashed line \
         in a chart marks the value at which both are equal",
    ),
    (
        "relative change",
        "the value of the system over that of the baseline, less one: -0.2 is a fifth less",
    ),
    ("factor", "the quotient of two values: 1 means no difference"),
    ("count", "kind of a claim: flushes, fences or bytes are counted, equal on every machine"),
    ("time", "kind of a claim: a quotient of times of one run, or of one device model"),
    ("formula", "kind of a claim: counts are compared with a formula of the paper"),
    (
        "device model",
        "a model of memory that this machine lacks. It counts virtual time, and is equal on every \
         machine",
    ),
    (
        "spread of repetitions",
        "the difference between the fastest and the slowest repetition of a timed run, relative to \
         their median",
    ),
    (
        "charts",
        "a filled bar or mark is measured here, a hollow diamond is the value of the paper. A solid \
         curve is measured, a dashed one is projected from a device model, a dotted one is \
         published",
    ),
];

/// Returns the section that defines what the report uses.
pub(super) fn section() -> Section {
    let verdict = |word: &str, mark: Mark, meaning: String| {
        vec![Cell::from(word).marked(mark), Cell::from(meaning)]
    };
    let verdicts = Table {
        caption: "Verdicts on a number: the column `agrees`".into(),
        header: ["verdict", "meaning"].map(Column::words).to_vec(),
        rows: vec![
            verdict(
                "yes",
                Mark::Good,
                format!(
                    "the direction agrees (less or more than the baseline), and the difference is \
                     at most {SIZE_FACTOR} times as great or as small as the paper's; or the value \
                     is within the tolerance or the range of the claim. Two differences under 10 % \
                     agree, because repeated runs differ by as much"
                ),
            ),
            verdict(
                "weak",
                Mark::Neutral,
                format!(
                    "only the direction agrees: the difference is less than half or more than \
                     {SIZE_FACTOR} times that of the paper, the value is outside the paper's range \
                     on the same side of 1, or repetitions differ by more than {:.0} %",
                    SPREAD_MAX * 100.0
                ),
            ),
            verdict(
                "no",
                Mark::Bad,
                "the direction differs, the value is not within the tolerance, or it could not be \
                 measured"
                    .into(),
            ),
        ],
    };
    let terms = Table {
        caption: "Terms".into(),
        header: ["term", "meaning"].map(Column::words).to_vec(),
        rows: TERMS.iter().map(|&(term, meaning)| vec![term.into(), meaning.into()]).collect(),
    };
    Section {
        id: "legend".into(),
        heading: "How to read this report".into(),
        finding: String::new(),
        blocks: vec![Block::Table(verdicts), Block::Table(terms)],
        source: None,
    }
}
