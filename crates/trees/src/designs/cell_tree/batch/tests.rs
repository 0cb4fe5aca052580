//! Tests of batches: content, crashes, costs, refusals.

use super::*;
use crate::index::{Order, PmIndex, TreeStats};
use crate::key::Key;
use crate::leaf_table::testing::{cost, random};
use bristlecone_pmem::medium::{Count, FileOptions};
use bristlecone_pmem::{Mapped, Pool, PoolError};
use core::ops::{Bound, ControlFlow};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

type Index<M = Mapped, const BYTES: usize = 1024> = CellTreeIndex<M, Record, BYTES>;
type Model = BTreeMap<Vec<u8>, Vec<u8>>;
/// The new value of each key; `None` to delete it.
type Writes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

fn on_dram<const BYTES: usize>() -> Index<Mapped, BYTES> {
    let pool = Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap();
    Index::create(Arc::new(pool), "t").unwrap()
}

fn counted() -> Index<Count<Mapped>> {
    let medium = Count::new(Mapped::anonymous(1 << 20).unwrap());
    Index::create(Arc::new(Pool::create(medium).unwrap()), "t").unwrap()
}

/// Returns the value part of an entry, with a record if it needs one, which is flushed.
fn value<M: Medium>(pool: &Pool<M>, key: &[u8], value: &[u8]) -> Value {
    let inline = Record::inline(key, value);
    inline.unwrap_or_else(|| Record::write(pool, key, value).unwrap())
}

fn retire<M: Medium>(pool: &Pool<M>, values: Vec<Value>) {
    let guard = pool.pin();
    for (block, bytes) in
        values.into_iter().filter_map(|value| Record::extent(pool, value).unwrap())
    {
        pool.retire(block, bytes, &guard);
    }
}

/// Does all `writes` in one batch, and keeps the records that it replaces.
fn commit<M: Medium, const BYTES: usize>(
    index: &Index<M, BYTES>,
    writes: &Writes,
) -> Result<Vec<Value>, TreeError> {
    let change = |(key, new): (_, &Option<Vec<u8>>)| PairChange {
        key,
        expected: None,
        new: Some(new.as_ref().map(|new| value(&index.pool, key, new)).into()),
    };
    let changes: Vec<_> = writes.iter().map(|(key, new)| (&key[..], new)).map(change).collect();
    Ok(index.commit_pairs(&changes)?.expect("there is no condition").formers)
}

fn bytes_of<M: Medium>(pool: &Pool<M>, key: &[u8], value: Value) -> Vec<u8> {
    let stored = Record::stored(pool, value).unwrap();
    let mut bytes = vec![0; stored.len()];
    stored.copy_out(pool, key, &mut bytes).unwrap();
    bytes
}

/// Returns all pairs, and checks that each is found by itself.
fn pairs<M: Medium, const BYTES: usize>(index: &Index<M, BYTES>) -> Model {
    let mut found = Vec::new();
    let all = (Bound::Unbounded, Bound::Unbounded);
    let scan = index.scan_pairs(all, Order::Ascending, &mut |key, value| {
        found.push((key.to_vec(), value));
        ControlFlow::Continue(())
    });
    scan.unwrap();
    let with_bytes = found.into_iter().map(|(key, value)| {
        assert_eq!(index.get_pair(&key).unwrap(), Some(value));
        let bytes = bytes_of(&index.pool, &key, value);
        (key, bytes)
    });
    with_bytes.collect()
}

fn apply(model: &mut Model, writes: &Writes) {
    for (key, new) in writes {
        match new {
            Some(new) => model.insert(key.clone(), new.clone()),
            None => model.remove(key),
        };
    }
}

fn key(number: u64) -> Vec<u8> {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().into()
}

fn puts(keys: impl IntoIterator<Item = Vec<u8>>, new: &[u8]) -> Writes {
    keys.into_iter().map(|key| (key, Some(new.to_vec()))).collect()
}

/// A file with an index, which is opened again after a crash or a close.
struct OnFile<const BYTES: usize> {
    index: Option<Index<Mapped, BYTES>>,
    place: tempfile::TempDir,
}

impl<const BYTES: usize> OnFile<BYTES> {
    fn options() -> FileOptions {
        FileOptions { reserve_bytes: 1 << 28, ..FileOptions::default() }
    }

    fn create() -> Self {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("pool");
        let pool = Pool::create(Mapped::create(&path, 1 << 20, &Self::options()).unwrap()).unwrap();
        Self { index: Some(Index::create(Arc::new(pool), "t").unwrap()), place }
    }

    fn index(&self) -> &Index<Mapped, BYTES> {
        self.index.as_ref().unwrap()
    }

    fn open(path: &Path) -> Result<Index<Mapped, BYTES>, TreeError> {
        let (pool, opened) = Pool::open(Mapped::open(path, &Self::options()).unwrap())?;
        Index::open(Arc::new(pool), "t", opened)
    }

    /// Opens the pool again, after a close or a crash.
    fn reopen(&mut self, closes: bool) -> TreeStats {
        let index = self.index.take().unwrap();
        if closes {
            Arc::into_inner(Box::new(index).close().unwrap()).unwrap().close().unwrap();
        } else {
            drop(index);
        }
        let index = self.index.insert(Self::open(&self.place.path().join("pool")).unwrap());
        let stats = index.check().unwrap();
        if !closes {
            // The pool itself has one block.
            assert_eq!(index.pool.usage().blocks, stats.blocks + 1);
        }
        stats
    }
}

/// Applies random batches, and opens the pool again now and then.
fn batches_are_as_in_a_map<const BYTES: usize>(batches: Vec<(Vec<(u16, u8)>, u8)>, keys: u16) {
    let (mut file, mut model) = (OnFile::<BYTES>::create(), Model::new());
    for (step, (changes, then)) in batches.into_iter().enumerate() {
        let writes: Writes = changes
            .into_iter()
            .map(|(number, act)| {
                let number = u64::from(number % keys);
                let key = if number.is_multiple_of(5) {
                    [&b"a key with a record "[..], &key(number)].concat()
                } else {
                    key(number)
                };
                let new = match act % 8 {
                    0 | 1 => None,
                    2 | 3 => Some(vec![step as u8; 40]),
                    act => Some(vec![step as u8; act.into()]),
                };
                (key, new)
            })
            .collect();
        let formers = commit(file.index(), &writes).unwrap();
        retire(&file.index().pool, formers);
        apply(&mut model, &writes);
        if then < 3 {
            file.reopen(then == 0);
        }
        assert_eq!(pairs(file.index()), model);
        assert_eq!(file.index().check().unwrap().keys, model.len() as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn batches_of_small_leaves_are_as_in_a_map(
        batches in prop::collection::vec(
            (prop::collection::vec((any::<u16>(), any::<u8>()), 1..200), 0..9_u8), 1..15,
        ),
        keys in 1..600_u16,
    ) {
        batches_are_as_in_a_map::<256>(batches, keys);
    }

    #[test]
    fn batches_of_large_leaves_are_as_in_a_map(
        batches in prop::collection::vec(
            (prop::collection::vec((any::<u16>(), any::<u8>()), 1..200), 0..9_u8), 1..15,
        ),
        keys in 1..600_u16,
    ) {
        batches_are_as_in_a_map::<1024>(batches, keys);
    }
}

/// Single writes and batches change the same cells, in turn.
#[test]
fn single_writes_go_on_in_cells_of_batches() {
    let (mut file, mut model, mut state) = (OnFile::<256>::create(), Model::new(), 5);
    for step in 0..400_u64 {
        let new = |state: &mut _| vec![step as u8; (random(state) % 3 * 10) as usize];
        let mut writes = Writes::new();
        for _ in 0..random(&mut state) % 12 {
            let key = key(random(&mut state) % 90);
            let is_put = !random(&mut state).is_multiple_of(3);
            writes.insert(key, is_put.then(|| new(&mut state)));
        }
        retire(&file.index().pool, commit(file.index(), &writes).unwrap());
        apply(&mut model, &writes);
        for _ in 0..random(&mut state) % 20 {
            let (key, index) = (key(random(&mut state) % 90), file.index());
            let old = if random(&mut state).is_multiple_of(3) {
                model.remove(&key);
                index.remove_pair(&key).unwrap()
            } else {
                let new = new(&mut state);
                let word = value(&index.pool, &key, &new);
                model.insert(key.clone(), new);
                index.upsert_pair(&key, word).unwrap()
            };
            retire(&index.pool, old.into_iter().collect());
        }
        if step % 7 == 0 {
            file.reopen(step % 2 == 0);
        }
        assert_eq!(pairs(file.index()), model, "step {step}");
        file.index().check().unwrap();
    }
}

/// A crash before the commit leaves all cells of the batch, and the number of the batch before.
#[test]
fn a_batch_without_its_number_is_taken_back() {
    for (round, long) in (0..6).map(|round| (round, round % 2 == 1)) {
        let (mut file, mut model) = (OnFile::<256>::create(), Model::new());
        let first = puts((0..60 + round).map(key), b"old");
        commit(file.index(), &first).unwrap();
        apply(&mut model, &first);
        let medium = file.index().pool.medium();
        let header = CellLeaf::new(&file.index().pool, file.index().first, 256).unwrap();
        let number = header.batch(medium).unwrap();
        let mut writes: Writes = (0..12).map(|part| (key(part * 7 + round), None)).collect();
        let new = if long { vec![7; 50] } else { vec![7; 5] };
        writes.extend(puts((0..10).map(|part| key(part * 5 + round)), &new));
        writes.extend(puts((100..103).map(key), &new));
        let leaves = file.index().check().unwrap().leaves;
        commit(file.index(), &writes).unwrap();
        assert!(header.batch(medium).unwrap() > number);
        header.commit_batch(medium, number, medium.fence());
        let stats = file.reopen(false);
        assert!(stats.leaves >= leaves);
        assert_eq!(pairs(file.index()), model, "round {round}");
        // The same number comes again, and nothing of the old batch comes back with it.
        let again = puts((200..204).map(key), &new);
        commit(file.index(), &again).unwrap();
        apply(&mut model, &again);
        file.reopen(false);
        assert_eq!(pairs(file.index()), model, "round {round}");
        commit(file.index(), &writes).unwrap();
        apply(&mut model, &writes);
        file.reopen(false);
        assert_eq!(pairs(file.index()), model, "round {round}");
    }
}

#[test]
fn a_damaged_number_is_refused() {
    for in_header in [false, true] {
        let file = OnFile::<1024>::create();
        commit(file.index(), &puts((0..20).map(key), b"1")).unwrap();
        let (pool, first) = (&file.index().pool, file.index().first);
        let leaf = CellLeaf::new(pool, first, 1024).unwrap();
        let is_batched =
            |&cell: &usize| leaf.cell::<PairCells>(cell).commit_word(pool.medium()).is_batched();
        let cell = (0..15).find(is_batched).unwrap();
        let words = if in_header { leaf.words() } else { leaf.cell::<PairCells>(cell).words };
        let word = pool.medium().load(&words[7]);
        pool.medium().store(&words[7], word ^ 1 << 40);
        let OnFile { index, place } = file;
        drop(index);
        let opened = OnFile::<1024>::open(&place.path().join("pool"));
        assert!(matches!(opened, Err(TreeError::Pool(PoolError::Corrupt(_)))), "{in_header}");
    }
}

#[test]
fn a_batch_in_a_leaf_with_space_costs_its_cells_and_one_line() {
    let index = counted();
    let put = |keys: Vec<Vec<u8>>, new: &[u8]| {
        let writes = puts(keys, new);
        cost(&index, |index| assert_eq!(commit(index, &writes).unwrap(), []))
    };
    // One cell, that of one key.
    assert_eq!(put(vec![key(1)], b"1"), (1, 1));
    assert_eq!(put(vec![key(1)], b"2"), (1, 1));
    let delete = Writes::from([(key(1), None)]);
    assert_eq!(cost(&index, |index| drop(commit(index, &delete).unwrap())), (1, 1));
    // Two cells.
    let near = |number: u64| Index::<Mapped>::candidates(Record::hash(&key(number))).0;
    let other =
        (2..100).find(|&other| !near(other).iter().any(|cell| near(1).contains(cell))).unwrap();
    assert_eq!(put(vec![key(1), key(other)], b"3"), (3, 2));
    // A record of one line, in one cell and in two.
    assert_eq!(put(vec![key(1)], &[7; 20]), (2, 2));
    let writes = puts([key(1), key(other)], &[8; 20]);
    assert_eq!(cost(&index, |index| drop(commit(index, &writes).unwrap())), (5, 2));
    assert_eq!(index.check().unwrap().keys, 2);
}

#[test]
fn a_batch_over_many_leaves_costs_its_cells_and_one_line() {
    let index = counted();
    for part in 0..40 {
        commit(&index, &puts((0..50).map(|number| key(part * 50 + number)), b"1")).unwrap();
    }
    let updates = |new: &[u8]| puts((0..100).map(|number| key(number * 20)), new);
    // Makes space in leaves that are almost full.
    commit(&index, &updates(b"2")).unwrap();
    let leaves = index.check().unwrap().leaves;
    let writes = updates(b"3");
    let (lines, fences) = cost(&index, |index| drop(commit(index, &writes).unwrap()));
    assert_eq!((index.check().unwrap().leaves, fences), (leaves, 2));
    // An update in a full cell takes another cell, too.
    assert!((101..=140).contains(&lines), "{lines}");
    let found = pairs(&index);
    assert!(writes.iter().all(|(key, new)| found.get(key) == new.as_ref()));
    assert_eq!(found.len(), 2000);
}

#[test]
fn a_batch_fills_new_leaves() {
    let index = on_dram::<1024>();
    let ascending = |from: u64| (from..from + 500).map(|number| number.to_be_bytes().to_vec());
    for from in [0, 500, 1000] {
        commit(&index, &puts(ascending(from), b"1")).unwrap();
    }
    let stats = index.check().unwrap();
    assert_eq!(stats.keys, 1500);
    assert!(stats.leaves <= 48, "{}", stats.leaves);
    let all = (0..1500_u64).map(|number| (number.to_be_bytes().to_vec(), None)).collect();
    commit(&index, &all).unwrap();
    let stats = index.check().unwrap();
    assert_eq!((stats.keys, stats.leaves), (0, 1));
}

#[test]
fn a_condition_that_does_not_hold_changes_nothing() {
    let index = on_dram::<1024>();
    commit(&index, &puts([key(1), key(2)], b"1")).unwrap();
    let before = pairs(&index);
    let state = |bytes: &[u8]| Some(PairState::Present(value(&index.pool, &key(1), bytes)));
    let [one, two, three] = [1, 2, 3].map(key);
    let mut keys = [&one[..], &two, &three];
    keys.sort_unstable();
    let mut changes: Vec<_> =
        keys.iter().map(|key| PairChange { key, expected: None, new: state(b"9") }).collect();
    let third = keys.iter().position(|key| *key == three).unwrap();
    for (at, expected, is_met) in [
        (third, state(b"1"), false),
        ((third + 1) % 3, state(b"2"), false),
        ((third + 1) % 3, Some(PairState::Absent), false),
        (third, Some(PairState::Absent), true),
    ] {
        changes[at].expected = expected;
        let committed = index.commit_pairs(&changes).unwrap();
        assert_eq!(committed.is_some(), is_met);
        assert_eq!(pairs(&index) == before, !is_met);
        changes[at].expected = None;
    }
    let condition = PairChange { key: &one, expected: state(b"9"), new: None };
    assert!(index.commit_pairs(&[condition]).unwrap().is_some());
    assert!(index.commit_pairs(&[]).unwrap().is_some());
}

#[test]
fn a_full_pool_refuses_a_batch_and_changes_nothing() {
    let options = FileOptions { reserve_bytes: 1 << 20, ..FileOptions::default() };
    let place = tempfile::tempdir().unwrap();
    let medium = Mapped::create(&place.path().join("pool"), 1 << 20, &options).unwrap();
    let index: Index = Index::create(Arc::new(Pool::create(medium).unwrap()), "t").unwrap();
    commit(&index, &puts((0..40).map(key), b"1")).unwrap();
    let mut blocks = Vec::new();
    while let Ok(block) = index.pool.reserve(1024) {
        blocks.push(block);
    }
    for block in blocks.drain(..3) {
        index.pool.release(block, 1024);
    }
    let (before, usage) = (pairs(&index), index.pool.usage().blocks);
    let many = puts((100..600).map(key), b"2");
    assert!(matches!(commit(&index, &many), Err(TreeError::Pool(PoolError::Full { .. }))));
    assert_eq!((pairs(&index), index.pool.usage().blocks), (before, usage));
    index.check().unwrap();
}

/// Lookups beside batches find all of a batch or none, and batches that share keys are in an order.
#[test]
fn threads_find_all_of_a_batch_or_none() {
    let index = on_dram::<256>();
    let keys: Vec<_> = (0..40).map(key).collect();
    commit(&index, &puts(keys.clone(), b"0")).unwrap();
    let number = |key: &[u8]| {
        let bytes = bytes_of(&index.pool, key, index.get_pair(key).unwrap().unwrap());
        String::from_utf8(bytes).unwrap().parse::<u64>().unwrap()
    };
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (index, keys) = (&index, &keys);
            scope.spawn(move || {
                for step in (1..400).filter(|step| step % 2 == thread) {
                    let expected = |key: &Vec<u8>| index.get_pair(key).unwrap().into();
                    loop {
                        let expected = expected(&keys[0]);
                        let new = |key: &[u8]| value(&index.pool, key, step.to_string().as_bytes());
                        let mut changes: Vec<_> = keys
                            .iter()
                            .map(|key| PairChange {
                                key,
                                expected: (*key == keys[0]).then_some(expected),
                                new: Some(PairState::Present(new(key))),
                            })
                            .collect();
                        changes.sort_unstable_by_key(|change| change.key);
                        if index.commit_pairs(&changes).unwrap().is_some() {
                            break;
                        }
                    }
                }
            });
        }
        for _ in 0..2000 {
            // Numbers of one thread ascend, so what is found later is of the same batch or a later
            // one of either thread.
            let [a, b] = [&keys[3], &keys[30]].map(|key| number(key));
            assert!(b % 2 != a % 2 || b >= a, "{a}, then {b}");
        }
    });
    let all: Vec<_> = pairs(&index).into_values().collect();
    assert!(all.len() == 40 && all.iter().all(|value| *value == all[0]));
}
