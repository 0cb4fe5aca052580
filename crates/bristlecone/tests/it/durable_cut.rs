//! Power cuts of a store with a journal: what is written is recorded, and after each of many
//! moments every sector that was not synced is taken as it was before or as it was written.

use crate::{pairs, place, small};
use bristlecone::{Durability, Store};
use bristlecone_pmem::journal::DiskTrace;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SECTOR: usize = 512;
/// The number of writes of a run.
const WRITES: u64 = 3000;
/// The number of different keys.
const KEYS: u64 = 60;
/// The number of images of a run.
const IMAGES: usize = 200;

#[derive(Debug)]
enum Event {
    Write(Option<u64>, u64, Vec<u8>),
    Sync(Option<u64>),
    /// So many writes have returned.
    Returned(u64),
}

#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<Event>>);

impl Recorder {
    fn note(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

impl DiskTrace for Recorder {
    fn write(&self, file: Option<u64>, at: u64, bytes: &[u8]) {
        self.note(Event::Write(file, at, bytes.into()));
    }
    fn sync(&self, file: Option<u64>) {
        self.note(Event::Sync(file));
    }
}

/// A file of the store: `None` is the pool.
type Files = BTreeMap<Option<u64>, Vec<u8>>;
/// The pairs of the store.
type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn files_of(path: &Path) -> (Files, u64) {
    let journal = path.with_extension("pool.journal");
    let mut files = Files::from([(None, fs::read(path).unwrap())]);
    let mut ring_bytes = 0;
    for entry in fs::read_dir(journal).unwrap().map(Result::unwrap) {
        match entry.file_name().to_str().unwrap().parse() {
            Ok(index) => drop(files.insert(Some(index), fs::read(entry.path()).unwrap())),
            Err(_) => ring_bytes = entry.metadata().unwrap().len(),
        }
    }
    (files, ring_bytes)
}

/// Returns the image of a cut after `count` events, and the number of writes that had returned.
fn cut(before: &Files, events: &[Event], count: usize, state: &mut u64) -> (Files, u64) {
    let mut files = before.clone();
    let mut unsynced: BTreeMap<(Option<u64>, usize), Vec<&[u8]>> = BTreeMap::new();
    let mut returned = 0;
    let mut put = |file: Option<u64>, sector: usize, bytes: &[u8]| {
        let file = files.get_mut(&file).unwrap();
        if file.len() < (sector + 1) * SECTOR {
            file.resize((sector + 1) * SECTOR, 0); // The file has grown since.
        }
        file[sector * SECTOR..][..SECTOR].copy_from_slice(bytes);
    };
    for event in &events[..count] {
        match event {
            Event::Write(file, at, bytes) => {
                let first = *at as usize / SECTOR;
                for (sector, bytes) in (first..).zip(bytes.chunks_exact(SECTOR)) {
                    unsynced.entry((*file, sector)).or_default().push(bytes);
                }
            }
            Event::Sync(synced) => unsynced.retain(|&(file, sector), versions| {
                if file == *synced {
                    put(file, sector, versions.last().unwrap());
                }
                file != *synced
            }),
            Event::Returned(number) => returned = *number,
        }
    }
    for ((file, sector), versions) in unsynced {
        let version = random(state) as usize % (versions.len() + 1);
        if version > 0 {
            put(file, sector, versions[version - 1]);
        }
    }
    (files, returned)
}

/// Runs writes of one thread, cuts the power, and demands that each image has the state after some
/// write: after none before `least`, of those that had returned. Returns the number of images
/// without a write that had returned.
fn check(durability: Durability, least: impl Fn(u64) -> u64) -> usize {
    let place = place();
    small().create(&place.path).unwrap().close().unwrap();
    let options = small().durable(durability).journal_bytes(1 << 20).trust_file_system(true);
    let recorder = Arc::new(Recorder::default());
    let store = options.open_traced(&place.path, Some(recorder.clone())).unwrap();
    let (before, ring_bytes) = files_of(&place.path);
    recorder.0.lock().unwrap().clear();

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
        recorder.note(Event::Returned(write));
    }
    drop(store);
    // A longer file is durable before anything is written past its former end.
    let pool_bytes = fs::metadata(&place.path).unwrap().len() as usize;

    let events = std::mem::take(&mut *recorder.0.lock().unwrap());
    let is_mark = |event: &&Event| matches!(event, Event::Write(None, 0x800 | 0xa00, _));
    let checkpoints = events.iter().filter(is_mark).count();
    assert!(checkpoints > 1, "{checkpoints} checkpoints");
    let folder = tempfile::tempdir().unwrap();
    let mut losses = 0;
    for image in 0..IMAGES {
        let count = random(&mut state) as usize % (events.len() + 1);
        let (mut files, returned) = cut(&before, &events, count, &mut state);
        files.get_mut(&None).unwrap().resize(pool_bytes, 0);
        let path = folder.path().join(format!("{image}.pool"));
        let journal = path.with_extension("pool.journal");
        fs::create_dir(&journal).unwrap();
        fs::write(journal.join("ring"), vec![0; ring_bytes as usize]).unwrap();
        for (file, bytes) in files {
            let path = file.map_or(path.clone(), |index| journal.join(format!("{index:04}")));
            fs::write(path, bytes).unwrap();
        }
        let mut store = Store::open(&path).unwrap_or_else(|e| panic!("event {count}: {e}"));
        let found: Pairs = pairs(&store).into_iter().collect();
        let allowed = &states[least(returned) as usize..];
        assert!(allowed.contains(&found), "event {count}, {returned} returned: {found:?}");
        losses += usize::from(!states[returned as usize..].contains(&found));
        assert_eq!(store.check().unwrap().unreachable_blocks, 0);
        store.close().unwrap();
        fs::remove_file(&path).unwrap();
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
