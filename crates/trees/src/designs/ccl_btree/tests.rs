use super::*;
use crate::leaf_table::testing::{cost, counted, pairs, random};
use bristlecone_pmem::medium::FileOptions;
use bristlecone_pmem::{Mapped, PoolError};
use std::collections::BTreeMap;

type Index<M, const BATCH: usize> = CclBTreeIndex<M, u64, BATCH>;

#[test]
fn the_last_write_of_a_batch_settles_the_buffer() {
    let index = counted::<Index<_, 2>>();
    index.insert(0, 0).unwrap(); // Reserves the first chunk.
    assert_eq!(cost(&index, |index| assert_eq!(index.insert(1, 1).unwrap(), None)), (1, 1));
    // Three entries: the first lies in the line of the header, the others in the second line.
    assert_eq!(cost(&index, |index| assert_eq!(index.insert(2, 2).unwrap(), None)), (2, 2));
    assert_eq!(cost(&index, |index| assert_eq!(index.update(1, 7).unwrap(), Some(1))), (1, 1));
    assert_eq!(cost(&index, |index| assert_eq!(index.update(1, 8).unwrap(), Some(7))), (1, 1));
    assert_eq!(cost(&index, |index| assert_eq!(index.remove(2).unwrap(), Some(2))), (1, 1));
    // The line with the value of 1, and the header line, for the remove of 2 and the value of 0.
    assert_eq!(cost(&index, |index| assert_eq!(index.update(0, 9).unwrap(), Some(0))), (2, 2));
    assert_eq!(index.check().unwrap().keys, 2);
}

#[test]
fn without_buffers_nothing_is_logged() {
    let index = counted::<Index<_, 0>>();
    index.insert(5, 5).unwrap();
    assert_eq!(cost(&index, |index| assert_eq!(index.insert(6, 6).unwrap(), None)), (2, 2));
    assert_eq!(cost(&index, |index| assert_eq!(index.update(6, 7).unwrap(), Some(6))), (1, 1));
    assert_eq!(cost(&index, |index| assert_eq!(index.remove(6).unwrap(), Some(7))), (1, 1));
    assert_eq!(index.check().unwrap().blocks, 2);
}

/// Asserts that of `BATCH + 1` updates of one leaf, all but the last cost one line and one fence.
/// The last one settles: it costs the lines of its entries, the first line, and two fences.
fn check_average_cost<const BATCH: usize>() {
    let index = counted::<Index<_, BATCH>>();
    for key in 0..1000 {
        index.insert(key, key).unwrap();
    }
    let keys: Vec<u64> = (0..1000).collect();
    let (mut appends, mut settles, mut others) = (0, 0, 0);
    for round in 0..3 * (BATCH as u64 + 1) {
        for &key in &keys {
            let before = index.pool.usage().blocks;
            match cost(&index, |index| assert!(index.update(key, round).unwrap().is_some())) {
                (1, 1) => appends += 1,
                (2..=4, 2) => settles += 1,
                _ => others += 1,
            }
            others += u64::from(index.pool.usage().blocks != before);
        }
    }
    let writes = 3 * (BATCH as u64 + 1) * 1000;
    assert!(settles * (BATCH as u64 + 1) <= writes + 1000, "{settles} of {writes} settle");
    assert!(appends * (BATCH as u64 + 1) >= writes * BATCH as u64 * 9 / 10, "{appends} append");
    assert!(others * 16 <= writes, "{others} of {writes} cost something else");
}

#[test]
fn one_write_of_each_batch_settles() {
    check_average_cost::<1>();
    check_average_cost::<2>();
    check_average_cost::<4>();
    check_average_cost::<8>();
}

/// Runs random operations in eight sessions, with crashes and closes between them.
fn run_sessions<const BATCH: usize>(keys: u64) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let options = FileOptions { reserve_bytes: 1 << 28, ..FileOptions::default() };
    let pool = Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap();
    let mut index = Index::<Mapped, BATCH>::create(Arc::new(pool), "t").unwrap();
    let mut model = BTreeMap::new();
    let mut state = BATCH as u64 + keys;
    for session in 0..8 {
        for step in 0..3000 {
            let key = random(&mut state) % keys;
            match random(&mut state) % 8 {
                0..=2 => assert_eq!(index.upsert(key, step).unwrap(), model.insert(key, step)),
                3 => {
                    let old = model.get(&key).copied();
                    assert_eq!(index.insert(key, step).unwrap(), old);
                    model.entry(key).or_insert(step);
                }
                4 => {
                    let old = model.get(&key).copied();
                    assert_eq!(index.update(key, step).unwrap(), old);
                    model.entry(key).and_modify(|value| *value = step);
                }
                5 | 6 => assert_eq!(index.remove(key).unwrap(), model.remove(&key)),
                _ => assert_eq!(index.get(key).unwrap(), model.get(&key).copied()),
            }
            if step % 1000 == 7 {
                index.collect().unwrap();
            }
        }
        let stats = index.check().unwrap();
        assert_eq!(stats.keys, model.len() as u64);
        // Two crashes, a close, and a close of the pool without a close of the index.
        match session % 4 {
            0 | 1 => drop(index),
            2 => Arc::into_inner(Box::new(index).close().unwrap()).unwrap().close().unwrap(),
            _ => {
                let pool = Arc::clone(&index.pool);
                drop(index);
                Arc::into_inner(pool).unwrap().close().unwrap();
            }
        }
        let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
        assert_eq!(opened == Opened::Clean, session % 4 >= 2);
        index = Index::open(Arc::new(pool), "t", opened).unwrap();
        let stats = index.check().unwrap();
        assert_eq!(stats.keys, model.len() as u64);
        if session % 4 < 3 {
            assert_eq!(index.pool.usage().blocks, stats.blocks + 1, "session {session}");
        }
        assert!(pairs(&index) == model, "session {session}");
    }
}

#[test]
fn pairs_survive_crashes_with_buffers_of_every_size() {
    for keys in [20, 2000] {
        run_sessions::<0>(keys);
        run_sessions::<1>(keys);
        run_sessions::<2>(keys);
        run_sessions::<3>(keys);
        run_sessions::<8>(keys);
    }
}

#[test]
fn a_collection_keeps_live_entries_and_shortens_the_logs() {
    let index = counted::<Index<_, 2>>();
    for round in 0..40 {
        for key in 0..200 {
            index.upsert(key, round).unwrap();
        }
    }
    index.collect().unwrap();
    let chunks = log::chunks(&index.pool, index.root_words().unwrap()).unwrap();
    assert!((1..=2).contains(&chunks.len()), "{} chunks", chunks.len());
    let stats = index.check().unwrap();
    assert_eq!(index.pool.usage().blocks, stats.blocks + 1);
    assert!(stats.blocks <= 1 + stats.leaves + 4, "{stats:?}");
}

/// Updates scattered keys until the phase of log GC changes, and returns the new phase.
fn update_until_next_phase(index: &Index<bristlecone_pmem::medium::Count<Mapped>, 2>) -> u64 {
    const UPDATES_MAX: u64 = 100_000;
    let phase = || index.log.phase.load(std::sync::atomic::Ordering::Relaxed);
    let before = phase();
    for value in 0..UPDATES_MAX {
        assert!(index.update(value * 7919 % 2000, value).unwrap().is_some());
        if phase() != before {
            return phase();
        }
    }
    panic!("the phase stays {before}");
}

#[test]
fn writes_collect_only_if_the_maintenance_worker_is_far_behind() {
    // Enough leaves for a collection of several steps.
    let index = counted::<Index<_, 2>>();
    for key in 0..2000 {
        index.insert(key, key).unwrap();
    }
    index.collect().unwrap();
    let worker = index.maintainer();
    assert_eq!(update_until_next_phase(&index), log::DUE);
    // Writes help with a due or running collection when the logs have twice the size.
    assert_eq!(update_until_next_phase(&index), log::HELPED);
    assert_eq!(update_until_next_phase(&index), log::IDLE);
    assert_eq!(update_until_next_phase(&index), log::DUE);
    assert!(index.run_maintenance_step().unwrap());
    assert_eq!(index.log.phase.load(std::sync::atomic::Ordering::Relaxed), log::RUNNING);
    assert_eq!(update_until_next_phase(&index), log::HELPED);
    assert_eq!(update_until_next_phase(&index), log::IDLE);
    // A due collection begins in a write once no worker is registered.
    assert_eq!(update_until_next_phase(&index), log::DUE);
    drop(worker);
    assert_eq!(update_until_next_phase(&index), log::RUNNING);
    assert_eq!(update_until_next_phase(&index), log::IDLE);
    assert!(!index.run_maintenance_step().unwrap());
    assert_eq!(index.check().unwrap().keys, 2000);
}

mod placement;

/// A stamp at the end of its range would wrap around, and later writes would seem older than the
/// damaged leaf.
#[test]
fn a_stamp_out_of_range_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let reopened = |stamp: u64| {
        let path = dir.path().join(format!("{stamp}.pool"));
        let pool = Pool::create(Mapped::create(&path, 1 << 20, &FileOptions::default()).unwrap());
        let index = Index::<Mapped, 2>::create(Arc::new(pool.unwrap()), "t").unwrap();
        index.insert(1, 1).unwrap();
        let first = PmPtr::new(index.pool.medium().load(&index.root_words().unwrap()[0]));
        let leaf = index.leaf(first).unwrap();
        index.pool.medium().store(&leaf.words[layout::STAMP], stamp);
        drop(index);
        let medium = Mapped::open(&path, &FileOptions::default()).unwrap();
        let (pool, opened) = Pool::open(medium).unwrap();
        Index::<Mapped, 2>::open(Arc::new(pool), "t", opened).map(drop)
    };
    for stamp in [layout::STAMP_MAX + 1, u64::MAX] {
        let refused = reopened(stamp);
        assert!(
            matches!(refused, Err(TreeError::Pool(PoolError::Corrupt(_)))),
            "{stamp}: {refused:?}"
        );
    }
    reopened(layout::STAMP_MAX).unwrap();
}
