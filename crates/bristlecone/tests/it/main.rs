//! The store through its public methods: files, threads, kills and damage.

mod bad_input;
mod batch;
mod checkpoint;
mod closures;
mod copies;
mod corpus;
mod cost;
mod durable;
mod durable_cut;
mod durable_faults;
mod exchange;
mod files;
mod fork;
mod image;
mod images;
mod kill;
mod limits;
mod memory;
mod model;
mod mounts;
mod placement;
mod power_cut;
mod refusal;
mod salvage;
mod scans;
mod space;
mod threads;

use bristlecone::{Durability, Options, Pair, Store};
use std::path::PathBuf;
use std::process::Command;

/// A temporary folder that the test removes at its end, and a path in it.
struct Place {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn place() -> Place {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("test.pool");
    Place { _folder: folder, path }
}

const PATH_VARIABLE: &str = "BRISTLECONE_TEST_STORE";

/// Runs the test `name` in a process of its own, which other tests do not disturb.
fn in_own_process(name: &str) {
    let place = place();
    let output = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(PATH_VARIABLE, &place.path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Returns the path of the store of a test that runs in a process of its own, and `None` in the
/// process of all tests.
fn path_of_own_process() -> Option<String> {
    std::env::var(PATH_VARIABLE).ok()
}

/// Returns options for a file of 1 MiB, with a small journal where it has one.
fn small() -> Options {
    Store::options().initial_bytes(1 << 20).reserve_bytes(1 << 30).journal_bytes(1 << 20)
}

/// Returns options for a file of 1 MiB without a journal: its bytes are those that a kill leaves.
fn mapped() -> Options {
    small().durability(Durability::Process)
}

/// Returns options for a file of 1 MiB with a journal, wherever the folder of a test is.
fn journaled(durability: Durability) -> Options {
    small().durability(durability).trust_file_system(true)
}

/// Returns all pairs, in order.
fn pairs(store: &Store) -> Vec<Pair> {
    store.iter().collect::<Result<_, _>>().expect("a whole store")
}
