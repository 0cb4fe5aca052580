//! Tests of a server and its clients, in one process.

use super::address::Stream;
use super::*;
use crate::bench::{Delays, Flushing};
use bristlecone_pmem::Domain;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::path::Path;

/// The designs of the tests: inner nodes in DRAM, and all nodes in the pool.
const DESIGNS: [&str; 2] = ["isle-tree", "wb-tree"];

pub(super) fn place(folder: &Path) -> Place {
    let (bytes, domain, delays) = (4 << 20, Domain::Adr, Delays::default());
    Place { pool: folder.join("kv.pool"), bytes, domain, flushing: Flushing::Fastest, delays }
}

/// Starts a server of `design` in `folder`, at a Unix socket or at a port of TCP.
fn start(design: &str, folder: &Path, is_unix: bool) -> Server {
    let service = Service::open(design, &place(folder)).unwrap();
    let unix = Address::Unix(folder.join("kv.socket"));
    let address = if is_unix { unix } else { "127.0.0.1:0".parse().unwrap() };
    Server::start(&address, service).unwrap()
}

fn get(client: &mut Client, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    client.get(key, &mut value).unwrap().then_some(value)
}

/// Sends `bytes` to `server`, ends the stream of requests, and returns all replies.
fn raw(server: &Server, bytes: &[u8]) -> String {
    let mut stream = Stream::connect(server.address()).unwrap();
    // Both fail where the server has ended the connection, which the reply tells.
    let _ = stream.write_all(bytes);
    let _ = match &stream {
        Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
        Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
    };
    let mut replies = Vec::new();
    // An error follows the replies if the server has not read all requests.
    let _ = stream.read_to_end(&mut replies);
    String::from_utf8_lossy(&replies).into_owned()
}

#[test]
fn replies_are_those_of_memcached() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(DESIGNS[0], folder.path(), false);
    let conversation = [
        ("get a b\r\n", "END\r\n"),
        ("set a 5 0 4\r\n\r\n\r\n\r\n", "STORED\r\n"),
        ("add a 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
        ("replace b 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
        ("add b 0 0 1\r\nx\r\n", "STORED\r\n"),
        ("get b a c\r\n", "VALUE b 0 1\r\nx\r\nVALUE a 5 4\r\n\r\n\r\n\r\nEND\r\n"),
        ("patch a 1 2\r\nyz\r\nget a\r\n", "STORED\r\nVALUE a 5 4\r\n\ryz\n\r\nEND\r\n"),
        ("patch a 3 2\r\nyz\r\n", "CLIENT_ERROR the bytes lie outside the value\r\n"),
        ("patch c 0 1\r\ny\r\n", "NOT_STORED\r\n"),
        ("replace b 1 0 2 noreply\r\nxx\r\nget b\r\n", "VALUE b 1 2\r\nxx\r\nEND\r\n"),
        ("delete b\r\ndelete b\r\n", "DELETED\r\nNOT_FOUND\r\n"),
        ("set a 0 0 2\r\nxxx\r\nget b\r\n", "CLIENT_ERROR bad data chunk\r\nERROR\r\nEND\r\n"),
        ("frobnicate\r\nversion\r\n", "ERROR\r\nVERSION 0.1.0\r\n"),
        ("verbosity 1\r\nquit\r\nget a\r\n", "OK\r\n"),
        ("get a", ""),
    ];
    for (request, replies) in conversation {
        assert_eq!(raw(&server, request.as_bytes()), replies, "{request:?}");
    }
    let unique = |key: &str| {
        let reply = raw(&server, format!("gets {key}\r\n").as_bytes());
        reply.split_whitespace().nth(4).map(str::to_owned)
    };
    let before = unique("a").unwrap();
    assert_eq!(unique("a").as_ref(), Some(&before));
    raw(&server, b"patch a 0 1\r\nq\r\n");
    assert_ne!(unique("a").unwrap(), before);
    let stats = raw(&server, b"stats\r\n");
    assert!(stats.contains("STAT delete_hits 1\r\n") && stats.ends_with("END\r\n"), "{stats}");
    server.stop().unwrap().close().unwrap();
}

/// A server outlives what clients do, and goes on with the others.
#[test]
fn hostile_clients_harm_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(DESIGNS[0], folder.path(), true);
    let mut client = Client::connect(server.address()).unwrap();
    client.set(b"key", b"value").unwrap();
    assert_eq!(raw(&server, &vec![b'x'; 1 << 20]), "CLIENT_ERROR line too long\r\n");
    // A value beyond the limit is skipped, also if it looks like requests.
    let mut large = format!("set large 0 0 {}\r\n", 3 << 20).into_bytes();
    large.extend(b"delete key\r\n".iter().cycle().take(3 << 20));
    large.extend_from_slice(b"\r\nget large\r\n");
    assert_eq!(raw(&server, &large), "SERVER_ERROR object too large for cache\r\nEND\r\n");
    // A client that dies within its data, and one that announces more than it has.
    assert_eq!(raw(&server, b"set key 0 0 100\r\nhalf"), "");
    assert_eq!(
        raw(&server, b"set key 0 0 2147483645\r\nhalf"),
        "SERVER_ERROR object too large for cache\r\n"
    );
    let bytes: Vec<u8> = (0..=255).collect();
    client.set(b"bytes", &bytes).unwrap();
    assert_eq!(get(&mut client, b"bytes"), Some(bytes));
    assert_eq!(get(&mut client, b"key").unwrap(), b"value");
    let longest = vec![7; VALUE_BYTES_MAX];
    client.set(b"longest", &longest).unwrap();
    assert_eq!(get(&mut client, b"longest").unwrap(), longest);
    assert!(matches!(client.get(b"a b", &mut Vec::new()), Err(ClientError::Key)));
    assert!(matches!(
        client.set(b"key", &vec![0; VALUE_BYTES_MAX + 1]),
        Err(ClientError::Answer(_))
    ));
    server.stop().unwrap().close().unwrap();
    assert!(client.set(b"key", b"later").is_err(), "the server has ended");
}

#[test]
fn a_second_server_needs_another_address_and_a_dead_one_leaves_its_socket() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(DESIGNS[0], folder.path(), true);
    let address = server.address().clone();
    let other = tempfile::tempdir().unwrap();
    let second = Service::open(DESIGNS[0], &place(other.path())).unwrap();
    assert!(Server::start(&address, second).is_err());
    server.stop().unwrap().close().unwrap();
    let Address::Unix(path) = &address else { panic!("a Unix socket") };
    // The socket of a process that was killed.
    drop(std::os::unix::net::UnixListener::bind(path).unwrap());
    assert!(path.exists());
    let server = start(DESIGNS[0], folder.path(), true);
    server.stop().unwrap().close().unwrap();
    assert!(!path.exists());
    assert!("nowhere".parse::<Address>().is_err() && "unix:".parse::<Address>().is_err());
}

#[test]
fn clients_at_once_lose_no_change() {
    const CLIENTS: usize = 4;
    const ROUNDS: u32 = 200;
    for design in DESIGNS {
        let folder = tempfile::tempdir().unwrap();
        let server = start(design, folder.path(), true);
        Client::connect(server.address()).unwrap().set(b"all", &[0; 4 * CLIENTS]).unwrap();
        std::thread::scope(|scope| {
            for number in 0..CLIENTS {
                let mut client = Client::connect(server.address()).unwrap();
                scope.spawn(move || {
                    for round in 1..=ROUNDS {
                        let word = round.to_le_bytes();
                        assert!(client.patch(b"all", 4 * number, &word).unwrap());
                        let own = format!("{number}:{round}");
                        client.set(own.as_bytes(), &word).unwrap();
                        assert_eq!(get(&mut client, own.as_bytes()).unwrap(), word);
                    }
                });
            }
        });
        let service = server.stop().unwrap();
        let mut value = Vec::new();
        assert!(service.store().get(b"all", &mut value).unwrap());
        assert_eq!(value[4..], [ROUNDS.to_le_bytes(); CLIENTS].concat());
        assert_eq!(service.store().check().unwrap().keys, u64::from(ROUNDS) * CLIENTS as u64 + 1);
        service.close().unwrap();
    }
}

#[derive(Clone, Debug)]
enum Step {
    Set(u8, Vec<u8>),
    Add(u8, Vec<u8>),
    Replace(u8, Vec<u8>),
    Delete(u8),
    GetMany(Vec<u8>),
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let value = || prop::collection::vec(any::<u8>(), 0..200);
    let step = prop_oneof![
        (0..20_u8, value()).prop_map(|(key, value)| Step::Set(key, value)),
        (0..20_u8, value()).prop_map(|(key, value)| Step::Add(key, value)),
        (0..20_u8, value()).prop_map(|(key, value)| Step::Replace(key, value)),
        (0..20_u8).prop_map(Step::Delete),
        prop::collection::vec(0..20_u8, 1..10).prop_map(Step::GetMany),
        Just(Step::Restart),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn a_server_is_a_map(steps in steps()) {
        for design in DESIGNS {
            let folder = tempfile::tempdir().unwrap();
            let mut server = start(design, folder.path(), true);
            let mut client = Client::connect(server.address()).unwrap();
            let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
            let key = |number: u8| format!("key{number}").into_bytes();
            for step in steps.clone() {
                match step {
                    Step::Set(number, value) => {
                        client.set(&key(number), &value).unwrap();
                        model.insert(key(number), value);
                    }
                    Step::Add(number, value) => {
                        let is_new = !model.contains_key(&key(number));
                        prop_assert_eq!(client.add(&key(number), &value).unwrap(), is_new);
                        model.entry(key(number)).or_insert(value);
                    }
                    Step::Replace(number, value) => {
                        let former = model.get_mut(&key(number));
                        let is_present = client.replace(&key(number), &value).unwrap();
                        prop_assert_eq!(is_present, former.is_some());
                        if let Some(former) = former {
                            *former = value;
                        }
                    }
                    Step::Delete(number) => {
                        let was_present = model.remove(&key(number)).is_some();
                        prop_assert_eq!(client.delete(&key(number)).unwrap(), was_present);
                    }
                    Step::GetMany(numbers) => {
                        let keys: Vec<_> = numbers.into_iter().map(key).collect();
                        let asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
                        let mut found = vec![None; keys.len()];
                        let mut visit = |at: usize, value: &[u8]| found[at] = Some(value.to_vec());
                        client.get_many(&asked, &mut visit).unwrap();
                        // A client finds a repeated key at its first place that is left.
                        for (key, found) in keys.iter().zip(found) {
                            prop_assert_eq!(found.as_ref(), model.get(key));
                        }
                    }
                    Step::Restart => {
                        server.stop().unwrap().close().unwrap();
                        server = start(design, folder.path(), true);
                        client = Client::connect(server.address()).unwrap();
                    }
                }
            }
            let service = server.stop().unwrap();
            prop_assert_eq!(service.store().check().unwrap().keys, model.len() as u64);
        }
    }
}

#[test]
fn a_store_of_another_design_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    Service::open(DESIGNS[0], &place(folder.path())).unwrap().close().unwrap();
    assert!(Service::open(DESIGNS[1], &place(folder.path())).is_err());
    assert!(Service::open("no-such-tree", &place(folder.path())).is_err());
    Service::open(DESIGNS[0], &place(folder.path())).unwrap().close().unwrap();
}
