//! Inserts and removes at every index of every ring, with their costs; recovery from interrupted
//! shifts.

use super::*;
use bristlecone_pmem::Mapped;
use bristlecone_pmem::medium::Count;
use std::collections::BTreeMap;

/// Fills a ring of `count` entries from slot `base` on, with the keys 10, 20, .., and returns them.
fn ring<const NODE: usize>(
    words: &[PmWord],
    pool: &Pool<Count<Mapped>>,
    base: usize,
    count: usize,
) -> BTreeMap<u64, u64> {
    let ring = Circular::<NODE>::ring(pool.medium(), words);
    let head = RingHead { base, count, side: Side::Left };
    let _ = ring.set_head(head);
    let keys = (1..=count as u64).map(|n| 10 * n);
    for (index, key) in keys.clone().enumerate() {
        let slot = Ring::<Count<Mapped>, NODE>::slot(head, index);
        ring.set_value_first(slot, Entry::plain(key, !key));
    }
    keys.map(|key| (key, !key)).collect()
}

fn assert_contents<const NODE: usize>(
    words: &[PmWord],
    pool: &Pool<Count<Mapped>>,
    model: &BTreeMap<u64, u64>,
) {
    let mut found = Vec::new();
    Circular::<NODE>::collect(pool.medium(), words, &mut found);
    let found: Vec<_> = found.iter().map(|tagged| (tagged.entry.key, tagged.entry.value)).collect();
    let expected: Vec<_> = model.iter().map(|(&key, &value)| (key, value)).collect();
    assert_eq!(found, expected);
}

/// Inserts and removes at every index of every ring of at least `least` entries. The greatest cost
/// must equal the declared one.
fn exercise_every_index<const NODE: usize>(least: usize) {
    let pool = Pool::create(Count::new(Mapped::anonymous(1 << 20).unwrap())).unwrap();
    let block = pool.reserve(NODE as u64).unwrap();
    let words = pool.words(block, NODE / 8).unwrap();
    Circular::<NODE>::format::<u64, _>(&pool, words, 0, 0, &[]).unwrap();
    let (mut inserts, mut removes) = ((0, 0), (0, 0));
    for base in 0..Circular::<NODE>::CAPACITY {
        for count in least..=Circular::<NODE>::CAPACITY {
            for index in 0..=count {
                let key = 10 * index as u64 + 5;
                let mut model = ring::<NODE>(words, &pool, base, count);
                pool.medium().take();
                if count < Circular::<NODE>::CAPACITY {
                    let room =
                        Circular::<NODE>::insert::<u64, _>(&pool, words, key, Value::plain(1));
                    assert!(matches!(room, Ok(InsertResult::Done(_))));
                    model.insert(key, 1);
                    assert_contents::<NODE>(words, &pool, &model);
                    let counts = pool.medium().take();
                    inserts = inserts.max((counts.lines, counts.fences));
                }
                if index < count {
                    let mut model = ring::<NODE>(words, &pool, base, count);
                    pool.medium().take();
                    let key = 10 * index as u64 + 10;
                    let found = Circular::<NODE>::find::<u64, _>(&pool, words, key).unwrap();
                    assert_eq!(found, Some((index, Value::plain(!key))));
                    let entry = Circular::<NODE>::remove(&pool, words, index);
                    assert_eq!(entry, Entry::plain(key, !key));
                    model.remove(&key);
                    assert_contents::<NODE>(words, &pool, &model);
                    let counts = pool.medium().take();
                    removes = removes.max((counts.lines, counts.fences));
                }
            }
        }
    }
    let lines = |lines: u32| (u64::from(lines), u64::from(lines));
    assert_eq!(inserts, lines(Circular::<NODE>::INSERT_LINES));
    assert_eq!(removes, lines(Circular::<NODE>::REMOVE_LINES));
}

#[test]
fn inserts_and_removes_at_every_index_of_every_ring() {
    exercise_every_index::<256>(0);
    exercise_every_index::<512>(0);
    exercise_every_index::<2048>(Circular::<2048>::CAPACITY - 2);
}

#[test]
fn an_interrupted_shift_is_completed() {
    let pool = Pool::create(Count::new(Mapped::anonymous(1 << 20).unwrap())).unwrap();
    let block = pool.reserve(256).unwrap();
    let words = pool.words(block, 32).unwrap();
    Circular::<256>::format::<u64, _>(&pool, words, 0, 0, &[]).unwrap();
    for base in 0..Circular::<256>::CAPACITY {
        for side in [Side::Left, Side::Right] {
            for duplicate in 0..5 {
                let model = ring::<256>(words, &pool, base, 6);
                let ring = Circular::<256>::ring(pool.medium(), words);
                let head = RingHead { base, count: 6, side };
                let _ = ring.set_head(head);
                // Entries `duplicate` and `duplicate + 1` get one key. The valid one must keep its
                // value.
                let slot = |index| Ring::<Count<Mapped>, 256>::slot(head, index);
                let (invalid, valid) = match side {
                    Side::Right => (duplicate, duplicate + 1),
                    Side::Left => (duplicate + 1, duplicate),
                };
                let kept = ring.entry(slot(valid));
                let lost = ring.entry(slot(invalid)).key;
                ring.set_value_first(slot(invalid), Entry::plain(kept.key, 77));
                Circular::<256>::repair::<u64, _>(&pool, 0, words).unwrap();
                let mut model = model;
                model.remove(&lost);
                assert_contents::<256>(words, &pool, &model);
            }
        }
    }
}

#[test]
fn an_impossible_head_is_damage() {
    let pool = Pool::create(Count::new(Mapped::anonymous(1 << 20).unwrap())).unwrap();
    let block = pool.reserve(256).unwrap();
    let words = pool.words(block, 32).unwrap();
    Circular::<256>::format::<u64, _>(&pool, words, 0, 0, &[]).unwrap();
    for head in [14, 15 << 8, 2 << 16, u64::MAX] {
        pool.medium().store(&words[HEAD], head);
        assert!(Circular::<256>::repair::<u64, _>(&pool, 0, words).is_err());
        assert_eq!(Circular::<256>::count(pool.medium(), words), 0);
    }
}
