//! What a run of claims comes to: a row for each number, as programs read it.

use crate::claims::{Claim, Doc, Kind, Paper};
use crate::papers::{Finding, Found};
use serde::Serialize;

/// A number of a claim, beside what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The claim's name.
    pub claim: String,
    /// The paper.
    pub doc: Doc,
    /// Where in it.
    pub figure: String,
    /// The system that it is about.
    pub system: String,
    /// What it is compared with; empty where with nothing.
    pub baseline: String,
    /// Which of several cases; empty where there is one.
    pub case: String,
    /// How it is checked.
    pub kind: Kind,
    /// What the paper has.
    pub paper: Paper,
    /// What was measured.
    pub measured: Option<f64>,
    /// Whether the two agree: in sign, or within the claim's tolerance.
    pub agrees: bool,
    /// At what scale, and why it is not the paper's.
    pub note: String,
}

/// A claim and all that was found.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The claim.
    pub claim: Claim,
    /// A row for each of its numbers.
    pub rows: Vec<Row>,
    /// What was found, with what is drawn.
    pub found: Found,
}

impl Verdict {
    /// The verdict on `claim`.
    pub fn new(claim: Claim, found: Found) -> Self {
        let rows = found.findings.iter().map(|finding| row(&claim, finding)).collect();
        Self { claim, rows, found }
    }

    /// Numbers that agree.
    pub fn agreeing(&self) -> usize {
        self.rows.iter().filter(|row| row.agrees).count()
    }

    /// Whether all numbers agree.
    pub fn agrees(&self) -> bool {
        self.agreeing() == self.rows.len()
    }

    /// Whether half of the numbers agree at the least.
    pub fn agrees_mostly(&self) -> bool {
        self.agreeing() * 2 >= self.rows.len()
    }

    /// In a sentence.
    pub fn sentence(&self) -> String {
        match (self.agreeing(), self.rows.len()) {
            (all, of) if all == of && of == 1 => "The number agrees.".into(),
            (all, of) if all == of => format!("All {of} numbers agree."),
            (some, of) => format!("{some} of {of} numbers agree."),
        }
    }
}

fn row(claim: &Claim, finding: &Finding) -> Row {
    let Finding { number, measured, note } = finding;
    Row {
        claim: claim.id.clone(),
        doc: claim.doc,
        figure: claim.figure.clone(),
        system: claim.system.clone(),
        baseline: number.baseline.clone(),
        case: number.case.clone(),
        kind: claim.kind,
        paper: number.paper(),
        measured: *measured,
        agrees: measured.is_some_and(|measured| claim.agrees(number, measured)),
        note: note.clone(),
    }
}
