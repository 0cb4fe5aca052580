//! The measurements: a function for each claim, grouped by paper.

mod ccl;
pub mod finding;
mod gap;
mod isle;
mod wb;
mod wo;

use crate::claims::{Claim, Number};
use crate::rule::Status;
use crate::workbench::Workbench;
use bristlecone_lab::Result;
use finding::ClaimResult;

/// A function that measures the numbers of one claim.
type Measure = fn(&mut Workbench<'_>, &Claim) -> Result<ClaimResult>;

/// The function for each claim of which a number is measured, in the order of `claims.toml`.
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
    ("isle-lines", isle::lines),
    ("isle-split-count", isle::split_count),
    ("gap-table2", gap::table2),
    ("gap-dram-pm", gap::device::dram_pm),
    ("gap-unsorted", gap::device::unsorted),
    ("gap-consistency", gap::consistency),
    ("gap-selective-persistence", gap::selective_persistence),
    ("gap-node-size", gap::node_size),
    ("gap-interleaving", gap::interleaving),
    ("gap-group-flush", gap::device::group_flush),
    ("gap-log-structured", gap::logs::log_structured),
    ("gap-device", gap::device::device),
];

/// Measures the numbers of `claim`. Numbers that no experiment measures come last, without a value.
///
/// # Errors
/// A design failed.
///
/// # Panics
/// Never: a test checks that each claim has a function.
pub fn measure(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    bench.begin_claim();
    let is_run = |number: &Number| claim.status_of(number) != Status::NotRun;
    let mut found = if claim.status == Status::NotRun {
        let (measurements, blocks) = (Vec::new(), Vec::new());
        ClaimResult { measurements, blocks, source: finding::timed(claim) }
    } else {
        let (_, measure) =
            MEASURES.iter().find(|(id, _)| *id == claim.id).expect("each claim has a function");
        bench.say(&claim.id);
        measure(bench, &claim.with_numbers(is_run))?
    };
    if bench.is_limited() {
        let reason = format!("{} records at most", bench.scale.ops_max);
        for measurement in &mut found.measurements {
            let limit = || (Status::Scaled, reason.clone());
            let _ = measurement.demotion.get_or_insert_with(limit);
        }
    }
    let not_run = claim.numbers.iter().filter(|number| !is_run(number));
    found.measurements.extend(not_run.map(finding::not_run));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_and_functions_match() {
        let claims = crate::claims::all();
        let run = claims.iter().filter(|claim| claim.status != Status::NotRun);
        let ids: Vec<_> = run.map(|claim| claim.id.clone()).collect();
        let measured: Vec<_> = MEASURES.iter().map(|(id, _)| (*id).to_owned()).collect();
        assert_eq!(ids, measured);
    }
}
