//! The outcome of a run: a row for each number of a claim, which `--json` prints as it is.

use crate::claims::{Agreement, Claim, ClaimKind, Doc, PaperValue};
use crate::papers::finding::{ClaimResult, Measurement};
use serde::Serialize;

/// The relative difference of repetitions above which a timed number agrees weakly at the most, and
/// a warning is printed.
pub const SPREAD_MAX: f64 = 0.3;

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
    /// The verdict of the report: how far both agree.
    pub agreement: Agreement,
    /// The relative difference between the fastest and the slowest repetition; `None` for counts
    /// and models.
    pub spread: Option<f64>,
    /// The scale of the measurement, and the counts and times behind it.
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

    /// Returns the number of rows with the verdict `agreement`.
    pub fn count(&self, agreement: Agreement) -> usize {
        self.rows.iter().filter(|row| row.agreement == agreement).count()
    }

    /// Returns a sentence that says how many rows agree.
    pub fn sentence(&self) -> String {
        let of = self.rows.len();
        let weak = match self.count(Agreement::Weak) {
            0 => String::new(),
            weak if weak == of => ", weakly".into(),
            weak => format!(", {weak} of them weakly"),
        };
        match self.agreeing() {
            all if all == of && of == 1 => format!("The number agrees{weak}."),
            all if all == of => format!("All {of} numbers agree{weak}."),
            some => format!("{some} of {of} numbers agree{weak}."),
        }
    }

    /// Returns a warning if repetitions of a timed run differ by more than [`SPREAD_MAX`].
    pub fn warning(&self) -> Option<String> {
        let spread = self.rows.iter().filter_map(|row| row.spread).reduce(f64::max)?;
        (spread > SPREAD_MAX).then(|| {
            format!(
                "repetitions of the same run differ by up to {:.0} %, more than {:.0} %: measure \
                 again while nothing else runs on this machine",
                spread * 100.0,
                SPREAD_MAX * 100.0
            )
        })
    }
}

fn row(claim: &Claim, measurement: &Measurement) -> VerdictRow {
    let Measurement { number, measured, note, spread } = measurement;
    let agreement = match measured.map(|measured| claim.agreement(number, measured)) {
        // Differences smaller than those of repetitions say little about a size.
        Some(Agreement::Yes) if spread.is_some_and(|spread| spread > SPREAD_MAX) => Agreement::Weak,
        Some(agreement) => agreement,
        None => Agreement::No,
    };
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
        agrees: agreement != Agreement::No,
        agreement,
        spread: *spread,
        note: note.clone(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use bristlecone_report::page::Source;

    /// Returns a verdict on one number, which the paper has as -0.225.
    pub(crate) fn verdict(measured: f64, spread: Option<f64>) -> Verdict {
        let claims = crate::claims::all();
        let claim = claims.into_iter().find(|claim| claim.id == "wo-time-insert-300ns");
        let claim = claim.expect("is a claim");
        let number = claim.numbers[1].clone();
        let measurement =
            Measurement { number, measured: Some(measured), note: String::new(), spread };
        let source = Source::Timed { command: String::new() };
        Verdict::new(
            claim,
            ClaimResult { measurements: vec![measurement], blocks: Vec::new(), source },
        )
    }

    #[test]
    fn repetitions_far_apart_agree_weakly_and_warn() {
        let quiet = verdict(-0.2, Some(0.05));
        assert_eq!((quiet.rows[0].agreement, quiet.warning()), (Agreement::Yes, None));
        let loud = verdict(-0.2, Some(1.2));
        assert_eq!(loud.rows[0].agreement, Agreement::Weak);
        assert!(loud.warning().is_some_and(|text| text.contains("120 %")));
        assert!(loud.rows[0].agrees && loud.sentence() == "The number agrees, weakly.");
        assert_eq!(verdict(0.2, Some(1.2)).rows[0].agreement, Agreement::No);
        assert_eq!(verdict(-0.2, None).warning(), None);
    }
}
