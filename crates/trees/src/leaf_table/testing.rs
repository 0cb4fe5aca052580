//! Helpers for the unit tests of trees with a leaf table.

use crate::index::{Order, PmIndex};
use crate::key::Key;
use bristlecone_pmem::medium::{Count, FileOptions};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Mapped, Medium, Pool};
use core::ops::{Bound, ControlFlow};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Returns an empty index on a medium that counts lines and fences.
pub(crate) fn counted<I: PmIndex<Count<Mapped>, u64>>() -> I {
    let medium = Count::new(Mapped::anonymous(1 << 20).unwrap());
    I::create(Arc::new(Pool::create(medium).unwrap()), "t").unwrap()
}

/// Returns the numbers of lines and fences that `act` causes.
pub(crate) fn cost<K: Key, I: PmIndex<Count<Mapped>, K>>(
    index: &I,
    act: impl FnOnce(&I),
) -> (u64, u64) {
    index.pool().medium().take();
    act(index);
    let counts = index.pool().medium().take();
    (counts.lines, counts.fences)
}

pub(crate) fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Returns all pairs of the index, by a descending scan.
pub(crate) fn pairs<M: Medium, I: PmIndex<M, u64>>(index: &I) -> BTreeMap<u64, u64> {
    let mut found = BTreeMap::new();
    let all = (Bound::Unbounded, Bound::Unbounded);
    let scan = index.scan(all, Order::Descending, &mut |key, value| {
        found.insert(key, value);
        ControlFlow::Continue(())
    });
    scan.unwrap();
    found
}

/// Does random operations with keys below `keys`, and compares each result with `model`.
pub(crate) fn run_session<I: PmIndex<Mapped, u64>>(
    index: &I,
    model: &mut BTreeMap<u64, u64>,
    state: &mut u64,
    keys: u64,
) {
    for step in 0..4000 {
        let key = random(state) % keys;
        match random(state) % 6 {
            0..3 => assert_eq!(index.upsert(key, step).unwrap(), model.insert(key, step)),
            3 => {
                let old = model.get(&key).copied();
                assert_eq!(index.update(key, step).unwrap(), old);
                old.map(|_| model.insert(key, step));
            }
            _ => assert_eq!(index.remove(key).unwrap(), model.remove(&key)),
        }
        assert_eq!(index.get(key).unwrap(), model.get(&key).copied());
    }
    assert_eq!(index.check().unwrap().keys, model.len() as u64);
}

/// Runs sessions, each after a crash or a clean close of the one before.
pub(crate) fn survives_crashes_and_closes<I: PmIndex<Mapped, u64>>() {
    let dir = tempfile::tempdir().unwrap();
    for keys in [20, 3000] {
        let path = dir.path().join(format!("{keys}.pool"));
        let options = FileOptions { reserve_bytes: 1 << 28, ..FileOptions::default() };
        let pool = Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap();
        let mut index = I::create(Arc::new(pool), "t").unwrap();
        let (mut model, mut state) = (BTreeMap::new(), keys);
        for session in 0..6 {
            run_session(&index, &mut model, &mut state, keys);
            if session % 2 == 0 {
                drop(index);
            } else {
                Arc::into_inner(Box::new(index).close().unwrap()).unwrap().close().unwrap();
            }
            let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
            assert_eq!(opened == Opened::Clean, session % 2 == 1);
            index = I::open(Arc::new(pool), "t", opened).unwrap();
            let stats = index.check().unwrap();
            // The pool itself has one block.
            assert_eq!(index.pool().usage().blocks, stats.blocks + 1, "session {session}");
            assert!(pairs(&index) == model, "session {session}");
        }
    }
}
