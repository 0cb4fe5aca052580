//! Inner nodes that a close has saved, with damage.

use crate::{mapped, path_of_own_process, place};
use std::fs;
use std::path::Path;
use std::process::Command;

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Creates a store with some leaves, closes it and lets `change` change the checkpoint.
fn damage(path: &Path, bytes: u64, change: impl Fn(&mut [u8])) {
    let store = mapped().initial_bytes(bytes).create(path).unwrap();
    for number in 0..200 {
        store.put(format!("key {number:03}"), "1").unwrap();
    }
    store.close().unwrap();
    let mut bytes = fs::read(path).unwrap();
    let root = word(&bytes, 0x2000) as usize - 1;
    let at = word(&bytes, root + 8) as usize;
    change(&mut bytes[at..]);
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_number_of_leaves_takes_no_memory() {
    if let Some(path) = path_of_own_process() {
        let store = mapped().open(path).unwrap();
        assert_eq!((store.stats().rebuilt_count, store.len().unwrap()), (1, 200));
        return;
    }
    let place = place();
    damage(&place.path, 64 << 20, |saved| saved[2] ^= 1 << 5);
    let output = Command::new("sh")
        .args(["-c", "ulimit -d 32768; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["checkpoint::a_damaged_number_of_leaves_takes_no_memory", "--exact"])
        .env(crate::PATH_VARIABLE, &place.path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
