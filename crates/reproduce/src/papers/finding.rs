//! The results of claims, and what the measures of all papers share: sources, charts, notes.

use crate::claims::{Claim, Number};
use crate::interval::Interval;
use crate::rule::Status;
use crate::speed::{Speed, processors};
use crate::workbench::{Named, Work};
use bristlecone_lab::Result;
use bristlecone_report::figure::{BarSeries, Bars, Baseline, Chart};
use bristlecone_report::page::{Block, Source};

/// A number of a claim with its measured value.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The number of the claim, with its published value.
    pub number: Number,
    /// The measured value with its interval; `None` if it was not measured.
    pub measured: Option<Interval>,
    /// The scale of the measurement, and the counts and times behind it.
    pub note: String,
    /// The difference between the fastest and the slowest repetition, relative to their median: the
    /// greater of the two timed runs that the number compares. `None` for counts and models.
    pub spread: Option<f64>,
    /// The status that this run can claim at most, with the reason, if there is a limit.
    pub demotion: Option<(Status, String)>,
}

impl Measurement {
    /// Creates a measurement of a count or of a model, which is the same in each run.
    pub(super) fn exact(number: &Number, value: f64, note: String) -> Self {
        Measured::from((Some(value), note)).of(number)
    }
}

/// A measured value with its note, as a measure of one number returns it.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    value: Option<Interval>,
    note: String,
    spread: Option<f64>,
    demotion: Option<(Status, String)>,
}

impl Measured {
    /// Creates a value that compares the timed `speeds`.
    pub(super) fn timed(value: Interval, note: String, speeds: &[&Speed]) -> Self {
        let spread = speeds.iter().map(|speed| speed.spread()).reduce(f64::max);
        let crowd = speeds.iter().find_map(|speed| speed.crowd());
        let demotion = crowd.map(|[threads, processors]| {
            (Status::Substituted, format!("{threads} threads on {processors} processors"))
        });
        Self { value: Some(value), note, spread, demotion }
    }

    /// Creates a value of repetitions that are not speeds.
    pub(super) fn repeated(value: Interval, note: String) -> Self {
        Self { value: Some(value), note, ..Self::default() }
    }

    /// Returns this measured ratio as a relative change.
    pub(super) fn less_one(self) -> Self {
        Self { value: self.value.map(Interval::less_one), ..self }
    }

    fn of(self, number: &Number) -> Measurement {
        let Self { value, note, spread, demotion } = self;
        Measurement { number: number.clone(), measured: value, note, spread, demotion }
    }
}

/// A count or a figure of a model, which is the same in each run.
impl From<(Option<f64>, String)> for Measured {
    fn from((value, note): (Option<f64>, String)) -> Self {
        Self { value: value.map(Interval::exact), note, ..Self::default() }
    }
}

/// The measurements of a claim.
#[derive(Clone, Debug)]
pub struct ClaimResult {
    /// The numbers, in the order of the claim.
    pub measurements: Vec<Measurement>,
    /// The charts, tables and notes that the report shows with them.
    pub blocks: Vec<Block>,
    /// The origin of the numbers.
    pub source: Source,
}

/// Returns the measurement of a number that no experiment measures.
pub(super) fn not_run(number: &Number) -> Measurement {
    Measured::default().of(number)
}

/// Returns the command line that measures the claim again.
fn command(claim: &Claim) -> String {
    format!("bristlecone-lab reproduce {}", claim.id)
}

pub(super) fn counted(claim: &Claim) -> Source {
    Source::Counted { command: command(claim) }
}

pub(super) fn timed(claim: &Claim) -> Source {
    Source::Timed { command: command(claim) }
}

pub(super) fn modelled(claim: &Claim, device: &str) -> Source {
    Source::Modelled { command: command(claim), model: device.to_owned() }
}

/// Measures each number of `claim` by `measure`, which returns the value and a note.
pub(super) fn measure_each<M: Into<Measured>>(
    claim: &Claim,
    mut measure: impl FnMut(&Number) -> M,
) -> Vec<Measurement> {
    claim.numbers.iter().map(|number| measure(number).into().of(number)).collect()
}

/// Returns the index of `name` in `designs`.
pub(super) fn index_of(designs: &[Named<'_>], name: &str) -> Option<usize> {
    designs.iter().position(|(design, _)| *design == name)
}

/// Returns a chart of the measured values as bars and the published ones as diamonds.
pub(super) fn comparison_chart(
    claim: &Claim,
    measurements: &[Measurement],
    value: &str,
    middle: Option<f64>,
) -> Block {
    let name = |measurement: &Measurement| {
        let Number { baseline, case, .. } = &measurement.number;
        let words = [baseline.as_str(), case.as_str()];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
    };
    let measured = |measurement: &Measurement| measurement.measured.map(|found| found.value);
    let chart = Bars {
        title: format!("{}, {}: {}", claim.doc.title(), claim.figure, claim.system),
        description: format!(
            "{}. Bars are measured here; hollow diamonds are the values of the paper.",
            claim.says
        ),
        category: "compared with".into(),
        value: value.to_owned(),
        categories: measurements.iter().map(name).collect(),
        series: vec![BarSeries {
            name: "measured here".into(),
            values: measurements.iter().map(measured).collect(),
            paper: measurements.iter().map(|found| Some(found.number.paper)).collect(),
        }],
        baseline: middle.map(|at| Baseline { at, name: "no difference".into() }),
        has_numbers: true,
    };
    Block::Chart(Chart::from(chart))
}

/// Returns a note on two timed speeds: times, sizes, threads, and spread of repetitions.
pub(super) fn timing_note(own: &Speed, base: &Speed, work: &Work) -> String {
    format!(
        "{:.2} against {:.2} us an operation (medians); {} operations by {} on {} records, {} processors, repetitions spread by {:.0} and {:.0} %",
        own.ns() * 1e-3,
        base.ns() * 1e-3,
        work.ops,
        if work.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", work.threads) },
        work.records,
        processors(),
        own.spread() * 100.0,
        base.spread() * 100.0,
    )
}

/// As [`measure_each`], for a `measure` that can fail.
pub(super) fn try_measure_each<M: Into<Measured>>(
    claim: &Claim,
    mut measure: impl FnMut(&Number) -> Result<M>,
) -> Result<Vec<Measurement>> {
    claim.numbers.iter().map(|number| Ok(measure(number)?.into().of(number))).collect()
}
