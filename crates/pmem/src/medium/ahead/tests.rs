use crate::layout::CHUNK_BYTES;
use crate::medium::{FileOptions, Mapped, Medium};
use crate::pool::Pool;
use std::path::Path;

const STEP_BYTES: u64 = 2 << 20;

fn pool(path: &Path) -> Pool<Mapped> {
    let medium = Mapped::create(path, 8 << 20, &FileOptions::default()).unwrap();
    let pool = Pool::create(medium).unwrap();
    pool.set_growth_step(STEP_BYTES);
    pool
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

/// Reserves chunks until `enough`.
fn reserve_until(pool: &Pool<Mapped>, enough: impl Fn(&Pool<Mapped>) -> bool) {
    while !enough(pool) {
        let block = pool.reserve(CHUNK_BYTES).unwrap();
        let word = &pool.words(block, 1).unwrap()[0];
        assert_eq!(pool.medium().load(word), 0, "a new chunk is zero");
        pool.medium().store(word, block.offset());
    }
}

fn wait_until_ready(pool: &Pool<Mapped>) {
    pool.medium().file.as_ref().unwrap().wait_until_ready();
}

#[test]
fn the_next_step_is_ready_before_the_last_one_is_used_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    let pool = pool(&path);
    let start = pool.usage().pool_bytes;
    assert_eq!(length(&path), start, "nothing is prepared while the pool has space");
    reserve_until(&pool, |pool| pool.usage().free_bytes < STEP_BYTES / 2 - CHUNK_BYTES);
    wait_until_ready(&pool);
    assert_eq!(length(&path), start + STEP_BYTES, "the file is ahead of the pool");
    assert_eq!(pool.usage().pool_bytes, start);
    assert_eq!(pool.medium().len(), start);
    reserve_until(&pool, |pool| pool.usage().pool_bytes > start);
    assert_eq!(pool.usage().pool_bytes, start + STEP_BYTES, "the pool takes the whole step");
    reserve_until(&pool, |pool| pool.usage().free_bytes < STEP_BYTES / 2 - CHUNK_BYTES);
    wait_until_ready(&pool);
    assert_eq!(length(&path), start + 2 * STEP_BYTES);
    drop(pool);
    assert_eq!(length(&path), start + STEP_BYTES, "the drop cuts off what no pool uses");
    let medium = Mapped::open(&path, &FileOptions::default()).unwrap();
    assert_eq!(Pool::open(medium).unwrap().0.usage().pool_bytes, start + STEP_BYTES);
}

#[test]
fn a_pool_grows_by_no_more_than_a_step() {
    let dir = tempfile::tempdir().unwrap();
    let pool = pool(&dir.path().join("p.pool"));
    let mut former = pool.usage().pool_bytes;
    for _ in 0..5 {
        reserve_until(&pool, |pool| pool.usage().pool_bytes > former);
        let grown = pool.usage().pool_bytes;
        assert!(grown <= former + STEP_BYTES, "from {former} to {grown}");
        former = grown;
    }
    // One block larger than a step takes what it needs.
    pool.reserve(3 * STEP_BYTES).unwrap();
}

#[test]
fn nothing_is_prepared_past_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    let pool = pool(&path);
    let limit = pool.usage().pool_bytes + CHUNK_BYTES;
    pool.limit(limit);
    while pool.reserve(CHUNK_BYTES).is_ok() {
        wait_until_ready(&pool);
        assert!(length(&path) <= limit);
    }
    assert_eq!(pool.usage().pool_bytes, limit);
}

/// A file of one mapping has one entry in the process's map, however often it has grown.
#[test]
fn slices_become_one_mapping() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("one.pool");
    let pool = pool(&path);
    pool.medium().prepare_growth(64 << 20);
    wait_until_ready(&pool);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let name = path.to_str().unwrap();
    assert_eq!(maps.lines().filter(|line| line.ends_with(name)).count(), 1, "{maps}");
}
