use super::*;
use crate::key::Text;
use crate::leaf_table::testing::{cost, counted, pairs, random};
use bristlecone_pmem::Mapped;
use bristlecone_pmem::medium::FileOptions;
use std::collections::BTreeMap;

type Index<M, const NODE: usize, T = LsUsual> = BTreeLsIndex<M, u64, NODE, T>;

#[test]
fn a_change_is_a_delta_until_the_chain_has_as_many_items_as_a_node() {
    let index = counted::<Index<_, 512>>();
    for key in 0..8 {
        assert_eq!(cost(&index, |index| assert_eq!(index.insert(key, key).unwrap(), None)), (1, 1));
    }
    for round in 0..8 {
        assert_eq!(
            cost(&index, |index| assert!(index.update(1, round).unwrap().is_some())),
            (1, 1)
        );
    }
    // The seventeenth item, but seven keys, of four words each: a base of five lines.
    assert_eq!(cost(&index, |index| assert_eq!(index.remove(2).unwrap(), Some(2))), (5, 1));
    assert_eq!(cost(&index, |index| assert_eq!(index.insert(1, 8).unwrap(), Some(7))), (0, 0));
    let stats = index.check().unwrap();
    assert_eq!((stats.keys, stats.leaves), (7, 1));
}

/// Returns an index with one log whose only leaf has a chain of as many items as a node.
fn full_leaf() -> Index<bristlecone_pmem::medium::Count<Mapped>, 256, LsChoice<1, GC_OFF, 4>> {
    let index = counted::<Index<_, 256, LsChoice<1, GC_OFF, 4>>>();
    for key in 0..8 {
        index.insert(2 * key, key).unwrap();
    }
    index
}

#[test]
fn a_split_writes_two_bases_and_an_end_record_with_two_fences() {
    let index = full_leaf();
    assert_eq!(index.check().unwrap().leaves, 1);
    // Four keys in the first leaf, five in the second one: 16 and 20 words behind a line.
    let split = cost(&index, |index| assert_eq!(index.insert(17, 0).unwrap(), None));
    assert_eq!(split, (4 + 4 + 1, 2));
    assert_eq!(index.check().unwrap().leaves, 2);
}

#[test]
fn a_merge_writes_a_base_and_an_end_record_with_two_fences() {
    let index = full_leaf();
    index.insert(17, 0).unwrap();
    for key in [8, 10, 0, 2] {
        assert_eq!(cost(&index, |index| assert!(index.remove(key).unwrap().is_some())), (1, 1));
    }
    assert_eq!(index.check().unwrap().leaves, 2);
    // The delta, then a base of four items and the end record.
    let merge = cost(&index, |index| assert!(index.remove(12).unwrap().is_some()));
    assert_eq!(merge, (1 + 4 + 1, 1 + 2));
    assert_eq!(index.check().unwrap().leaves, 1);
}

/// Runs random operations in eight sessions, with crashes and closes between them.
fn run_sessions<const NODE: usize, T: LsOptions>(pool_bytes: u64, keys: u64) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let options = FileOptions { reserve_bytes: 1 << 28, ..FileOptions::default() };
    let pool = Pool::create(Mapped::create(&path, pool_bytes, &options).unwrap()).unwrap();
    let mut index = Index::<Mapped, NODE, T>::create(Arc::new(pool), "t").unwrap();
    let mut model = BTreeMap::new();
    let mut state = NODE as u64 + keys;
    for session in 0..8 {
        for step in 0..4000 {
            let key = random(&mut state) % keys;
            let removes = if session % 3 == 2 { 7 } else { 5 };
            match random(&mut state) % 8 {
                0..=2 => assert_eq!(index.upsert(key, step).unwrap(), model.insert(key, step)),
                at if at < removes => {
                    assert_eq!(index.remove(key).unwrap(), model.remove(&key));
                }
                5 => {
                    let old = model.get(&key).copied();
                    assert_eq!(index.update(key, step).unwrap(), old);
                    model.entry(key).and_modify(|value| *value = step);
                }
                _ => assert_eq!(index.get(key).unwrap(), model.get(&key).copied()),
            }
        }
        let stats = index.check().unwrap();
        assert_eq!(stats.keys, model.len() as u64);
        if session % 2 == 0 {
            drop(index);
        } else {
            Arc::into_inner(Box::new(index).close().unwrap()).unwrap().close().unwrap();
        }
        let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
        assert_eq!(opened == Opened::Clean, session % 2 == 1);
        index = Index::open(Arc::new(pool), "t", opened).unwrap();
        let stats = index.check().unwrap();
        assert_eq!(index.pool.usage().blocks, stats.blocks + 1, "session {session}");
        assert!(pairs(&index) == model, "session {session}");
    }
}

#[test]
fn pairs_survive_crashes() {
    for keys in [20, 2000, 20_000] {
        run_sessions::<256, LsUsual>(160 << 10, keys);
    }
}

#[test]
fn pairs_survive_crashes_with_other_parameters() {
    for keys in [20, 2000] {
        run_sessions::<256, LsChoice<1, 4, 1>>(1 << 20, keys);
        run_sessions::<256, LsChoice<48, 1, 8>>(8 << 20, keys);
        run_sessions::<256, LsChoice<3, GC_OFF, 2, 1>>(1 << 20, keys);
    }
}

#[test]
fn open_rejects_another_number_of_logs_and_accepts_other_parameters() {
    fn opens<T: LsOptions>(dir: &std::path::Path) -> bool {
        let medium = Mapped::open(dir, &FileOptions::default()).unwrap();
        let (pool, opened) = Pool::open(medium).unwrap();
        match Index::<Mapped, 256, T>::open(Arc::new(pool), "t", opened) {
            Ok(index) => index.check().unwrap().keys == 100,
            Err(TreeError::Foreign { expected, found }) => expected == found,
            Err(other) => panic!("{other}"),
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let pool = Pool::create(Mapped::create(&path, 1 << 20, &FileOptions::default()).unwrap());
    let index = Index::<Mapped, 256>::create(Arc::new(pool.unwrap()), "t").unwrap();
    for key in 0..100 {
        index.insert(key, key).unwrap();
    }
    Arc::into_inner(Box::new(index).close().unwrap()).unwrap().close().unwrap();
    assert!(opens::<LsUsual>(&path) && opens::<LsChoice<8, GC_OFF, 8, 2>>(&path));
    assert!(!opens::<LsChoice<7, 0, 4>>(&path) && !opens::<LsChoice<48, 0, 4>>(&path));
    assert_eq!(BTreeLs::<512>::kind::<u64>(), BTreeLs::<512>::SPEC.kind::<u64>());
}

#[test]
fn a_row_points_to_the_newest_records_of_its_chain() {
    let index = counted::<Index<_, 256>>();
    for key in 0..6 {
        index.insert(key, key).unwrap();
    }
    let recent: Vec<_> = index.table.row(0).recent::<Mapped, LsUsual>().collect();
    assert_eq!(recent.len(), LsUsual::RECENT);
    let delta = record::delta(&index.pool, recent[0]).unwrap();
    assert_eq!((delta.change.entry.key, delta.previous), (5, recent[1]));
}

#[test]
fn collections_keep_the_garbage_below_the_threshold_unless_they_are_off() {
    fn garbage<T: LsOptions>() -> usize {
        let index = counted::<Index<_, 512, T>>();
        for round in 0..100 {
            for key in 0..200 {
                index.upsert(key, round).unwrap();
            }
        }
        assert!((0..200).all(|key| index.get(key).unwrap() == Some(99)));
        assert_eq!(index.check().unwrap().keys, 200);
        (0..T::LOGS).map(|log| index.log.garbage(log)).max().unwrap()
    }
    let (usual, small) = (garbage::<LsUsual>(), garbage::<LsChoice<8, 8, 4>>());
    let off = garbage::<LsChoice<8, GC_OFF, 4>>();
    assert!(usual < 400 && small < 400 && off > 1000, "{usual}, {small}, {off} lines");
}

#[test]
fn maintenance_workers_collect_different_logs() {
    let index = counted::<Index<_, 512>>();
    let _worker = index.maintainer();
    for round in 0..10 {
        for key in 0..2000 {
            index.upsert(key, round).unwrap();
        }
    }
    let due = || (0..LsUsual::LOGS).filter(|&log| index.log.is_due(log));
    assert!(due().count() > 1);
    let worst = due().max_by_key(|&log| index.log.garbage(log)).unwrap();
    let held = index.log.lock_collector(worst);
    while index.run_maintenance_step().unwrap() {}
    assert_eq!(due().collect::<Vec<_>>(), [worst]);
    drop(held);
    while index.run_maintenance_step().unwrap() {}
    assert_eq!(due().count(), 0);
    assert_eq!(index.check().unwrap().keys, 2000);
}

/// Checks that updates and removes succeed without limit in a pool that has no free block.
fn fill_and_empty<K: Key>(key: impl Fn(u64) -> K::Owned, pool_bytes: u64) {
    let pool = Arc::new(Pool::create(Mapped::anonymous(pool_bytes).unwrap()).unwrap());
    pool.limit(pool_bytes);
    let index = BTreeLsIndex::<Mapped, K, 256>::create(pool, "t").unwrap();
    let mut count = 0;
    while let Ok(old) = index.insert(K::borrow(&key(count)), count) {
        assert_eq!(old, None);
        count += 1;
    }
    let mut state = count;
    while index.pool.reserve(64).is_ok() {}
    for round in 0..20 * count {
        let key = key(random(&mut state) % count);
        assert!(index.update(K::borrow(&key), round).unwrap().is_some());
    }
    assert_eq!(index.check().unwrap().keys, count);
    for n in 0..count {
        let n = n * 7919 % count;
        let removed = index.remove(K::borrow(&key(n))).unwrap();
        assert!(removed.is_some() || count.is_multiple_of(7919), "{n} of {count}");
    }
    assert_eq!(index.check().unwrap().keys, 0);
}

#[test]
fn a_full_pool_accepts_updates_and_removes() {
    for pool_bytes in [160 << 10, 1 << 20] {
        fill_and_empty::<u64>(|n| n, pool_bytes);
        fill_and_empty::<u64>(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15), pool_bytes);
        fill_and_empty::<Text>(|n| format!("{n:05}").into_bytes(), pool_bytes);
    }
}

/// A crash may leave a merged base without its end record. It must not count later, when the right
/// leaf ends for another reason.
#[test]
fn a_base_of_an_interrupted_merge_does_not_count_after_a_split_of_the_right_leaf() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let options = FileOptions::default();
    let pool = Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap();
    let mut index = Index::<Mapped, 512>::create(Arc::new(pool), "t").unwrap();
    for key in 0..17 {
        index.insert(10 * key, key).unwrap();
    }
    let [left, right] = [0, 1].map(|row| index.table.row(row).leaf::<Mapped>());
    let head = index.table.row(0).head::<Mapped>();
    let chain = chain::FoldedChain::<u64>::read(&index.pool, head).unwrap();
    let range = chain.base.range(index.pool.medium());
    let origin = record::BaseOrigin { previous: head, after: Some(right) };
    let items: Vec<_> = chain.contents.pairs.iter().map(|pair| pair.1).collect();
    let image =
        record::base_image(left, origin, record::LeafRange { high: None, ..range }, items.iter());
    index.append(left, &image, 0, false).unwrap().unwrap();
    let reopen = |index: Index<Mapped, 512>| {
        drop(index);
        let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
        let index = Index::<Mapped, 512>::open(Arc::new(pool), "t", opened).unwrap();
        assert!(index.check().is_ok());
        index
    };
    index = reopen(index);
    assert_eq!(index.check().unwrap().keys, 17);
    for key in 0..20 {
        index.insert(81 + key, key).unwrap();
    }
    assert!(index.check().unwrap().leaves > 2);
    index = reopen(index);
    assert_eq!(index.check().unwrap().keys, 17 + 20 - 2);
}

/// A leaf number or a position at the end of its range would wrap around.
#[test]
fn a_head_out_of_range_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let pool = Pool::create(Mapped::create(&path, 1 << 20, &FileOptions::default()).unwrap());
    let index = Index::<Mapped, 256>::create(Arc::new(pool.unwrap()), "t").unwrap();
    let root = index.root_words().unwrap();
    index.pool.medium().store(log::head_word(root, 3), record::POSITION_MAX + 1);
    drop(index);
    let (pool, opened) = Pool::open(Mapped::open(&path, &FileOptions::default()).unwrap()).unwrap();
    let refused = Index::<Mapped, 256>::open(Arc::new(pool), "t", opened).map(drop);
    let is_damage =
        matches!(refused, Err(TreeError::Pool(bristlecone_pmem::PoolError::Corrupt(_))));
    assert!(is_damage, "{refused:?}");
}
