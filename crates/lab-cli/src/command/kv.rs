//! `kv`: a key-value store over a design behind a server, and clients that measure it.

use super::bench::{delay, dist, flushing, keys, workload};
use crate::table::{self, table};
use bristlecone_console::exit::{Answer, UsageError};
use bristlecone_console::output::{Output, grouped, whole};
use bristlecone_console::progress::Progress;
use bristlecone_console::values;
use bristlecone_lab::bench::{Delays, Flushing, Latency};
use bristlecone_lab::kv::{
    Address, AddressError, KvRun, KvTimes, Place, Serve, Server, Service, Socket,
};
use bristlecone_lab::system::temporary_pool;
use bristlecone_lab::workload::{Dist, Keys, Plan, Recipe, Workload};
use bristlecone_pmem::Domain;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

/// Measure a key-value store over designs through a server, or serve one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bristlecone-lab kv --design isle-tree,fast-fair --clients 4 --delay-ns 300
  bristlecone-lab kv --design wb-tree --workload get:50+insert:50 --socket tcp --json
  bristlecone-lab kv --design isle-tree --serve 127.0.0.1:11211 --pool trees.pool

The store has a record for each key and each value, and any design as its index. Clients load
--records records, all at once, then run the workload, each over a connection of its own with one
request under way. The server is a process of its own. Clients stay on the first half of the
processors and the server on the second, if there are two. An insert is a `set`; an update replaces
the first 100 bytes of a value by `patch KEY OFFSET BYTES`, which is this server's own command.

--serve ADDRESS serves until it is killed, and opens the pool of an earlier server. Clients speak
memcached's text protocol: get, gets, set, add, replace, delete, stats, version, verbosity, quit.
Values do not expire. There are no passwords: listen where strangers cannot connect. Without --pool
the store is gone with the server.")]
pub(crate) struct Args {
    /// Designs of the index, as `bristlecone-lab designs` lists them.
    #[arg(long, value_delimiter = ',', required = true)]
    design: Vec<String>,
    /// Serve one design at HOST:PORT or unix:PATH, and measure nothing.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    serve: Option<Address>,
    /// End the server when its standard input ends.
    #[arg(long, requires = "serve", hide = true)]
    until_eof: bool,
    /// Way from the clients to the store: unix, tcp, or none for calls in one process.
    #[arg(long, default_value = "unix", conflicts_with = "serve")]
    socket: Socket,
    /// Number of clients.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4,
        conflicts_with = "serve",
        value_parser = clap::value_parser!(u64).range(1..=1000),
    )]
    clients: u64,
    /// Workload, as of `bench`: get, insert, update, a mix of YCSB, or a mix such as
    /// get:50+update:50. The protocol has no scan.
    #[arg(long, default_value = "a", conflicts_with = "serve", value_parser = workload)]
    workload: Workload,
    /// Records to load before the workload.
    #[arg(
        long,
        value_name = "R",
        default_value = "100k",
        conflicts_with = "serve",
        value_parser = values::positive_count,
    )]
    records: u64,
    /// Operations to measure, of all clients together [default: the number of records].
    #[arg(
        long,
        value_name = "O",
        conflicts_with = "serve",
        value_parser = values::positive_count,
    )]
    ops: Option<u64>,
    /// Distribution of the chosen records, as of `bench` [default: the workload's].
    #[arg(long, conflicts_with = "serve", value_parser = dist)]
    dist: Option<Dist>,
    /// Kind of keys, as of `bench`: byte strings without spaces, such as 16, 20, 64.
    #[arg(long, default_value = "20", conflicts_with = "serve", value_parser = keys)]
    keys: Keys,
    /// Length of a value in bytes, from 8 on.
    #[arg(long, value_name = "N", default_value_t = 1000, conflicts_with = "serve")]
    value_bytes: usize,
    /// Nanoseconds added to each flush of a line; after a comma, to each fence.
    #[arg(long, value_name = "D[,F]", default_value = "0", value_parser = delay)]
    delay_ns: Delays,
    /// Persistence domain whose flushes and fences are executed: adr, eadr, process, volatile.
    #[arg(long, default_value = "adr", value_parser = values::domain)]
    domain: Domain,
    /// Instructions that write lines back and order them: fastest (such as clwb and sfence), or
    /// serial (clflush and mfence, as in papers from before clwb).
    #[arg(long, default_value = "fastest", value_parser = flushing)]
    flush: Flushing,
    /// Pool file: to create for the run and to remove after it; with --serve, to open or to create,
    /// and to keep [default: in /dev/shm].
    #[arg(long, value_name = "PATH")]
    pool: Option<PathBuf>,
    /// Size of a pool that --serve creates, with a unit K, M, G or T. It grows beyond that.
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "64M",
        requires = "serve",
        value_parser = values::bytes,
    )]
    pool_bytes: u64,
    /// Number of repetitions; the row has the one with the median speed.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        conflicts_with = "serve",
        value_parser = clap::value_parser!(u64).range(1..=1000),
    )]
    reps: u64,
    /// Seed of the keys and of the order of operations.
    #[arg(long, default_value_t = 1, conflicts_with = "serve")]
    seed: u64,
}

fn address(text: &str) -> Result<Address, AddressError> {
    text.parse()
}

/// A row of the answer.
#[derive(Serialize)]
struct Row {
    design: String,
    socket: Socket,
    clients: u64,
    workload: Workload,
    dist: Dist,
    keys: Keys,
    value_bytes: usize,
    records: u64,
    ops: u64,
    delay_ns: u64,
    domain: &'static str,
    flush: &'static str,
    reps: u64,
    seed: u64,
    loads_per_second: f64,
    load_ns: Latency,
    seconds: f64,
    ops_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    insert_ns: Option<Latency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    search_ns: Option<Latency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    update_ns: Option<Latency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store_ns_per_op: Option<f64>,
}

/// Measures each design, or serves one.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    match &args.serve {
        Some(address) => serve(args, address, output),
        None => measure(args, output),
    }
}

/// Serves until the process is killed, or until standard input ends.
fn serve(args: &Args, address: &Address, output: &mut Output) -> anyhow::Result<Answer> {
    let [design] = args.design.as_slice() else {
        return Err(UsageError("--serve takes one design".into()).into());
    };
    let pool = args.pool.clone().unwrap_or_else(temporary_pool);
    let place = Place {
        pool,
        bytes: args.pool_bytes,
        domain: args.domain,
        flushing: args.flush,
        delays: args.delay_ns,
    };
    let service = Service::open(design, &place)?;
    if args.pool.is_none() {
        // The store stays usable without its file, and no end of the server leaves it behind.
        std::fs::remove_file(&place.pool)?;
    }
    let server = Server::start(address, service)?;
    writeln!(output, "{}", Serve::line(server.address()))?;
    output.flush()?;
    if args.until_eof {
        std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink())?;
    } else {
        loop {
            std::thread::park();
        }
    }
    server.stop()?.close()?;
    Ok(Answer::Yes)
}

fn measure(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    let recipe = recipe(args);
    let plans = recipe.plans().map_err(|error| UsageError(error.to_string()))?;
    let recipes = [(recipe, plans)];
    let mut found: Vec<Vec<KvTimes>> = args.design.iter().map(|_| Vec::new()).collect();
    let mut progress = Progress::new(args.reps * args.design.len() as u64);
    for turn in 0..args.reps as usize {
        for at in 0..args.design.len() {
            // Each turn begins with another design.
            let at = (at + turn) % args.design.len();
            let design = &args.design[at];
            progress.say(design.clone());
            found[at].push(time(args, design, &recipes)?);
            progress.advance(1);
        }
    }
    drop(progress);
    let mut rows = Vec::new();
    for (design, times) in args.design.iter().zip(found) {
        let row = row(args, design, times, &recipes[0].0);
        if output.json {
            output.object(&row)?;
        }
        rows.push(row);
    }
    if !output.json {
        print(&rows, output)?;
    }
    Ok(Answer::Yes)
}

fn recipe(args: &Args) -> Recipe {
    let Args { records, keys, .. } = args;
    let wanted = args.ops.unwrap_or(*records);
    Recipe {
        workload: args.workload.clone(),
        dist: args.dist.unwrap_or(args.workload.dist()),
        records: *records,
        ops: args.workload.ops(wanted, *records),
        threads: args.clients,
        seed: args.seed,
        keys: keys.clone(),
        ..Recipe::default()
    }
}

fn time(args: &Args, design: &str, recipes: &[(Recipe, Vec<Plan>)]) -> anyhow::Result<KvTimes> {
    let run = KvRun {
        design: design.to_owned(),
        socket: args.socket,
        value_bytes: args.value_bytes,
        pool: args.pool.clone(),
        domain: args.domain,
        flushing: args.flush,
        delays: args.delay_ns,
    };
    Ok(run.time(recipes)?)
}

/// Returns the row of the repetition with the median speed.
fn row(args: &Args, design: &str, mut times: Vec<KvTimes>, recipe: &Recipe) -> Row {
    let speed = |times: &KvTimes| times.runs[0].measured.ops_per_second();
    times.sort_by(|a, b| speed(a).total_cmp(&speed(b)));
    let middle = times.swap_remove((times.len() - 1) / 2);
    let KvTimes { loads_per_second, load_ns, mut runs, .. } = middle;
    let found = runs.swap_remove(0);
    let [insert_ns, search_ns, update_ns] = found.latencies.percentiles();
    Row {
        design: design.to_owned(),
        socket: args.socket,
        clients: args.clients,
        workload: args.workload.clone(),
        dist: recipe.dist,
        keys: args.keys.clone(),
        value_bytes: args.value_bytes,
        records: args.records,
        ops: found.measured.ops,
        delay_ns: args.delay_ns.flush.as_nanos() as u64,
        domain: args.domain.name(),
        flush: args.flush.name(),
        reps: args.reps,
        seed: args.seed,
        loads_per_second,
        load_ns,
        seconds: found.measured.seconds,
        ops_per_second: found.measured.ops_per_second(),
        insert_ns,
        search_ns,
        update_ns,
        store_ns_per_op: found.store_ns,
    }
}

fn print(rows: &[Row], output: &mut Output) -> std::io::Result<()> {
    let titles = [
        "design",
        "loads/s",
        "load p99",
        "ops/s",
        "ratio",
        "insert p50",
        "p99",
        "search p50",
        "p99",
        "update p50",
        "p99",
        "store ns/op",
    ];
    let mut shown = table(&titles, 1..titles.len());
    for row in rows {
        let mut cells = vec![
            row.design.clone(),
            grouped(whole(row.loads_per_second)),
            grouped(row.load_ns.p99),
            grouped(whole(row.ops_per_second)),
            format!("{:.2}", row.ops_per_second / rows[0].ops_per_second),
        ];
        for latency in [row.insert_ns, row.search_ns, row.update_ns] {
            let of = |of: fn(Latency) -> u64| latency.map_or("-".into(), |all| grouped(of(all)));
            cells.extend([of(|all| all.p50), of(|all| all.p99)]);
        }
        cells.push(row.store_ns_per_op.map_or("-".into(), |ns| grouped(whole(ns))));
        shown.add_row(cells);
    }
    table::print(&shown, output)?;
    write!(output, "{LEGEND}")?;
    output.flush()
}

/// The meaning of the columns.
const LEGEND: &str = "
ratio: ops/s divided by those of the first row. p50, p99: the nanoseconds that this share of the
operations of a kind does not exceed at their client; load p99: of the inserts of the load. store
ns/op: the mean time of an operation within the store, at the server.
";
