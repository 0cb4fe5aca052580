//! The memory that a store takes, and gives back.

use crate::{in_own_process, mapped, path_of_own_process};

/// Returns the memory of this process that belongs to no file, in bytes.
fn anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

/// Blocks that wait for readers once waited in a queue of the process, and each kept the heap of
/// its pool.
#[test]
fn a_dropped_store_with_retired_blocks_leaves_no_memory_behind() {
    const KEYS: u64 = 20_000;
    const ROUNDS: u64 = 100;
    const LEFT_BYTES_MAX: u64 = ROUNDS << 12;
    let Some(path) = path_of_own_process() else {
        let name = "memory::a_dropped_store_with_retired_blocks_leaves_no_memory_behind";
        return in_own_process(name);
    };
    let store = mapped().create(&path).unwrap();
    (0..KEYS).for_each(|key| store.put(key.to_be_bytes(), [7; 100]).unwrap());
    store.close().unwrap();
    let mut first = 0;
    for round in 0..ROUNDS {
        let store = mapped().open(&path).unwrap();
        // Few of the replaced records are free when the store is dropped.
        (0..32).for_each(|key: u64| store.put(key.to_be_bytes(), [round as u8; 100]).unwrap());
        drop(store);
        // The first rounds fill what the process keeps for later.
        if round < ROUNDS / 10 {
            first = anonymous_bytes();
        }
    }
    let left = anonymous_bytes().saturating_sub(first);
    assert!(left < LEFT_BYTES_MAX, "{left} B after {ROUNDS} stores");
}
