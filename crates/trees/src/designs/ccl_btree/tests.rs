use super::*;
use crate::leaf_table::testing::{cost, counted, pairs, random};
use bristlecone_pmem::medium::FileOptions;
use bristlecone_pmem::{Mapped, PoolError};
use std::collections::BTreeMap;

type Index<M, const BATCH: usize, T = Published> = CclBTreeIndex<M, u64, BATCH, T>;

#[test]
fn the_last_write_of_a_batch_settles_the_buffer() {
    let index = counted::<Index<_, 2>>();
    index.insert(0, 0).unwrap(); // Reserves the first chunk.
    assert_eq!(cost(&index, |index| assert_eq!(index.insert(1, 1).unwrap(), None)), (1, 1));
    // Three entries: the first lies in the line of the header, the others in the second line.
    assert_eq!(cost(&index, |index| assert_eq!(index.insert(2, 2).unwrap(), None)), (2, 2));
    // The third entry of the log crosses the end of a line.
    assert_eq!(cost(&index, |index| assert_eq!(index.update(1, 7).unwrap(), Some(1))), (2, 2));
    assert_eq!(cost(&index, |index| assert_eq!(index.update(1, 8).unwrap(), Some(7))), (1, 1));
    assert_eq!(cost(&index, |index| assert_eq!(index.remove(2).unwrap(), Some(2))), (1, 1));
    // The line with the value of 1, and the header line, for the remove of 2 and the value of 0.
    assert_eq!(cost(&index, |index| assert_eq!(index.update(0, 9).unwrap(), Some(0))), (2, 2));
    assert_eq!(index.check().unwrap().keys, 2);
}

#[test]
fn a_batch_stores_equal_values_too() {
    let index = counted::<Index<_, 2>>();
    for key in 0..12 {
        index.insert(key, 7).unwrap();
    }
    // The values of slots 1 and 6 lie in lines 1 and 2.
    for key in [1, 6] {
        assert_eq!(
            cost(&index, |index| assert_eq!(index.update(key, 7).unwrap(), Some(7))),
            (1, 1)
        );
    }
    assert_eq!(cost(&index, |index| assert_eq!(index.update(0, 7).unwrap(), Some(7))), (3, 2));
}

#[test]
fn settled_writes_stay_in_the_buffer_as_a_read_cache() {
    let index = counted::<Index<_, 2>>();
    for key in 0..3 {
        index.insert(key, key).unwrap();
    }
    let cached = |index: &Index<bristlecone_pmem::medium::Count<Mapped>, 2>| {
        let (node, pool) = (index.node(0), &index.pool);
        let meta = node.meta::<bristlecone_pmem::medium::Count<Mapped>>();
        let is_found = |key| node.find::<u64, _>(pool, key).unwrap().is_some();
        (meta.count(), meta.filled(), [0, 1, 2].map(is_found))
    };
    assert_eq!(cached(&index), (0, 2, [true, true, false]));
    // A buffered write comes before a cached slot of its key.
    assert_eq!(index.update(1, 5).unwrap(), Some(1));
    assert_eq!(cached(&index), (1, 2, [false, true, false]));
    assert_eq!(index.get(1).unwrap(), Some(5));
    index.check().unwrap();
    assert_eq!(index.remove(1).unwrap(), Some(5));
    assert_eq!(index.remove(0).unwrap(), Some(0));
    assert_eq!(index.update(2, 6).unwrap(), Some(2));
    assert_eq!(cached(&index), (0, 1, [false, false, true]));
    assert_eq!(index.check().unwrap().keys, 1);
}

/// Returns an index of one leaf with 13 entries and an empty buffer. Key `10 * i` is in slot i.
fn full_leaf() -> Index<bristlecone_pmem::medium::Count<Mapped>, 2> {
    let index = counted::<Index<_, 2>>();
    for key in (0..130).step_by(10) {
        index.insert(key, 1).unwrap();
    }
    index.update(0, 1).unwrap();
    index.update(10, 1).unwrap(); // Settles these two and key 120.
    index
}

#[test]
fn a_split_merges_the_buffer_in_the_same_pass() {
    // The new key is in the right leaf: its lines and the header.
    let index = full_leaf();
    assert_eq!(cost(&index, |index| assert_eq!(index.insert(125, 2).unwrap(), None)), (5, 2));
    assert_eq!(index.check().unwrap().keys, 14);
    // The new key stays left: its line and the header again.
    let index = full_leaf();
    assert_eq!(cost(&index, |index| assert_eq!(index.insert(5, 2).unwrap(), None)), (7, 4));
    assert_eq!(index.check().unwrap().keys, 14);
    // Buffered values in lines 1 and 2 of the left leaf.
    let index = full_leaf();
    index.update(10, 2).unwrap();
    index.update(50, 2).unwrap();
    assert_eq!(cost(&index, |index| assert_eq!(index.insert(125, 2).unwrap(), None)), (7, 2));
    assert_eq!((index.get(10).unwrap(), index.get(50).unwrap()), (Some(2), Some(2)));
    // The same, and the new key stays left.
    let index = full_leaf();
    index.update(10, 2).unwrap();
    index.update(50, 2).unwrap();
    assert_eq!(cost(&index, |index| assert_eq!(index.insert(5, 2).unwrap(), None)), (9, 4));
    let stats = index.check().unwrap();
    assert_eq!((stats.keys, stats.leaves), (14, 2));
    // A remove in the buffer makes space: it settles, and the new key after it.
    let index = full_leaf();
    index.remove(120).unwrap();
    assert_eq!(cost(&index, |index| assert_eq!(index.insert(5, 2).unwrap(), None)), (3, 3));
    let stats = index.check().unwrap();
    assert_eq!((stats.keys, stats.leaves), (13, 1));
}

#[test]
fn of_eight_log_entries_two_cross_a_line() {
    let index = counted::<Index<_, 2>>();
    index.insert(0, 0).unwrap(); // The first entry of the first chunk.
    let update = |value| cost(&index, |index| assert!(index.update(0, value).unwrap().is_some()));
    let costs: Vec<_> = (1..=23).map(update).collect();
    let eight = [(1, 1), (1, 1), (2, 2), (1, 1), (1, 1), (2, 2), (1, 1), (1, 1)];
    assert_eq!(costs, [&eight[1..], &eight, &eight].concat());
}

#[test]
fn an_empty_leaf_is_unlinked() {
    // The left leaf has the keys below 60. Of the removes in the right leaf every third settles.
    let with_last_key = || {
        let index = full_leaf();
        for key in 125..128 {
            index.insert(key, 1).unwrap();
        }
        for key in [60, 70, 80, 90, 100, 110, 120, 125, 126] {
            assert_eq!(index.remove(key).unwrap(), Some(1));
        }
        assert_eq!(index.check().unwrap().leaves, 2);
        index
    };
    // The header lines of both leaves.
    let index = with_last_key();
    assert_eq!(cost(&index, |index| assert_eq!(index.remove(127).unwrap(), Some(1))), (2, 2));
    let stats = index.check().unwrap();
    assert_eq!((stats.leaves, stats.keys), (1, 6));
    // A value that the left buffer holds settles first: its line.
    let index = with_last_key();
    assert_eq!(index.update(10, 2).unwrap(), Some(1));
    assert_eq!(cost(&index, |index| assert_eq!(index.remove(127).unwrap(), Some(1))), (3, 3));
    let stats = index.check().unwrap();
    assert_eq!((stats.leaves, stats.keys), (1, 6));
    assert_eq!(index.get(10).unwrap(), Some(2));
    // The removes of the last keys need not settle.
    let index = full_leaf();
    index.insert(125, 1).unwrap();
    for key in [60, 70, 80, 90, 100, 110, 120] {
        assert_eq!(index.remove(key).unwrap(), Some(1));
    }
    assert_eq!(index.check().unwrap().leaves, 2);
    assert_eq!(cost(&index, |index| assert_eq!(index.remove(125).unwrap(), Some(1))), (2, 2));
    let stats = index.check().unwrap();
    assert_eq!((stats.leaves, stats.keys), (1, 6));
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

/// Asserts that of `BATCH + 1` updates of one leaf, all but the last cost one line and one fence,
/// or two of each. The last one settles: it costs the lines of its entries, the first line, and two
/// fences.
fn check_average_cost<const BATCH: usize>() {
    let index = counted::<Index<_, BATCH>>();
    for key in 0..1000 {
        index.insert(key, key).unwrap();
    }
    let keys: Vec<u64> = (0..1000).collect();
    let buffered = || -> usize {
        let nodes = 0..index.buffers.end();
        nodes
            .map(|at| index.node(at).meta::<bristlecone_pmem::medium::Count<Mapped>>().count())
            .sum()
    };
    let (mut appends, mut settles, mut others) = (0, 0, 0);
    for round in 0..3 * (BATCH as u64 + 1) {
        for &key in &keys {
            let before = (index.pool.usage().blocks, buffered());
            let cost = cost(&index, |index| assert!(index.update(key, round).unwrap().is_some()));
            match (cost, buffered() < before.1) {
                ((1, 1) | (2, 2), false) => appends += 1,
                ((2..=4, 2), true) => settles += 1,
                _ => others += 1,
            }
            others += u64::from(index.pool.usage().blocks != before.0);
        }
    }
    let writes = 3 * (BATCH as u64 + 1) * 1000;
    assert!(settles * (BATCH as u64 + 1) <= writes + 1000, "{settles} of {writes} settle");
    assert!(appends * (BATCH as u64 + 1) >= writes * BATCH as u64 * 9 / 10, "{appends} append");
    assert!(others * 16 <= writes, "{others} of {writes} cost something else");
}

#[test]
fn one_write_of_each_batch_settles() {
    check_average_cost::<2>();
    check_average_cost::<8>();
}

/// Runs random operations in eight sessions, with crashes and closes between them.
fn run_sessions<const BATCH: usize, T: Techniques>(keys: u64) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let options = FileOptions { reserve_bytes: 1 << 28, ..FileOptions::default() };
    let pool = Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap();
    let mut index = Index::<Mapped, BATCH, T>::create(Arc::new(pool), "t").unwrap();
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
fn pairs_survive_crashes_with_and_without_buffers() {
    for keys in [20, 2000] {
        run_sessions::<0, Published>(keys);
        run_sessions::<2, Published>(keys);
        run_sessions::<8, Published>(keys);
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

#[test]
fn garbage_is_counted_in_settled_writes() {
    let index = full_leaf(); // 15 writes in batches of three.
    assert_eq!(index.log.fill(), [10, 10]);
    for value in 0..2 {
        index.update(0, value).unwrap();
    }
    assert_eq!(index.log.fill(), [12, 10]); // The entry that was replaced does not count.
    index.collect().unwrap();
    assert_eq!(index.log.fill(), [1, 0]); // The copy of the write that is buffered.
}

/// Nothing settles, so no entry counts as garbage.
#[test]
fn the_logs_of_one_key_are_collected() {
    let index = counted::<Index<_, 2>>();
    for value in 0..5000 {
        index.upsert(0, value).unwrap();
    }
    let chunks = log::chunks(&index.pool, index.root_words().unwrap()).unwrap();
    assert!((1..=2).contains(&chunks.len()), "{} chunks", chunks.len());
    assert_eq!(index.get(0).unwrap(), Some(4999));
}

#[test]
fn a_chunk_is_a_share_of_its_pool() {
    let bytes = |pool_bytes| chunk::bytes(chunk::lines(pool_bytes));
    assert_eq!([1 << 19, 1 << 20, 1 << 24, 1 << 30].map(bytes), [256, 4 << 10, 16 << 10, 1 << 20]);
    assert_eq!([3 << 30, 1 << 32, 1 << 40].map(bytes), [2 << 20, 4 << 20, 4 << 20]);
    assert_eq!(chunk::entries(chunk::lines(1 << 32)), 174_760);
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
mod techniques;

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
