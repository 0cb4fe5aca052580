//! Times of the papers' stores behind a server.
//!
//! A client has one request under way, and a thread of the server for itself. So a run needs two
//! processors for each client; [`Speed::crowd`] tells of fewer.

use crate::speed::Speed;
use bristlecone_lab::bench::{Delays, Flushing, Latency};
use bristlecone_lab::kv::{KvRun, KvTimes, Socket};
use bristlecone_lab::workload::Workload;
use bristlecone_pmem::Domain;
use std::time::Duration;

/// The threads of a client: its own, and that of the server which answers it.
const THREADS_OF_CLIENT: u64 = 2;

/// A run of a store behind a server: a load, then workloads, with keys of 20 B.
#[derive(Clone, Debug)]
pub struct ServedWork {
    /// The way from the clients to the store.
    pub socket: Socket,
    /// The number of clients.
    pub clients: u64,
    /// The number of records that the clients load.
    pub records: u64,
    /// The workloads after the load, each with the number of its operations.
    pub workloads: Vec<(Workload, u64)>,
    /// The length of each value, in bytes.
    pub value_bytes: usize,
    /// The latency added to each flushed line, in nanoseconds.
    pub delay_ns: u64,
    /// The instructions that write lines back and order them.
    pub flushing: Flushing,
}

/// The times of a store over one design.
#[derive(Clone, Debug)]
pub struct Served {
    /// The load, of inserts alone.
    pub load: Speed,
    /// The workloads after the load.
    pub workloads: Vec<ServedWorkload>,
}

/// The times of one workload.
#[derive(Clone, Debug)]
pub struct ServedWorkload {
    /// The throughput of all operations, with the latencies of the inserts, if there are any.
    pub inserts: Option<Speed>,
    /// The throughput, with the latencies of the searches, if there are any.
    pub searches: Option<Speed>,
    /// The throughput, with the latencies of the updates, if there are any.
    pub updates: Option<Speed>,
    /// The mean time of an operation within the store, in nanoseconds.
    pub store_ns: f64,
}

impl ServedWork {
    /// Returns the run of a store over `design`.
    pub(crate) fn run(&self, design: &str) -> KvRun {
        let flush = Duration::from_nanos(self.delay_ns);
        KvRun {
            design: design.to_owned(),
            socket: self.socket,
            value_bytes: self.value_bytes,
            pool: None,
            domain: Domain::Adr,
            flushing: self.flushing,
            delays: Delays { flush, fence: Duration::ZERO },
        }
    }

    /// Returns the times of all repetitions.
    pub(crate) fn speeds(&self, repetitions: &[KvTimes]) -> Served {
        let threads = THREADS_OF_CLIENT * self.clients;
        let loads = repetitions.iter().map(|times| [times.loads_per_second, p99(&times.load_ns)]);
        let workloads = 0..self.workloads.len();
        Served {
            load: Speed::new(loads.collect(), threads),
            workloads: workloads.map(|at| ServedWorkload::new(repetitions, at, threads)).collect(),
        }
    }
}

impl ServedWorkload {
    fn new(repetitions: &[KvTimes], at: usize, threads: u64) -> Self {
        let runs = || repetitions.iter().map(|times| &times.runs[at]);
        let [inserts, searches, updates] = [0, 1, 2].map(|kind| {
            let pairs = runs().map(|run| {
                let latency = run.latencies.percentiles()[kind]?;
                Some([run.measured.ops_per_second(), p99(&latency)])
            });
            pairs.collect::<Option<Vec<_>>>().map(|pairs| Speed::new(pairs, threads))
        });
        let in_store: f64 = runs().filter_map(|run| run.store_ns).sum();
        let store_ns = in_store / repetitions.len().max(1) as f64;
        Self { inserts, searches, updates, store_ns }
    }
}

fn p99(latency: &Latency) -> f64 {
    latency.p99 as f64
}
