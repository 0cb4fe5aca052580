//! The outcome of a run: a row for each number of a claim, which `--json` prints as it is.

use crate::claims::{Claim, ClaimKind, Doc, PaperValue};
use crate::papers::finding::{ClaimResult, Measurement};
use serde::Serialize;

/// A number of a claim, as published and as measured.
#[derive(Clone, Debug, Serialize)]
pub struct VerdictRow {
    /// The id of the claim.
    pub claim: String,
    /// The paper that makes the claim.
    pub doc: Doc,
    /// The figure, table or section of the paper.
    pub figure: String,
    /// The design, or the system, that the claim is about.
    pub system: String,
    /// The design it is compared with; empty if the number is absolute.
    pub baseline: String,
    /// The case of the claim, such as `4 threads`; empty if the claim has one case.
    pub case: String,
    /// The way to check the claim: a count, a ratio of times, or a closed form.
    pub kind: ClaimKind,
    /// The published number or range.
    pub paper: PaperValue,
    /// The measured number; `None` if it could not be measured.
    pub measured: Option<f64>,
    /// `true` if both agree: in sign, or within the claim's tolerance.
    pub agrees: bool,
    /// The scale of the measurement, and reasons why it may differ from the paper.
    pub note: String,
}

/// A claim with its measurements.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The claim as the paper makes it.
    pub claim: Claim,
    /// The rows, one for each number of the claim.
    pub rows: Vec<VerdictRow>,
    /// The measurements with their charts and their source.
    pub result: ClaimResult,
}

impl Verdict {
    /// Compares the measurements in `result` with `claim`.
    pub fn new(claim: Claim, result: ClaimResult) -> Self {
        let rows = result.measurements.iter().map(|measurement| row(&claim, measurement)).collect();
        Self { claim, rows, result }
    }

    /// Returns the number of rows that agree.
    pub fn agreeing(&self) -> usize {
        self.rows.iter().filter(|row| row.agrees).count()
    }

    /// Returns `true` if all rows agree.
    pub fn agrees(&self) -> bool {
        self.agreeing() == self.rows.len()
    }

    /// Returns `true` if at least half of the rows agree.
    pub fn agrees_mostly(&self) -> bool {
        self.agreeing() * 2 >= self.rows.len()
    }

    /// Returns a sentence that says how many rows agree.
    pub fn sentence(&self) -> String {
        match (self.agreeing(), self.rows.len()) {
            (all, of) if all == of && of == 1 => "The number agrees.".into(),
            (all, of) if all == of => format!("All {of} numbers agree."),
            (some, of) => format!("{some} of {of} numbers agree."),
        }
    }
}

fn row(claim: &Claim, measurement: &Measurement) -> VerdictRow {
    let Measurement { number, measured, note } = measurement;
    VerdictRow {
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
