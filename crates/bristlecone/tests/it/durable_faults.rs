//! Stores with a journal on a device that refuses one write, sync or growth: typed errors, reads go
//! on, and nothing acknowledged is lost.

use crate::{journaled, mapped, place};
use bristlecone::{Durability, Error, ErrorKind, Store};
use bristlecone_pmem::journal::Recording;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The number of writes of a run.
const WRITES: u64 = 400;

/// The pairs of a store.
type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(number: u64) -> Vec<u8> {
    format!("{:03}", number * 7 % 150).into_bytes()
}

/// Writes to `store` until it refuses. Returns the pairs whose writes returned, and those with the
/// last write.
fn write(store: &Store, recording: &Recording<()>) -> (Pairs, Pairs) {
    let (mut done, mut tried) = (Pairs::new(), Pairs::new());
    for number in 0..WRITES {
        let (key, value) = (key(number), vec![number as u8; 300 + number as usize * 5]);
        let mut next = done.clone();
        next.insert(key.clone(), value.clone());
        tried.clone_from(&next);
        match store.put(&key, &value) {
            Ok(()) => done = next,
            Err(Error::Full { .. }) => assert!(recording.has_failed(), "the file cannot grow"),
            Err(Error::System { .. } | Error::WritesEnded { .. }) => {
                assert!(recording.has_failed());
                break;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    (done, tried)
}

/// Lets the call number `call` fail. Returns `false` if there are fewer.
fn fail(durability: Durability, call: u64) -> bool {
    let place = place();
    mapped().create(&place.path).unwrap().close().unwrap();
    let options = journaled(durability);
    let recording = Arc::new(Recording::failing(call));
    let store = match options.open_traced(&place.path, recording.clone()) {
        Ok(store) => store,
        Err(error) => {
            assert!(recording.has_failed(), "{error}");
            assert_eq!(error.kind(), ErrorKind::System, "{error:?}");
            mapped().open(&place.path).unwrap().close().unwrap();
            return true;
        }
    };
    let (done, tried) = write(&store, &recording);
    // Reads go on. They may find the write that was refused.
    for (key, value) in &done {
        let found = store.get(key).unwrap();
        assert!([Some(value), tried.get(key)].contains(&found.as_ref()), "call {call}");
    }
    let has_failed = recording.has_failed();
    let mut has_ended = store.sync().is_err();
    for _ in 0..2 {
        let again = store.put("another", "write");
        // A thread that syncs or grows the file may meet the refusal only now.
        let ends = matches!(again, Err(Error::WritesEnded { .. }));
        assert!(ends || !has_ended, "{again:?}");
        assert!(!ends || recording.has_failed(), "{again:?}");
        has_ended = ends;
        store.delete("another").ok();
    }
    if has_ended {
        assert!(store.close().is_err());
    } else if let Err(error) = store.close() {
        assert!(recording.has_failed(), "{error}");
    }
    let has_failed = has_failed || recording.has_failed();
    let store = mapped().open(&place.path).unwrap_or_else(|e| panic!("{durability:?} {call}: {e}"));
    let all: Result<Vec<_>, _> = store.iter().collect();
    let all = all.unwrap_or_else(|e| {
        panic!("{durability:?}, call {call}, ended before the close {has_ended}: {e:?}")
    });
    let mut found: Pairs = all.into_iter().collect();
    found.remove(b"another".as_slice());
    let is_there = |pairs: &Pairs| *pairs == found;
    let is_right = is_there(&done) || is_there(&tried);
    assert!(is_right, "{durability:?}, call {call}: {} pairs, not {}", found.len(), done.len());
    has_failed
}

#[test]
fn a_device_that_refuses_a_call_ends_all_writes_and_loses_none() {
    for durability in [Durability::Commit, Durability::Interval(Duration::from_millis(1))] {
        // Each of the first calls, which are those of the open, and some of the later ones.
        let calls = (0..24).chain((24..2000).step_by(37));
        let failures = calls.take_while(|&call| fail(durability, call)).count();
        assert!(failures > 26, "{durability:?}: {failures} failures");
    }
}
