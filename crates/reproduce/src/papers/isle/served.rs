//! Isle-Tree, Fig. 9: workload A of YCSB on a store behind a server.
//!
//! The latencies of inserts are those of the load, which has the only inserts.

use super::DELAY_NS;
use crate::claims::{Claim, Number};
use crate::papers::finding::{ClaimResult, Measured, comparison_chart, timed, try_measure_each};
use crate::served::{Served, ServedWork};
use crate::speed::{Speed, processors};
use crate::workbench::Workbench;
use bristlecone_lab::Result;
use bristlecone_lab::bench::Flushing;
use bristlecone_lab::kv::Socket;
use bristlecone_lab::workload::Workload;

/// The system of the paper, then its baselines in Fig. 9.
const DESIGNS: [&str; 5] = ["isle-tree", "nv-tree", "fptree", "fast-fair", "circ-tree"];
/// The numbers of records and of requests in the paper.
const RECORDS: u64 = 1_000_000;
/// The length of a value: ten fields of 100 B, as YCSB has by default. The paper does not say.
const VALUE_BYTES: usize = 1000;
/// The numbers of clients in the paper.
const CLIENTS: [u64; 4] = [1, 2, 4, 8];
/// The number of clients of the printed factors.
const PRINTED: u64 = 4;

fn served(bench: &mut Workbench<'_>, clients: u64) -> Result<Vec<Served>> {
    let records = bench.scaled_for_server(RECORDS);
    let work = ServedWork {
        socket: Socket::Unix,
        clients,
        records,
        workloads: vec![(Workload::A, records)],
        value_bytes: VALUE_BYTES,
        delay_ns: DELAY_NS,
        flushing: Flushing::default(),
    };
    bench.served(&DESIGNS, &work)
}

/// Returns the times of the operations called `kind`: insert, search or update.
fn part<'s>(served: &'s Served, kind: &str) -> Option<&'s Speed> {
    let workload = served.workloads.first()?;
    match kind {
        "insert" => Some(&served.load),
        "search" => workload.searches.as_ref(),
        _ => workload.updates.as_ref(),
    }
}

/// Compares the 99th percentiles of `kind` with that of the baseline of `number`, for each of
/// `clients`. Returns the greatest factor of the system over it.
fn worst(
    bench: &mut Workbench<'_>,
    number: &Number,
    kind: &str,
    clients: &[u64],
) -> Result<Measured> {
    let mut all = Vec::new();
    for &clients in clients {
        let served = served(bench, clients)?;
        let at = DESIGNS.iter().position(|name| *name == number.baseline);
        let speeds = at.and_then(|at| Some([part(&served[0], kind)?, part(&served[at], kind)?]));
        if let Some([own, base]) = speeds.map(|speeds| speeds.map(Clone::clone)) {
            all.push((own.p99_over(&base), clients, [own, base]));
        }
    }
    let greatest = all.iter().max_by(|a, b| a.0.value.total_cmp(&b.0.value));
    let Some((factor, clients, [own, base])) = greatest else { return Ok(Measured::default()) };
    let note = format!(
        "p99 of {kind}: {:.1} against {:.1} us with {clients} clients; {} records of {VALUE_BYTES} B \
         behind a Unix socket, a thread of the server for each client, {} processors; repetitions \
         spread by {:.0} and {:.0} %",
        base.p99_ns() * 1e-3,
        own.p99_ns() * 1e-3,
        bench.scaled_for_server(RECORDS),
        processors(),
        own.spread() * 100.0,
        base.spread() * 100.0,
    );
    let speeds: Vec<&Speed> = all.iter().flat_map(|(.., speeds)| speeds).collect();
    Ok(Measured::timed(*factor, note, &speeds))
}

pub(in crate::papers) fn ycsb_p99(bench: &mut Workbench<'_>, claim: &Claim) -> Result<ClaimResult> {
    let measurements = try_measure_each(claim, |number| {
        Ok(worst(bench, number, "insert", &[PRINTED])?.less_one())
    })?;
    let bars = comparison_chart(claim, &measurements, "p99, relative change", Some(0.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: timed(claim) })
}

/// Measures the cases `insert, N clients`, and `search` and `update` with any number of clients.
pub(in crate::papers) fn ycsb_others(
    bench: &mut Workbench<'_>,
    claim: &Claim,
) -> Result<ClaimResult> {
    let measurements = try_measure_each(claim, |number| {
        let (kind, clients) = number.case.split_once(", ").unwrap_or((&number.case, ""));
        let named = clients.split(' ').next().and_then(|count| count.parse().ok());
        let clients = named.map_or(CLIENTS.to_vec(), |clients| vec![clients]);
        worst(bench, number, kind, &clients)
    })?;
    let bars = comparison_chart(claim, &measurements, "p99, relative to the baseline", Some(1.0));
    Ok(ClaimResult { measurements, blocks: vec![bars], source: timed(claim) })
}
