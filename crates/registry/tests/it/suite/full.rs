//! A full pool loses no pair, and removes make room again.

use super::keys::{Space, TestKey};
use super::scratch::{ROOT, check_settled, dram, rng};
use super::{Index, Subject};
use bristlecone_pmem::pool::POOL_BYTES_MIN;
use bristlecone_pmem::{Medium, PmPtr, Pool, PoolError};
use bristlecone_trees::{Text, TreeError};
use rand::seq::SliceRandom;

/// Runs the suite with both kinds of key.
pub(crate) fn run(integers: &Subject<u64>, texts: &Subject<Text>) {
    fill_up(integers);
    fill_up(texts);
}

fn is_full(error: &TreeError) -> bool {
    matches!(error, TreeError::Pool(PoolError::Full { .. }))
}

fn fill_up<K: TestKey>(subject: &Subject<K>) {
    let pool = dram();
    pool.limit((1 << 20) + POOL_BYTES_MIN);
    let index = (subject.create)(pool, ROOT).unwrap();
    let key = |n| K::nth(Space::Dense, n);
    let mut count = 0;
    let full = loop {
        match index.insert(K::borrow(&key(count)), count) {
            Ok(there) => assert_eq!(there, None),
            Err(error) => break error,
        }
        count += 1;
        assert!(count < 1 << 20, "the pool's limit is not kept");
    };
    assert!(is_full(&full), "{full}");
    assert!(count > 1000, "full after {count} keys");

    verify(&*index, &key, count, "what was in a full pool");
    assert_eq!(index.get(K::borrow(&key(count))).unwrap(), None, "the insert was refused");
    let ballast = fill_the_rest(index.pool());
    update_in_full_pool(&*index, &key, count);

    // Removes need no room. All keys are removed, in random order, so that merges run too.
    let mut numbers: Vec<_> = (0..count).collect();
    numbers.shuffle(&mut rng(4));
    for &n in &numbers {
        let removed = index.remove(K::borrow(&key(n)));
        assert!(removed.expect("a full pool is no obstacle to a remove").is_some(), "key {n}");
    }
    for (block, bytes) in ballast {
        index.pool().release(block, bytes);
    }
    assert_eq!(check_settled(&*index).keys, 0);

    // The freed space serves again for almost as many keys, in any order.
    let again = count * 9 / 10;
    for n in 0..again {
        index.insert(K::borrow(&key(n)), n).expect("there is room again");
    }
    verify(&*index, &key, again, "what was inserted into the room made");
    assert_eq!(check_settled(&*index).keys, again);
}

/// Reserves the rest of the pool, so that no block is free.
fn fill_the_rest<M: Medium>(pool: &Pool<M>) -> Vec<(PmPtr, u64)> {
    let mut blocks = Vec::new();
    let mut bytes = 8 << 10;
    while bytes >= 64 {
        match pool.reserve(bytes) {
            Ok(block) => blocks.push((block, bytes)),
            Err(_) => bytes -= 64,
        }
    }
    blocks
}

fn verify<K: TestKey>(index: &Index<K>, key: &dyn Fn(u64) -> K::Owned, count: u64, what: &str) {
    for n in 0..count {
        assert_eq!(index.get(K::borrow(&key(n))).unwrap(), Some(n), "{what}: key {n}");
    }
    assert_eq!(check_settled(index).keys, count, "{what}");
}

/// Asserts that an update takes effect or is refused, and that a refused one changes nothing.
fn update_in_full_pool<K: TestKey>(index: &Index<K>, key: &dyn Fn(u64) -> K::Owned, count: u64) {
    for n in (0..count).step_by(11) {
        let key = key(n);
        match index.update(K::borrow(&key), !n) {
            Ok(former) => {
                assert_eq!(former, Some(n));
                assert_eq!(index.get(K::borrow(&key)).unwrap(), Some(!n), "key {n}");
            }
            Err(error) => {
                assert!(is_full(&error), "{error}");
                assert_eq!(index.get(K::borrow(&key)).unwrap(), Some(n), "key {n}");
            }
        }
    }
}
