use super::*;
use crate::inner::InnerNodes;
use crate::key::Entry;
use crate::leaf_table::testing::{cost, counted, pairs, random, survives_crashes_and_closes};
use bristlecone_pmem::Mapped;
use bristlecone_pmem::medium::{Count, FileOptions};
use std::collections::BTreeMap;
use std::path::Path;
use word::WideCells;

type Index<M> = CellTreeIndex<M, u64, 1024>;
type SmallIndex<M> = CellTreeIndex<M, u64, 256>;
type TextIndex<M = Mapped> = CellTreeIndex<M, crate::Text, 256>;

fn on_dram<I: PmIndex<Mapped, K>, K: Key>() -> I {
    let pool = Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap();
    I::create(Arc::new(pool), "t").unwrap()
}

#[test]
fn an_operation_in_a_leaf_costs_one_line_and_one_fence() {
    let index = counted::<Index<_>>();
    for key in 0..20 {
        let act = |index: &Index<_>| assert_eq!(index.insert(key, key).unwrap(), None);
        assert_eq!(cost(&index, act), (1, 1), "insert of {key}");
    }
    let keys = [0, 7, 19];
    for key in keys {
        let act = |index: &Index<_>| assert_eq!(index.update(key, 7).unwrap(), Some(key));
        assert_eq!(cost(&index, act), (1, 1), "update of {key}");
        let act = |index: &Index<_>| assert_eq!(index.remove(key).unwrap(), Some(7));
        assert_eq!(cost(&index, act), (1, 1), "remove of {key}");
    }
    assert_eq!(index.check().unwrap().keys, 17);
    for key in keys {
        assert_eq!((index.get(key).unwrap(), index.get(key + 20).unwrap()), (None, None));
    }
}

#[test]
fn a_key_in_a_far_cell_costs_what_any_other_does() {
    let index = counted::<Index<_>>();
    let near = |key| Index::<Mapped>::candidates(u64::hash(key));
    // Keys with the same near cells fill both, and then others.
    let mut keys = (0..).filter(|&key| near(key) == near(0));
    let mut inserted = Vec::new();
    for at in 0..20 {
        let key = keys.next().unwrap();
        let act = |index: &Index<_>| assert_eq!(index.insert(key, at).unwrap(), None);
        assert_eq!(cost(&index, act), (1, 1), "insert number {at}");
        inserted.push(key);
    }
    for (at, &key) in (0..).zip(&inserted) {
        assert_eq!(index.get(key).unwrap(), Some(at));
        assert_eq!(cost(&index, |index| assert!(index.update(key, 7).unwrap().is_some())), (1, 1));
    }
    let stats = index.check().unwrap();
    assert_eq!((stats.keys, stats.leaves), (20, 1));
    assert_eq!(index.get(keys.next().unwrap()).unwrap(), None);
    for key in inserted {
        assert_eq!(cost(&index, |index| assert_eq!(index.remove(key).unwrap(), Some(7))), (1, 1));
    }
}

/// Random inserts into leaves of 1 KiB.
#[test]
fn random_inserts_with_splits_average_what_the_page_says() {
    let index = counted::<Index<_>>();
    let (mut state, count) = (7, 100_000);
    let (lines, fences) = cost(&index, |index| {
        for step in 0..count {
            index.insert(random(&mut state) << 20 | step, step).unwrap();
        }
    });
    let [lines, fences] = [lines, fences].map(|sum| sum as f64 / count as f64);
    let keys_per_leaf = count as f64 / index.check().unwrap().leaves as f64;
    eprintln!("{lines} lines, {fences} fences, {keys_per_leaf} keys a leaf");
    assert!(lines <= 1.34 && fences <= 1.04, "{lines} lines, {fences} fences");
    assert!(keys_per_leaf >= 29.0, "{keys_per_leaf}");
}

#[test]
fn pairs_survive_crashes_and_closes() {
    survives_crashes_and_closes::<Index<Mapped>>();
    survives_crashes_and_closes::<SmallIndex<Mapped>>();
}

#[test]
fn keys_that_share_their_near_cells_fill_their_leaves() {
    let index = on_dram::<Index<Mapped>, u64>();
    let near = |key| Index::<Mapped>::candidates(u64::hash(key));
    let keys: Vec<_> = (1..).filter(|&key| near(key) == near(1)).take(200).collect();
    for &key in &keys {
        assert_eq!(index.insert(key, key).unwrap(), None);
    }
    assert!(keys.iter().all(|&key| index.get(key).unwrap() == Some(key)));
    let stats = index.check().unwrap();
    assert!(stats.keys == 200 && stats.leaves < 9, "{} leaves", stats.leaves);
}

#[test]
fn moved_entries_stay_hidden_until_their_cell_is_written() {
    let index = counted::<Index<_>>();
    let mut keys = 0;
    while index.check().unwrap().leaves == 1 {
        index.insert(keys, keys).unwrap();
        keys += 1;
    }
    let first = index.row_at(index.first);
    let leaf = index.leaf(first).unwrap();
    let (medium, notes) = (index.pool.medium(), first.notes::<Count<Mapped>>());
    let all = leaf.entries::<WideCells, _>(medium, rows::Notes::default()).count();
    assert!(
        notes != notes.without_hidden::<WideCells>() && all > notes.count::<WideCells>(),
        "{all} entries in the cells"
    );
    // An insert that takes the place of hidden entries costs what any other does.
    index.remove(0).unwrap();
    assert_eq!(cost(&index, |index| assert_eq!(index.insert(0, 5).unwrap(), None)), (1, 1));
    // When the right leaf goes, its range comes back, and the hidden entries must not.
    for key in (1..keys).rev() {
        assert_eq!(index.remove(key).unwrap(), Some(key));
    }
    let notes = first.notes::<Count<Mapped>>();
    assert!(notes == notes.without_hidden::<WideCells>() && notes.count::<WideCells>() == 1);
    assert_eq!(pairs(&index), BTreeMap::from([(0, 5)]));
    assert_eq!(index.check().unwrap().leaves, 1);
}

/// A crash can leave the insert that splits a leaf, and not the link to the right leaf.
#[test]
fn a_leaf_without_a_free_slot_is_split_before_an_insert() {
    for lower in [true, false] {
        let index = on_dram::<Index<Mapped>, u64>();
        for key in 1..45 {
            index.insert(10 * key, key).unwrap();
        }
        let row = index.row_at(index.first);
        let leaf = index.leaf(row).unwrap();
        let (hash, medium) = (u64::hash(5), index.pool.medium());
        let notes = row.notes::<Mapped>();
        let cell = leaf
            .choose::<WideCells, _>(medium, (row, notes), Index::<Mapped>::candidates(hash))
            .unwrap();
        index.add::<WideCells>(row, leaf, cell, (hash, crate::key::Entry::plain(5, 0)), None);
        let new = if lower { 6 } else { 1000 };
        assert_eq!(index.insert(new, 7).unwrap(), None);
        assert_eq!((index.get(5).unwrap(), index.get(new).unwrap()), (Some(0), Some(7)));
        let stats = index.check().unwrap();
        assert_eq!((stats.keys, stats.leaves), (46, 2), "{new}");
    }
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
    assert!(index.check().unwrap().leaves > 20);
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

/// A split clears moved entries of keys with records: the record of one comes free with its remove,
/// and a lower key can get its block.
#[test]
fn a_hidden_entry_names_no_record_that_came_free() {
    let key = |number: u64| format!("key {number:03}").into_bytes();
    for removed in 1..5 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.pool");
        let index: TextIndex = create_file(&path);
        let mut last = 100;
        while index.check().unwrap().leaves == 1 {
            last += 1;
            index.insert(&key(last), last).unwrap();
        }
        // The greatest key went to the right leaf at once; those below it were moved.
        index.remove(&key(last - removed)).unwrap();
        index.pool.reclaim();
        index.insert(&key(1), 1).unwrap();
        drop(index);
        let index = open_file::<crate::Text>(&path).unwrap();
        assert_eq!(index.get(&key(1)).unwrap(), Some(1));
        assert_eq!(index.check().unwrap().keys, last - 100);
    }
}

#[test]
fn an_insert_and_its_record_cost_two_lines_and_one_fence() {
    let medium = Count::new(Mapped::anonymous(1 << 20).unwrap());
    let index = TextIndex::create(Arc::new(Pool::create(medium).unwrap()), "t").unwrap();
    for key in [&b"larch"[..], b"sequoia", b"yew"] {
        let insert = |index: &TextIndex<_>| assert_eq!(index.insert(key, 1).unwrap(), None);
        assert_eq!(cost(&index, insert), (2, 1));
        let update = |index: &TextIndex<_>| assert_eq!(index.update(key, 2).unwrap(), Some(1));
        assert_eq!(cost(&index, update), (1, 1));
    }
    assert_eq!(index.check().unwrap().keys, 3);
}

/// Random inserts of keys with records into leaves of 1 KiB.
#[test]
fn random_inserts_with_records_average_what_the_page_says() {
    let medium = Count::new(Mapped::anonymous(1 << 20).unwrap());
    let pool = Arc::new(Pool::create(medium).unwrap());
    let index = CellTreeIndex::<_, crate::Text, 1024>::create(pool, "t").unwrap();
    let (mut state, count) = (7, 10_000);
    let (lines, fences) = cost(&index, |index| {
        for step in 0..count {
            let key = format!("{:07x} {step:08}", random(&mut state) >> 3);
            index.insert(key.as_bytes(), step).unwrap();
        }
    });
    let [lines, fences] = [lines, fences].map(|sum| sum as f64 / count as f64);
    eprintln!("{lines} lines, {fences} fences");
    assert!(lines <= 2.76 && fences <= 1.07, "{lines} lines, {fences} fences");
}

/// The order of equal keys in a scan would depend on their cells.
#[test]
fn a_scan_refuses_two_equal_keys_in_a_leaf() {
    let index: SmallIndex<Mapped> = on_dram();
    let medium = index.pool.medium();
    index.insert(5, 1).unwrap();
    let scanned = || {
        let all = (Bound::Unbounded, Bound::Unbounded);
        [Order::Ascending, Order::Descending]
            .map(|order| index.scan(all, order, &mut |_, _| ControlFlow::Continue(())).is_ok())
    };
    assert_eq!(scanned(), [true; 2]);
    let leaf = index.leaf(index.row_at(index.first)).unwrap();
    leaf.cell::<WideCells>(0).insert(medium, u64::hash(5), Entry::plain(5, 2), None);
    assert_eq!(scanned(), [false; 2]);
}

/// Creates an index in a new file.
fn create_file<K: Key>(path: &Path) -> CellTreeIndex<Mapped, K, 256> {
    let medium = Mapped::create(path, 1 << 20, &FileOptions::default()).unwrap();
    CellTreeIndex::create(Arc::new(Pool::create(medium).unwrap()), "t").unwrap()
}

fn open_file<K: Key>(path: &Path) -> Result<CellTreeIndex<Mapped, K, 256>, TreeError> {
    let (pool, opened) = Pool::open(Mapped::open(path, &FileOptions::default()).unwrap()).unwrap();
    CellTreeIndex::open(Arc::new(pool), "t", opened)
}

/// Changes the record of `key`, the newest entry of its cell in the only leaf.
fn change_record(index: &TextIndex, key: &[u8]) {
    let (pool, leaf) = (&index.pool, index.leaf(index.row_at(index.first)).unwrap());
    let has_key = |(slot, _): (usize, epoch::Note), cell: usize| {
        let entry = leaf.cell::<WideCells>(cell).entry(pool.medium(), slot);
        let is_same = crate::Text::with_entry(pool, entry, |found| found == key).unwrap();
        is_same.then_some(entry.key)
    };
    let fresh = |cell: usize| has_key(leaf.cell::<WideCells>(cell).fresh(pool.medium())?, cell);
    let at = (0..leaf.cells()).find_map(fresh).expect("the entry is fresh");
    let word = &pool.words(PmPtr::new(at), 2).unwrap()[1];
    pool.medium().store(word, !pool.medium().load(word));
}

/// After a crash a record without its check is torn if no open has followed its insert; otherwise
/// it is damaged.
#[test]
fn a_torn_record_is_told_from_a_damaged_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let index: TextIndex = create_file(&path);
    index.insert(b"larch", 1).unwrap();
    index.insert(b"yew", 2).unwrap();
    change_record(&index, b"yew");
    drop(index);

    let index = open_file::<crate::Text>(&path).unwrap();
    assert_eq!((index.get(b"larch").unwrap(), index.get(b"yew").unwrap()), (Some(1), None));
    assert_eq!(index.pool.usage().blocks, index.check().unwrap().blocks + 1);
    assert_eq!(index.insert(b"yew", 3).unwrap(), None);
    drop(index);

    let index = open_file::<crate::Text>(&path).unwrap();
    assert_eq!((index.get(b"larch").unwrap(), index.get(b"yew").unwrap()), (Some(1), Some(3)));
    change_record(&index, b"yew");
    drop(index);
    assert!(
        matches!(open_file::<crate::Text>(&path), Err(TreeError::Pool(_))),
        "its insert was before the open"
    );
}

/// A close ends the epoch.
#[test]
fn after_a_close_no_record_is_torn() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let index: TextIndex = create_file(&path);
    index.insert(b"yew", 2).unwrap();
    Arc::into_inner(Box::new(index).close().unwrap()).unwrap().close().unwrap();

    let index = open_file::<crate::Text>(&path).unwrap();
    assert_eq!(index.get(b"yew").unwrap(), Some(2));
    change_record(&index, b"yew");
    drop(index);
    assert!(matches!(open_file::<crate::Text>(&path), Err(TreeError::Pool(_))));
}

#[test]
fn a_damaged_epoch_is_refused() {
    let index = on_dram::<TextIndex, crate::Text>();
    let word = &index.pool.words(index.first, 4).unwrap()[3];
    for bit in [0, 30, 63] {
        index.pool.medium().store(word, index.pool.medium().load(word) ^ 1 << bit);
        let opened = TextIndex::open(Arc::clone(&index.pool), "t", Opened::Clean);
        assert!(matches!(opened, Err(TreeError::Pool(_))), "bit {bit}");
        index.pool.medium().store(word, index.pool.medium().load(word) ^ 1 << bit);
    }
    assert!(TextIndex::open(Arc::clone(&index.pool), "t", Opened::Clean).is_ok());
}

/// The first use of a leaf verifies sums: an entry that changed without its commit word is damage.
#[test]
fn a_changed_entry_does_not_pass_for_another() {
    let index = on_dram::<Index<Mapped>, u64>();
    index.insert(1, 10).unwrap();
    let pool = Arc::clone(&index.pool);
    let words = pool.words(index.first, 128).unwrap();
    let value = words.iter().find(|word| pool.medium().load(word) == 10).unwrap();
    assert_eq!(index.check().unwrap().keys, 1);
    pool.medium().store(value, 11);
    assert!(matches!(index.check(), Err(TreeError::Pool(_))));
    let opened = Index::<Mapped>::open(pool, "t", Opened::Clean).unwrap();
    assert!(matches!(opened.get(1), Err(TreeError::Pool(_))));
}

/// The pool was closed, the index was not: the next open ends the epoch.
#[test]
fn after_a_close_of_the_pool_alone_no_record_is_torn() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let index: TextIndex = create_file(&path);
    index.insert(b"yew", 2).unwrap();
    let pool = Arc::clone(&index.pool);
    drop(index);
    Arc::into_inner(pool).unwrap().close().unwrap();

    let index = open_file::<crate::Text>(&path).unwrap();
    change_record(&index, b"yew");
    drop(index);
    assert!(matches!(open_file::<crate::Text>(&path), Err(TreeError::Pool(_))));
}

/// An open after a crash verifies the sums of all cells. It leaves the rest of a leaf to its first
/// use.
#[test]
fn an_open_after_a_crash_visits_no_leaf_and_finds_damage() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pool");
    let index: SmallIndex<_> = create_file(&path);
    for key in 0..1000 {
        index.insert(key << 30, key).unwrap();
    }
    drop(index);
    let index = open_file::<u64>(&path).unwrap();
    let mut leaves = Vec::new();
    index.inner.for_each_leaf(&mut |separated| leaves.push(PmPtr::new(separated.leaf)));
    let unvisited = || leaves.iter().filter(|&&at| index.row_at(at).is_unvisited()).count();
    assert_eq!(unvisited(), leaves.len());
    assert_eq!(index.get(500 << 30).unwrap(), Some(500));
    assert_eq!(unvisited(), leaves.len() - 1);
    let words = index.pool.words(*leaves.last().unwrap(), 32).unwrap();
    let value = words.iter().find(|word| index.pool.medium().load(word) == 999).unwrap();
    index.pool.medium().store(value, 1 << 40);
    drop(index);
    assert!(matches!(open_file::<u64>(&path), Err(TreeError::Pool(_))));
}
