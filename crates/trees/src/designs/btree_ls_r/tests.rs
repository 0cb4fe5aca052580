use super::*;
use crate::key::Text;
use crate::leaf_table::testing::{cost, counted, pairs, random};
use bristlecone_pmem::medium::FileOptions;
use bristlecone_pmem::{Mapped, PoolError};
use std::collections::BTreeMap;

type Index<M, const NODE: usize, T = Standard> = BTreeLsRIndex<M, u64, NODE, T>;

#[test]
fn a_change_costs_one_line_until_the_chain_is_consolidated() {
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
    // Eight keys go left, nine right. The log of the right leaf has no chunk yet and needs two.
    let (lines, fences) = cost(&index, |index| assert_eq!(index.insert(17, 0).unwrap(), None));
    assert_eq!((lines, fences), (4 + 4 + 2 * 32 + 1, 2 + 2));
    assert_eq!(index.check().unwrap().leaves, 2);
    for key in 0..12 {
        index.remove(2 * key).unwrap();
    }
    assert_eq!(index.check().unwrap().leaves, 1);
    assert!(index.log.chunks(1).is_empty(), "a log without a leaf has no chunks");
}

/// Runs random operations in eight sessions, with crashes and closes between them.
fn run_sessions<const NODE: usize, T: Tuning>(pool_bytes: u64, keys: u64) {
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
            if step % 1000 == 7 {
                index.collect().unwrap();
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
fn pairs_survive_crashes_in_pools_of_several_sizes() {
    for keys in [20, 2000, 20_000] {
        run_sessions::<256, Standard>(160 << 10, keys);
        run_sessions::<256, Standard>(1 << 20, keys);
        run_sessions::<256, Standard>(8 << 20, keys);
    }
}

#[test]
fn pairs_survive_crashes_with_other_parameters() {
    for keys in [20, 2000] {
        run_sessions::<256, Tuned<1, 90, 1>>(1 << 20, keys);
        run_sessions::<256, Tuned<48, 50, 8>>(8 << 20, keys);
        run_sessions::<256, Tuned<3, 25, 0>>(1 << 20, keys);
    }
}

#[test]
fn open_rejects_other_layouts_and_accepts_other_thresholds() {
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
    assert_eq!(BTreeLsR::<512>::kind::<u64>(), BTreeLsR::<512>::SPEC.kind::<u64>());
}

#[test]
fn a_collection_keeps_live_records() {
    let index = counted::<Index<_, 512>>();
    for round in 0..40 {
        for key in 0..200 {
            index.upsert(key, round).unwrap();
        }
    }
    index.collect().unwrap();
    let stats = index.check().unwrap();
    for log in 0..Standard::LOGS {
        let chunks = index.log.chunks(log).len();
        assert!(chunks <= 6, "{chunks} chunks");
    }
    assert_eq!(stats.keys, 200);
    assert!((0..200).all(|key| index.get(key).unwrap() == Some(39)));
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
    let due = || (0..Standard::LOGS).filter(|&log| index.log.garbage_lines(log).is_some());
    assert!(due().count() > 1);
    let worst = due().max_by_key(|&log| index.log.garbage_lines(log)).unwrap();
    let held = index.log.lock_collector(worst);
    while index.run_maintenance_step().unwrap() {}
    assert_eq!(due().collect::<Vec<_>>(), [worst]);
    drop(held);
    while index.run_maintenance_step().unwrap() {}
    assert_eq!(due().count(), 0);
    assert_eq!(index.check().unwrap().keys, 2000);
}

#[test]
fn maintenance_of_a_packed_log_ends() {
    let index = counted::<Index<_, 256, Tuned<3, 90, 8>>>();
    for key in 0..2000 {
        index.insert(key * 7919 % 2000, key).unwrap();
    }
    let steps = (0..10_000).take_while(|_| index.run_maintenance_step().unwrap()).count();
    assert!(steps < 10_000, "maintenance does not end");
    assert_eq!(index.check().unwrap().keys, 2000);
}

/// Checks that updates and removes succeed without limit in a pool that has no free block.
fn fill_and_empty<K: Key>(key: impl Fn(u64) -> K::Owned, pool_bytes: u64) {
    let pool = Arc::new(Pool::create(Mapped::anonymous(pool_bytes).unwrap()).unwrap());
    pool.limit(pool_bytes);
    let index = BTreeLsRIndex::<Mapped, K, 256>::create(pool, "t").unwrap();
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

/// An index in a file that is full.
struct FullIndex<K: Key> {
    _dir: tempfile::TempDir,
    path: std::path::PathBuf,
    index: BTreeLsRIndex<Mapped, K, 256>,
    count: u64,
}

/// Reserves all free space of a pool.
fn exhaust(pool: &Pool<Mapped>) {
    let pool_bytes = pool.usage().pool_bytes;
    pool.limit(pool_bytes);
    while pool.reserve(64).is_ok() {}
}

impl<K: Key> FullIndex<K> {
    fn new(key: impl Fn(u64) -> K::Owned, pool_bytes: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.pool");
        let medium = Mapped::create(&path, pool_bytes, &FileOptions::default()).unwrap();
        let pool = Arc::new(Pool::create(medium).unwrap());
        pool.limit(pool_bytes);
        let index = BTreeLsRIndex::create(pool, "t").unwrap();
        let mut count = 0;
        while index.insert(K::borrow(&key(count)), count).is_ok() {
            count += 1;
        }
        Self { _dir: dir, path, index, count }
    }

    /// Reopens the file and reserves all free space: before opening the index if the pool was
    /// closed, and after it if the pool crashed, because recovery must end first.
    fn reopen(self, is_closed: bool) -> Self {
        if is_closed {
            let pool = Arc::into_inner(Box::new(self.index).close().unwrap()).unwrap();
            pool.limit(u64::MAX); // The free map that `close` saves needs space.
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
        let index = BTreeLsRIndex::open(Arc::clone(&pool), "t", opened).unwrap();
        assert!(!is_closed || pool.usage().blocks == blocks, "open reserves no block");
        exhaust(&pool);
        Self { index, ..self }
    }
}

fn opens_in_a_full_pool<K: Key>(key: impl Fn(u64) -> K::Owned + Copy, pool_bytes: u64) {
    for run_sessions in [[true, true], [true, false], [false, true], [false, false]] {
        let mut full = FullIndex::<K>::new(key, pool_bytes);
        let mut left = full.count;
        for is_closed in run_sessions {
            full = full.reopen(is_closed);
            let index = &full.index;
            assert_eq!(index.check().unwrap().keys, left);
            // Removes half of the rest, so that the next open finds shorter logs.
            let keys = (full.count - left)..(full.count - left / 2);
            left -= keys.end - keys.start;
            for n in keys {
                assert_eq!(index.remove(K::borrow(&key(n))).unwrap(), Some(n));
            }
        }
        for n in full.count - left..full.count {
            assert_eq!(full.index.remove(K::borrow(&key(n))).unwrap(), Some(n));
        }
        assert_eq!(full.index.check().unwrap().keys, 0);
    }
}

#[test]
fn open_in_a_full_pool_needs_no_block_and_all_removes_succeed() {
    for pool_bytes in [160 << 10, 1 << 20] {
        opens_in_a_full_pool::<u64>(|n| n, pool_bytes);
        opens_in_a_full_pool::<u64>(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15), pool_bytes);
        opens_in_a_full_pool::<Text>(|n| format!("{n:05}").into_bytes(), pool_bytes);
    }
}

/// Copies records of a log's oldest chunks until two are in the reserve chunk. Returns `true` if
/// so.
fn interrupt_collection(index: &Index<Mapped, 256>, log: usize) -> bool {
    const COPIES: usize = 2;
    let (pool, root, guard) = (&*index.pool, index.root_words().unwrap(), index.pool.pin());
    for _ in 0..index.log.chunks(log).len() {
        let Some(oldest) = index.log.oldest(pool, root, log, true).unwrap() else { return false };
        let chunk = chunk::LogChunk::open(pool, oldest, index.log.lines()).unwrap();
        let mut copies = 0;
        for line in 1..chunk.lines() {
            let Some(found) = chunk.record(pool, line).unwrap() else { continue };
            let copied = index.collect_record(&found, true, &guard).unwrap().unwrap();
            copies += usize::from(index.log.is_reserve_open(log) && copied > 0);
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

/// A crash while the reserve chunk is being filled leaves only copies in it, so recovery empties
/// it. The next collection has the whole chunk again, in every log and after every crash.
#[test]
fn an_interrupted_collection_can_be_repeated_in_a_full_pool() {
    let key = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut full = FullIndex::<u64>::new(key, 1 << 20);
    exhaust(&full.index.pool);
    let (mut state, mut interrupted) = (1, 0);
    for session in 0..5 {
        let index = &full.index;
        for _ in 0..5 * full.count {
            assert!(index.update(key(random(&mut state) % full.count), session).unwrap().is_some());
        }
        interrupted += (0..Standard::LOGS).filter(|&log| interrupt_collection(index, log)).count();
        full = full.reopen(false);
        assert_eq!(full.index.check().unwrap().keys, full.count);
    }
    assert!(interrupted > 0, "no reserve chunk was filled");
    for n in 0..full.count {
        assert!(full.index.remove(key(n)).unwrap().is_some());
    }
    assert_eq!(full.index.check().unwrap().keys, 0);
}

#[test]
fn concurrent_threads_in_an_almost_full_pool_match_their_models() {
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
                        // A failed operation changes nothing.
                        match index.remove(key) {
                            Ok(old) => assert_eq!(old, model.remove(&key)),
                            Err(TreeError::Pool(PoolError::Full { .. })) => {}
                            Err(other) => panic!("{other}"),
                        }
                    } else {
                        match index.upsert(key, step) {
                            Ok(old) => assert_eq!(old, model.insert(key, step)),
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

/// A sequence number or use number at the end of its range would wrap around, and later records
/// would seem older than the damage.
#[test]
fn a_counter_out_of_range_is_damage() {
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

/// Log GC once met the base of a right leaf before the leaf had a row, and reused its chunk: the
/// split then led to a base that was no more.
#[test]
fn a_collection_in_the_middle_of_a_split_keeps_the_base_of_the_right_leaf() {
    let index = counted::<Index<_, 256>>();
    index.insert(1, 1).unwrap();
    let right = 5;
    let (row, held) = index.begin_leaf(right);
    let pairs = vec![(7, crate::key::Entry::plain(7, 70))];
    let range = record::Range { right: None, low: 7, high: 0 };
    let Ok(at) = index.right_base(right, range, &pairs) else { panic!("no space") };
    let log = Standard::log_of(right);
    std::thread::scope(|scope| {
        let collector = scope.spawn(|| {
            let failed = write::WriteError::NeedsCollection { log, full: None };
            index.ensure_space(failed, 1, &index.pool.pin()).unwrap();
        });
        let first = Index::<bristlecone_pmem::medium::Count<Mapped>, 256>::FIRST_SEQUENCE;
        index.table.row(row).set_base::<Mapped>(at, [0].into_iter(), first);
        drop(held);
        collector.join().unwrap();
    });
    assert_ne!(index.table.row(row).base::<Mapped>(), at, "nothing was collected");
    let base = index.table.row(row).base_in(&index.pool).unwrap();
    assert_eq!(base.item(index.pool.medium(), 0).value, 70);
}
