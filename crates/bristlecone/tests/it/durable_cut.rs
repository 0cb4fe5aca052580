//! Power cuts of a store with a journal: what is written is recorded, and after each of many
//! moments every sector that was not synced is taken as it was before or as it was written.

use crate::{journaled, mapped, pairs, place};
use bristlecone::Durability;
use bristlecone_pmem::journal::Recording;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

/// The number of writes of a run.
const WRITES: u64 = 3000;
/// The number of different keys.
const KEYS: u64 = 60;
/// The offset of the id of the boot in a ring.
const BOOT_IN_RING: usize = 16;
/// The offset of the slots in a ring.
const SLOTS_IN_RING: usize = 4096;
/// The number of images of a run.
const IMAGES: usize = 200;

/// The pairs of the store.
type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Runs writes of one thread, cuts the power, and demands that each image has the state after some
/// write: after none before `least`, of those that had returned. Returns the number of images
/// without a write that had returned.
fn check(durability: Durability, least: impl Fn(u64) -> u64) -> usize {
    let place = place();
    mapped().create(&place.path).unwrap().close().unwrap();
    let options = journaled(durability);
    let recording = Arc::new(Recording::default());
    let store = options.open_traced(&place.path, recording.clone()).unwrap();
    let ring = place.path.with_extension("pool.journal").join("ring");
    let mut ring = fs::read(ring).unwrap();
    ring[BOOT_IN_RING] ^= 0x5A; // As after a restart that has lost its records.
    ring[SLOTS_IN_RING..].fill(0);

    let (mut state, mut model) = (0x1234_5678_9ABC_DEF1_u64, Pairs::new());
    let mut states = vec![model.clone()];
    for write in 1..=WRITES {
        let number = random(&mut state) % KEYS;
        let key = format!("{number:0width$}", width = 4 + number as usize % 9).into_bytes();
        if random(&mut state).is_multiple_of(3) {
            assert_eq!(store.delete(&key).unwrap(), model.remove(&key).is_some());
        } else {
            let bytes = 8 + random(&mut state) as usize % 400;
            let value = write.to_le_bytes().into_iter().cycle().take(bytes).collect::<Vec<_>>();
            store.put(&key, &value).unwrap();
            model.insert(key, value);
        }
        states.push(model.clone());
        recording.note(write);
    }
    drop(store);
    let path = &place.path; // A copy of a store that was not closed is refused.
    let journal = path.with_extension("pool.journal");
    assert!(recording.marks() > 2, "{} marks: too few checkpoints", recording.marks());
    let mut losses = 0;
    for _ in 0..IMAGES {
        let count = random(&mut state) as usize % (recording.len() + 1);
        let choose = |below| random(&mut state) as usize % below;
        let (files, notes) = recording.cut(count, false, choose);
        let returned = notes.last().copied().unwrap_or(0);
        let _ = fs::remove_dir_all(&journal); // An image before the mark leaves it.
        fs::create_dir(&journal).unwrap();
        fs::write(journal.join("ring"), &ring).unwrap();
        for (file, bytes) in files {
            let path =
                file.map_or(path.clone(), |index| journal.join(format!("{index:04}.bristlecone")));
            fs::write(path, bytes).unwrap();
        }
        let mut store = mapped().open(path).unwrap_or_else(|e| panic!("event {count}: {e}"));
        let found: Pairs = pairs(&store).into_iter().collect();
        let allowed = &states[least(returned) as usize..];
        assert!(allowed.contains(&found), "event {count}, {returned} returned: {found:?}");
        losses += usize::from(!states[returned as usize..].contains(&found));
        assert_eq!(store.check().unwrap().unreachable_blocks, 0);
        store.close().unwrap();
    }
    losses
}

#[test]
fn a_power_cut_keeps_each_write_that_has_committed() {
    assert_eq!(check(Durability::Commit, |returned| returned), 0);
}

#[test]
fn a_power_cut_keeps_a_prefix_of_the_writes_of_an_interval() {
    let losses = check(Durability::Interval(Duration::from_millis(20)), |_| 0);
    assert!(losses > 0, "a cut between two syncs loses what was written there");
}
