//! Every peer against a model: call by call, and in the benchmark with several threads.

use super::btreemap::{Alone, Locked};
use super::by_name::Peer;
use super::congee::Congee;
#[cfg(feature = "peers")]
use super::disk;
use super::site::Site;
use super::skiplist::SkipList;
use super::tree_index::TreeIndex;
use crate::bench::{Bench, Comparison, ComparisonEvent, Delays, Flushing};
use crate::error::{LabError, Result};
use crate::system::{Session, System, Target, parse};
use crate::workload::{Recipe, Workload};
use bristlecone_pmem::Domain;
use bristlecone_pmem::journal::Durability;
use proptest::prelude::*;
use proptest::test_runner::Config;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Clone, Copy, Debug)]
enum Call {
    Insert(u64, u64),
    Update(u64, u64),
    Remove(u64),
    Get(u64),
    Scan(u64, usize),
}

/// Few keys, so that calls meet the same ones; keys at both ends and at borders of bytes.
fn key() -> impl Strategy<Value = u64> {
    prop_oneof![0..40_u64, 250..260_u64, (1 << 32)..(1 << 32) + 20_u64, u64::MAX - 8..=u64::MAX]
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let call = prop_oneof![
        4 => (key(), any::<u64>()).prop_map(|(key, value)| Call::Insert(key, value)),
        2 => (key(), any::<u64>()).prop_map(|(key, value)| Call::Update(key, value)),
        2 => key().prop_map(Call::Remove),
        2 => key().prop_map(Call::Get),
        1 => (key(), 1..60_usize).prop_map(|(key, length)| Call::Scan(key, length)),
    ];
    prop::collection::vec(call, 1..300)
}

/// The answers of a peer to a key that is present, and to one that is absent.
#[derive(Clone, Copy)]
struct Manner {
    /// Inserts and updates report whether the key was present.
    tells: bool,
    /// An insert of a present key replaces the value.
    replaces: bool,
    /// An update of an absent key inserts it.
    adds: bool,
}

const REPLACES: Manner = Manner { tells: true, replaces: true, adds: false };
const LEAVES: Manner = Manner { tells: true, replaces: false, adds: false };

/// Runs `calls` on `system` and on std's map. The answers must be equal.
fn follow<S: System>(mut system: S, calls: &[Call], manner: Manner) {
    let mut map = BTreeMap::new();
    let mut session = system.sessions(1).remove(0);
    for &call in calls {
        match call {
            Call::Insert(key, value) => {
                let is_new = !map.contains_key(&key);
                assert_eq!(
                    session.insert(key, value).unwrap(),
                    is_new || !manner.tells,
                    "{call:?}"
                );
                if is_new || manner.replaces {
                    map.insert(key, value);
                }
            }
            Call::Update(key, value) => {
                let was_there = map.contains_key(&key);
                let is_done = session.update(key, value).unwrap();
                assert_eq!(is_done, was_there || !manner.tells, "{call:?}");
                if was_there || manner.adds {
                    map.insert(key, value);
                }
            }
            Call::Remove(key) => {
                assert_eq!(session.remove(key).unwrap(), map.remove(&key).is_some(), "{call:?}");
            }
            Call::Get(key) => {
                assert_eq!(session.get(key).unwrap(), map.get(&key).copied(), "{call:?}");
            }
            Call::Scan(key, length) => {
                let count =
                    map.range((Bound::Included(key), Bound::Unbounded)).take(length).count();
                assert_eq!(session.scan(key, length).unwrap(), count, "{call:?}");
            }
        }
    }
    let keys: Vec<u64> = map.keys().copied().chain([41, 1 << 40]).collect();
    let mut values = vec![None; keys.len()];
    for (keys, values) in keys.chunks(16).zip(values.chunks_mut(16)) {
        session.multi_get(keys, values).unwrap();
    }
    let expected: Vec<_> = keys.iter().map(|key| map.get(key).copied()).collect();
    assert_eq!(values, expected);
}

/// A fixed seed, so that each run has the same cases.
fn config(cases: u32) -> Config {
    let rng_seed = proptest::test_runner::RngSeed::Fixed(11);
    Config { cases, rng_seed, failure_persistence: None, ..Config::default() }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn btreemap_is_like_the_model(calls in calls()) {
        follow(Alone::default(), &calls, REPLACES);
        follow(Locked::<u64>::default(), &calls, REPLACES);
    }
    #[test]
    fn skiplist_is_like_the_model(calls in calls()) {
        follow(SkipList::default(), &calls, LEAVES);
    }
    #[test]
    fn tree_index_is_like_the_model(calls in calls()) {
        follow(TreeIndex::default(), &calls, LEAVES);
    }
    #[test]
    fn congee_is_like_the_model(calls in calls()) {
        follow(Congee::default(), &calls, REPLACES);
    }
}

#[cfg(feature = "peers")]
proptest! {
    #![proptest_config(config(6))]

    #[test]
    fn stores_on_disk_are_like_the_model(calls in calls()) {
        for &engine in disk::Engine::ALL {
            let manner = match engine.name() {
                "lmdb" | "redb" => LEAVES,
                "sled" => Manner { adds: true, ..REPLACES },
                _ => Manner { tells: false, adds: true, ..REPLACES },
            };
            for promise in disk::Promise::ALL {
                follow(engine.create(promise, None).unwrap(), &calls, manner);
            }
        }
    }
}

/// Runs every workload with operations on `target` by `threads` threads. The benchmark checks the
/// answers.
fn conform(target: &Target, records: u64, ops: u64, threads: u64) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let pool = Some(folder.path().join("pool"));
    let bench = Bench {
        pool,
        domain: Domain::Adr,
        delays: Delays::default(),
        placement: None,
        flushing: Flushing::default(),
        durability: Durability::DEFAULT,
    };
    let mut comparison = Comparison::new(bench, vec![target.clone()], 1);
    for workload in Workload::named().filter(|workload| workload.reopens().is_none()) {
        let ops = workload.ops(ops, records);
        let dist = workload.dist();
        let (scan_length, seed) = (20, 5);
        let numbers = Recipe { records, ops, threads, scan_length, seed, ..Recipe::default() };
        let recipe = Recipe { workload, dist, ..numbers };
        let rows = comparison.run(&recipe, &mut |_: ComparisonEvent| ())?;
        let row = &rows[0];
        assert_eq!((row.ops, &row.design), (ops, &target.to_string()));
        assert_eq!(row.per_op.is_some(), target.is_counted());
        let is_on_disk = row.bytes_per_key.pm > 0.0;
        assert!(is_on_disk || target.is_counted() || target.to_string().contains('/'));
    }
    Ok(())
}

#[test]
fn every_peer_conforms_with_threads() {
    for peer in Peer::built_in() {
        let name = peer.to_string();
        let is_synced = !peer.is_counted() && !name.ends_with("-nosync");
        // Each change of a durable store waits for the disk.
        let (records, ops) = if is_synced { (60, 40) } else { (3000, 2000) };
        for threads in [1, 3] {
            let done = conform(&Target::Peer(peer.clone()), records, ops, threads);
            done.unwrap_or_else(|error| panic!("{name}, {threads} threads: {error}"));
        }
    }
}

#[test]
fn peers_are_targets_and_each_is_one_once() {
    let named = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        parse(&names, None).map(|targets| targets.iter().map(Target::to_string).collect::<Vec<_>>())
    };
    assert_eq!(named(&["btreemap", "peer:btreemap"]).unwrap(), ["btreemap", "btreemap"]);
    let peers = named(&["peer:congee", "peers"]).unwrap();
    assert_eq!(peers.len(), Peer::built_in().len(), "congee was there already");
    assert!(peers.contains(&"btreemap".into()) && peers.contains(&"peer:skiplist".into()));
    let all = named(&["all"]).unwrap();
    assert!(!all.iter().any(|name| name.starts_with("peer:")));
    assert!(matches!(named(&["peer:none"]), Err(LabError::UnknownPeer { .. })));
}

/// Compiles the library of the tests, if there is a compiler for it.
fn library(folder: &Path, defines: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pibench/map.cpp");
    let library = folder.join("libmap.so");
    let mut compiler = Command::new("g++");
    compiler.args(["-std=c++17", "-O1", "-shared", "-fPIC", "-Wall", "-Werror"]).args(defines);
    match compiler.arg("-o").arg(&library).arg(source).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{said}");
            Some(library)
        }
        Err(error) => {
            eprintln!("skipped: g++ cannot be started: {error}");
            None
        }
    }
}

fn peer_of(library: &Path) -> Peer {
    Peer::named(&format!("peer:{}", library.display())).unwrap().expect("it has the prefix")
}

fn site(folder: &Path) -> Site<'static> {
    Site { requested: None, pool: folder.join("pool"), pool_bytes: 1 << 20, threads: 3 }
}

#[test]
fn a_library_is_like_the_model_and_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = library(folder.path(), &[]) else { return };
    let peer = peer_of(&path);
    proptest!(config(50), |(calls in calls())| {
        follow(peer.create(&site(folder.path())).unwrap(), &calls, LEAVES);
    });
    conform(&Target::Peer(peer), 3000, 2000, 3).unwrap();
}

#[test]
fn a_library_gets_its_options() {
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = library(folder.path(), &[]) else { return };
    let pool = folder.path().join("pool");
    let tree = peer_of(&path).create(&site(folder.path())).unwrap();
    assert_eq!(std::fs::read_to_string(&pool).unwrap(), "8 8 1048576 3\n");
    drop(tree);
    assert!(!pool.exists(), "the pool is removed with the tree");
}

#[test]
fn a_file_that_was_there_is_no_pool_of_a_library() {
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = library(folder.path(), &[]) else { return };
    std::fs::write(folder.path().join("pool"), "mine").unwrap();
    let site = site(folder.path());
    let error = peer_of(&path).create(&site).err().unwrap();
    assert!(matches!(error, LabError::File { .. }));
    assert_eq!(std::fs::read(&site.pool).unwrap(), b"mine");
}

#[test]
fn what_is_no_such_library_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: &Path| {
        let error = peer_of(path).create(&site(folder.path())).err().unwrap();
        assert!(matches!(error, LabError::Peer { .. }));
        error.to_string()
    };
    let text = folder.path().join("text.so");
    std::fs::write(&text, "no library").unwrap();
    assert!(refused(&text).contains("text.so"));
    if let Some(other) = library(folder.path(), &["-DOTHER_INTERFACE"]) {
        assert!(refused(&other).contains("bulk_load"));
    }
}
