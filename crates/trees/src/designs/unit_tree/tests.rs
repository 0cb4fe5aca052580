use super::*;
use crate::leaf_table::testing::{
    cost, counted, pairs, random, run_session, survives_crashes_and_closes,
};
use bristlecone_pmem::Mapped;
use bristlecone_pmem::medium::{Count, FileOptions};
use std::collections::BTreeMap;

type Index<M> = UnitTreeIndex<M, u64, 1024>;
type SmallIndex<M> = UnitTreeIndex<M, u64, 512>;
type TextIndex<M = Mapped> = UnitTreeIndex<M, crate::Text, 512>;

fn on_dram<I: PmIndex<Mapped, K>, K: Key>() -> I {
    let pool = Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap();
    I::create(Arc::new(pool), "t").unwrap()
}

#[test]
fn a_logged_write_costs_one_line_and_one_fence() {
    let index = counted::<Index<_>>();
    index.insert(100, 1).unwrap(); // adds the first chunk
    for key in 0..20 {
        let act = |index: &Index<_>| assert_eq!(index.insert(key, key).unwrap(), None);
        assert_eq!(cost(&index, act), (1, 1), "insert of {key}");
    }
    for key in [0, 7, 19] {
        let act = |index: &Index<_>| assert_eq!(index.update(key, 7).unwrap(), Some(key));
        assert_eq!(cost(&index, act), (1, 1), "update of {key}");
        let act = |index: &Index<_>| assert_eq!(index.remove(key).unwrap(), Some(7));
        assert_eq!(cost(&index, act), (1, 1), "remove of {key}");
        assert_eq!(index.get(key).unwrap(), None);
    }
    assert_eq!(index.check().unwrap().keys, 18);
}

#[test]
fn pairs_survive_crashes_and_closes() {
    survives_crashes_and_closes::<Index<Mapped>>();
    survives_crashes_and_closes::<SmallIndex<Mapped>>();
}

/// The size of a chunk follows from that of the pool at the first one.
#[test]
fn logs_are_found_again_when_the_pool_has_grown() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let options = FileOptions { reserve_bytes: 1 << 28, ..FileOptions::default() };
    let pool = Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap();
    let index = Index::create(Arc::new(pool), "t").unwrap();
    for key in 0..1000 {
        index.insert(key, key).unwrap();
    }
    index.pool.reserve(1 << 26).unwrap();
    for key in 0..1000 {
        index.update(key, key + 1).unwrap();
    }
    drop(index);
    let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
    assert!(pool.medium().len() > 1 << 26);
    let index = Index::open(Arc::new(pool), "t", opened).unwrap();
    assert_eq!(index.check().unwrap().keys, 1000);
    assert!((0..1000).all(|key| index.get(key).unwrap() == Some(key + 1)));
}

/// An index whose versions are used up goes on without logs, and opens.
#[test]
fn writes_settle_when_the_versions_are_used_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let options = FileOptions { reserve_bytes: 1 << 28, ..FileOptions::default() };
    let pool = Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap();
    let index = Index::create(Arc::new(pool), "t").unwrap();
    let (mut model, mut state) = (BTreeMap::new(), 9);
    index.log.set_clocks(unit::STAMP_MAX - 200);
    for _ in 0..3 {
        run_session(&index, &mut model, &mut state, 500);
        index.check().unwrap();
    }
    drop(index);
    let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
    let index = Index::open(Arc::new(pool), "t", opened).unwrap();
    run_session(&index, &mut model, &mut state, 500);
    index.check().unwrap();
    assert!(pairs(&index) == model);
}

/// A version that is far above the base of a chunk needs another base, and an empty chunk.
#[test]
fn versions_that_leap_renew_the_chunks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let options = FileOptions { reserve_bytes: 1 << 28, ..FileOptions::default() };
    let pool = Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap();
    let index = Index::create(Arc::new(pool), "t").unwrap();
    let (mut model, mut state) = (BTreeMap::new(), 5);
    for session in 0..4 {
        run_session(&index, &mut model, &mut state, 500);
        index.log.set_clocks((session + 1) << 33);
    }
    run_session(&index, &mut model, &mut state, 500);
    drop(index);
    let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
    let index = Index::open(Arc::new(pool), "t", opened).unwrap();
    index.check().unwrap();
    assert!(pairs(&index) == model);
}

#[test]
fn keys_with_one_home_fill_their_leaves() {
    let index = on_dram::<Index<Mapped>, u64>();
    let home = |key| unit::home_of(u64::hash(key));
    let keys: Vec<_> = (1..).filter(|&key| home(key) == home(1)).take(300).collect();
    for &key in &keys {
        assert_eq!(index.insert(key, key).unwrap(), None);
    }
    assert!(keys.iter().all(|&key| index.get(key).unwrap() == Some(key)));
    let stats = index.check().unwrap();
    assert!(stats.keys == 300 && stats.leaves < 12, "{} leaves", stats.leaves);
}

#[test]
fn sparse_leaves_are_merged_into_their_left_neighbours() {
    let index = on_dram::<Index<Mapped>, u64>();
    for key in 0..2000 {
        index.insert(key, key).unwrap();
    }
    let before = index.check().unwrap().leaves;
    for key in (0..2000).filter(|key| key % 8 != 0) {
        assert_eq!(index.remove(key).unwrap(), Some(key));
    }
    let stats = index.check().unwrap();
    assert!(stats.keys == 250 && 3 * stats.leaves < before, "{} of {before}", stats.leaves);
    assert!(pairs(&index).into_iter().eq((0..2000).step_by(8).map(|key| (key, key))));
}

#[test]
fn text_keys_leave_no_record_behind() {
    let index = on_dram::<TextIndex, crate::Text>();
    let key = |number: u64| format!("key {:03}", number * 37 % 200).into_bytes();
    for number in 0..200 {
        assert_eq!(index.insert(&key(number), number).unwrap(), None);
        assert_eq!(index.insert(&key(number), 7).unwrap(), Some(number));
    }
    assert!(index.check().unwrap().leaves > 5);
    for number in 0..200 {
        assert_eq!(index.update(&key(number), number + 1).unwrap(), Some(number));
        assert_eq!(index.get(&key(number)).unwrap(), Some(number + 1));
        assert_eq!(index.remove(&key(number)).unwrap(), Some(number + 1));
    }
    let stats = index.check().unwrap();
    assert_eq!((stats.leaves, stats.keys), (1, 0));
    index.pool.reclaim();
    assert_eq!(index.pool.usage().blocks, stats.blocks + 1);
}

/// Random updates, when the logs are full.
#[test]
fn random_updates_settle_a_unit_for_many() {
    let medium = Count::new(Mapped::anonymous(64 << 20).unwrap());
    let index = Index::create(Arc::new(Pool::create(medium).unwrap()), "t").unwrap();
    let (mut state, count) = (7, 100_000);
    let keys: Vec<_> = (0..count).map(|step| random(&mut state) << 20 | step).collect();
    for &key in &keys {
        index.insert(key, 0).unwrap();
    }
    let mut update = |index: &Index<_>| {
        for _ in 0..3 * count {
            let key = keys[(random(&mut state) % count) as usize];
            index.update(key, 1).unwrap();
        }
    };
    update(&index);
    let (lines, fences) = cost(&index, update);
    let [lines, fences] = [lines, fences].map(|sum| sum as f64 / (3 * count) as f64);
    let settled = (fences - 1.0) / 2.0;
    let stats = index.check().unwrap();
    let keys_per_leaf = count as f64 / stats.leaves as f64;
    eprintln!(
        "{lines} lines, {fences} fences, {settled} units settled, {keys_per_leaf} keys a leaf"
    );
    assert!(settled <= 0.1, "{settled} units settled for an update");
    assert!(keys_per_leaf >= 39.0, "{keys_per_leaf}");
}

/// More leaves than a part of a recovery has; random keys, and keys in a cluster.
#[test]
fn many_leaves_open_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let options = FileOptions { reserve_bytes: 1 << 28, ..FileOptions::default() };
    let pool = Pool::create(Mapped::create(&path, 1 << 26, &options).unwrap()).unwrap();
    let index = Index::create(Arc::new(pool), "t").unwrap();
    let (mut model, mut state) = (BTreeMap::new(), 3);
    for step in 0..60_000 {
        let key = if step % 2 == 0 { random(&mut state) } else { step % 9_000 + (1 << 50) };
        index.upsert(key, step).unwrap();
        model.insert(key, step);
        if step % 3 == 0 {
            let removed = random(&mut state) % 9_000 + (1 << 50);
            assert_eq!(index.remove(removed).unwrap(), model.remove(&removed));
        }
    }
    drop(index);
    for _ in 0..2 {
        let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
        assert_eq!(opened, Opened::Crashed);
        let index = Index::open(Arc::new(pool), "t", opened).unwrap();
        let stats = index.check().unwrap();
        assert!(stats.leaves > 600, "{} leaves", stats.leaves);
        assert!(pairs(&index) == model);
    }
}
