//! Slot arrays of the two layouts after a reopen and after a torn write. The conformance suite
//! tests that the layouts are correct leaves.

use super::*;
use crate::designs::{WoTree, WoTreeR};
use crate::index::{Design, PmIndex};
use crate::leaf::slot_cache::SlotCache;
use crate::leaf::{InsertResult, Leaf};
use bristlecone_pmem::Mapped;
use bristlecone_pmem::medium::Count;
use std::collections::BTreeMap;
use std::sync::Arc;

type Counted = Count<Mapped>;

fn pool() -> Pool<Counted> {
    Pool::create(Count::new(Mapped::anonymous(1 << 20).unwrap())).unwrap()
}

/// Returns a leaf with the even keys below twice its capacity, without the last, inserted from the
/// outside in.
fn leaf<L: Leaf>(pool: &Pool<Counted>) -> &[PmWord] {
    let words = pool.words(pool.reserve(8 * L::WORDS as u64).unwrap(), L::WORDS).unwrap();
    L::format::<u64, _>(pool, words, 0, 0, &[]).unwrap();
    let mut keys: Vec<u64> = (0..L::CAPACITY as u64 - 1).map(|i| 2 * i).collect();
    while let Some(key) = keys.pop() {
        assert!(matches!(
            L::insert::<u64, _>(pool, words, key, Value::plain(!key)),
            Ok(InsertResult::Done(_))
        ));
        keys.reverse();
    }
    words
}

fn assert_found<L: Leaf>(pool: &Pool<Counted>, words: &[PmWord], count: usize) {
    assert_eq!(L::count(pool.medium(), words), count);
    for key in 0..2 * L::CAPACITY as u64 {
        let found = L::find::<u64, _>(pool, words, key).unwrap().map(|(_, value)| value.word);
        let expected = key % 2 == 0 && key < 2 * count as u64;
        assert_eq!(found, expected.then_some(!key), "key {key}");
    }
}

/// Overwrites the slot array: `first` for the prefix, and indices that do not match the entries.
fn tear<L: Leaf>(pool: &Pool<Counted>, words: &[PmWord], first: u64) {
    let array = if L::CAPACITY > 64 { 5 } else { 4 };
    pool.medium().store(&words[array], 0x0707_0707_0700_0000 | first);
}

fn stale_cache_is_rebuilt<const NODE: usize>() {
    let pool = pool();
    let words = leaf::<SlotCache<NODE>>(&pool);
    let full = SlotCache::<NODE>::CAPACITY;
    assert_found::<SlotCache<NODE>>(&pool, words, full - 1);
    tear::<SlotCache<NODE>>(&pool, words, pool.nonce() & 0xff_ffff ^ 1);
    assert_found::<SlotCache<NODE>>(&pool, words, full - 1);
    let removed = SlotCache::<NODE>::find::<u64, _>(&pool, words, 2 * full as u64 - 4).unwrap();
    SlotCache::<NODE>::remove(&pool, words, removed.unwrap().0);
    assert_found::<SlotCache<NODE>>(&pool, words, full - 2);
    for count in [full - 1, full] {
        let key = 2 * count as u64 - 2;
        SlotCache::<NODE>::insert::<u64, _>(&pool, words, key, Value::plain(!key)).unwrap();
        assert_found::<SlotCache<NODE>>(&pool, words, count);
    }
    assert!(SlotCache::<NODE>::is_cached(&pool, SlottedLeaf::new(pool.medium(), words)));
}

#[test]
fn slots_of_an_earlier_open_are_ignored() {
    stale_cache_is_rebuilt::<256>();
    stale_cache_is_rebuilt::<1024>();
    stale_cache_is_rebuilt::<2048>();
}

/// Compares a design with a map under random upserts and removes. The conformance suite covers the
/// smallest and the default leaf size; this covers two others.
fn agrees_with_a_map<D: Design>() {
    let pool = Pool::create(Mapped::anonymous(4 << 20).unwrap()).unwrap();
    let index = D::Index::<Mapped, u64>::create(Arc::new(pool), "t").unwrap();
    let mut model = BTreeMap::new();
    for round in 0..3 {
        for i in 0..6_000u64 {
            let key = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            if i % 3 < round {
                assert_eq!(index.remove(key).unwrap(), model.remove(&key));
            } else {
                assert_eq!(index.upsert(key, i).unwrap(), model.insert(key, i));
            }
        }
        assert_eq!(index.check().unwrap().keys, model.len() as u64);
        for (&key, &value) in &model {
            assert_eq!(index.get(key).unwrap(), Some(value));
        }
    }
}

#[test]
fn leaves_of_other_sizes_agree_with_a_map() {
    agrees_with_a_map::<WoTree<512>>();
    agrees_with_a_map::<WoTree<2048>>();
    agrees_with_a_map::<WoTreeR<512>>();
    agrees_with_a_map::<WoTreeR<2048>>();
}
