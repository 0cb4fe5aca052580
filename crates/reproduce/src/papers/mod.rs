//! The measurements: a function for each claim, grouped by paper.

mod ccl;
pub mod finding;
mod gap;
mod isle;
mod lead;
mod wb;
mod wo;

use crate::claims::{Claim, Number};
use crate::rule::Status;
use crate::workbench::{RunScale, Workbench};
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
    ("wo-node-size", wo::node_size),
    ("wo-latency", wo::latency),
    ("wo-search-order", wo::search_order),
    ("wo-shifts", wo::shifts),
    ("wo-recovery", wo::recovery),
    ("wb-table3", wb::table3),
    ("wb-real-machine", wb::real_machine),
    ("wb-pcm-simulation", wb::simulation::pcm),
    ("wb-memcached", wb::served::memcached),
    ("wb-clflush", wb::clflush),
    ("wb-simulation-order", wb::simulation::order),
    ("wb-simulation-counts", wb::simulation::counts),
    ("wb-shapes", wb::simulation::shapes),
    ("wb-strings", wb::strings),
    ("wb-memcached-order", wb::served::memcached_order),
    ("ccl-formula", ccl::formula),
    ("ccl-write-throughput", ccl::write_throughput),
    ("ccl-xbi", ccl::xbi),
    ("ccl-other-writes", ccl::other_operations),
    ("ccl-reads", ccl::other_operations),
    ("isle-flush-insert", isle::flush_insert),
    ("isle-time-insert", isle::time_insert),
    ("isle-time-search", isle::time_search),
    ("isle-split-share", isle::split_share),
    ("isle-node-size", isle::node_size),
    ("isle-latency-gap", isle::latency_gap),
    ("isle-ycsb-p99", isle::served::ycsb_p99),
    ("isle-lines", isle::lines),
    ("isle-insert-sizes", isle::insert_sizes),
    ("isle-split-count", isle::split_count),
    ("isle-search-node-size", isle::search_node_size),
    ("isle-latency-others", isle::latency_others),
    ("isle-ycsb-others", isle::served::ycsb_others),
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
    ("gap-table2-more", gap::table2_more),
    ("gap-reads", gap::threads::reads),
    ("gap-threads", gap::threads::inserts),
    ("gap-flush-cost", gap::flush_cost),
    ("gap-mix", gap::threads::mix),
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
        let RunScale { ops_max, served_max, modelled_records, .. } = bench.scale;
        let reason = format!(
            "{ops_max} records at most, {served_max} behind a server, {modelled_records} in a model"
        );
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
