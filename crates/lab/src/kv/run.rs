//! One repetition: a server with an empty store, its clients, a load, and workloads in turn.

use super::address::Address;
use super::client::Client;
use super::process::{Serve, ServerProcess};
use super::request::VALUE_BYTES_MAX;
use super::service::{Place, Service, check_design};
use super::session::{Clients, OpLatencies, WORD_BYTES};
use crate::bench::{Delays, Flushing, Latency, Measured, load, measure, pin};
use crate::error::{LabError, Result};
use crate::system::{BASE_ROOM_BYTES, KEY_ROOM_BYTES, PoolFile, temporary_path};
use crate::workload::{Plan, Recipe};
use bristlecone_pmem::Domain;
use core::fmt;
use core::str::FromStr;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The way from a client to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Socket {
    /// A Unix socket, to a server in a process of its own.
    Unix,
    /// TCP over the loopback device, to a server in a process of its own.
    Tcp,
    /// A call, in the clients' process.
    None,
}

impl FromStr for Socket {
    type Err = String;

    fn from_str(text: &str) -> core::result::Result<Self, String> {
        match text {
            "unix" => Ok(Self::Unix),
            "tcp" => Ok(Self::Tcp),
            "none" => Ok(Self::None),
            _ => Err("expected unix, tcp or none".into()),
        }
    }
}

impl fmt::Display for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unix => "unix",
            Self::Tcp => "tcp",
            Self::None => "none",
        })
    }
}

/// A measurement of the store over one design.
#[derive(Clone, Debug)]
pub struct KvRun {
    /// The name of the design.
    pub design: String,
    /// The way from the clients to the store.
    pub socket: Socket,
    /// The length of each value, in bytes.
    pub value_bytes: usize,
    /// The path of the pool file, which is removed at the end. `None`: a file in shared memory.
    pub pool: Option<PathBuf>,
    /// The domain whose flushes and fences are executed.
    pub domain: Domain,
    /// The instructions of these.
    pub flushing: Flushing,
    /// Latencies that are added.
    pub delays: Delays,
}

/// The result of one workload.
#[derive(Debug)]
#[non_exhaustive]
pub struct KvMeasured {
    /// Times of the operations. Its latencies are those of a sample; see `latencies`.
    pub measured: Measured,
    /// The latencies of all operations.
    pub latencies: OpLatencies,
    /// The mean time of an operation within the store, in nanoseconds. `None` without a server.
    pub store_ns: Option<f64>,
}

/// The result of one repetition.
#[derive(Debug)]
#[non_exhaustive]
pub struct KvTimes {
    /// The number of loaded records a second.
    pub loads_per_second: f64,
    /// The latencies of the load, in which all operations are inserts.
    pub load_ns: Latency,
    /// The result of each workload.
    pub runs: Vec<KvMeasured>,
}

impl KvRun {
    /// Loads the records of the first of `recipes`, and runs all of them one after the other. Each
    /// has its plans beside it. The threads of a recipe are the clients, the same number in all.
    /// The server is the program of this process, which has to be `bristlecone-lab`, once more.
    ///
    /// # Errors
    /// A design, the server or a client failed; the length of values is too small or too great; or
    /// a workload is none of the protocol.
    pub fn time(&self, recipes: &[(Recipe, Vec<Plan>)]) -> Result<KvTimes> {
        self.check(recipes)?;
        let [of_clients, of_server] = halves(&pin::usable());
        let pool = PoolFile::at(self.pool.clone().unwrap_or_else(|| temporary_path("pool")));
        let place = self.place(pool.path(), recipes);
        if self.socket == Socket::None {
            let service = Arc::new(Service::open(&self.design, &place)?);
            drop(pool);
            let clients = |count, bytes| Ok(Clients::call(&service, count, bytes));
            return self.drive(recipes, clients, &|| Ok(None));
        }
        let socket = PoolFile::at(temporary_path("socket"));
        let address = match self.socket {
            Socket::Unix => Address::Unix(socket.path().to_owned()),
            _ => Address::Tcp("127.0.0.1:0".into()),
        };
        let serve = Serve { design: self.design.clone(), address, place };
        let program = std::env::current_exe();
        let program =
            program.map_err(|source| LabError::File { path: "/proc/self/exe".into(), source })?;
        let server = on(&of_server, || ServerProcess::start(&program, &serve))?;
        let address = server.address().clone();
        let times = on(&of_clients, || {
            let clients = |count, bytes| Clients::connect(&address, count, bytes);
            let store_ns = || Ok(Some(Client::connect(&address)?.stat("store_ns")?));
            self.drive(recipes, clients, &store_ns)
        })?;
        server.stop()?;
        Ok(times)
    }

    fn check(&self, recipes: &[(Recipe, Vec<Plan>)]) -> Result<()> {
        check_design(&self.design)?;
        if !(WORD_BYTES..=VALUE_BYTES_MAX).contains(&self.value_bytes) {
            let limits = format!("a value has {WORD_BYTES} to {VALUE_BYTES_MAX} B");
            return Err(LabError::Asked(limits));
        }
        let takes_bytes = recipes.iter().all(|(recipe, _)| recipe.keys().are_bytes());
        if recipes.is_empty() || !takes_bytes {
            return Err(LabError::Asked("the keys of this store are byte strings".into()));
        }
        if let Some(pool) = self.pool.as_ref().filter(|pool| pool.exists()) {
            let what = "exists, and a run removes its pool: name another file";
            return Err(LabError::Asked(format!("{} {what}", pool.display())));
        }
        if recipes.iter().any(|(recipe, _)| recipe.workload.reopens().is_some()) {
            return Err(LabError::Asked("a server has no workload that opens it again".into()));
        }
        Ok(())
    }

    /// Returns the place of a store with room for the keys of `recipes`.
    fn place(&self, pool: &Path, recipes: &[(Recipe, Vec<Plan>)]) -> Place {
        /// Bytes for the record of a key, and once more for the separators of inner nodes.
        const KEY_RECORDS_BYTES: u64 = 256;
        /// Bytes of the length and the flags of a value record, and up to the end of a line.
        const RECORD_BYTES: u64 = 128;
        let inserts = |(recipe, _): &(Recipe, _)| recipe.workload.inserts_max(recipe.planned());
        let keys = recipes.first().map_or(0, |(recipe, _)| recipe.records);
        let keys = keys + recipes.iter().map(inserts).sum::<u64>();
        let each = KEY_ROOM_BYTES + KEY_RECORDS_BYTES + RECORD_BYTES + self.value_bytes as u64;
        let bytes = BASE_ROOM_BYTES + keys * each;
        let Self { domain, flushing, delays, .. } = *self;
        Place { pool: pool.to_owned(), bytes, domain, flushing, delays }
    }

    /// Lets the clients that `clients` makes load records, and run `recipes`.
    fn drive(
        &self,
        recipes: &[(Recipe, Vec<Plan>)],
        clients: impl Fn(u64, usize) -> Result<Clients>,
        store_ns: &dyn Fn() -> Result<Option<u64>>,
    ) -> Result<KvTimes> {
        let first = &recipes[0].0;
        let mut clients = clients(first.threads, self.value_bytes)?;
        let start = Instant::now();
        load(&mut clients, first)?;
        let seconds = start.elapsed().as_secs_f64().max(1e-9);
        let loads_per_second = first.records as f64 / seconds;
        let load_ns = Latency::in_histogram(&clients.take_latencies().insert);
        let mut runs = Vec::new();
        for (recipe, plans) in recipes {
            let before = store_ns()?;
            let measured = measure(&mut clients, recipe, plans)?;
            let spent = store_ns()?.zip(before).map(|(after, before)| after - before);
            let store_ns = spent.map(|ns| ns as f64 / measured.ops.max(1) as f64);
            runs.push(KvMeasured { measured, latencies: clients.take_latencies(), store_ns });
        }
        Ok(KvTimes { loads_per_second, load_ns, runs })
    }
}

/// Returns the processors of the clients and those of the server: halves of `all` without a common
/// one, or none if there are fewer than two.
fn halves(all: &[usize]) -> [Vec<usize>; 2] {
    if all.len() < 2 {
        return [Vec::new(), Vec::new()];
    }
    let (clients, server) = all.split_at(all.len() / 2);
    [clients.to_vec(), server.to_vec()]
}

/// Runs `work` in a thread that stays, with all threads and processes it starts, on `processors`,
/// or on any if there are none.
fn on<R: Send>(processors: &[usize], work: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if !processors.is_empty() {
                // If the system refuses, its scheduler decides.
                pin::confine(processors);
            }
            work()
        });
        thread.join().expect("the measuring threads do not panic")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    #[test]
    fn clients_and_server_share_no_processor() {
        assert_eq!(halves(&[3, 5, 7]), [vec![3], vec![5, 7]]);
        assert_eq!(halves(&[0]), [vec![], vec![]]);
        let all = pin::usable();
        let [clients, server] = halves(&all);
        let seen = on(&clients, pin::usable);
        assert!(clients.is_empty() || seen == clients && !seen.contains(&server[0]));
        assert_eq!(pin::usable(), all, "the calling thread is where it was");
    }

    #[test]
    fn calls_are_measured_by_kind() {
        let recipe = |workload: Workload| Recipe {
            workload,
            records: 300,
            ops: 200,
            threads: 2,
            keys: "20".parse().unwrap(),
            ..Recipe::default()
        };
        let recipes = [recipe(Workload::Insert), recipe(Workload::A)];
        let recipes = recipes.map(|recipe| (recipe.clone(), recipe.plans().unwrap()));
        let run = KvRun {
            design: "isle-tree".into(),
            socket: Socket::None,
            value_bytes: 100,
            pool: None,
            domain: Domain::Adr,
            flushing: Flushing::Serial,
            delays: Delays::default(),
        };
        let times = run.time(&recipes).unwrap();
        let kinds = |at: usize| {
            let OpLatencies { insert, search, update } = &times.runs[at].latencies;
            [insert.len(), search.len(), update.len()]
        };
        assert_eq!(kinds(0), [200, 0, 0]);
        let [inserts, searches, updates] = kinds(1);
        assert!(inserts == 0 && searches > 0 && updates > 0 && searches + updates == 200);
        let short = KvRun { value_bytes: WORD_BYTES - 1, ..run.clone() };
        assert!(matches!(short.time(&recipes), Err(LabError::Asked(_))));
        assert!(matches!(run.time(&[]), Err(LabError::Asked(_))));
    }
}
