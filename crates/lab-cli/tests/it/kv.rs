//! `kv`: the measurement, the server, and what its kill leaves.

use crate::{objects, run};
use bristlecone_lab::bench::{Delays, Flushing};
use bristlecone_lab::kv::{Address, Client, Place, Serve, ServerProcess, Service};
use bristlecone_pmem::Domain;
use std::path::Path;
use std::sync::mpsc;

const SMALL: [&str; 10] = [
    "kv",
    "--json",
    "--records",
    "500",
    "--ops",
    "400",
    "--delay-ns",
    "100,10",
    "--flush",
    "serial",
];

#[test]
fn a_measurement_is_a_row_for_each_design() {
    for socket in ["unix", "tcp", "none"] {
        let more = ["--design", "isle-tree,wb-tree", "--clients", "3", "--socket", socket];
        let rows = objects(&run(&[&SMALL[..], &more].concat(), b"").expect(0));
        assert_eq!(rows.len(), 2);
        for (row, design) in rows.iter().zip(["isle-tree", "wb-tree"]) {
            assert_eq!((&row["design"], &row["socket"]), (&design.into(), &socket.into()));
            assert_eq!((&row["ops"], &row["clients"]), (&400.into(), &3.into()));
            assert_eq!((&row["domain"], &row["flush"]), (&"adr".into(), &"serial".into()));
            for kind in ["load_ns", "search_ns", "update_ns"] {
                assert!(row[kind]["p99"].as_u64() >= row[kind]["p50"].as_u64(), "{row}");
            }
            assert!(row["insert_ns"].is_null() && row["ops_per_second"].is_number(), "{row}");
            assert_eq!(row["store_ns_per_op"].is_number(), socket != "none", "{row}");
        }
    }
    let table =
        run(&["kv", "--design", "isle-tree", "--records", "100", "--workload", "insert"], b"");
    assert!(table.expect(0).contains("store ns/op"));
}

#[test]
fn what_the_store_or_the_protocol_does_not_take_is_refused() {
    let refused: [&[&str]; 10] = [
        &["--design", "no-such-tree"],
        &["--design", "isle-tree", "--value-bytes", "7"],
        &["--design", "isle-tree", "--keys", "u64"],
        &["--design", "isle-tree", "--workload", "e"],
        &["--design", "isle-tree", "--workload", "reopen-crash"],
        &["--design", "isle-tree", "--socket", "pigeon"],
        &["--design", "isle-tree", "--flush", "never"],
        &["--design", "isle-tree", "--serve", "nowhere"],
        &["--design", "isle-tree,wb-tree", "--serve", "127.0.0.1:0"],
        &["--design", "isle-tree", "--serve", "127.0.0.1:0", "--clients", "2"],
    ];
    for arguments in refused {
        let small: &[&str] =
            if arguments.contains(&"--serve") { &["kv"] } else { &["kv", "--records", "50"] };
        run(&[small, arguments].concat(), b"").refused(2);
    }
    let folder = tempfile::tempdir().unwrap();
    let pool = folder.path().join("precious.pool");
    std::fs::write(&pool, "precious").unwrap();
    let taken = ["kv", "--design", "isle-tree", "--records", "50", "--pool"];
    run(&[&taken[..], &[pool.to_str().unwrap()]].concat(), b"").refused(2);
    assert_eq!(std::fs::read(&pool).unwrap(), b"precious");
    let unreachable = ["kv", "--design", "isle-tree", "--serve", "unix:/no/such/folder/socket"];
    run(&unreachable, b"").refused(4);
}

fn serve(design: &str, folder: &Path) -> Serve {
    let (bytes, domain, delays) = (8 << 20, Domain::Adr, Delays::default());
    let (pool, flushing) = (folder.join("kv.pool"), Flushing::Serial);
    let place = Place { pool, bytes, domain, flushing, delays };
    Serve { design: design.into(), address: Address::Unix(folder.join("kv.socket")), place }
}

fn start(serve: &Serve) -> ServerProcess {
    ServerProcess::start(Path::new(env!("CARGO_BIN_EXE_bristlecone-lab")), serve).unwrap()
}

/// The number of clients that write when the server is killed.
const CLIENTS: usize = 4;

/// Writes from `first` on until the server is gone: a pair of its own for each number, and the
/// number in one pair that all share. Tells `done` each number that was acknowledged.
fn write(address: &Address, client: usize, first: u64, done: &mpsc::Sender<(usize, u64)>) {
    let mut connection = Client::connect(address).unwrap();
    for number in first.. {
        let value = format!("{number}:{}", "x".repeat(number as usize % 300));
        let own = connection.set(format!("{client}:{number}").as_bytes(), value.as_bytes());
        let last =
            own.and_then(|()| connection.set(format!("{client}").as_bytes(), value.as_bytes()));
        if last.is_err() || done.send((client, number)).is_err() {
            return;
        }
    }
}

fn number_of(value: &[u8]) -> u64 {
    let text = str::from_utf8(value).unwrap();
    let (number, filler) = text.split_once(':').unwrap();
    let number = number.parse().unwrap();
    assert_eq!(filler.len() as u64, number % 300, "a value is whole");
    number
}

#[test]
fn a_killed_server_has_every_acknowledged_set() {
    const KILLS: u64 = 3;
    const WRITES: u64 = 400;
    for design in ["isle-tree", "wb-tree"] {
        let folder = tempfile::tempdir().unwrap();
        let serve = serve(design, folder.path());
        let mut last = [0; CLIENTS];
        for kill in 1..=KILLS {
            let server = start(&serve);
            let (done, acknowledged) = mpsc::channel();
            std::thread::scope(|scope| {
                for (client, &last) in last.iter().enumerate() {
                    let (address, done) = (server.address().clone(), done.clone());
                    scope.spawn(move || write(&address, client, last + 1, &done));
                }
                drop(done);
                let mut count = 0;
                let mut server = Some(server);
                for (client, number) in acknowledged {
                    last[client] = number;
                    count += 1;
                    if count == WRITES {
                        server.take().unwrap().kill().unwrap();
                    }
                }
                assert!(server.is_none() && count >= WRITES, "kill {kill}");
            });
            let service = Service::open(design, &serve.place).unwrap();
            let mut value = Vec::new();
            for (client, &last) in last.iter().enumerate() {
                for number in 1..=last {
                    let key = format!("{client}:{number}");
                    assert!(service.store().get(key.as_bytes(), &mut value).unwrap(), "{key}");
                    assert_eq!(number_of(&value[4..]), number);
                }
                assert!(service.store().get(format!("{client}").as_bytes(), &mut value).unwrap());
                // The set that was under way may have had its effect.
                let found = number_of(&value[4..]);
                assert!((last..=last + 1).contains(&found), "{client}: {found} after {last}");
            }
            // The root of the index is a block too.
            let reached = service.store().check().unwrap().blocks + 1;
            assert_eq!(service.store().pool().usage().blocks, reached, "no block leaks");
        }
    }
}

#[test]
fn a_server_ends_with_its_input_and_keeps_its_pool() {
    let folder = tempfile::tempdir().unwrap();
    let serve = serve("isle-tree", folder.path());
    let server = start(&serve);
    Client::connect(server.address()).unwrap().set(b"key", b"value").unwrap();
    server.stop().unwrap();
    let server = start(&serve);
    let mut value = Vec::new();
    assert!(Client::connect(server.address()).unwrap().get(b"key", &mut value).unwrap());
    assert_eq!(value, b"value");
    server.stop().unwrap();
    let damaged = folder.path().join("damaged.pool");
    std::fs::write(&damaged, [7; 4096]).unwrap();
    let arguments = ["kv", "--design", "isle-tree", "--serve", "127.0.0.1:0", "--pool"];
    let arguments = [&arguments[..], &[damaged.to_str().unwrap()]].concat();
    assert_eq!(run(&arguments, b"").code, Some(3));
}
