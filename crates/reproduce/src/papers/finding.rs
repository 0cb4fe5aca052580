//! The results of claims, and what the measures of all papers share: sources, charts, notes.

use crate::claims::{Claim, Number, PaperValue};
use crate::workbench::{Named, Speed, Work};
use bristlecone_lab::Result;
use bristlecone_report::figure::{BarSeries, Bars, Baseline, Chart};
use bristlecone_report::page::{Block, Source};

/// A number of a claim, measured.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The paper's.
    pub number: Number,
    /// What was measured; nothing, where it cannot be.
    pub measured: Option<f64>,
    /// At what scale, and why it is not the paper's.
    pub note: String,
}

/// What came of a claim.
#[derive(Clone, Debug)]
pub struct ClaimResult {
    /// Its numbers.
    pub measurements: Vec<Measurement>,
    /// What is drawn beside them.
    pub blocks: Vec<Block>,
    /// Where the numbers come from.
    pub source: Source,
}

/// The command that shows a claim again.
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

/// The numbers of `claim`, each measured by `measure`, which also says how.
pub(super) fn measure_each(
    claim: &Claim,
    mut measure: impl FnMut(&Number) -> (Option<f64>, String),
) -> Vec<Measurement> {
    let one = |number: &Number| {
        let (measured, note) = measure(number);
        Measurement { number: number.clone(), measured, note }
    };
    claim.numbers.iter().map(one).collect()
}

/// The place of `name` among `designs`.
pub(super) fn index_of(designs: &[Named<'_>], name: &str) -> Option<usize> {
    designs.iter().position(|(design, _)| *design == name)
}

/// Bars of what was measured, with the paper's marks.
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
    let paper = |measurement: &Measurement| match measurement.number.paper() {
        PaperValue::Number(number) => Some(number),
        PaperValue::Range([low, high]) => Some(f64::midpoint(low, high)),
    };
    let chart = Bars {
        title: format!("{}, {}: {}", claim.doc.title(), claim.figure, claim.system),
        description: format!("{}. Diamonds are the paper's values.", claim.says),
        category: "compared with".into(),
        value: value.to_owned(),
        categories: measurements.iter().map(name).collect(),
        series: vec![BarSeries {
            name: "measured here".into(),
            values: measurements.iter().map(|measurement| measurement.measured).collect(),
            paper: measurements.iter().map(paper).collect(),
        }],
        baseline: middle.map(|at| Baseline { at, name: "no difference".into() }),
        has_numbers: true,
    };
    Block::Chart(Chart::from(chart))
}

/// How far the repetitions of a speed were apart, as a part of their median.
fn spread(speed: Speed) -> f64 {
    (speed.range[1] - speed.range[0]) / speed.ops_per_second
}

/// In words: how two speeds came about.
pub(super) fn timing_note(own: Speed, base: Speed, work: &Work) -> String {
    format!(
        "{:.2} against {:.2} us an operation; {} operations by {} on {} records, {} processors, repetitions {:.0} and {:.0} % apart",
        own.ns() * 1e-3,
        base.ns() * 1e-3,
        work.ops,
        if work.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", work.threads) },
        work.records,
        std::thread::available_parallelism().map_or(1, usize::from),
        spread(own) * 100.0,
        spread(base) * 100.0,
    )
}

/// The numbers of `claim`, each measured by `measure`, which may fail.
pub(super) fn try_measure_each(
    claim: &Claim,
    mut measure: impl FnMut(&Number) -> Result<(Option<f64>, String)>,
) -> Result<Vec<Measurement>> {
    let one = |number: &Number| {
        let (measured, note) = measure(number)?;
        Ok(Measurement { number: number.clone(), measured, note })
    };
    claim.numbers.iter().map(one).collect()
}
