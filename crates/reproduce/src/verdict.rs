//! The outcome of a run: a row for each number of a claim, which `--json` prints as it is.

use crate::claims::{Claim, Doc};
use crate::papers::finding::{ClaimResult, Measurement};
use crate::rule::{self, Agreement, ClaimKind, REPETITIONS_MIN, Relation, Status};
use serde::Serialize;

/// The relative difference of repetitions above which a warning is printed.
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
    /// The meaning of the number.
    pub relation: Relation,
    /// The likeness of the measurement to the paper's.
    pub status: Status,
    /// The published number.
    pub paper: f64,
    /// The measured number; `None` if it was not measured.
    pub measured: Option<f64>,
    /// The lower end of the 95 % interval of the measured number; the number itself for counts and
    /// models. `None` if it was not measured, or with a single repetition of a timed run.
    pub low: Option<f64>,
    /// The upper end of that interval.
    pub high: Option<f64>,
    /// The number of paired repetitions: 1 for counts and models, 0 if nothing was measured.
    pub repetitions: usize,
    /// `true` if the row is as described and its number meets the rule: see [`rule`].
    pub agrees: bool,
    /// The verdict: `yes` if the number agrees, `weak` if it meets the rule at a smaller size.
    pub agreement: Agreement,
    /// The relative difference between the fastest and the slowest repetition; `None` for counts
    /// and models.
    pub spread: Option<f64>,
    /// The scale of the measurement, the counts and times behind it, and the reason for the status.
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

    /// Returns the number of rows with the verdict `agreement`.
    pub fn count(&self, agreement: Agreement) -> usize {
        self.rows.iter().filter(|row| row.agreement == agreement).count()
    }

    /// Returns a sentence with the numbers of rows by status and verdict.
    pub fn sentence(&self) -> String {
        Tally::of(&self.rows).sentence()
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

/// The numbers of rows by status, and of those that meet the rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of rows of each of [`Status::ALL`].
    pub rows: [usize; Status::ALL.len()],
    /// The number of rows as described that agree.
    pub agree: usize,
    /// The number of scaled rows that meet the rule at the size of the run.
    pub at_our_size: usize,
}

impl Tally {
    /// Counts `rows`.
    pub fn of<'r>(rows: impl IntoIterator<Item = &'r VerdictRow>) -> Self {
        let mut tally = Self::default();
        for row in rows {
            let at = Status::ALL.iter().position(|&status| status == row.status);
            tally.rows[at.expect("all statuses are listed")] += 1;
            tally.agree += usize::from(row.agreement == Agreement::Yes);
            tally.at_our_size += usize::from(row.agreement == Agreement::Weak);
        }
        tally
    }

    /// Returns the tally as a sentence.
    pub fn sentence(&self) -> String {
        let [described, scaled, substituted, not_run] = self.rows;
        let all: usize = self.rows.iter().sum();
        let mut parts = Vec::new();
        if described > 0 {
            parts.push(format!("as described {described}: {} agree", self.agree));
        }
        if scaled > 0 {
            parts.push(format!("scaled {scaled}: {} meet the rule at this size", self.at_our_size));
        }
        if substituted > 0 {
            parts.push(format!("substituted {substituted}"));
        }
        if not_run > 0 {
            parts.push(format!("not run {not_run}"));
        }
        let numbers = if all == 1 { "number agrees" } else { "numbers agree" };
        format!("{} of {all} {numbers} ({}).", self.agree, parts.join("; "))
    }
}

fn row(claim: &Claim, measurement: &Measurement) -> VerdictRow {
    let Measurement { number, measured, note, spread, demotion } = measurement;
    let claimed = claim.status_of(number);
    let (status, reason) = match demotion {
        // A run can be less like the paper's than the claim says.
        Some((status, reason)) if *status > claimed => (*status, reason.as_str()),
        // A run of the paper's size is not scaled.
        None if claimed == Status::Scaled => (Status::AsDescribed, ""),
        _ => (claimed, claim.reason_of(number)),
    };
    let relation = claim.relation_of(number);
    let measured = measured.filter(|_| status != Status::NotRun);
    let is_met =
        measured.is_some_and(|measured| rule::meets(claim.kind, relation, number.paper, &measured));
    let agreement = rule::agreement(status, is_met);
    let few = measured.filter(|found| !found.is_exact() && found.repetitions < REPETITIONS_MIN);
    let few = few.map(|found| {
        format!(
            "{} repetitions: a timed number agrees with at least {REPETITIONS_MIN}",
            found.repetitions
        )
    });
    let reason =
        if reason.is_empty() { None } else { Some(format!("{}: {reason}", status.name())) };
    let parts = [Some(note.clone()).filter(|note| !note.is_empty()), few, reason];
    VerdictRow {
        claim: claim.id.clone(),
        doc: claim.doc,
        figure: claim.figure.clone(),
        system: claim.system.clone(),
        baseline: number.baseline.clone(),
        case: number.case.clone(),
        kind: claim.kind,
        relation,
        status,
        paper: number.paper,
        measured: measured.map(|found| found.value),
        low: measured.and_then(|found| found.low),
        high: measured.and_then(|found| found.high),
        repetitions: measured.map_or(0, |found| found.repetitions),
        agrees: agreement == Agreement::Yes,
        agreement,
        spread: *spread,
        note: parts.into_iter().flatten().collect::<Vec<_>>().join("; "),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::interval::Interval;
    use bristlecone_report::page::Source;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    /// Returns a measurement of a number of `status`, which the paper has as -0.225.
    fn measurement(claim: &Claim, status: Status, measured: Option<Interval>) -> Measurement {
        let number = crate::claims::Number {
            status: Some(status),
            reason: Some("a reason".into()),
            ..claim.numbers[1 % claim.numbers.len()].clone()
        };
        let demotion = (status == Status::Scaled).then(|| (status, "fewer records".to_owned()));
        Measurement { number, measured, note: String::new(), spread: None, demotion }
    }

    fn claim() -> Claim {
        let claims = crate::claims::all();
        claims.into_iter().find(|claim| claim.id == "wo-time-insert-300ns").expect("is a claim")
    }

    fn judged(measurement: Measurement) -> Verdict {
        let source = Source::Timed { command: String::new() };
        let blocks = Vec::new();
        Verdict::new(claim(), ClaimResult { measurements: vec![measurement], blocks, source })
    }

    /// Returns a verdict on one number, which the paper has as -0.225.
    pub(crate) fn verdict(status: Status, measured: f64, spread: Option<f64>) -> Verdict {
        let [low, high] = [measured - 0.01, measured + 0.01].map(Some);
        let interval = Interval { value: measured, low, high, repetitions: 10 };
        judged(Measurement { spread, ..measurement(&claim(), status, Some(interval)) })
    }

    #[test]
    fn repetitions_far_apart_warn() {
        let quiet = verdict(Status::AsDescribed, -0.2, Some(0.05));
        assert_eq!((quiet.rows[0].agreement, quiet.warning()), (Agreement::Yes, None));
        let loud = verdict(Status::AsDescribed, -0.2, Some(1.2));
        assert!(loud.warning().is_some_and(|text| text.contains("120 %")));
        assert_eq!(verdict(Status::Scaled, 0.2, Some(1.2)).rows[0].agreement, Agreement::No);
    }

    #[test]
    fn a_sentence_tells_statuses_apart() {
        let one = verdict(Status::AsDescribed, -0.2, None);
        assert_eq!(one.sentence(), "1 of 1 number agrees (as described 1: 1 agree).");
        let rows = Status::ALL.map(|status| verdict(status, -0.2, None).rows.remove(0));
        let expected = "1 of 4 numbers agree (as described 1: 1 agree; scaled 1: 1 meet the rule \
                        at this size; substituted 1; not run 1).";
        assert_eq!(Tally::of(&rows).sentence(), expected);
    }

    #[test]
    fn a_row_says_what_it_lacks() {
        let few = Interval::of_ratios(&[0.78, 0.77, 0.775]).less_one();
        let row = judged(measurement(&claim(), Status::Scaled, Some(few))).rows.remove(0);
        assert!(row.note.contains("3 repetitions") && row.note.contains("scaled: a reason"));
        assert!(!row.agrees && row.agreement == Agreement::No && row.low.is_some());
        let row = judged(measurement(&claim(), Status::NotRun, None)).rows.remove(0);
        assert_eq!((row.measured, row.low, row.repetitions), (None, None, 0));
        assert_eq!(row.note, "not run: a reason");
        let of_size = Interval::exact(-0.2);
        let of_size =
            Measurement { demotion: None, ..measurement(&claim(), Status::Scaled, Some(of_size)) };
        let row = judged(of_size).rows.remove(0);
        assert!(row.agrees && row.status == Status::AsDescribed && row.note.is_empty(), "{row:?}");
        let demotion = Some((Status::Substituted, "4 threads on 2 processors".to_owned()));
        let base = measurement(&claim(), Status::AsDescribed, Some(Interval::exact(-0.2)));
        let row = judged(Measurement { demotion, ..base }).rows.remove(0);
        assert!(row.status == Status::Substituted && row.note.contains("on 2 processors"));
    }

    proptest! {
        #[test]
        fn a_substitute_and_what_is_not_run_never_agree(
            at in 0..64_usize,
            which in 0..8_usize,
            values in prop::collection::vec(0.01..100.0_f64, 1..20),
            is_exact: bool,
            is_run: bool,
        ) {
            static CLAIMS: LazyLock<Vec<Claim>> = LazyLock::new(crate::claims::all);
            let claim = CLAIMS.iter().filter(|claim| !claim.numbers.is_empty());
            let claim = claim.cycle().nth(at).expect("a cycle has no end");
            let mut number = claim.numbers[which % claim.numbers.len()].clone();
            let status = if is_run { Status::Substituted } else { Status::NotRun };
            number.status = Some(status);
            let measured = if is_exact {
                // The published number itself.
                Interval::exact(number.paper)
            } else {
                Interval::of_ratios(&values)
            };
            let base = measurement(claim, status, Some(measured));
            let row = row(claim, &Measurement { number, ..base });
            prop_assert!(!row.agrees && row.agreement == Agreement::No);
        }
    }
}
