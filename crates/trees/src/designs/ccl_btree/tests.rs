use super::*;
use crate::leaf_table::testing::{cost, counted, pairs, random};
use bristlecone_pmem::medium::FileOptions;
use bristlecone_pmem::{Mapped, PoolError};
use std::collections::BTreeMap;

type Index<M, const BATCH: usize> = CclBTreeIndex<M, u64, BATCH>;

#[test]
fn a_batch_is_logged_but_for_its_last_write_which_settles_it() {
    let index = counted::<Index<_, 2>>();
    index.insert(0, 0).unwrap(); // Begins a chunk.
    assert_eq!(cost(&index, |index| assert_eq!(index.insert(1, 1).unwrap(), None)), (1, 1));
    // Three entries: the first shares the line of the header, the others lie in the second line.
    assert_eq!(cost(&index, |index| assert_eq!(index.insert(2, 2).unwrap(), None)), (2, 2));
    assert_eq!(cost(&index, |index| assert_eq!(index.update(1, 7).unwrap(), Some(1))), (1, 1));
    assert_eq!(cost(&index, |index| assert_eq!(index.update(1, 8).unwrap(), Some(7))), (1, 1));
    assert_eq!(cost(&index, |index| assert_eq!(index.remove(2).unwrap(), Some(2))), (1, 1));
    // The value of 1, and the header, where 2 goes and 0 has its entry.
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

/// Updates that find every leaf in the same state: of `BATCH + 1` of them to one leaf all but the last
/// are a line and a fence; the last has the lines of its entries, the first line, and two fences.
fn average<const BATCH: usize>() {
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
    assert!(others * 16 <= writes, "{others} of {writes} are something else");
}

#[test]
fn of_a_batch_one_write_settles() {
    average::<1>();
    average::<2>();
    average::<4>();
    average::<8>();
}

/// Any mix of operations, with deaths and closes between them, in a small and in a larger tree.
fn lives<const BATCH: usize>(keys: u64) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let options = FileOptions { reserve_bytes: 1 << 28, ..FileOptions::default() };
    let pool = Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap();
    let mut index = Index::<Mapped, BATCH>::create(Arc::new(pool), "t").unwrap();
    let mut model = BTreeMap::new();
    let mut state = BATCH as u64 + keys;
    for life in 0..8 {
        for step in 0..3000 {
            let key = random(&mut state) % keys;
            match random(&mut state) % 8 {
                0..=2 => assert_eq!(index.upsert(key, step).unwrap(), model.insert(key, step)),
                3 => {
                    let there = model.get(&key).copied();
                    assert_eq!(index.insert(key, step).unwrap(), there);
                    model.entry(key).or_insert(step);
                }
                4 => {
                    let there = model.get(&key).copied();
                    assert_eq!(index.update(key, step).unwrap(), there);
                    model.entry(key).and_modify(|value| *value = step);
                }
                5 | 6 => assert_eq!(index.remove(key).unwrap(), model.remove(&key)),
                _ => assert_eq!(index.get(key).unwrap(), model.get(&key).copied()),
            }
            if step % 1000 == 7 {
                index.collect().unwrap();
            }
        }
        let census = index.check().unwrap();
        assert_eq!(census.keys, model.len() as u64);
        // The last two kinds: a close, and a pool that is closed though its index was not.
        match life % 4 {
            0 | 1 => drop(index),
            2 => Arc::into_inner(Box::new(index).close().unwrap()).unwrap().close().unwrap(),
            _ => {
                let pool = Arc::clone(&index.pool);
                drop(index);
                Arc::into_inner(pool).unwrap().close().unwrap();
            }
        }
        let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
        assert_eq!(opened == Opened::Clean, life % 4 >= 2);
        index = Index::open(Arc::new(pool), "t", opened).unwrap();
        let census = index.check().unwrap();
        assert_eq!(census.keys, model.len() as u64);
        if life % 4 < 3 {
            assert_eq!(index.pool.usage().blocks, census.blocks + 1, "life {life}");
        }
        assert!(pairs(&index) == model, "life {life}");
    }
}

#[test]
fn buffers_of_every_size_live_through_deaths() {
    for keys in [20, 2000] {
        lives::<0>(keys);
        lives::<1>(keys);
        lives::<2>(keys);
        lives::<3>(keys);
        lives::<8>(keys);
    }
}

#[test]
fn a_collection_leaves_what_counts_and_the_logs_stay_short() {
    let index = counted::<Index<_, 2>>();
    for round in 0..40 {
        for key in 0..200 {
            index.upsert(key, round).unwrap();
        }
    }
    index.collect().unwrap();
    let chunks = log::chunks(&index.pool, index.root_words().unwrap()).unwrap();
    assert!((1..=2).contains(&chunks.len()), "{} chunks", chunks.len());
    let census = index.check().unwrap();
    assert_eq!(index.pool.usage().blocks, census.blocks + 1);
    assert!(census.blocks <= 1 + census.leaves + 4, "{census:?}");
}

/// Updates of keys here and there until the phase is another one, which is given.
fn until_another_phase(index: &Index<bristlecone_pmem::medium::Count<Mapped>, 2>) -> u64 {
    const UPDATES_MAX: u64 = 100_000;
    let phase = || index.log.phase.load(std::sync::atomic::Ordering::Relaxed);
    let before = phase();
    for value in 0..UPDATES_MAX {
        assert!(index.update(value * 7919 % 2000, value).unwrap().is_some());
        if phase() != before {
            return phase();
        }
    }
    panic!("no other phase than {before}");
}

#[test]
fn a_collection_is_left_to_a_keeper_until_the_keeper_is_far_behind() {
    // As many leaves as take several steps.
    let index = counted::<Index<_, 2>>();
    for key in 0..2000 {
        index.insert(key, key).unwrap();
    }
    index.collect().unwrap();
    let keeper = index.maintainer();
    assert_eq!(until_another_phase(&index), log::DUE);
    // One that is due, and one that has begun, are helped when the logs are twice as large.
    assert_eq!(until_another_phase(&index), log::HELPED);
    assert_eq!(until_another_phase(&index), log::IDLE);
    assert_eq!(until_another_phase(&index), log::DUE);
    assert!(index.run_maintenance_step().unwrap());
    assert_eq!(index.log.phase.load(std::sync::atomic::Ordering::Relaxed), log::RUNNING);
    assert_eq!(until_another_phase(&index), log::HELPED);
    assert_eq!(until_another_phase(&index), log::IDLE);
    // One that is due begins when the keeper has gone.
    assert_eq!(until_another_phase(&index), log::DUE);
    drop(keeper);
    assert_eq!(until_another_phase(&index), log::RUNNING);
    assert_eq!(until_another_phase(&index), log::IDLE);
    assert!(!index.run_maintenance_step().unwrap());
    assert_eq!(index.check().unwrap().keys, 2000);
}

mod placement;

/// A stamp that nothing can follow would be counted on past its end, and what was acknowledged after that be
/// taken for older than the damage.
#[test]
fn a_stamp_near_its_end_is_damage() {
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
