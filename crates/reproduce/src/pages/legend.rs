//! The legend of the report: statuses, verdicts, the rule, and terms.

use crate::rule::{FLAT, NO_DIFFERENCE, Q_COUNT, Q_TIME, Q_WIDE, REPETITIONS_MIN, Status};
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
        "95 % interval",
        "the interval of a timed ratio: Student's t on the logarithms of the ratios of paired \
         repetitions. The measured number is their geometric mean. Counts and figures of a device \
         model have none: they are the same in each run",
    ),
    (
        "q",
        "the measured ratio over the paper's; the ratio of a relative change is the change plus \
         one, and that of a value is the value itself",
    ),
    (
        "charts",
        "a filled bar or mark is measured here, a hollow diamond is the value of the paper. A solid \
         curve is measured, a dashed one is projected from a device model, a dotted one is \
         published",
    ),
];

/// Returns a share as a percentage.
fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

fn verdicts() -> Table {
    let verdict = |word: &str, mark: Mark, meaning: String| {
        vec![Cell::from(word).marked(mark), Cell::from(meaning)]
    };
    Table {
        caption: "Verdicts on a number: the column `agrees`".into(),
        header: ["verdict", "meaning"].map(Column::words).to_vec(),
        rows: vec![
            verdict("yes", Mark::Good, "the row is as described, and meets the rule".into()),
            verdict(
                "weak",
                Mark::Neutral,
                "the row is scaled, and meets the rule at the size of this run; it does not count \
                 as agreeing"
                    .into(),
            ),
            verdict(
                "no",
                Mark::Bad,
                "the number does not meet the rule, or the row is substituted or not run".into(),
            ),
        ],
    }
}

fn statuses() -> Table {
    let statuses = [
        "structure, sizes, latency, threads and mix are those of the paper, and there is a \
         processor for each thread",
        "fewer records or operations than in the paper; all else is as described",
        "another structure, configuration or device; such a row never agrees",
        "no experiment measures the number; it counts as not agreeing",
    ];
    Table {
        caption: "Statuses of a row".into(),
        header: ["status", "meaning"].map(Column::words).to_vec(),
        rows: Status::ALL
            .iter()
            .zip(statuses)
            .map(|(status, meaning)| vec![status.name().into(), meaning.into()])
            .collect(),
    }
}

fn rule() -> Table {
    let between = |[low, high]: [f64; 2]| format!("{low} to {high}");
    let rule = [
        ("count", format!("q is {}, or the difference is half a unit at most", between(Q_COUNT))),
        ("ratio of counts, value, formula", format!("q is {}", between(Q_COUNT))),
        (
            "ratio of times",
            format!(
                "at least {REPETITIONS_MIN} paired repetitions, a 95 % interval on the paper's side \
                 of one, and q is {}",
                between(Q_TIME)
            ),
        ),
        (
            "ratio of times that the paper has as one",
            format!(
                "the paper's difference is under {}: the interval is within {} of one",
                percent(NO_DIFFERENCE),
                percent(FLAT)
            ),
        ),
        ("99th percentile, `up to`", format!("as a ratio of times, with q {}", between(Q_WIDE))),
        ("words", "the 95 % interval is above, or below, the number".into()),
    ];
    Table {
        caption: "The rule: when a number meets it".into(),
        header: ["number", "meets the rule if"].map(Column::words).to_vec(),
        rows: rule
            .into_iter()
            .map(|(number, meaning)| vec![number.into(), meaning.into()])
            .collect(),
    }
}

/// Returns the section that defines what the report uses.
pub(super) fn section() -> Section {
    let spread = Block::Note(format!(
        "A warning is printed where repetitions differ by more than {}.",
        percent(SPREAD_MAX)
    ));
    let terms = Table {
        caption: "Terms".into(),
        header: ["term", "meaning"].map(Column::words).to_vec(),
        rows: TERMS.iter().map(|&(term, meaning)| vec![term.into(), meaning.into()]).collect(),
    };
    Section {
        id: "legend".into(),
        heading: "How to read this report".into(),
        finding: String::new(),
        blocks: vec![
            Block::Table(statuses()),
            Block::Table(verdicts()),
            Block::Table(rule()),
            spread,
            Block::Table(terms),
        ],
        source: None,
    }
}
