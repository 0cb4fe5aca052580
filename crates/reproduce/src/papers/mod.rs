//! The papers: for each claim, what is measured and drawn.

mod ccl;
mod gap;
mod gap_device;
mod gap_logs;
mod isle;
mod wb;
mod wo;

use crate::bench::{Named, Speed, Work, Workbench};
use crate::claims::{Claim, Number, Paper};
use crate::figure::{BarSeries, Bars, Baseline, Chart};
use crate::page::{Block, Source};
use bristlecone_lab::Result;

/// A number of a claim, measured.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The paper's.
    pub number: Number,
    /// What was measured; nothing, where it cannot be.
    pub measured: Option<f64>,
    /// At what scale, and why it is not the paper's.
    pub note: String,
}

/// What came of a claim.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its numbers.
    pub findings: Vec<Finding>,
    /// What is drawn beside them.
    pub blocks: Vec<Block>,
    /// Where the numbers come from.
    pub source: Source,
}

/// Measures the numbers of a claim.
type Measure = fn(&mut Workbench<'_>, &Claim) -> Result<Found>;

/// How each claim is measured.
const MEASURES: &[(&str, Measure)] = &[
    ("wo-flush-insert", wo::flush_insert),
    ("wo-time-insert-300ns", wo::time_insert),
    ("wo-flush-delete", wo::flush_delete),
    ("wo-time-delete", wo::time_delete),
    ("wo-time-search", wo::time_search),
    ("wo-concurrent-insert", wo::concurrent_insert),
    ("wo-concurrent-delete", wo::concurrent_delete),
    ("wo-concurrent-search", wo::concurrent_search),
    ("wo-mixed", wo::mixed),
    ("wo-inner-flush", wo::inner_flush),
    ("wb-table3", wb::table3),
    ("wb-real-machine", wb::real_machine),
    ("wb-pcm-simulation", wb::pcm),
    ("wb-memcached", wb::memcached),
    ("ccl-formula", ccl::formula),
    ("ccl-write-throughput", ccl::write_throughput),
    ("ccl-xbi", ccl::xbi),
    ("isle-flush-insert", isle::flush_insert),
    ("isle-time-insert", isle::time_insert),
    ("isle-time-search", isle::time_search),
    ("isle-split-share", isle::split_share),
    ("isle-node-size", isle::node_size),
    ("isle-latency-gap", isle::latency_gap),
    ("isle-ycsb-p99", isle::ycsb_p99),
    ("gap-table2", gap::table2),
    ("gap-dram-pm", gap_device::dram_pm),
    ("gap-unsorted", gap_device::unsorted),
    ("gap-consistency", gap::consistency),
    ("gap-selective-persistence", gap::selective_persistence),
    ("gap-node-size", gap::node_size),
    ("gap-interleaving", gap::interleaving),
    ("gap-group-flush", gap_device::group_flush),
    ("gap-log-structured", gap_logs::log_structured),
    ("gap-device", gap_device::device),
];

/// Measures `claim`.
///
/// # Errors
/// A design failed.
///
/// # Panics
/// Never: a test asks for each claim's measure.
pub fn measure(bench: &mut Workbench<'_>, claim: &Claim) -> Result<Found> {
    let (_, measure) =
        MEASURES.iter().find(|(id, _)| *id == claim.id).expect("each claim has a measure");
    bench.say(&claim.id);
    measure(bench, claim)
}

/// The command that shows a claim again.
fn command(claim: &Claim) -> String {
    format!("bristlecone-lab reproduce {}", claim.id)
}

fn counted(claim: &Claim) -> Source {
    Source::Counted { command: command(claim) }
}

fn timed(claim: &Claim) -> Source {
    Source::Timed { command: command(claim) }
}

fn modelled(claim: &Claim, device: &str) -> Source {
    Source::Modelled { command: command(claim), model: device.to_owned() }
}

/// The numbers of `claim`, each measured by `measure`, which also says how.
fn findings(
    claim: &Claim,
    mut measure: impl FnMut(&Number) -> (Option<f64>, String),
) -> Vec<Finding> {
    let one = |number: &Number| {
        let (measured, note) = measure(number);
        Finding { number: number.clone(), measured, note }
    };
    claim.numbers.iter().map(one).collect()
}

/// The place of `name` among `designs`.
fn place(designs: &[Named<'_>], name: &str) -> Option<usize> {
    designs.iter().position(|(design, _)| *design == name)
}

/// Bars of what was measured, with the paper's marks.
fn bars(claim: &Claim, findings: &[Finding], value: &str, middle: Option<f64>) -> Block {
    let name = |finding: &Finding| {
        let Number { baseline, case, .. } = &finding.number;
        let words = [baseline.as_str(), case.as_str()];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
    };
    let paper = |finding: &Finding| match finding.number.paper() {
        Paper::Number(number) => Some(number),
        Paper::Range([low, high]) => Some(f64::midpoint(low, high)),
    };
    let chart = Bars {
        title: format!("{}, {}: {}", claim.doc.title(), claim.figure, claim.system),
        description: format!("{}. Diamonds are the paper's values.", claim.says),
        category: "compared with".into(),
        value: value.to_owned(),
        categories: findings.iter().map(name).collect(),
        series: vec![BarSeries {
            name: "measured here".into(),
            values: findings.iter().map(|finding| finding.measured).collect(),
            paper: findings.iter().map(paper).collect(),
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
fn about(own: Speed, base: Speed, work: &Work) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_claim_has_a_measure_and_each_measure_a_claim() {
        let ids: Vec<_> = crate::claims::all().into_iter().map(|claim| claim.id).collect();
        let measured: Vec<_> = MEASURES.iter().map(|(id, _)| (*id).to_owned()).collect();
        assert_eq!(ids, measured);
    }
}
