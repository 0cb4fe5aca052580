use super::*;
use crate::leaf_table::testing::{cost, counted, pairs, random};
use bristlecone_pmem::Mapped;
use bristlecone_pmem::medium::{Count, FileOptions};
use std::collections::BTreeMap;

type Index<M> = LbTreeIndex<M, u64>;
type TextIndex = LbTreeIndex<Mapped, UniqueWords<crate::Text>>;

/// Returns an index with the keys 0, 10, 20 .. 10 (count - 1) in its first leaf.
fn with_keys(count: u64) -> Index<Count<Mapped>> {
    let index = counted::<Index<_>>();
    for key in 0..count {
        index.insert(10 * key, key).unwrap();
    }
    index
}

fn cost_of_insert(index: &Index<Count<Mapped>>, key: u64) -> (u64, u64) {
    cost(index, |index| assert_eq!(index.insert(key, key).unwrap(), None))
}

#[test]
fn an_insert_moves_entries_so_that_the_next_ones_cost_one_line() {
    let index = counted::<Index<_>>();
    // Three slots in line 0. The fourth entry goes to line 1, with all three of line 0. The same in
    // line 2; line 3 has two slots beside the new entry's.
    let moves_at = [3, 7, 11];
    for key in 0..layout::CAPACITY as u64 {
        let expected = if moves_at.contains(&key) { (2, 2) } else { (1, 1) };
        assert_eq!(cost_of_insert(&index, key), expected, "insert of {key}");
        assert_eq!(index.check().unwrap().keys, key + 1);
    }
    assert_eq!(cost(&index, |index| assert_eq!(index.update(3, 7).unwrap(), Some(3))), (1, 1));
    assert_eq!(cost(&index, |index| assert_eq!(index.remove(9).unwrap(), Some(9))), (1, 1));
    assert_eq!(index.check().unwrap().leaves, 1);
}

#[test]
fn a_split_costs_six_lines_and_two_fences_and_the_insert_of_a_lower_key() {
    // A greater key than the separator, 70, goes to the right leaf before the commit.
    assert_eq!(cost_of_insert(&with_keys(14), 75), (6, 2));
    // The left leaf keeps seven entries, none of them in line 0: the last inserts moved the others.
    let index = with_keys(14);
    let (lines, fences) = cost_of_insert(&index, 65);
    assert!(matches!((lines, fences), (7, 3) | (8, 4)), "{lines} lines, {fences} fences");
    assert_eq!(index.check().unwrap().leaves, 2);
}

#[test]
fn unlinking_a_leaf_costs_one_line_and_one_fence() {
    let fill = || {
        let index = with_keys(40);
        assert!(index.check().unwrap().leaves > 3);
        index
    };
    let remove = |index: &Index<Count<Mapped>>, key: u64| {
        cost(index, |index| assert_eq!(index.remove(10 * key).unwrap(), Some(key)))
    };
    for keys in [(0..40).collect::<Vec<_>>(), (0..40).rev().collect()] {
        let index = fill();
        let mut leaves = index.check().unwrap().leaves;
        for (at, &key) in keys.iter().enumerate() {
            assert_eq!(remove(&index, key), (1, 1), "remove of {key}");
            let stats = index.check().unwrap();
            assert_eq!(stats.keys, 39 - at as u64);
            leaves = leaves.min(stats.leaves);
        }
        assert_eq!(leaves, 1);
        index.insert(5, 5).unwrap();
        assert_eq!(pairs(&index), BTreeMap::from([(5, 5)]));
    }
}

/// Random inserts cost what the paper's arithmetic says: a quarter of them dirties two lines.
#[test]
fn random_inserts_average_what_entry_moving_promises() {
    let index = counted::<Index<_>>();
    let (mut state, mut whole, mut quiet) = (7, [0u64; 3], [0u64; 3]);
    for step in 0..100_000 {
        let key = random(&mut state) << 20 | step;
        let before = index.table.in_use();
        let (lines, fences) = cost_of_insert(&index, key);
        for (sum, counts) in [(&mut whole, true), (&mut quiet, index.table.in_use() == before)] {
            if counts {
                *sum = [sum[0] + 1, sum[1] + lines, sum[2] + fences];
            }
        }
    }
    let averages = |[count, lines, fences]: [u64; 3]| {
        (lines as f64 / count as f64, fences as f64 / count as f64)
    };
    let (lines, fences) = averages(quiet);
    assert!((1.2..=1.3).contains(&lines) && (1.2..=1.3).contains(&fences), "{lines}, {fences}");
    let (lines, fences) = averages(whole);
    assert!(lines <= 1.85 && fences <= 1.45, "with splits: {lines} lines, {fences} fences");
}

#[test]
fn pairs_survive_crashes_and_closes() {
    let dir = tempfile::tempdir().unwrap();
    for keys in [20, 3000] {
        let path = dir.path().join(format!("{keys}.pool"));
        let options = FileOptions { reserve_bytes: 1 << 28, ..FileOptions::default() };
        let pool = Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap();
        let mut index = Index::<Mapped>::create(Arc::new(pool), "t").unwrap();
        let (mut model, mut state) = (BTreeMap::new(), keys);
        for session in 0..6 {
            for step in 0..4000 {
                let key = random(&mut state) % keys;
                if random(&mut state) % 5 < 3 {
                    assert_eq!(index.upsert(key, step).unwrap(), model.insert(key, step));
                } else {
                    assert_eq!(index.remove(key).unwrap(), model.remove(&key));
                }
            }
            assert_eq!(index.check().unwrap().keys, model.len() as u64);
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
}

/// A leaf has no low key, so the separator is the record of an entry that may be removed.
#[test]
fn the_record_of_a_removed_separator_stays_until_its_leaf_goes() {
    let pool = Arc::new(Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap());
    let index = TextIndex::create(pool, "t").unwrap();
    let key = |number: usize| format!("key {number:02}").into_bytes();
    for number in 0..15 {
        index.insert(&key(number), number as u64).unwrap();
    }
    assert_eq!(index.check().unwrap().leaves, 2);
    let before = index.check().unwrap().blocks;
    // Key 7 is the separator. Its record stays, and a new entry of the key has one of its own.
    index.remove(&key(7)).unwrap();
    assert_eq!(index.check().unwrap().blocks, before);
    index.insert(&key(7), 70).unwrap();
    assert_eq!(index.check().unwrap().blocks, before + 1);
    for number in 0..15 {
        let value = if number == 7 { 70 } else { number as u64 };
        assert_eq!(index.get(&key(number)).unwrap(), Some(value));
        index.remove(&key(number)).unwrap();
    }
    let stats = index.check().unwrap();
    assert_eq!((stats.leaves, stats.keys), (1, 0));
    index.pool.reclaim();
    assert_eq!(index.pool.usage().blocks, stats.blocks + 1);
}

#[test]
fn a_close_frees_the_records_of_removed_separators() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let options = FileOptions::default();
    let pool = Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap();
    let index = TextIndex::create(Arc::new(pool), "t").unwrap();
    for number in 0..30_u8 {
        index.insert(&[number + 1], u64::from(number)).unwrap();
    }
    for number in (0..30_u8).filter(|number| number % 7 == 0) {
        index.remove(&[number + 1]).unwrap();
    }
    Arc::into_inner(Box::new(index).close().unwrap()).unwrap().close().unwrap();
    let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
    let index = TextIndex::open(Arc::new(pool), "t", opened).unwrap();
    let stats = index.check().unwrap();
    assert_eq!((stats.keys, index.pool.usage().blocks), (25, stats.blocks + 1));
}

/// Damage can make an entry valid again whose record is free, and a close freed the record once
/// more.
#[test]
fn a_close_of_a_damaged_pool_frees_no_block_twice() {
    let pool = Arc::new(Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap());
    let index = TextIndex::create(pool, "t").unwrap();
    for number in 1..16_u8 {
        index.insert(&[number], 1).unwrap();
    }
    let second = index.table.next::<Mapped>(index.table.row(0)).unwrap();
    let leaf = second.leaf::<Mapped>();
    let separator = crate::Text::read(&index.pool, second.low::<Mapped>()).unwrap();
    let pool = Arc::clone(&index.pool);
    let header = &pool.words(leaf, 1).unwrap()[0];
    let before = pool.medium().load(header);
    index.remove(&separator).unwrap();
    Box::new(index).close().unwrap();
    pool.medium().store(header, before);
    let index = TextIndex::open(Arc::clone(&pool), "t", Opened::Clean).unwrap();
    assert_eq!(index.remove(&separator).unwrap(), Some(1));
    Box::new(index).close().unwrap();
}
