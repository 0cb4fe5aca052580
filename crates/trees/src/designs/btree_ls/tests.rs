use super::*;
use crate::key::Text;
use crate::leaf_table::testing::{cost, counted, pairs, random};
use bristlecone_pmem::medium::FileOptions;
use bristlecone_pmem::{Mapped, PoolError};
use std::collections::BTreeMap;

type Index<M, const NODE: usize, T = Standard> = BTreeLsIndex<M, u64, NODE, T>;

#[test]
fn a_change_is_a_line_until_a_chain_is_put_together() {
    let index = counted::<Index<_, 256>>();
    // A base of one item, then eight deltas, then a base of ten items.
    for key in 0..9 {
        assert_eq!(cost(&index, |index| assert_eq!(index.insert(key, key).unwrap(), None)), (1, 1));
    }
    assert_eq!(cost(&index, |index| assert_eq!(index.insert(9, 9).unwrap(), None)), (4, 1));
    assert_eq!(cost(&index, |index| assert_eq!(index.update(1, 7).unwrap(), Some(1))), (1, 1));
    assert_eq!(cost(&index, |index| assert_eq!(index.remove(2).unwrap(), Some(2))), (1, 1));
    assert_eq!(cost(&index, |index| assert_eq!(index.insert(1, 8).unwrap(), Some(7))), (0, 0));
    assert_eq!(index.check().unwrap().keys, 9);
}

#[test]
fn a_split_writes_two_bases_and_a_merge_one() {
    let index = counted::<Index<_, 256>>();
    for key in 0..16 {
        index.insert(2 * key, key).unwrap();
    }
    assert_eq!(index.check().unwrap().leaves, 1);
    // Eight keys to the left, nine to the right; the right one's log has no chunk yet, and needs two.
    let (lines, fences) = cost(&index, |index| assert_eq!(index.insert(17, 0).unwrap(), None));
    assert_eq!((lines, fences), (4 + 4 + 2 * 32 + 1, 2 + 2));
    assert_eq!(index.check().unwrap().leaves, 2);
    for key in 0..12 {
        index.remove(2 * key).unwrap();
    }
    assert_eq!(index.check().unwrap().leaves, 1);
    assert!(index.log.chunks(1).is_empty(), "a log without a leaf has no chunks");
}

/// Any mix of operations, with deaths and closes between them, in a small and in a larger tree.
fn lives<const NODE: usize, T: Tuning>(pool_bytes: u64, keys: u64) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let options = FileOptions { reserve_bytes: 1 << 28, ..FileOptions::default() };
    let pool = Pool::create(Mapped::create(&path, pool_bytes, &options).unwrap()).unwrap();
    let mut index = Index::<Mapped, NODE, T>::create(Arc::new(pool), "t").unwrap();
    let mut model = BTreeMap::new();
    let mut state = NODE as u64 + keys;
    for life in 0..8 {
        for step in 0..4000 {
            let key = random(&mut state) % keys;
            let removes = if life % 3 == 2 { 7 } else { 5 };
            match random(&mut state) % 8 {
                0..=2 => assert_eq!(index.upsert(key, step).unwrap(), model.insert(key, step)),
                at if at < removes => {
                    assert_eq!(index.remove(key).unwrap(), model.remove(&key));
                }
                5 => {
                    let there = model.get(&key).copied();
                    assert_eq!(index.update(key, step).unwrap(), there);
                    model.entry(key).and_modify(|value| *value = step);
                }
                _ => assert_eq!(index.get(key).unwrap(), model.get(&key).copied()),
            }
            if step % 1000 == 7 {
                index.collect().unwrap();
            }
        }
        let census = index.check().unwrap();
        assert_eq!(census.keys, model.len() as u64);
        if life % 2 == 0 {
            drop(index);
        } else {
            Arc::into_inner(Box::new(index).close().unwrap()).unwrap().close().unwrap();
        }
        let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
        assert_eq!(opened == Opened::Clean, life % 2 == 1);
        index = Index::open(Arc::new(pool), "t", opened).unwrap();
        let census = index.check().unwrap();
        assert_eq!(index.pool.usage().blocks, census.blocks + 1, "life {life}");
        assert!(pairs(&index) == model, "life {life}");
    }
}

#[test]
fn leaves_of_every_size_live_through_deaths() {
    for keys in [20, 2000, 20_000] {
        lives::<256, Standard>(160 << 10, keys);
        lives::<256, Standard>(1 << 20, keys);
        lives::<512, Standard>(1 << 20, keys);
        lives::<1024, Standard>(8 << 20, keys);
    }
}

#[test]
fn other_choices_live_through_deaths() {
    for keys in [20, 2000] {
        lives::<256, Tuned<1, 90, 1>>(1 << 20, keys);
        lives::<256, Tuned<48, 50, 8>>(8 << 20, keys);
        lives::<256, Tuned<3, 25, 0>>(1 << 20, keys);
    }
}

#[test]
fn what_the_medium_depends_on_is_checked_and_the_rest_is_free() {
    fn opens<T: Tuning>(dir: &std::path::Path) -> bool {
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
    assert!(opens::<Standard>(&path) && opens::<Tuned<8, 75, 8>>(&path));
    assert!(!opens::<Tuned<7, 50, 8>>(&path) && !opens::<Tuned<8, 50, 7>>(&path));
    assert!(!opens::<Tuned<1, 50, 8>>(&path) && !opens::<Tuned<48, 50, 8>>(&path));
    assert_eq!(BTreeLs::<512>::kind::<u64>(), BTreeLs::<512>::SPEC.kind::<u64>());
}

#[test]
fn a_collection_leaves_what_is_live() {
    let index = counted::<Index<_, 512>>();
    for round in 0..40 {
        for key in 0..200 {
            index.upsert(key, round).unwrap();
        }
    }
    index.collect().unwrap();
    let census = index.check().unwrap();
    for log in 0..Standard::LOGS {
        let chunks = index.log.chunks(log).len();
        assert!(chunks <= 6, "{chunks} chunks");
    }
    assert_eq!(census.keys, 200);
    assert!((0..200).all(|key| index.get(key).unwrap() == Some(39)));
}

#[test]
fn keepers_work_in_different_logs() {
    let index = counted::<Index<_, 512>>();
    let _keeper = index.maintainer();
    for round in 0..10 {
        for key in 0..2000 {
            index.upsert(key, round).unwrap();
        }
    }
    let due = || (0..Standard::LOGS).filter(|&log| index.log.tended(log).is_some());
    assert!(due().count() > 1);
    let worst = due().max_by_key(|&log| index.log.tended(log)).unwrap();
    let held = index.log.collector(worst);
    while index.run_maintenance_step().unwrap() {}
    assert_eq!(due().collect::<Vec<_>>(), [worst]);
    drop(held);
    while index.run_maintenance_step().unwrap() {}
    assert_eq!(due().count(), 0);
    assert_eq!(index.check().unwrap().keys, 2000);
}

#[test]
fn a_log_that_is_packed_is_left_alone_whatever_may_be_live() {
    let index = counted::<Index<_, 256, Tuned<3, 90, 8>>>();
    for key in 0..2000 {
        index.insert(key * 7919 % 2000, key).unwrap();
    }
    let steps = (0..10_000).take_while(|_| index.run_maintenance_step().unwrap()).count();
    assert!(steps < 10_000, "it never ends");
    assert_eq!(index.check().unwrap().keys, 2000);
}

/// In a pool that gives nothing any more, updates and removes go on for as long as anybody likes.
fn full<K: Key>(key: impl Fn(u64) -> K::Owned, pool_bytes: u64) {
    let pool = Arc::new(Pool::create(Mapped::anonymous(pool_bytes).unwrap()).unwrap());
    pool.limit(pool_bytes);
    let index = BTreeLsIndex::<Mapped, K, 256>::create(pool, "t").unwrap();
    let mut count = 0;
    while let Ok(there) = index.insert(K::borrow(&key(count)), count) {
        assert_eq!(there, None);
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
fn a_full_pool_takes_updates_and_removes_without_end() {
    for pool_bytes in [160 << 10, 1 << 20] {
        full::<u64>(|n| n, pool_bytes);
        full::<u64>(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15), pool_bytes);
        full::<Text>(|n| format!("{n:05}").into_bytes(), pool_bytes);
    }
}

/// An index on a file that can hold no more.
struct Brimful<K: Key> {
    _dir: tempfile::TempDir,
    path: std::path::PathBuf,
    index: BTreeLsIndex<Mapped, K, 256>,
    count: u64,
}

/// Takes all that a pool still has.
fn exhaust(pool: &Pool<Mapped>) {
    let pool_bytes = pool.usage().pool_bytes;
    pool.limit(pool_bytes);
    while pool.reserve(64).is_ok() {}
}

impl<K: Key> Brimful<K> {
    fn new(key: impl Fn(u64) -> K::Owned, pool_bytes: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.pool");
        let medium = Mapped::create(&path, pool_bytes, &FileOptions::default()).unwrap();
        let pool = Arc::new(Pool::create(medium).unwrap());
        pool.limit(pool_bytes);
        let index = BTreeLsIndex::create(pool, "t").unwrap();
        let mut count = 0;
        while index.insert(K::borrow(&key(count)), count).is_ok() {
            count += 1;
        }
        Self { _dir: dir, path, index, count }
    }

    /// Opens it again, where something else takes whatever is free: before the index is opened if the pool
    /// was closed, and after it if there was a crash.
    fn reopen(self, is_closed: bool) -> Self {
        if is_closed {
            let pool = Arc::into_inner(Box::new(self.index).close().unwrap()).unwrap();
            pool.limit(u64::MAX); // What a close saves of the pool needs room, which others take then.
            pool.close().unwrap();
        } else {
            drop(self.index);
        }
        let medium = Mapped::open(&self.path, &FileOptions::default()).unwrap();
        let (pool, opened) = Pool::open(medium).unwrap();
        assert_eq!(opened == Opened::Clean, is_closed);
        let pool = Arc::new(pool);
        if is_closed {
            exhaust(&pool);
        }
        let blocks = pool.usage().blocks;
        let index = BTreeLsIndex::open(Arc::clone(&pool), "t", opened).unwrap();
        assert!(!is_closed || pool.usage().blocks == blocks, "an open takes no block");
        exhaust(&pool);
        Self { index, ..self }
    }
}

fn opens_in_a_full_pool<K: Key>(key: impl Fn(u64) -> K::Owned + Copy, pool_bytes: u64) {
    for lives in [[true, true], [true, false], [false, true], [false, false]] {
        let mut brimful = Brimful::<K>::new(key, pool_bytes);
        let mut left = brimful.count;
        for is_closed in lives {
            brimful = brimful.reopen(is_closed);
            let index = &brimful.index;
            assert_eq!(index.check().unwrap().keys, left);
            // Half of what is left, so that the next open is in a pool in which logs got shorter.
            let keys = (brimful.count - left)..(brimful.count - left / 2);
            left -= keys.end - keys.start;
            for n in keys {
                assert_eq!(index.remove(K::borrow(&key(n))).unwrap(), Some(n));
            }
        }
        for n in brimful.count - left..brimful.count {
            assert_eq!(brimful.index.remove(K::borrow(&key(n))).unwrap(), Some(n));
        }
        assert_eq!(brimful.index.check().unwrap().keys, 0);
    }
}

#[test]
fn an_open_in_a_full_pool_needs_no_block_and_all_can_be_removed_after_it() {
    for pool_bytes in [160 << 10, 1 << 20] {
        opens_in_a_full_pool::<u64>(|n| n, pool_bytes);
        opens_in_a_full_pool::<u64>(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15), pool_bytes);
        opens_in_a_full_pool::<Text>(|n| format!("{n:05}").into_bytes(), pool_bytes);
    }
}

/// Copies records of the oldest chunks of a log until the chunk for collecting has a few; whether it has.
fn cut_off_collecting(index: &Index<Mapped, 256>, log: usize) -> bool {
    const COPIES: usize = 2;
    let (pool, root, guard) =
        (&*index.pool, index.root_words().unwrap(), bristlecone_pmem::sync::pin());
    for _ in 0..index.log.chunks(log).len() {
        let Some(oldest) = index.log.oldest(pool, root, log, true).unwrap() else { return false };
        let chunk = chunk::LogChunk::open(pool, oldest, index.log.lines()).unwrap();
        let mut copies = 0;
        for line in 1..chunk.lines() {
            let Some(found) = chunk.record(pool, line).unwrap() else { continue };
            let copied = index.collect_record(&found, true, &guard).unwrap().unwrap();
            copies += usize::from(index.log.is_kept(log) && copied > 0);
            if copies == COPIES {
                let _ = pool.medium().fence();
                return true;
            }
        }
        let _ = pool.medium().fence();
        index.log.recycle_oldest(pool, root, log, &guard).unwrap();
    }
    false
}

/// A crash that falls while the chunk for collecting is filled: what is in it are copies, and all of it is
/// there again for the next collection, in every log, as often as it comes.
#[test]
fn a_collection_that_is_cut_off_can_be_made_again_in_a_full_pool() {
    let key = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut brimful = Brimful::<u64>::new(key, 1 << 20);
    exhaust(&brimful.index.pool);
    let (mut state, mut cut_off) = (1, 0);
    for life in 0..5 {
        let index = &brimful.index;
        for _ in 0..5 * brimful.count {
            assert!(index.update(key(random(&mut state) % brimful.count), life).unwrap().is_some());
        }
        cut_off += (0..Standard::LOGS).filter(|&log| cut_off_collecting(index, log)).count();
        brimful = brimful.reopen(false);
        assert_eq!(brimful.index.check().unwrap().keys, brimful.count);
    }
    assert!(cut_off > 0, "no chunk for collecting was filled");
    for n in 0..brimful.count {
        assert!(brimful.index.remove(key(n)).unwrap().is_some());
    }
    assert_eq!(brimful.index.check().unwrap().keys, 0);
}

#[test]
fn threads_share_a_pool_that_is_nearly_full() {
    let pool = Arc::new(Pool::create(Mapped::anonymous(256 << 10).unwrap()).unwrap());
    pool.limit(256 << 10);
    let index = Index::<Mapped, 256>::create(pool, "t").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let index = &index;
            scope.spawn(move || {
                let mut model = BTreeMap::new();
                let mut state = thread;
                for step in 0..20_000 {
                    let key = 4 * (random(&mut state) % 600) + thread;
                    if random(&mut state).is_multiple_of(3) {
                        // What is refused changes nothing.
                        match index.remove(key) {
                            Ok(there) => assert_eq!(there, model.remove(&key)),
                            Err(TreeError::Pool(PoolError::Full { .. })) => {}
                            Err(other) => panic!("{other}"),
                        }
                    } else {
                        match index.upsert(key, step) {
                            Ok(there) => assert_eq!(there, model.insert(key, step)),
                            Err(TreeError::Pool(PoolError::Full { .. })) => {}
                            Err(other) => panic!("{other}"),
                        }
                    }
                }
                for key in (0..2400).filter(|key| key % 4 == thread) {
                    assert_eq!(index.get(key).unwrap(), model.get(&key).copied());
                }
            });
        }
    });
    index.check().unwrap();
}

/// A sequence number or a use that nothing can follow would be counted on past its end, and what was
/// acknowledged after that be taken for older than the damage.
#[test]
fn a_counter_near_its_end_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let reopened = |word: usize, value: u64| {
        let path = dir.path().join(format!("{word}-{value}.pool"));
        let pool = Pool::create(Mapped::create(&path, 1 << 20, &FileOptions::default()).unwrap());
        let index = Index::<Mapped, 256>::create(Arc::new(pool.unwrap()), "t").unwrap();
        index.insert(1, 1).unwrap();
        let base = index.table.row(0).base::<Mapped>();
        let chunk = index.log.chunks(0)[0];
        let [base, chunk] = [base, chunk].map(|at| index.pool.words(at, 2).unwrap());
        let medium = index.pool.medium();
        medium.store([&base[1], &chunk[1]][word], value);
        drop(index);
        let medium = Mapped::open(&path, &FileOptions::default()).unwrap();
        let (pool, opened) = Pool::open(medium).unwrap();
        Index::<Mapped, 256>::open(Arc::new(pool), "t", opened).map(drop)
    };
    for (word, most) in [(0, record::SEQUENCE_MAX), (1, record::USE_MAX)] {
        for value in [most + 1, u64::MAX] {
            let refused = reopened(word, value);
            assert!(
                matches!(refused, Err(TreeError::Pool(PoolError::Corrupt(_)))),
                "{word}, {value}: {refused:?}"
            );
        }
    }
    reopened(0, 1).unwrap();
}
