//! wB+-Trees, Fig. 15: a server with memcached's protocol over each tree.
//!
//! The paper gives neither the number of connections nor the length of values. Here each client has
//! two processors, one of them for its thread of the server, and values have 32 B.

use super::{DESIGNS, KEYS, OPS, best, least, persistent, strings};
use crate::claims::Claim;
use crate::interval::Interval;
use crate::papers::finding::{
    ClaimResult, Measured, comparison_chart, measure_each, timed, timing_note,
};
use crate::served::{Served, ServedWork};
use crate::speed::{Speed, processors};
use crate::workbench::Workbench;
use bristlecone_lab::Result;
use bristlecone_lab::bench::Flushing;
use bristlecone_lab::kv::Socket;
use bristlecone_lab::workload::Workload;

/// The length of a value.
const VALUE_BYTES: usize = 32;

/// Serves all persistent trees: a load, inserts of new keys, then searches.
fn served(bench: &mut Workbench<'_>) -> Result<(ServedWork, Vec<Served>)> {
    let records = bench.scaled_for_server(KEYS);
    let ops = bench.scaled_for_server(OPS).min(records / 2);
    let work = ServedWork {
        socket: Socket::Tcp,
        clients: (processors() as u64 / 2).max(1),
        records,
        workloads: [Workload::Insert, Workload::Get].map(|workload| (workload, ops)).to_vec(),
        value_bytes: VALUE_BYTES,
        delay_ns: 0,
        flushing: Flushing::Serial,
    };
    let names: Vec<&str> = persistent().into_iter().map(|(name, _)| name).collect();
    let served = bench.served(&names, &work)?;
    Ok((work, served))
}

/// Returns the throughput of the workload at `at`: inserts, then searches.
fn throughput(served: &[Served], at: usize) -> Vec<Speed> {
    let workloads = served.iter().map(|served| &served.workloads[at]);
    workloads
        .filter_map(|found| found.inserts.as_ref().or(found.searches.as_ref()).cloned())
        .collect()
}

/// Returns a note on two served designs.
fn note(work: &ServedWork, served: &[Served], workload: usize, other: usize) -> String {
    let speeds = throughput(served, workload);
    let in_store = |at: usize| served[at].workloads[workload].store_ns * 1e-3;
    let (kind, ops) = &work.workloads[workload];
    format!(
        "{}: {:.2} against {:.2} us an operation (medians), of which {:.2} and {:.2} in the store, \
         against {}; {ops} operations by {} clients over TCP, keys of 20 B, values of {VALUE_BYTES} \
         B, {} records, loaded one by one; repetitions spread by {:.0} and {:.0} %",
        kind.name(),
        speeds[0].ns() * 1e-3,
        speeds[other].ns() * 1e-3,
        in_store(0),
        in_store(other),
        persistent()[other].0,
        work.clients,
        work.records,
        speeds[0].spread() * 100.0,
        speeds[other].spread() * 100.0,
    )
}

pub(in crate::papers) fn memcached(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    let (work, served) = served(bench)?;
    let (mut top, mut found) = (0.0, Measured::default());
    for workload in 0..work.workloads.len() {
        // The last tree is the paper's own.
        let speeds = &throughput(&served, workload)[..DESIGNS.len()];
        let (at, factor) = best(speeds);
        if factor.value > top {
            top = factor.value;
            let note = note(&work, &served, workload, at);
            found = Measured::timed(factor, note, &[&speeds[0], &speeds[at]]);
        }
    }
    let measurements = measure_each(claim, |_| found.clone());
    let bars = comparison_chart(claim, &measurements, "factor", Some(1.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: timed(claim) })
}

pub(in crate::papers) fn memcached_order(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    let (work, served) = served(bench)?;
    let (alone_work, alone) = strings::inserts(bench)?;
    let inserts = throughput(&served, 0);
    let (at, lead) = least(&inserts);
    let lead = Measured::timed(lead, note(&work, &served, 0, at), &[&inserts[0], &inserts[at]]);
    let factor = Interval::paired(&spreads(&alone), &spreads(&inserts));
    let [fastest, slowest] = ends(&alone);
    let text = format!(
        "slowest over fastest insert: {:.2} alone, {:.2} served; alone {}",
        mean(&spreads(&alone)),
        mean(&spreads(&inserts)),
        timing_note(slowest, fastest, &alone_work),
    );
    let timed_runs: Vec<&Speed> = alone.iter().chain(&inserts).collect();
    let spread = Measured::timed(factor, text, &timed_runs);
    let measurements = measure_each(claim, |number| match number.baseline.as_str() {
        "" => spread.clone(),
        _ => lead.clone(),
    });
    let bars = comparison_chart(claim, &measurements, "factor", Some(1.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: timed(claim) })
}

/// Returns the fastest and the slowest of `speeds`.
fn ends(speeds: &[Speed]) -> [&Speed; 2] {
    let mut sorted: Vec<&Speed> = speeds.iter().collect();
    sorted.sort_by(|a, b| b.ops_per_second.total_cmp(&a.ops_per_second));
    [sorted[0], sorted[sorted.len() - 1]]
}

/// Returns the time of the slowest tree over that of the fastest, in each repetition.
fn spreads(speeds: &[Speed]) -> Vec<f64> {
    let all: Vec<Vec<f64>> = speeds.iter().map(Speed::speeds).collect();
    let of = |at: usize, pick: fn(f64, f64) -> f64| all.iter().map(|runs| runs[at]).reduce(pick);
    let repetitions = all.first().map_or(0, Vec::len);
    (0..repetitions).filter_map(|at| Some(of(at, f64::max)? / of(at, f64::min)?)).collect()
}

fn mean(values: &[f64]) -> f64 {
    Interval::of_ratios(values).value
}
