//! Inner nodes that a close has saved, with damage.

use crate::{mapped, path_of_own_process, place};
use bristlecone::{Batch, Error};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The offset of the checkpoint in the header of the first leaf.
const CHECKPOINT: usize = 40;
/// The offset of the list of leaves behind the beginning of a checkpoint.
const LEAVES: usize = 16;
/// The bytes of a leaf in the list: prefix, separator, offset.
const LEAF_BYTES: usize = 24;

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
    let at = word(&bytes, root + CHECKPOINT) as usize;
    change(&mut bytes[at..]);
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_batch_does_not_wait_for_a_leaf_that_it_has_latched() {
    let place = place();
    damage(&place.path, 1 << 20, |saved| {
        let end = LEAVES + LEAF_BYTES * word(saved, 0) as usize;
        assert!(end > LEAVES + 5 * LEAF_BYTES);
        let first = word(saved, LEAVES + 16);
        saved[LEAVES + 4 * LEAF_BYTES + 16..][..8].copy_from_slice(&first.to_le_bytes());
        let sum = u64::from(bristlecone_pmem::checksum(&saved[LEAVES..end]));
        saved[8..16].copy_from_slice(&sum.to_le_bytes());
    });
    let store = mapped().open(&place.path).unwrap();
    assert_eq!((store.was_recovered(), store.stats().rebuilt_count), (false, 0));
    let keys = (0..200).map(|number| format!("key {number:03}"));
    let committed = store.commit(&keys.fold(Batch::new(), |batch, key| batch.put(key, "2")));
    assert!(matches!(committed, Err(Error::Damaged { .. })), "{committed:?}");
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
